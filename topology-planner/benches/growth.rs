//! Growth of the cost of a design with the graph: times over sizes, and the exponent between them.
//!
//! Geometric graphs of mean degree 20, one value of `K`; the shorter of two runs a size, one where a run takes seconds.
//! `MINGLE_BENCH_NODES` sets the largest graph (3,000). The second table holds slow designs: by search, and for graphs
//! of 10,000 and 100,000 nodes. The last goes to a million nodes.

#![allow(missing_docs, clippy::unwrap_used)]

use std::f64::consts::PI;
use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use mingle_planner::{DesignOptions, ExtraEdges, Medium, Method, Topology, design};

const SIZES: [usize; 8] = [50, 100, 200, 400, 700, 1000, 2000, 3000];
const MEAN_DEGREE: f64 = 20.0;

fn growth(_: &mut Criterion) {
    let largest = std::env::var("MINGLE_BENCH_NODES").map_or(3000, |text| text.parse().unwrap());
    let options = DesignOptions { extra_edges: ExtraEdges::Exactly(8), ..DesignOptions::default() };
    println!("\nnguyen-he, K = 8\n nodes   edges   slots        time  exponent");
    let mut before: Option<(usize, Duration)> = None;
    for nodes in SIZES.into_iter().filter(|&nodes| nodes <= largest) {
        let topology = geometric(nodes);
        let (slots, time) = timed(&topology, Method::NguyenHe, &options);
        let exponent = before.map_or_else(String::new, |(fewer, shorter)| {
            let ratio = time.as_secs_f64() / shorter.as_secs_f64();
            format!("{:.2}", ratio.ln() / (nodes as f64 / fewer as f64).ln())
        });
        println!("{nodes:>6}  {:>6}  {slots:>6}  {time:>10.1?}  {exponent:>8}", topology.edges().len());
        before = Some((nodes, time));
    }
}

/// A geometric graph of mean degree 20. As long as the radius is small, a node has `pi r^2 n` neighbours, a few less at
/// the edges of the square.
fn geometric(nodes: usize) -> Topology {
    let radius = 1.06 * (MEAN_DEGREE / (PI * nodes as f64)).sqrt();
    Topology::generate(&format!("rg:n={nodes},r={radius:.6},seed=1")).unwrap()
}

fn long_designs(_: &mut Criterion) {
    println!("\ndesign                nodes    edges   slots        time");
    let options = DesignOptions::default();
    for (method, topology) in [
        (Method::Tuned, Topology::generate("rg:n=33,r=0.5,seed=0").unwrap()),
        (Method::Tuned, geometric(100)),
        (Method::Tuned, geometric(1_000)),
        (Method::Tuned, geometric(3_000)),
        (Method::ExactAverage, geometric(10_000)),
        (Method::DPsgd, geometric(10_000)),
        (Method::SgpUniform, geometric(10_000)),
        (Method::DPsgd, geometric(100_000)),
        (Method::OnePeerExponential, Topology::generate("exponential:n=10000").unwrap()),
    ] {
        let (slots, time) = timed(&topology, method, &options);
        let (nodes, edges) = (topology.node_count(), topology.edges().len());
        println!("{:<20} {nodes:>6} {edges:>8}  {slots:>6}  {time:>10.1?}", method.to_string());
    }
}

/// Exact averages and one-peer exponential graphs from a thousand nodes to a million, and the ratio of times for ten
/// times the nodes. `MINGLE_BENCH_LARGEST` sets the largest.
fn to_a_million(_: &mut Criterion) {
    let largest = std::env::var("MINGLE_BENCH_LARGEST").map_or(1_000_000, |text| text.parse().unwrap());
    let wired = DesignOptions { medium: Medium::PointToPoint, ..DesignOptions::default() };
    for (method, options) in [
        (Method::ExactAverage, DesignOptions::default()),
        (Method::ExactAverage, wired.clone()),
        (Method::OnePeerExponential, wired),
    ] {
        println!("\n{method}, {:?}\n  nodes     edges   steps   slots        time  ratio", options.medium);
        let mut before: Option<Duration> = None;
        for nodes in [1_000, 10_000, 100_000, 1_000_000].into_iter().filter(|&nodes| nodes <= largest) {
            let topology = match method {
                Method::ExactAverage => geometric(nodes),
                _ => Topology::generate(&format!("exponential:n={nodes}")).unwrap(),
            };
            let start = Instant::now();
            let plan = design(black_box(&topology), method, &options).unwrap();
            let time = start.elapsed();
            let ratio =
                before.map_or_else(String::new, |before| format!("{:.1}", time.as_secs_f64() / before.as_secs_f64()));
            let (edges, slots) = (topology.edges().len(), plan.forecast().slots_per_period);
            println!("{nodes:>7}  {edges:>8}  {:>6}  {slots:>6}  {time:>10.1?}  {ratio:>5}", plan.steps().len());
            before = Some(time);
        }
    }
}

/// Slots per period, and the time of the design.
fn timed(topology: &Topology, method: Method, options: &DesignOptions) -> (usize, Duration) {
    let run = || {
        let start = Instant::now();
        let plan = design(black_box(topology), method, options).unwrap();
        (plan.forecast().slots_per_period, start.elapsed())
    };
    let (slots, time) = run();
    if time > Duration::from_secs(5) { (slots, time) } else { (slots, time.min(run().1)) }
}

criterion_group!(benches, growth, long_designs, to_a_million);
criterion_main!(benches);
