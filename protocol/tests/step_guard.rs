//! The guard of local steps: how much of one is taken. A node alone, so that its ratio is its numerator.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use mingle_protocol::record::HostState;
use mingle_protocol::*;

const ME: NodeId = NodeId(0);
const DIMENSION: usize = 4;
const LOCAL_STEPS: u32 = 12;

/// A node that trains alone for ever, in its first round.
fn lone_node(change: impl FnOnce(&mut NodeConfig)) -> Node {
    let schedule = Schedule::new(1, &[Step { keep: vec![1.0], links: Vec::new() }], LOCAL_STEPS).unwrap();
    let mut config = NodeConfig::new(ME, Arc::new(schedule), vec![0.0; DIMENSION], 1_000_000);
    change(&mut config);
    let mut node = Node::new(config).unwrap();
    node.handle(Time::default(), Input::Start);
    assert_eq!(node.state(), NodeState::Training);
    node
}

fn events(effects: Vec<Effect>) -> Vec<NodeEvent> {
    let event = |effect| if let Effect::Report(event) = effect { Some(event) } else { None };
    let is_guard = |event: &NodeEvent| !matches!(event, NodeEvent::RoundFinished(_));
    effects.into_iter().filter_map(event).filter(is_guard).collect()
}

/// Hands in a step along the first axis, and returns the change of the ratio and the events reported.
fn train(node: &mut Node, length: f32, steps: u32) -> (f32, Vec<NodeEvent>) {
    let before = node.ratio()[0];
    let mut delta = vec![0.0; DIMENSION];
    delta[0] = length;
    let round = node.round();
    let effects = node.handle(Time::default(), Input::Trained { round, delta, steps, state: HostState::default() });
    assert_eq!(node.mass(), Mass::ONE, "no guard touches mass");
    (node.ratio()[0] - before, events(effects))
}

#[test]
fn a_step_far_longer_than_usual_is_cut_to_ten_medians_and_reported() {
    let mut node = lone_node(|_| ());
    for _ in 0..8 {
        assert_eq!(train(&mut node, 2.0, LOCAL_STEPS), (2.0, vec![]));
    }
    assert_eq!(train(&mut node, 20.0, LOCAL_STEPS), (20.0, vec![]), "ten medians are allowed");
    let clipped = NodeEvent::DeltaClipped { round: 9, norm: 5000.0, bound: 20.0 };
    assert_eq!(train(&mut node, -5000.0, LOCAL_STEPS), (-20.0, vec![clipped]));
}

#[test]
fn the_first_steps_are_taken_as_they_are_and_without_a_clip_all_of_them() {
    let mut node = lone_node(|_| ());
    for length in [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 4096.0] {
        assert_eq!(train(&mut node, length, LOCAL_STEPS), (length, vec![]));
    }
    let mut node = lone_node(|config| config.clip = None);
    for length in [1.0; 20].into_iter().chain([4096.0]) {
        assert_eq!(train(&mut node, length, LOCAL_STEPS), (length, vec![]));
    }
}

#[test]
fn steps_that_have_become_longer_for_good_are_taken_in_full_after_a_while() {
    let mut node = lone_node(|_| ());
    (0..31).for_each(|_| drop(train(&mut node, 1.0, LOCAL_STEPS)));
    let mut clipped = 0;
    while !train(&mut node, 1024.0, LOCAL_STEPS).1.is_empty() {
        clipped += 1;
    }
    // Each half of the memory lets the median grow tenfold, and a thousandfold takes three of them.
    assert_eq!(clipped, 48);
}

#[test]
fn fewer_local_steps_count_as_if_they_had_been_all() {
    let time_box = Some(Duration::from_millis(70));
    let mut node = lone_node(|config| config.time_box = time_box);
    for (steps, scale) in [(LOCAL_STEPS, 1.0), (6, 2.0), (3, 4.0), (1, 12.0), (24, 0.5)] {
        assert_eq!(train(&mut node, 1.5, steps), (1.5 * scale, vec![]), "{steps} steps");
    }
    let round = node.round();
    let effects = node.handle(
        Time::default(),
        Input::Trained { round, delta: vec![0.0; DIMENSION], steps: 1, state: HostState::default() },
    );
    let asked = |effect: &Effect| matches!(effect, Effect::Train { time_box: asked, .. } if *asked == time_box);
    assert!(effects.iter().any(asked), "the host is told of the box: {effects:?}");
}

