//! Integration of the planner's plans, the protocol's averages and the solvers: the second experiment of Watanabe and
//! Sakurama (sparse regression that fifty nodes agree on), and consensus over directed plans that are not balanced.
#![allow(missing_docs, clippy::unwrap_used, clippy::cast_possible_truncation)]

use std::sync::Arc;

use mingle_planner::{DesignOptions, Medium, Method, Plan, Topology, design};
use mingle_protocol::collective::{Collective, TrackingAverage, tracking_rounds};
use mingle_protocol::{NodeId, Schedule, Step};
use mingle_solver::{AverageNode, Mixing, NidsNode, SolverNode};

#[path = "../../methods/solver/tests/in_one_process/mod.rs"]
mod in_one_process;
#[path = "../../methods/solver/tests/problems/mod.rs"]
mod problems;

use in_one_process::{iteration, mixed_iteration};
use problems::SharedModel;

fn plan(topology: &Topology, method: Method, medium: Medium) -> Plan {
    design(topology, method, &DesignOptions { medium, ..DesignOptions::default() }).unwrap()
}

/// The mixing matrix of the first step of a plan, by rows.
fn mixing(plan: &Plan) -> Mixing {
    let step = &plan.steps()[0];
    let mut rows: Vec<Vec<(usize, f64)>> =
        step.keep().iter().enumerate().map(|(node, &keep)| vec![(node, keep)]).collect();
    step.links().iter().for_each(|link| rows[link.to].push((link.from, link.weight)));
    rows.iter_mut().for_each(|row| row.sort_unstable_by_key(|entry| entry.0));
    Mixing::new(rows).unwrap()
}

#[test]
fn phi_of_the_maximal_cliques_needs_the_fewest_iterations_on_geometric_graphs() {
    const METHODS: [Method; 5] =
        [Method::CliquePhi, Method::ScaledLaplacian, Method::EdgePhi, Method::LazyMetropolis, Method::LazyLaplacian];
    let mut counts = [const { Vec::new() }; 5];
    for seed in 0..8 {
        let topology = Topology::generate(&format!("rg:n=50,r=0.5,seed={seed}")).unwrap();
        let problem = SharedModel::random(50, 10, 0.05, 1e-3, seed);
        let least = problem.least();
        for (method, counts) in METHODS.into_iter().zip(&mut counts) {
            let mixing = mixing(&plan(&topology, method, Medium::PointToPoint));
            let mut nodes: Vec<_> = problem.terms().map(|terms| NidsNode::new(terms, problem.step())).collect();
            let iteration = (1..=1000).find(|_| {
                mixed_iteration(&mut nodes, &mixing);
                problem.error(least, nodes.iter().map(SolverNode::solution)) <= 1e-10
            });
            counts.push(iteration.unwrap());
        }
    }
    let medians = counts.map(|mut counts| {
        counts.sort_unstable();
        usize::midpoint(counts[3], counts[4])
    });
    println!("iterations to 1e-10, medians of 8 seeds: {METHODS:?} {medians:?}");
    assert!(medians.is_sorted(), "{medians:?}");
    assert!(medians[0] <= 60, "{medians:?}");
}

/// The steps of the planner in the form of the protocol.
fn schedule(plan: &Plan) -> Arc<Schedule> {
    let id = |node: usize| NodeId(node as u32);
    let step = |step: &mingle_planner::MixingStep| Step {
        keep: step.keep(),
        links: step.links().iter().map(|link| (id(link.from), id(link.to), link.weight)).collect(),
    };
    let steps: Vec<Step> = plan.steps().iter().map(step).collect();
    Arc::new(Schedule::new(plan.node_count(), &steps, 0).unwrap())
}

/// Delivers messages until every node is complete.
fn run<C: Collective>(nodes: &mut [C]) {
    while nodes.iter().any(|node| !node.is_complete()) {
        for from in 0..nodes.len() {
            while let Some((to, message)) = nodes[from].poll() {
                nodes[to.index()].handle(NodeId(from as u32), message).unwrap();
            }
        }
    }
}

#[test]
fn a_tracking_average_solves_over_directed_plans_where_averages_begun_anew_with_as_many_rounds_stay_off() {
    for seed in [1, 2, 3] {
        let topology = Topology::generate(&format!("rg:n=16,r=0.45,seed={seed}")).unwrap();
        let plan = plan(&topology, Method::NguyenHe, Medium::Broadcast);
        let (schedule, rounds) = (schedule(&plan), tracking_rounds(plan.forecast().lambda_2.unwrap()).unwrap());
        let problem = SharedModel::random(16, 6, 0.3, 1e-2, seed);
        let least = problem.least();
        let new = |(node, value): (usize, &Vec<f64>)| {
            TrackingAverage::new(Arc::clone(&schedule), NodeId(node as u32), value, rounds).unwrap()
        };
        let start = || problem.terms().map(|terms| AverageNode::new(terms, problem.step())).collect::<Vec<_>>();

        let (mut nodes, mut averages) = (start(), Vec::<TrackingAverage>::new());
        for _ in 0..200 {
            iteration(&mut nodes, |messages| {
                if averages.is_empty() {
                    averages = messages.iter().enumerate().map(new).collect();
                } else {
                    averages.iter_mut().zip(&messages).for_each(|(node, value)| node.begin(value).unwrap());
                }
                run(&mut averages);
                averages.iter().map(|node| node.result().unwrap().to_vec()).collect()
            });
        }
        let tracked = problem.error(least, nodes.iter().map(SolverNode::solution));

        let mut nodes = start();
        for _ in 0..200 {
            iteration(&mut nodes, |messages| {
                let mut averages: Vec<TrackingAverage> = messages.iter().enumerate().map(new).collect();
                run(&mut averages);
                averages.iter().map(|node| node.result().unwrap().to_vec()).collect()
            });
        }
        let anew = problem.error(least, nodes.iter().map(SolverNode::solution));
        println!("seed {seed}, {rounds} rounds an iteration: {tracked:.1e} tracked, {anew:.1e} anew");
        assert!(tracked < 1e-10 && anew > 1e-4, "seed {seed}: {tracked} {anew}");
    }
}
