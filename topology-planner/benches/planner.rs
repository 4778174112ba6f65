//! Costs of planning: whole designs, each step of Algorithm 1, and the forecast.

#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use mingle_planner::{
    DesignOptions, ExtraEdges, Link, Method, Plan, Topology, augmentation::augment, coloring,
    conflict_graph::ConflictGraph, design, digraph::Digraph, distance, extra_edges::FarthestEdges,
    minimum_degree_spanning_tree::minimum_degree_spanning_tree, orientation::orient,
};

const RANDOM_GEOMETRIC: &str = "rg:n=33,r=0.5,seed=0";
const WINDMILL: &str = "windmill:cliques=3,size=21";

fn generate(expression: &str) -> Topology {
    Topology::generate(expression).unwrap()
}

fn both_ways(topology: &Topology) -> Vec<Link> {
    topology.edges().iter().flat_map(|&(u, v)| [Link::new(u, v), Link::new(v, u)]).collect()
}

fn whole_designs(c: &mut Criterion) {
    for (name, expression) in
        [("33_nodes", RANDOM_GEOMETRIC), ("windmill_61", WINDMILL), ("128_nodes", "rg:n=128,r=0.25")]
    {
        let topology = generate(expression);
        let options = DesignOptions::default();
        c.bench_function(&format!("design_with_full_sweep/{name}"), |b| {
            b.iter(|| design(black_box(&topology), Method::NguyenHe, &options).unwrap());
        });
    }
    let options = DesignOptions { extra_edges: ExtraEdges::Exactly(3), ..DesignOptions::default() };
    for (name, expression) in [("33_nodes", RANDOM_GEOMETRIC), ("windmill_61", WINDMILL)] {
        let topology = generate(expression);
        c.bench_function(&format!("design_with_3_extra_edges/{name}"), |b| {
            b.iter(|| design(black_box(&topology), Method::NguyenHe, &options).unwrap());
        });
    }
}

fn sampled_designs(c: &mut Criterion) {
    let topology = generate(RANDOM_GEOMETRIC);
    let options = DesignOptions::default();
    let mut group = c.benchmark_group("sampled_design");
    group.sample_size(10);
    for method in [Method::Matcha, Method::BassHeuristic, Method::BassOptimised] {
        group.bench_function(format!("{method}/33_nodes"), |b| {
            b.iter(|| design(black_box(&topology), method, &options).unwrap());
        });
    }
}

fn steps(c: &mut Criterion) {
    let topology = generate(RANDOM_GEOMETRIC);
    c.bench_function("spanning_tree/33_nodes", |b| {
        b.iter(|| minimum_degree_spanning_tree(black_box(&topology)));
    });
    let mut edges = minimum_degree_spanning_tree(&topology);
    let farthest = FarthestEdges::new(&topology, &edges);
    edges.extend(farthest.take(6));
    let graph = ConflictGraph::new(&topology, orient(33, &edges));
    let slots = coloring::slots(graph.links(), &coloring::dsatur(&graph));
    c.bench_function("augmentation/33_nodes", |b| {
        b.iter(|| augment(black_box(&topology), slots.clone()));
    });
    for (name, expression) in [("33_nodes", RANDOM_GEOMETRIC), ("windmill_61", WINDMILL)] {
        let topology = generate(expression);
        let graph = ConflictGraph::new(&topology, both_ways(&topology));
        c.bench_function(&format!("coloring_all_links/{name}"), |b| {
            b.iter(|| coloring::dsatur(black_box(&graph)));
        });
        let digraph = Digraph::new(topology.node_count(), both_ways(&topology));
        c.bench_function(&format!("diameter_all_links/{name}"), |b| {
            b.iter(|| distance::diameter(black_box(&digraph)));
        });
    }
}

fn plans(c: &mut Criterion) {
    let plan = design(&generate(WINDMILL), Method::NguyenHe, &DesignOptions::default()).unwrap();
    let (text, bytes) = (plan.to_json(), plan.to_postcard().unwrap());
    println!("the windmill's plan: {} bytes of JSON, {} on the wire", text.len(), bytes.len());
    c.bench_function("forecast/windmill_61", |b| {
        b.iter(|| black_box(&plan).recompute_forecast().unwrap());
    });
    c.bench_function("from_json/windmill_61", |b| {
        b.iter(|| Plan::from_json(black_box(&text)).unwrap());
    });
    c.bench_function("from_postcard/windmill_61", |b| {
        b.iter(|| Plan::from_postcard(black_box(&bytes)).unwrap());
    });
}

criterion_group!(benches, whole_designs, sampled_designs, steps, plans);
criterion_main!(benches);
