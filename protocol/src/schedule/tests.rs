#![allow(clippy::unwrap_used)]
use proptest::prelude::*;

use super::*;
use crate::mass::UNITS_PER_ONE;

fn id(index: u32) -> NodeId {
    NodeId(index)
}

fn ring(nodes: u32, keep: f64) -> Step {
    Step {
        keep: vec![keep; nodes as usize],
        links: (0..nodes).map(|i| (id(i), id((i + 1) % nodes), 1.0 - keep)).collect(),
    }
}

#[test]
fn every_flaw_is_refused_and_named() {
    let good = ring(3, 0.5);
    let mut cases: Vec<(Step, ScheduleError)> = Vec::new();
    let mut with = |change: &dyn Fn(&mut Step), error: ScheduleError| {
        let mut step = good.clone();
        change(&mut step);
        cases.push((step, error));
    };
    with(&|s| s.keep.truncate(2), ScheduleError::KeepLength { step: 1, got: 2, nodes: 3 });
    with(&|s| s.keep[1] = -0.5, ScheduleError::Keep { step: 1, node: id(1), keep: -0.5 });
    with(&|s| s.keep[1] = 0.25, ScheduleError::ColumnSum { step: 1, node: id(1), sum: 0.75 });
    with(&|s| s.links[0].1 = id(3), ScheduleError::UnknownNode { step: 1, node: id(3), nodes: 3 });
    with(&|s| s.links[0].1 = id(0), ScheduleError::SelfLink { step: 1, node: id(0) });
    with(&|s| s.links[0].2 = 0.0, ScheduleError::Weight { step: 1, from: id(0), to: id(1), weight: 0.0 });
    with(
        &|s| {
            s.links[0].2 = 0.25;
            s.links.push((id(0), id(1), 0.25));
        },
        ScheduleError::RepeatedLink { step: 1, from: id(0), to: id(1) },
    );
    for (step, error) in cases {
        assert_eq!(Schedule::new(3, &[good.clone(), step], 1), Err(error));
    }
    assert_eq!(Schedule::new(0, &[good], 1), Err(ScheduleError::Nodes { nodes: 0 }));
    assert_eq!(Schedule::new(3, &[], 1), Err(ScheduleError::Period { steps: 0 }));
}

#[test]
fn a_weight_that_is_not_a_number_is_refused() {
    let mut step = ring(3, 0.5);
    step.links[0].2 = f64::NAN;
    assert!(matches!(Schedule::new(3, &[step], 1), Err(ScheduleError::Weight { .. })));
    let mut step = ring(3, 0.5);
    step.keep[0] = f64::NAN;
    assert!(matches!(Schedule::new(3, &[step], 1), Err(ScheduleError::Keep { .. })));
}

#[test]
fn a_ring_that_keeps_nothing_still_has_stationary_weights() {
    let schedule = Schedule::new(5, &[ring(5, 0.0)], 1).unwrap();
    for node in 0..5 {
        assert!((schedule.stationary_weight(id(node), 0) - 1.0).abs() < 1e-9);
    }
}

#[test]
fn stationary_weights_follow_the_mass_through_a_gather_and_scatter_period() {
    // Leaves 1 and 2 hand everything to 0, which then gives each a third.
    let gather = Step { keep: vec![1.0, 0.0, 0.0], links: vec![(id(1), id(0), 1.0), (id(2), id(0), 1.0)] };
    let third = 1.0 / 3.0;
    let scatter = Step { keep: vec![third, 1.0, 1.0], links: vec![(id(0), id(1), third), (id(0), id(2), third)] };
    let schedule = Schedule::new(3, &[gather, scatter], 1).unwrap();
    let at = |step: u64| [0, 1, 2].map(|node| schedule.stationary_weight(id(node), step));
    for (got, want) in at(0).into_iter().chain(at(1)).zip([1.0, 1.0, 1.0, 3.0, 0.0, 0.0]) {
        assert!((got - want).abs() < 1e-9, "{got} is not {want}");
    }
    assert_eq!(schedule.last_use(id(1), id(0), 7), Some(6));
    assert_eq!(schedule.last_use(id(1), id(0), 6), Some(6));
    assert_eq!(schedule.last_use(id(1), id(2), 6), None);
    assert_eq!(schedule.last_use(id(0), id(1), 0), None);
}

proptest! {
    #[test]
    fn integer_columns_never_exceed_the_whole(weights in prop::collection::vec(0.01f64..1.0, 1..12), keeps: bool) {
        let total: f64 = weights.iter().sum::<f64>() + if keeps { 1e-6 } else { 0.0 };
        let links: Vec<(NodeId, f64)> = (0..).map(NodeId).zip(weights.iter().map(|w| w / total)).collect();
        let sum: u64 = integer_shares(&links, keeps).iter().map(|link| link.share.units()).sum();
        prop_assert!(sum <= UNITS_PER_ONE);
        prop_assert!(keeps || sum == UNITS_PER_ONE);
    }

    #[test]
    fn stationary_weights_are_a_fixed_point_of_the_period(seed in 0u64..1000, nodes in 2u32..8) {
        // A ring plus a chord per node with uneven weights is strongly connected and not doubly stochastic.
        let mut step = Step { keep: Vec::new(), links: Vec::new() };
        for i in 0..nodes {
            let a = 0.1 + 0.3 * ((u64::from(i) * 7919 + seed) % 10) as f64 / 10.0;
            step.links.push((id(i), id((i + 1) % nodes), a));
            step.keep.push(1.0 - a);
        }
        let schedule = Schedule::new(nodes as usize, std::slice::from_ref(&step), 1).unwrap();
        let weights: Vec<f64> = (0..nodes).map(|i| schedule.stationary_weight(id(i), 0)).collect();
        prop_assert!((weights.iter().sum::<f64>() - f64::from(nodes)).abs() < 1e-9);
        for i in 0..nodes as usize {
            let before = (i + nodes as usize - 1) % nodes as usize;
            let mixed = step.keep[i] * weights[i] + (1.0 - step.keep[before]) * weights[before];
            prop_assert!((mixed - weights[i]).abs() < 1e-9);
        }
    }
}
