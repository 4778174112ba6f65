//! Momentum across rounds, added to the changes of real nodes, beside a reference implementation of heavy-ball momentum.

#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;
use std::sync::Arc;

use mingle_protocol::record::HostState;
use mingle_protocol::{
    Effect, Input, MomentumAcrossRounds, MomentumState, MomentumStep, Node, NodeConfig, NodeId, Schedule, Step, Time,
    TrainedRound,
};

const ROUNDS: u64 = 60;
const LOCAL_STEPS: u32 = 20;
const RATE: f64 = 0.05;
const MOMENTUM: f64 = 0.8;
/// Curvature and optimum of each coordinate.
const CURVATURE: [f64; 4] = [1.0, 0.3, 0.1, 0.02];
const OPTIMUM: [f64; 4] = [1.0, -2.0, 0.5, 3.0];

/// The change by a round's local steps of gradient descent, from here.
fn descent(from: &[f64], optimum: &[f64]) -> Vec<f64> {
    let change = |((from, curvature), optimum): ((&f64, &f64), &f64)| {
        let mut at = *from;
        (0..LOCAL_STEPS).for_each(|_| at -= RATE * curvature * (at - optimum));
        at - from
    };
    from.iter().zip(&CURVATURE).zip(optimum).map(change).collect()
}

/// The model at the start of each round, by the definition: `y = z + d`, `z <- y + gamma (y - y_prev)`.
fn reference() -> Vec<Vec<f64>> {
    let mut z = vec![0.0; 4];
    let mut before = z.clone();
    let mut models = Vec::new();
    for _ in 0..ROUNDS {
        models.push(z.clone());
        let change = descent(&z, &OPTIMUM);
        let y: Vec<f64> = z.iter().zip(change).map(|(z, d)| z + d).collect();
        z = y.iter().zip(&before).map(|(y, before)| y + MOMENTUM * (y - before)).collect();
        before = y;
    }
    models
}

/// Runs nodes on a plan whose periods are one step; each trains towards its own optimum. Returns the models of all nodes
/// at the start of each round, `[round][node][coordinate]`.
fn trained(steps: &[Step], nodes: usize, optimum: impl Fn(usize) -> Vec<f64>) -> Vec<Vec<Vec<f64>>> {
    let schedule = Arc::new(Schedule::new(nodes, steps, LOCAL_STEPS).unwrap());
    let ids = (0..nodes as u32).map(NodeId);
    let mut swarm: Vec<Node> = ids
        .clone()
        .map(|id| Node::new(NodeConfig::new(id, Arc::clone(&schedule), vec![0.0; 4], ROUNDS + 8)).unwrap())
        .collect();
    let mut movements = vec![MomentumState::default(); nodes];
    let mut inputs: VecDeque<(NodeId, Input)> = ids.clone().map(|id| (id, Input::Start)).collect();
    for id in ids {
        inputs.extend(swarm[id.index()].neighbours().map(|peer| (id, Input::LinkUp { peer })));
    }
    let mut models = vec![vec![Vec::new(); nodes]; ROUNDS as usize];
    while let Some((id, input)) = inputs.pop_front() {
        let node = &mut swarm[id.index()];
        let effects = node.handle(Time::default(), input);
        for effect in effects {
            match effect {
                Effect::Send { to, message } => inputs.push_back((to, Input::Received { from: id, message })),
                Effect::Train { round, from, local_steps, .. } if round < ROUNDS => {
                    let here: Vec<f64> = from.iter().map(|value| f64::from(*value)).collect();
                    let mut delta: Vec<f32> =
                        descent(&here, &optimum(id.index())).into_iter().map(|value| value as f32).collect();
                    models[round as usize][id.index()] = here;
                    let weight = schedule.stationary_weight(id, node.step());
                    let step = MomentumStep { momentum: MOMENTUM, weight, restarts: false };
                    movements[id.index()].add_to(&mut delta, &from, TrainedRound { number: round, pace: 1.0 }, step);
                    let state = HostState::default();
                    inputs.push_back((id, Input::Trained { round, delta, steps: local_steps, state }));
                }
                _ => {}
            }
        }
    }
    models
}

/// One step in which node `i` keeps a share and gives as much to the nodes at these offsets on a circle.
fn circle(nodes: usize, offsets: &[usize]) -> Step {
    let share = 1.0 / (offsets.len() + 1) as f64;
    let id = |node: usize| NodeId((node % nodes) as u32);
    let links = (0..nodes).flat_map(|node| offsets.iter().map(move |offset| (id(node), id(node + offset), share)));
    Step { keep: vec![share; nodes], links: links.collect() }
}

