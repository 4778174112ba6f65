use std::sync::Arc;

use super::network::{Faults, Network, settle};
use super::plans::{gather_and_scatter, ids, one_peer_exponential, second_eigenvalue, uneven};
use crate::collective::mixing::PushSumMixing;
use crate::collective::*;
use crate::{Mass, Schedule, UNITS_PER_ONE};

const DIMENSION: usize = 3;

/// Distinct inputs; those of later iterations come closer and closer to a limit.
fn input(node: NodeId, iteration: u32) -> Vec<f64> {
    let limit = |k: usize| ((node.0 as usize * 7 + k * 3) % 11) as f64 - 4.0;
    let change = |k: usize| 0.6_f64.powi(iteration as i32) * (k as f64 - f64::from(node.0));
    (0..DIMENSION).map(|k| limit(k) + change(k)).collect()
}

fn mean(nodes: usize, iteration: u32) -> Vec<f64> {
    let sum = |k: usize| ids(nodes).map(|node| input(node, iteration)[k]).sum::<f64>();
    (0..DIMENSION).map(|k| sum(k) / nodes as f64).collect()
}

fn worst(results: impl Iterator<Item = Vec<f64>>, target: &[f64]) -> f64 {
    let distance = |result: Vec<f64>| result.iter().zip(target).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    results.map(distance).fold(0.0, f64::max)
}

fn trackers(plan: &Arc<Schedule>, rounds: u64) -> Vec<TrackingAverage> {
    ids(plan.nodes()).map(|id| TrackingAverage::new(Arc::clone(plan), id, &input(id, 0), rounds).unwrap()).collect()
}

fn average_error(plan: &Arc<Schedule>, rounds: u64) -> f64 {
    let mut nodes = trackers(plan, rounds);
    settle(&mut nodes);
    worst(nodes.iter().map(|node| node.result().unwrap().to_vec()), &mean(plan.nodes(), 0))
}

#[test]
fn the_error_of_a_first_average_shrinks_by_the_second_eigenvalue_in_every_round() {
    for seed in 0..6 {
        for steps in [1, 3] {
            let plan = uneven(10, 8, steps, seed);
            let second = second_eigenvalue(&plan);
            assert!((0.05..0.95).contains(&second), "seed {seed}: {second}");
            let smallest = ids(10).map(|id| plan.stationary_weight(id, 0)).fold(f64::INFINITY, f64::min);
            let center = mean(10, 0);
            let spread = worst(ids(10).map(|id| input(id, 0)), &center);
            for error in [1e-2, 1e-6, 1e-10] {
                let periods = rounds_to_contract(second, error).unwrap();
                let reached = average_error(&plan, periods * plan.period());
                // 2 n for matrices whose eigenvectors are not orthogonal.
                let bound = 20.0 / smallest * error * spread;
                assert!(reached <= bound, "seed {seed}, {steps} steps, {periods} periods: {reached:e} > {bound:e}");
            }
        }
    }
}

#[test]
fn one_peer_exponential_averages_powers_of_two_exactly_in_their_logarithm_of_rounds() {
    for log_nodes in 1..=6 {
        let plan = one_peer_exponential(log_nodes);
        let error = average_error(&plan, u64::from(log_nodes));
        // Integers and halves of them: not even rounding.
        assert_eq!(error, 0.0, "2^{log_nodes} nodes");
        assert!(log_nodes == 1 || average_error(&plan, u64::from(log_nodes) - 1) > 0.1);
    }
}

#[test]
fn a_node_that_hands_everything_on_gets_the_mean_back() {
    let plan = gather_and_scatter();
    let error = average_error(&plan, 2);
    assert!(error < 1e-11, "{error:e}");
    let mut nodes = trackers(&plan, 1);
    settle(&mut nodes);
    assert_eq!(nodes.iter().map(TrackingAverage::mass).map(Mass::units).collect::<Vec<_>>(), [0, 3 * UNITS_PER_ONE, 0]);
    assert_eq!(nodes[0].result().unwrap(), input(NodeId(0), 0), "without mass it believes what it did last");
    assert_eq!(nodes[0].sum(), [0.0; DIMENSION]);
}

/// Runs the iterations of all nodes, each as fast as it can, and returns every result of every node.
fn track(
    network: &mut Network<TrackingAverage>,
    iterations: u32,
    look: impl Fn(&[ReliableChannel<TrackingAverage>]),
) -> Vec<Vec<f64>> {
    let mut results = Vec::new();
    for iteration in 1..=iterations + 1 {
        network.run(|nodes| nodes.iter().all(|node| node.collective().is_complete()), &look);
        for (id, node) in ids(network.nodes.len()).zip(&mut network.nodes) {
            results.push(node.collective().result().unwrap().to_vec());
            if iteration <= iterations {
                node.collective_mut().begin(&input(id, iteration)).unwrap();
            }
        }
    }
    results
}

