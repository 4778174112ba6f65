//! Learning in rounds: the common result, and that neither losses nor restarts change a bit of it.

use std::sync::Arc;

use mingle_solving::{Learned, Problem, ProblemTask, RoundStore, SolveError};
use rand::Rng;

use crate::walk::{Disk, Fault, ROUNDS, SHARED, Swarm, Walk};

fn undisturbed(nodes: usize) -> Vec<Learned> {
    Swarm::new(nodes, Fault::None, None, 0).finish(0.0).into_iter().map(Result::unwrap).collect()
}

#[test]
fn every_node_has_the_mean_of_all_and_tells_the_same_metrics() {
    let learned = undisturbed(4);
    for (node, one) in learned.iter().enumerate() {
        assert_eq!((one.rounds, one.node, one.stopped_early), (ROUNDS, node, false));
        let means = |learned: &Learned| learned.history.iter().map(|record| record.mean.clone()).collect::<Vec<_>>();
        assert_eq!(means(one), means(&learned[0]));
        for record in &one.history {
            let own: f64 = learned.iter().map(|other| other.history[record.round as usize - 1].own[0].unwrap()).sum();
            assert!((record.mean[0].unwrap() - own / 4.0).abs() < 1e-12);
            assert_eq!(record.mean[1], Some(4.0), "one node alone knows the second metric");
        }
        // The files are of the best round, and their shared part is the same at all nodes.
        assert_eq!(one.best_round, learned[0].best_round);
        assert!(one.best_round > 1 && one.best_round < ROUNDS, "{}", one.best_round);
        let (shared, own) = one.files[0].1.split_at(4 * SHARED);
        assert_eq!(shared, &learned[0].files[0].1[..4 * SHARED]);
        assert!(node == 0 || own != &learned[0].files[0].1[4 * SHARED..]);
    }
}

#[test]
fn what_a_node_takes_is_the_mean_of_what_all_have_trained() {
    let mut swarm = Swarm::new(4, Fault::None, None, 0);
    while swarm.peers.iter().any(|peer| peer.journal().read().iterations < 2) {
        assert!(swarm.step(0.0));
    }
    let state = |node: usize, round| {
        let kept = swarm.disks[node].load(round).unwrap();
        kept[kept.len() - 4 * SHARED - 20..].to_vec()
    };
    let ProblemTask::Rounds(task) = &swarm.problem.task else { panic!("a walk") };
    let tables = [
        (0..4).map(|node| vec![f64::from(node) + 1.0, 0.5]).collect::<Vec<_>>(),
        (0..4).map(|node| vec![10.0 / (f64::from(node) + 1.0)]).collect(),
    ];
    let mut mean = vec![0.0_f64; SHARED];
    for node in 0..4 {
        let mut walker = task.open(node, &swarm.problem.names).unwrap();
        assert!(walker.statistics(&tables).unwrap().is_none());
        walker.restore(&state(node, 1)).unwrap();
        let trained = walker.train(1).unwrap();
        mean.iter_mut().zip(trained).for_each(|(mean, value)| *mean += f64::from(value) / 4.0);
    }
    for node in 0..4 {
        let bytes = state(node, 2);
        let taken = bytes[..4 * SHARED].as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
        for (at, (taken, mean)) in taken.zip(&mean).enumerate() {
            assert!((f64::from(taken) - mean).abs() <= 1e-6 * mean.abs(), "node {node}, {at}: {taken} {mean}");
        }
    }
}