#[test]
fn the_norm_that_is_clipped_is_that_of_the_scaled_step() {
    let mut node = lone_node(|_| ());
    for _ in 0..4 {
        // Steps of 12 at full length, and of 3 at a quarter, are the same to the guard.
        assert_eq!(train(&mut node, 12.0, LOCAL_STEPS), (12.0, vec![]));
        assert_eq!(train(&mut node, 3.0, LOCAL_STEPS / 4), (12.0, vec![]));
    }
    let clipped = NodeEvent::DeltaClipped { round: 8, norm: 240.0, bound: 120.0 };
    assert_eq!(train(&mut node, 60.0, LOCAL_STEPS / 4), (120.0, vec![clipped]));
}

#[test]
fn without_a_time_box_of_the_host_a_step_counts_for_four_at_most() {
    let mut node = lone_node(|_| ());
    for (steps, scale) in [(LOCAL_STEPS, 1.0), (LOCAL_STEPS / 2, 2.0), (LOCAL_STEPS / 4, 4.0), (1, 4.0)] {
        assert_eq!(train(&mut node, 1.5, steps), (1.5 * scale, vec![]), "{steps} steps");
    }
}

#[test]
fn a_host_that_took_no_step_adds_nothing() {
    let mut node = lone_node(|_| ());
    let skipped = NodeEvent::DeltaSkipped { round: 0, reason: SkippedDelta::NoSteps };
    assert_eq!(train(&mut node, 3.0, 0), (0.0, vec![skipped]));
}

#[test]
fn a_step_with_a_number_that_is_none_is_not_taken_and_is_not_remembered() {
    let mut node = lone_node(|_| ());
    for bad in [f32::NAN, f32::INFINITY, -2e30] {
        for _ in 0..20 {
            let round = node.round();
            let skipped = NodeEvent::DeltaSkipped { round, reason: SkippedDelta::NotFinite };
            assert_eq!(train(&mut node, bad, LOCAL_STEPS), (0.0, vec![skipped]));
        }
    }
    assert_eq!(train(&mut node, 512.0, LOCAL_STEPS), (512.0, vec![]));
}

#[test]
fn own_steps_lead_as_far_as_the_largest_norm_and_not_beyond_it() {
    let mut node = lone_node(|config| (config.clip, config.largest_norm) = (None, Some(100.0)));
    for _ in 0..50 {
        train(&mut node, 8.0, LOCAL_STEPS);
    }
    let norm = node.ratio()[0];
    assert!((norm - 100.0).abs() < 0.01, "{norm}");
    assert!(!node.is_pulled(), "its own steps led there");
    let skipped = NodeEvent::DeltaSkipped { round: node.round(), reason: SkippedDelta::TooLong };
    assert_eq!(train(&mut node, -101.0, LOCAL_STEPS), (0.0, vec![skipped]));
    assert_eq!(train(&mut node, -50.0, LOCAL_STEPS).1, [], "a way back is open");
}

#[test]
fn own_steps_take_nothing_from_a_model_that_rounding_led_beyond_the_largest_norm() {
    // The norm at the start, and after a step outwards.
    for (start, left) in [(100.5, 100.5), (102.0, 100.781_25)] {
        let mut node = lone_node(|config| {
            (config.clip, config.largest_norm) = (None, Some(100.0));
            config.initial = vec![start, 0.0, 0.0, 0.0];
        });
        train(&mut node, 8.0, LOCAL_STEPS);
        let norm = node.ratio()[0];
        assert!((norm - left).abs() < 0.001, "{norm} from {start}");
        assert_eq!(train(&mut node, -8.0, LOCAL_STEPS).0, -8.0, "a way back is open");
    }
}

#[test]
fn a_clip_that_is_no_bound_is_refused() {
    for clip in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let schedule = Schedule::new(1, &[Step { keep: vec![1.0], links: Vec::new() }], 1).unwrap();
        let mut config = NodeConfig::new(ME, Arc::new(schedule), vec![0.0], 1);
        config.clip = Some(clip);
        assert!(matches!(Node::new(config).map(drop), Err(NodeError::Clip { .. })), "{clip}");
    }
}