fn over(nodes: Vec<TrackingAverage>, faults: Faults, seed: u64) -> Network<TrackingAverage> {
    Network::new(nodes, DIMENSION, faults, seed)
}

const NONE: Faults = Faults { loss: 0.0, duplication: 0.0 };

#[test]
fn tracking_reaches_the_exact_mean_where_averaging_anew_stays_biased() {
    for rounds in [1, 2, 5] {
        let plan = uneven(8, 5, 1, 3);
        let iterations = 250;
        let results = track(&mut over(trackers(&plan, rounds), NONE, 0), iterations, |_| ());
        let target = mean(8, iterations);
        let last = results.len() - 8;
        let tracked = worst(results[last..].iter().cloned(), &target);
        let mut anew: Vec<TrackingAverage> = ids(8)
            .map(|id| TrackingAverage::new(Arc::clone(&plan), id, &input(id, iterations), rounds).unwrap())
            .collect();
        settle(&mut anew);
        let averaged = worst(anew.iter().map(|node| node.result().unwrap().to_vec()), &target);
        assert!(tracked < 1e-11, "{rounds} rounds: {tracked:e}");
        assert!(averaged > 1e-2, "{rounds} rounds: {averaged:e}");
    }
}

#[test]
fn the_default_rounds_leave_three_tenths_of_a_disagreement() {
    for (second, rounds) in [(0.0, 1), (0.29, 1), (0.31, 2), (0.5, 2), (0.9, 12), (0.99, 120)] {
        assert_eq!(tracking_rounds(second), Ok(rounds));
        assert!(second.powi(rounds as i32) <= TRACKING_CONTRACTION);
    }
    for bad in [1.0, -0.1, f64::NAN, f64::INFINITY] {
        assert!(matches!(tracking_rounds(bad), Err(CollectiveError::SecondEigenvalue { .. })));
    }
    assert_eq!(rounds_to_contract(0.5, 1.0), Err(CollectiveError::Contraction { value: 1.0 }));
}

/// Shares that are part of the sums of no node: cut and not polled for, on their way and not yet handed on, or waiting.
fn shares_under_way<'a>(
    nodes: &'a [ReliableChannel<TrackingAverage>],
    mixing: impl Fn(&'a TrackingAverage) -> &'a PushSumMixing,
) -> Vec<&'a Share> {
    let mut shares: Vec<&Share> = nodes.iter().flat_map(|node| mixing(node.collective()).under_way()).collect();
    for (from, sender) in ids(nodes.len()).zip(nodes) {
        for (to, receiver) in ids(nodes.len()).zip(nodes) {
            let arrived = receiver.received(from);
            shares.extend(sender.outstanding(to).filter(|(number, _)| *number > arrived).map(|(_, share)| share));
        }
    }
    shares
}

fn assert_conserved(nodes: &[ReliableChannel<TrackingAverage>], iteration: u32) {
    let shares = shares_under_way(nodes, TrackingAverage::mixing);
    let held: u64 = nodes.iter().map(|node| node.collective().mass().units()).sum();
    let moving: u64 = shares.iter().map(|share| share.mass.units()).sum();
    assert_eq!(held + moving, nodes.len() as u64 * UNITS_PER_ONE);
    for k in 0..DIMENSION {
        let held: f64 = nodes.iter().map(|node| node.collective().sum()[k]).sum();
        let moving: f64 = shares.iter().map(|share| share.values[k]).sum();
        let inputs: f64 = ids(nodes.len()).map(|id| input(id, iteration)[k]).sum();
        assert!((held + moving - inputs).abs() < 1e-11, "place {k}: {held} + {moving} is not {inputs}");
    }
}

#[test]
fn loss_repetition_and_reordering_change_neither_the_sums_nor_a_bit_of_any_result() {
    let plan = uneven(6, 5, 2, 1);
    let rounds = 3;
    let expected = track(&mut over(trackers(&plan, rounds), NONE, 0), 6, |_| ());
    for (seed, loss) in (0..).zip([0.0, 0.05, 0.15, 0.3, 0.3]) {
        let faults = Faults { loss, duplication: 0.1 };
        let mut network = over(trackers(&plan, rounds), faults, seed);
        // The inputs of one iteration are constant from its beginning: look at each by itself.
        let mut results = Vec::new();
        for iteration in 0..=6 {
            let done =
                |nodes: &[ReliableChannel<TrackingAverage>]| nodes.iter().all(|node| node.collective().is_complete());
            network.run(done, |nodes| assert_conserved(nodes, iteration));
            for (id, node) in ids(6).zip(&mut network.nodes) {
                results.push(node.collective().result().unwrap().to_vec());
                if iteration < 6 {
                    node.collective_mut().begin(&input(id, iteration + 1)).unwrap();
                }
            }
        }
        assert_eq!(results, expected, "seed {seed}, loss {loss}");
    }
}

