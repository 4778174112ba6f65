//! Random graphs compared with slow recomputation, and tiny ones with brute force.

#![allow(clippy::unwrap_used)]

use mingle_planner::{
    DesignOptions, Link, Method, Plan, Topology,
    augmentation::augment,
    coloring,
    conflict_graph::{ConflictGraph, conflict},
    design,
    digraph::Digraph,
    distance::{self, Distances, UNREACHABLE},
    extra_edges::FarthestEdges,
    minimum_degree_spanning_tree::minimum_degree_spanning_tree,
    objective::ln_iteration_factor,
    orientation::orient,
};
use proptest::prelude::*;

mod conflicts;

use conflicts::conflicts_of;

/// A connected graph: a random tree, and every other pair with the given density.
fn topologies(nodes: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Topology> {
    let parts = nodes.prop_flat_map(|n| {
        let parents = prop::collection::vec(any::<prop::sample::Index>(), n - 1);
        (Just(n), parents, prop::collection::vec(0.0..1.0_f64, n * (n - 1) / 2), 0.0..1.0_f64)
    });
    parts.prop_map(|(n, parents, draws, density)| {
        let mut edges: Vec<_> = parents.iter().enumerate().map(|(at, parent)| (parent.index(at + 1), at + 1)).collect();
        let pairs = (0..n).flat_map(|u| (u + 1..n).map(move |v| (u, v)));
        edges.extend(pairs.zip(draws).filter(|&(_, draw)| draw < density * density).map(|(pair, _)| pair));
        Topology::new((0..n).map(|node| node.to_string()).collect(), &edges).unwrap()
    })
}

fn step_3(topology: &Topology, extra: usize) -> Vec<Link> {
    let mut edges = minimum_degree_spanning_tree(topology);
    let farthest = FarthestEdges::new(topology, &edges);
    edges.extend(farthest.take(extra));
    orient(topology.node_count(), &edges)
}

/// Floyd and Warshall: another algorithm for the same distances.
fn floyd_warshall(graph: &Digraph) -> Vec<Vec<usize>> {
    let n = graph.node_count();
    let mut hops = vec![vec![usize::MAX / 2; n]; n];
    for (node, row) in hops.iter_mut().enumerate() {
        row[node] = 0;
        graph.successors(node).iter().for_each(|&next| row[next] = 1);
    }
    for via in 0..n {
        for from in 0..n {
            for to in 0..n {
                hops[from][to] = hops[from][to].min(hops[from][via] + hops[via][to]);
            }
        }
    }
    hops
}

/// The conflict rule as [NH] section 2.4 writes it, condition by condition.
fn literal_conflict(topology: &Topology, a: Link, b: Link) -> bool {
    let half_duplex = a.from == b.to || a.to == b.from;
    let interference = a.from != b.from && (topology.has_edge(a.from, b.to) || topology.has_edge(b.from, a.to));
    let same_receiver = a.from != b.from && a.to == b.to;
    half_duplex || interference || same_receiver
}

/// Step 4 as the paper writes it, with every candidate, slot and distance computed anew.
fn literal_augment(topology: &Topology, mut slots: Vec<Vec<Link>>) -> Vec<Vec<Link>> {
    let n = topology.node_count();
    let factor = |slots: &[Vec<Link>]| {
        let graph = Digraph::new(n, slots.iter().flatten().copied());
        let diameter = floyd_warshall(&graph).into_iter().flatten().max().unwrap();
        ln_iteration_factor(diameter, graph.max_out_degree())
    };
    let gamma = factor(&slots) + 1e-9;
    loop {
        let mut best: Option<(f64, Link, usize)> = None;
        let mut all: Vec<Link> =
            topology.edges().iter().flat_map(|&(u, v)| [Link::new(u, v), Link::new(v, u)]).collect();
        all.sort_unstable();
        for link in all {
            if slots.iter().flatten().any(|&active| active == link) {
                continue;
            }
            let fits = |slot: &Vec<Link>| slot.iter().all(|&other| !literal_conflict(topology, link, other));
            let Some(slot) = slots.iter().position(fits) else {
                continue;
            };
            slots[slot].push(link);
            let value = factor(&slots);
            slots[slot].pop();
            if best.is_none_or(|(least, ..)| value < least) {
                best = Some((value, link, slot));
            }
        }
        match best {
            Some((value, link, slot)) if value <= gamma => slots[slot].push(link),
            _ => break,
        }
    }
    slots.iter_mut().for_each(|slot| slot.sort_unstable());
    slots
}

/// Returns `true` if the vertices from `at` on can be coloured with `colors` colours.
fn colorable(conflicts: &[Vec<usize>], chosen: &mut Vec<usize>, colors: usize) -> bool {
    let at = chosen.len();
    if at == conflicts.len() {
        return true;
    }
    let used = chosen.iter().max().map_or(0, |&last| last + 1);
    for color in 0..colors.min(used + 1) {
        if conflicts[at].iter().all(|&other| other >= at || chosen[other] != color) {
            chosen.push(color);
            if colorable(conflicts, chosen, colors) {
                return true;
            }
            chosen.pop();
        }
    }
    false
}

/// The least maximum degree of all spanning trees, by trying every set of `n - 1` edges.
fn least_degree(topology: &Topology) -> usize {
    let (n, edges) = (topology.node_count(), topology.edges());
    let subsets = (0_u32..1 << edges.len()).filter(|set| set.count_ones() as usize == n - 1);
    let degree = |set: u32| {
        let chosen: Vec<_> = (0..edges.len()).filter(|at| set >> at & 1 == 1).map(|at| edges[at]).collect();
        Topology::new(topology.names().to_vec(), &chosen).ok()?;
        (0..n).map(|node| chosen.iter().filter(|&&(u, v)| u == node || v == node).count()).max()
    };
    subsets.filter_map(degree).min().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn conflicts_are_exactly_those_of_the_written_rule(topology in topologies(2..=9)) {
        let links: Vec<Link> = topology.edges().iter().flat_map(|&(u, v)| [Link::new(u, v), Link::new(v, u)]).collect();
        let graph = ConflictGraph::new(&topology, links.clone());
        for (index, &link) in links.iter().enumerate() {
            let expected: Vec<usize> = (0..links.len())
                .filter(|&other| other != index && literal_conflict(&topology, link, links[other]))
                .collect();
            prop_assert_eq!(conflicts_of(&graph, index), expected);
            prop_assert!(links.iter().all(|&other| conflict(&topology, link, other) == conflict(&topology, other, link)));
        }
    }

    #[test]
    fn colourings_are_proper_and_at_most_two_above_the_optimum(topology in topologies(2..=6), extra in 0_usize..4) {
        let graph = ConflictGraph::new(&topology, step_3(&topology, extra));
        let colors = coloring::dsatur(&graph);
        let conflicts: Vec<Vec<usize>> = (0..colors.len()).map(|link| conflicts_of(&graph, link)).collect();
        for (link, others) in conflicts.iter().enumerate() {
            prop_assert!(others.iter().all(|&other| colors[other] != colors[link]));
        }
        let used = colors.iter().max().unwrap() + 1;
        let optimum = (1..=used).find(|&tau| colorable(&conflicts, &mut Vec::new(), tau)).unwrap();
        prop_assert!(used <= optimum + 2, "{used} slots where {optimum} are enough");
    }

    #[test]
    fn spanning_trees_are_within_one_of_the_least_degree(topology in topologies(2..=7)) {
        prop_assume!(topology.edges().len() <= 14);
        let tree = minimum_degree_spanning_tree(&topology);
        prop_assert!(tree.iter().all(|&(u, v)| topology.has_edge(u, v)));
        let spanned = Topology::new(topology.names().to_vec(), &tree).unwrap();
        prop_assert_eq!(spanned.edges().len() + 1, topology.node_count());
        let degree = (0..spanned.node_count()).map(|node| spanned.neighbors(node).len()).max().unwrap();
        prop_assert!(degree <= least_degree(&topology) + 1);
    }

    #[test]
    fn large_spanning_trees_span(topology in topologies(20..=60)) {
        let tree = minimum_degree_spanning_tree(&topology);
        let spanned = Topology::new(topology.names().to_vec(), &tree).unwrap();
        prop_assert_eq!(spanned.edges().len() + 1, topology.node_count());
    }

    #[test]
    fn distances_follow_the_graph_as_links_are_added(topology in topologies(2..=12), extra in 0_usize..6) {
        let links = step_3(&topology, extra);
        let (start, later) = links.split_at(links.len() / 2);
        let mut graph = Digraph::new(topology.node_count(), start.iter().copied());
        let mut distances = Distances::of(&graph);
        for &link in later {
            let promised = distances.diameter_with(link);
            distances.insert_link(link);
            graph.insert(link);
            prop_assert_eq!(promised, distances.diameter());
            prop_assert_eq!(&distances, &Distances::of(&graph));
        }
        for (from, row) in floyd_warshall(&graph).into_iter().enumerate() {
            for (to, hops) in row.into_iter().enumerate() {
                prop_assert_eq!(usize::from(distances.between(from, to)), hops);
            }
        }
        prop_assert_eq!(distance::diameter(&graph), Some(usize::from(distances.diameter())));
    }

    #[test]
    fn orientation_keeps_every_edge_and_connects_strongly(topology in topologies(2..=15), extra in 0_usize..10) {
        let mut edges = minimum_degree_spanning_tree(&topology);
        let farthest = FarthestEdges::new(&topology, &edges);
        edges.extend(farthest.take(extra));
        let links = orient(topology.node_count(), &edges);
        let graph = Digraph::new(topology.node_count(), links.iter().copied());
        prop_assert_eq!(graph.first_cut_off(), None);
        for (at, &(u, v)) in edges.iter().enumerate() {
            let mut rest = edges.clone();
            rest.remove(at);
            let is_bridge = Topology::new(topology.names().to_vec(), &rest).is_err();
            let directions = usize::from(graph.contains(Link::new(u, v))) + usize::from(graph.contains(Link::new(v, u)));
            prop_assert_eq!(directions, if is_bridge { 2 } else { 1 });
        }
    }

    #[test]
    fn augmentation_takes_the_same_links_as_the_written_algorithm(topology in topologies(2..=8), extra in 0_usize..5) {
        let graph = ConflictGraph::new(&topology, step_3(&topology, extra));
        let slots = coloring::slots(graph.links(), &coloring::dsatur(&graph));
        prop_assert_eq!(augment(&topology, slots.clone()), literal_augment(&topology, slots));
    }

    #[test]
    fn damaged_bytes_are_refused_or_are_a_valid_plan(
        topology in topologies(2..=6), damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4), cut in any::<prop::sample::Index>()
    ) {
        let mut bytes = design(&topology, Method::NguyenHe, &DesignOptions::default()).unwrap().to_postcard().unwrap();
        prop_assert!(Plan::from_postcard(&bytes[..cut.index(bytes.len())]).is_err());
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(plan) = Plan::from_postcard(&bytes) {
            prop_assert_eq!(plan.to_postcard().unwrap(), bytes);
        }
    }

    #[test]
    fn any_text_is_a_topology_or_an_error(text in "[ -~\n]{0,60}") {
        if let Ok(topology) = Topology::parse(&text) {
            prop_assert!(topology.node_count() >= 2);
        }
        let _ = Topology::generate(&text);
        prop_assert!(Plan::from_json(&text).is_err());
    }
}

#[test]
fn nodes_that_no_path_joins_are_unreachable() {
    let graph = Digraph::new(3, [Link::new(0, 1)]);
    let distances = Distances::of(&graph);
    assert_eq!((distances.between(0, 1), distances.between(1, 0)), (1, UNREACHABLE));
    assert_eq!(distance::diameter(&graph), None);
}