#[test]
fn restarts_and_losses_change_no_bit() {
    let expected = undisturbed(4);
    for seed in 0..5 {
        let mut swarm = Swarm::new(4, Fault::None, None, seed);
        let mut restarts = 0;
        loop {
            if !swarm.step(0.1) {
                break;
            }
            let ended = swarm.peers.iter().any(|peer| peer.outcome().is_some());
            if !ended && restarts < 5 && swarm.dice.next_u32() < u32::MAX / 100 {
                let victim = swarm.dice.next_u32() as usize % 4;
                swarm.restart(victim);
                restarts += 1;
            }
        }
        let found: Vec<Learned> = swarm.finish(0.1).into_iter().map(Result::unwrap).collect();
        assert_eq!(found, expected, "seed {seed}, {restarts} restarts");
        assert!(restarts > 0, "seed {seed}");
        // A store does not grow with the rounds.
        assert!(swarm.disks.iter().all(|disk| disk.held().len() <= 4), "seed {seed}");
    }
}

#[test]
fn a_node_that_is_started_again_goes_on_where_all_were() {
    let mut swarm = Swarm::new(3, Fault::None, None, 1);
    while swarm.peers[2].journal().read().iterations < 4 {
        assert!(swarm.step(0.0));
    }
    swarm.restart(2);
    let mut least = u64::MAX;
    while swarm.step(0.0) {
        for peer in &swarm.peers {
            // No round is repeated but the one that was under way.
            let done = peer.journal().read().iterations;
            least = if done == 0 { least } else { least.min(done) };
        }
    }
    assert!(least >= 3, "{least}");
    // A node that has lost its disk makes all begin at the beginning, and they come to the same result.
    let mut swarm = Swarm::new(3, Fault::None, None, 1);
    while swarm.peers[2].journal().read().iterations < 4 {
        assert!(swarm.step(0.0));
    }
    swarm.disks[2] = Disk::default();
    swarm.restart(2);
    let mut told = Vec::new();
    while swarm.step(0.0) {
        // What comes to nothing now must not have cost the others what they have.
        assert!(swarm.disks[..2].iter().all(|disk| !disk.held().is_empty()));
        told.extend(swarm.peers.iter().filter_map(|peer| peer.journal().read().went_back.take()));
    }
    assert_eq!(told.len(), 2, "those that had kept rounds: {told:?}");
    assert!(told.iter().all(|back| back.to == 0 && back.kept >= 3), "{told:?}");
    let found: Vec<Learned> = swarm.finish(0.0).into_iter().map(Result::unwrap).collect();
    assert_eq!(found, undisturbed(3));
}

#[test]
fn all_stop_together_when_the_mean_gets_no_better() {
    let mut swarm = Swarm::new(3, Fault::None, Some(2), 0);
    let learned: Vec<Learned> = swarm.finish(0.0).into_iter().map(Result::unwrap).collect();
    let all = undisturbed(3);
    for (one, whole) in learned.iter().zip(&all) {
        assert!(one.stopped_early && one.rounds == one.best_round + 2, "{} {}", one.rounds, one.best_round);
        assert_eq!(one.best_round, whole.best_round);
        assert_eq!(one.files, whole.files);
        assert_eq!(one.history, whole.history[..one.history.len()]);
    }
}

#[test]
fn what_goes_wrong_at_one_node_is_told_there_and_known_to_all() {
    let failed = |fault| Swarm::new(3, fault, None, 0).finish(0.0);
    for (node, found) in failed(Fault::TrainingAt(1, 3)).into_iter().enumerate() {
        let told = found.unwrap_err().to_string();
        let expected = ["node 1 cannot go on learning", "the disk is on fire"][usize::from(node == 1)];
        assert!(told.contains(expected), "{node}: {told}");
    }
    for found in failed(Fault::LongRow(2)) {
        let told = found.unwrap_err();
        assert!(matches!(told, SolveError::Unlike { numbers: [3, 2], .. }), "{told}");
    }
    let task = Walk { fault: Fault::Opening(0), ..Walk::in_common() };
    let problem = Problem::of_rounds(Arc::new(task), Arc::new(vec!["shop".to_owned()]));
    let told = problem.part(0).unwrap_err();
    assert_eq!(told.to_string(), "node shop cannot learn");
    assert!(std::error::Error::source(&told).unwrap().to_string().contains("line 3"));
}