#[test]
fn a_reliable_channel_forgets_what_has_arrived() {
    let plan = uneven(5, 4, 1, 2);
    let mut network = Network::new(trackers(&plan, 20), DIMENSION, Faults { loss: 0.3, duplication: 0.2 }, 5);
    network.run(|nodes| nodes.iter().all(|node| node.collective().is_complete() && !node.is_owed()), |_| ());
    assert!(ids(5).all(|to| network.nodes.iter().all(|node| node.outstanding(to).count() == 0)));
}

#[test]
fn a_message_that_no_sound_neighbour_sends_is_refused_and_changes_nothing() {
    let plan = uneven(4, 0, 1, 0);
    let (from, me) = (NodeId(0), NodeId(1));
    let share = |round| Share { round, mass: Mass::from_units(7), values: vec![1.0; DIMENSION] };
    let node = || TrackingAverage::new(Arc::clone(&plan), me, &input(me, 0), 100).unwrap();
    let refusals = [
        (NodeId(2), share(0), CollectiveFault::NoSuchLink),
        (NodeId(99), share(0), CollectiveFault::NoSuchLink),
        (from, share(1), CollectiveFault::Gap),
        (from, Share { values: vec![1.0; 2], ..share(0) }, CollectiveFault::WrongDimension),
        (from, Share { values: vec![f64::NAN; DIMENSION], ..share(0) }, CollectiveFault::NotFinite),
        (from, Share { values: vec![-2e300; DIMENSION], ..share(0) }, CollectiveFault::NotFinite),
        (from, Share { mass: Mass::from_units(4 * UNITS_PER_ONE), ..share(0) }, CollectiveFault::ImpossibleMass),
        (from, Share { mass: Mass::from_units(u64::MAX), ..share(0) }, CollectiveFault::ImpossibleMass),
    ];
    for (from, share, fault) in refusals {
        let mut node = node();
        let before = (node.sum().to_vec(), node.mass());
        assert_eq!(node.handle(from, share.clone()), Err(fault), "{share:?}");
        assert_eq!((node.sum().to_vec(), node.mass()), before);
    }
    // A share that comes twice counts once.
    let mut node = node();
    node.handle(from, share(0)).unwrap();
    let after = (node.sum().to_vec(), node.mass());
    node.handle(from, Share { mass: Mass::from_units(9), ..share(0) }).unwrap();
    assert_eq!((node.sum().to_vec(), node.mass()), after);
}

#[test]
fn nobody_can_make_a_node_keep_shares_without_end() {
    // Node 2 receives from node 0 and node 1 and does not advance without both.
    let [a, b, c] = [0, 1, 2].map(NodeId);
    let links = vec![(a, b, 0.25), (a, c, 0.25), (b, c, 0.5), (c, a, 0.5)];
    let plan = Arc::new(Schedule::new(3, &[crate::Step { keep: vec![0.5; 3], links }], 0).unwrap());
    let mut node = TrackingAverage::new(plan, c, &[1.0], 1_000).unwrap();
    let share = |round| Share { round, mass: Mass::from_units(1), values: vec![0.0] };
    for round in 0..3 {
        node.handle(a, share(round)).unwrap();
    }
    assert_eq!(node.handle(a, share(3)), Err(CollectiveFault::TooFarAhead));
    // Those three, and one that the node cut itself.
    assert_eq!(node.mixing().under_way().count(), 3 + 1);
}

#[test]
fn inputs_that_cannot_be_averaged_are_refused() {
    let plan = uneven(4, 0, 1, 0);
    let new =
        |id, value: &[f64], rounds| TrackingAverage::new(Arc::clone(&plan), NodeId(id), value, rounds).unwrap_err();
    assert_eq!(new(4, &[1.0], 1), CollectiveError::NotInPlan { id: NodeId(4), nodes: 4 });
    assert_eq!(new(0, &[], 1), CollectiveError::Dimension { dimension: 0 });
    assert_eq!(new(0, &[1.0, f64::INFINITY], 1), CollectiveError::NotFinite { index: 1, value: f64::INFINITY });
    assert_eq!(new(0, &[1.0], 0), CollectiveError::NoRounds);
    let mut node = TrackingAverage::new(plan, NodeId(0), &[1.0], 1).unwrap();
    assert_eq!(node.begin(&[1.0]), Err(CollectiveError::NotComplete { iteration: 0 }));
}