#[test]
fn on_an_exact_plan_with_even_data_all_nodes_follow_the_reference_to_a_millionth() {
    let models = trained(&[circle(4, &[1, 2, 3])], 4, |_| OPTIMUM.to_vec());
    for (round, (nodes, reference)) in models.iter().zip(reference()).enumerate() {
        for (node, model) in nodes.iter().enumerate() {
            for (value, expected) in model.iter().zip(&reference) {
                let off = (value - expected).abs() / expected.abs().max(1.0);
                assert!(off <= 1e-6, "round {round}, node {node}: {value} and {expected}");
            }
        }
    }
}

#[test]
fn nodes_with_uneven_weights_and_data_come_to_the_optimum_of_all() {
    // Node 0 gets most of the weight: its ratio moves least, and its momentum counts as much as that of others.
    let mut step = circle(5, &[1]);
    step.links.push((NodeId(3), NodeId(0), 0.3));
    step.keep[3] -= 0.3;
    let schedule = Schedule::new(5, std::slice::from_ref(&step), LOCAL_STEPS).unwrap();
    let weights = (0..5).map(|node| schedule.stationary_weight(NodeId(node), 0)).collect::<Vec<_>>();
    assert!(weights.iter().any(|weight| (weight - 1.0).abs() > 0.2), "{weights:?}");
    let shift = |node: usize| 0.2 * (node as f64 - 2.0);
    let models = trained(&[step], 5, |node| OPTIMUM.iter().map(|optimum| optimum + shift(node)).collect());
    for model in models.last().unwrap() {
        // Curved coordinates are there after 60 rounds; nodes differ by the drift between two mixings.
        for (value, optimum) in model.iter().zip(OPTIMUM).take(2) {
            assert!((value - optimum).abs() < 0.7, "{value} and {optimum}");
        }
    }
}

/// The change after a second round at number `round`, whose model had moved by 2 since the first one at number 0.
fn second_change(round: u64, restarts: bool) -> f32 {
    let mut movement = MomentumState::default();
    let step = MomentumStep { momentum: 0.5, weight: 1.0, restarts: false };
    movement.add_to(&mut [1.0], &[0.0], TrainedRound { number: 0, pace: 1.0 }, step);
    let mut change = [0.0];
    let step = MomentumStep { restarts, ..step };
    movement.add_to(&mut change, &[3.0], TrainedRound { number: round, pace: 1.0 }, step);
    change[0]
}

#[test]
fn a_node_that_was_away_or_has_the_model_of_others_begins_anew() {
    assert_eq!(second_change(1, false), 0.5 * (3.0 - 1.0));
    assert_eq!(second_change(8, false), 1.0, "a few rounds late");
    assert_eq!(second_change(9, false), 0.0, "away");
    assert_eq!(second_change(1, true), 0.0, "a model of others");
}

#[test]
fn a_change_that_is_not_finite_leaves_no_trace_in_the_movement() {
    let mut movement = MomentumState::after(0, vec![1.0]);
    let step = MomentumStep { momentum: 0.5, weight: 1.0, restarts: false };
    let mut change = [f32::NAN];
    movement.add_to(&mut change, &[2.0], TrainedRound { number: 1, pace: 1.0 }, step);
    assert!(change[0].is_nan());
    assert_eq!(movement, MomentumState::after(1, vec![2.0]));
}

#[test]
fn a_momentum_above_the_limit_is_refused_and_a_later_plan_lowers_it() {
    let choice: MomentumAcrossRounds = "0.8".parse().unwrap();
    let limit = |limit: f64| move || Ok::<_, String>(limit);
    assert_eq!(choice.under(limit(0.8)), Ok(0.8));
    let refused = choice.under(limit(0.61)).unwrap_err().to_string();
    assert!(refused.contains("0.8 is too much") && refused.contains("above 0.61"), "{refused}");
    assert_eq!(choice.lowered_to(limit(0.61)), 0.61);
    assert_eq!(choice.lowered_to(limit(0.99)), 0.8);
    let unknown = choice.under(|| Err("too many nodes")).unwrap_err().to_string();
    assert!(unknown.ends_with("is not known: too many nodes"), "{unknown}");
    assert_eq!(choice.lowered_to(|| Err("too many nodes")), 0.0);
    let never = || -> Result<f64, String> { panic!("the limit is not needed") };
    assert_eq!(MomentumAcrossRounds::Off.under(never), Ok(0.0));
    for wrong in ["1", "-0.1", "nan", "fast"] {
        let error = wrong.parse::<MomentumAcrossRounds>().unwrap_err().to_string();
        assert!(error.contains("off, auto, or a number"), "{error}");
    }
}
