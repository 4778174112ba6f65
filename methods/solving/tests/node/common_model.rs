//! Rounds of a common model: a mean that one node knows is not summed once more after others have died or left.

use mingle_solving::{RoundStore, SolveError};
use rand::Rng;

use crate::walk::{Disk, Fault, ROUNDS, SHARED, Swarm, TrainedRounds, Walk};

const NODES: usize = 4;

/// Nodes that train along one task, stopped where only some of them have kept the mean of the second round.
struct Torn {
    swarm: Swarm,
    walk: Walk,
}

fn empty_disks() -> Vec<Disk> {
    (0..NODES).map(|_| Disk::default()).collect()
}

fn newest(disk: &Disk) -> u64 {
    disk.held().last().copied().unwrap_or(0)
}

impl Torn {
    fn new(seed: u64) -> Self {
        let walk = Walk::in_common();
        let mut swarm = Swarm::with_disks(walk.clone(), empty_disks(), seed);
        let is_torn = |swarm: &Swarm| {
            let ahead = swarm.disks.iter().filter(|disk| newest(disk) == 2).count();
            ahead > 0 && ahead < NODES
        };
        while !is_torn(&swarm) {
            assert!(swarm.step(0.1), "seed {seed}");
        }
        Self { swarm, walk }
    }

    fn ahead(&self) -> Vec<usize> {
        (0..NODES).filter(|&node| newest(&self.swarm.disks[node]) == 2).collect()
    }
}

/// Nodes that are stopped after a round that all have kept.
fn stopped_together() -> (Swarm, Walk) {
    let walk = Walk::in_common();
    let mut swarm = Swarm::with_disks(walk.clone(), empty_disks(), 0);
    while swarm.disks.iter().any(|disk| newest(disk) < 2) {
        assert!(swarm.step(0.0));
    }
    (swarm, walk)
}

/// The rounds trained since the first `known` entries.
fn since(trained: &TrainedRounds, known: usize) -> Vec<u64> {
    trained.lock().unwrap()[known..].iter().map(|(_, round)| *round).collect()
}

/// The vector that all have in the end.
fn common(swarm: &mut Swarm) -> Vec<u8> {
    let learned = swarm.finish(0.1);
    let models: Vec<Vec<u8>> =
        learned.into_iter().map(|found| found.unwrap().files[0].1[..4 * SHARED].to_vec()).collect();
    assert!(models.windows(2).all(|pair| pair[0] == pair[1]));
    models[0].clone()
}

#[test]
fn nodes_that_died_before_they_had_the_mean_get_it_from_one_that_has_it() {
    let expected = common(&mut Swarm::with_disks(Walk::in_common(), empty_disks(), 0));
    for seed in 0..4 {
        let Torn { mut swarm, walk } = Torn::new(seed);
        let known = walk.trained.lock().unwrap().len();
        (0..NODES).for_each(|node| swarm.restart(node));
        assert_eq!(common(&mut swarm), expected, "seed {seed}");
        let trained = since(&walk.trained, known);
        assert!(trained.iter().all(|round| *round >= 2), "seed {seed}: {trained:?}");
        assert_eq!(trained.len() as u64, NODES as u64 * (ROUNDS - 2), "seed {seed}");
    }
}

#[test]
fn a_round_of_which_one_has_the_mean_is_not_summed_once_more_without_a_member_that_left() {
    let mut alone = 0;
    for seed in 0..12 {
        let torn = Torn::new(seed);
        let ahead = torn.ahead();
        // The last node leaves; it may have been the only one that knew the mean.
        if ahead == [NODES - 1] {
            continue;
        }
        alone += u32::from(ahead.len() == 1);
        let known = torn.walk.trained.lock().unwrap().len();
        let disks: Vec<Disk> = torn.swarm.disks[..NODES - 1].to_vec();
        let mut swarm = Swarm::with_disks(torn.walk.clone(), disks, seed);
        common(&mut swarm);
        let trained = since(&torn.walk.trained, known);
        assert!(trained.iter().all(|round| *round >= 2), "seed {seed}: round 1 again: {trained:?}");
    }
    assert!(alone > 0, "in no seed one node alone had the mean");
}

#[test]
fn a_model_that_is_not_the_one_of_the_others_ends_all_and_is_kept_by_none() {
    let (mut honest, _) = stopped_together();
    honest.disks[3] = Disk::default();
    let walk = Walk { fault: Fault::OtherModel(0), ..Walk::in_common() };
    let mut swarm = Swarm::with_disks(walk, honest.disks, 0);
    for (node, found) in swarm.finish(0.0).into_iter().enumerate() {
        let why = found.unwrap_err();
        assert!(matches!(why, SolveError::StatesDiffer { .. }), "node {node}: {why}");
    }
    assert!(swarm.disks[3].held().is_empty(), "what was handed over was kept before all had compared it");
    assert!(swarm.disks[..3].iter().all(|disk| newest(disk) >= 2), "those that were not lied to keep their own");
}

#[test]
fn metrics_of_a_round_are_summed_once_whoever_starts_again() {
    let (mut swarm, walk) = stopped_together();
    swarm.restart(3);
    let learned: Vec<_> = swarm.finish(0.0).into_iter().map(Result::unwrap).collect();
    let mean = |node: usize, round: usize| learned[node].history[round - 1].mean[0];
    let whole = Swarm::with_disks(Walk::in_common(), empty_disks(), 0).finish(0.0).remove(0).unwrap();
    for round in 1..=ROUNDS as usize {
        for node in 0..NODES {
            let found = mean(node, round);
            assert!(
                found.is_none() && round == 2 || found == whole.history[round - 1].mean[0],
                "{node} {round}: {found:?}"
            );
        }
    }
    let measured = walk.measured.lock().unwrap();
    let twice = |node: usize| measured.iter().filter(|measured| **measured == (node, 2)).count();
    assert!((0..NODES).all(|node| twice(node) == 1), "{measured:?}");
}

#[test]
fn a_node_that_was_started_again_at_the_end_measures_its_model_for_itself() {
    let walk = Walk::in_common();
    let mut swarm = Swarm::with_disks(walk, empty_disks(), 0);
    while swarm.disks.iter().any(|disk| newest(disk) < ROUNDS) {
        assert!(swarm.step(0.0));
    }
    (0..NODES).for_each(|node| swarm.restart(node));
    for found in swarm.finish(0.0) {
        let last = found.unwrap().history.pop().unwrap();
        assert!(last.own[0].is_some(), "{last:?}");
    }
}

#[test]
fn a_holder_that_is_killed_while_it_hands_its_mean_over_still_offers_it() {
    for seed in 0..12 {
        let torn = Torn::new(seed);
        let ahead = torn.ahead();
        if ahead.len() != 1 || ahead == [NODES - 1] {
            continue;
        }
        let known = torn.walk.trained.lock().unwrap().len();
        let mut swarm = Swarm::with_disks(torn.walk.clone(), torn.swarm.disks.clone(), seed);
        let kept_by = |swarm: &Swarm| swarm.disks.iter().filter(|disk| newest(disk) == 2).count();
        let most = swarm.dice.next_u32() % 1_000;
        for _ in 0..most {
            if kept_by(&swarm) == 1 {
                assert!(swarm.step(0.0), "seed {seed}");
            }
        }
        let remaining = (0..NODES - 1).map(|node| swarm.disks[node].clone()).collect();
        common(&mut Swarm::with_disks(torn.walk.clone(), remaining, seed));
        let trained = since(&torn.walk.trained, known);
        assert!(trained.iter().all(|round| *round >= 2), "seed {seed}: round 1 again: {trained:?}");
    }
}
