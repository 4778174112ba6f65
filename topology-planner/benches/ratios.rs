//! Mingle compared with petgraph, and incremental work with work from the beginning, as a table of ratios.
//!
//! The two sides of a line are timed in turn, so that a busy machine disturbs both alike. They get the same graph,
//! ready in the form each wants, and their results are compared before a clock runs.

#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use mingle_bench::{ComparisonRow, in_turns, print_head};
use mingle_planner::{
    Link, Topology, coloring,
    conflict_graph::ConflictGraph,
    digraph::Digraph,
    distance::{self, Distances},
};
use petgraph::{
    algo::{dsatur_coloring, floyd_warshall},
    graph::{DiGraph, NodeIndex, UnGraph},
    visit::Bfs,
};

const TURNS: usize = 15;

fn ratios(_: &mut Criterion) {
    print_head("planner");
    for expression in ["rg:n=33,r=0.5,seed=0", "windmill:cliques=3,size=21", "rg:n=300,r=0.15,seed=1"] {
        let topology = Topology::generate(expression).unwrap();
        colorings(expression, &topology);
        diameters(expression, &topology);
        one_link_more(expression, &topology);
    }
}

fn colorings(expression: &str, topology: &Topology) {
    let graph = ConflictGraph::new(topology, both_ways(topology));
    let mut rival = UnGraph::<(), ()>::default();
    let nodes: Vec<NodeIndex> = graph.links().iter().map(|_| rival.add_node(())).collect();
    for link in 0..nodes.len() {
        graph.for_each_conflict(link, |other| {
            if link < other {
                rival.add_edge(nodes[link], nodes[other], ());
            }
        });
    }
    let ours = coloring::dsatur(&graph).into_iter().max().unwrap() + 1;
    let (_, theirs) = dsatur_coloring(&rival);
    print(
        &format!("DSATUR, {ours} and {theirs} slots"),
        expression,
        "petgraph",
        || coloring::dsatur(black_box(&graph)),
        || dsatur_coloring(black_box(&rival)),
    );
}

fn diameters(expression: &str, topology: &Topology) {
    let graph = Digraph::new(topology.node_count(), both_ways(topology));
    let mut rival = DiGraph::<(), ()>::default();
    let nodes: Vec<NodeIndex> = (0..topology.node_count()).map(|_| rival.add_node(())).collect();
    for link in graph.links() {
        rival.add_edge(nodes[link.from], nodes[link.to], ());
    }
    let by_search = |rival: &DiGraph<(), ()>| nodes.iter().map(|&node| eccentricity(rival, node)).max().unwrap();
    assert_eq!(distance::diameter(&graph), Some(by_search(&rival)));
    let ours = || distance::diameter(black_box(&graph));
    print("diameter", expression, "petgraph, searches", ours, || by_search(black_box(&rival)));
    print("diameter", expression, "petgraph, Floyd-Warshall", ours, || floyd_warshall(black_box(&rival), |_| 1_u16));
}

/// The largest distance from `start`; petgraph's search gives the order of the nodes, not their distances.
fn eccentricity(graph: &DiGraph<(), ()>, start: NodeIndex) -> usize {
    let mut hops = vec![usize::MAX; graph.node_count()];
    hops[start.index()] = 0;
    let mut search = Bfs::new(graph, start);
    let mut farthest = 0;
    while let Some(node) = search.next(graph) {
        farthest = hops[node.index()];
        for next in graph.neighbors(node) {
            hops[next.index()] = hops[next.index()].min(farthest + 1);
        }
    }
    farthest
}

/// The diameter after one more link, from the distances before it.
fn one_link_more(expression: &str, topology: &Topology) {
    let mut links = both_ways(topology);
    let last = links.pop().unwrap();
    let before = Digraph::new(topology.node_count(), links.iter().copied());
    let after = Digraph::new(topology.node_count(), links.into_iter().chain([last]));
    let distances = Distances::of(&before);
    assert_eq!(Some(usize::from(distances.diameter_with(last))), distance::diameter(&after));
    print(
        "diameter with one link more",
        expression,
        "from the beginning",
        || distances.diameter_with(black_box(last)),
        || distance::diameter(black_box(&after)),
    );
}

fn both_ways(topology: &Topology) -> Vec<Link> {
    topology.edges().iter().flat_map(|&(u, v)| [Link::new(u, v), Link::new(v, u)]).collect()
}

fn print<A, B>(what: &str, graph: &str, rival: &str, ours: impl FnMut() -> A, theirs: impl FnMut() -> B) {
    let turns = in_turns(TURNS, ours, theirs);
    ComparisonRow::of_times("planner", format!("{what}, {graph}"), rival, &turns).print();
}

criterion_group!(benches, ratios);
criterion_main!(benches);
