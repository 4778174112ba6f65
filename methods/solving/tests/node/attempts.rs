//! Processes that die and restart, and neighbours that send arbitrary messages.

use std::path::Path;
use std::sync::Arc;

use mingle_planner::Method;
use mingle_protocol::{Envelope, NodeId};
use mingle_solving::{CommunicationPlan, EnvelopeFault, Problem, Reception, SolverPeer};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::support::{NODES, coefficients, regression, solve_all, sums};

/// A peer of the swarm, with its first envelopes.
fn peer(folder: &Path, attempt: u64) -> (SolverPeer, Vec<(NodeId, Envelope)>) {
    let (_, problem, communication) = regression(folder, Method::CliquePhi, "");
    let mut peer = SolverPeer::new(0, &problem, problem.part(0).unwrap(), communication, attempt, sums(0, NODES));
    let sent = std::iter::from_fn(|| peer.poll()).collect();
    (peer, sent)
}

#[test]
fn who_is_behind_hears_of_the_attempt_and_who_is_ahead_takes_all_along() {
    let folder = tempfile::tempdir().unwrap();
    let (mut peer, sent) = peer(folder.path(), 3);
    let (neighbour, own) = sent[0].clone();
    let nothing = |attempt| Envelope { attempt, frame: vec![0; 6], ..own.clone() };
    assert_eq!(peer.handle(neighbour, &nothing(2)).unwrap(), Reception::Taken);
    let (to, answer) = peer.poll().unwrap();
    assert_eq!((to, answer.attempt), (neighbour, 3));
    assert_eq!(peer.handle(neighbour, &nothing(5)).unwrap(), Reception::NewAttempt(5));
    assert!(std::iter::from_fn(|| peer.poll()).all(|(_, envelope)| envelope.attempt == 5));
    // An attempt has begun also where the message that announces it acknowledges a message never sent.
    let absurd = Envelope { frame: vec![0, 0, 0, 0, 5, 0], ..nothing(6) };
    assert_eq!(peer.handle(neighbour, &absurd).unwrap(), Reception::NewAttempt(6));
    // It may acknowledge what a process before this one sent: the neighbour gets a frame of this one, and notices.
    assert_eq!(peer.handle(neighbour, &absurd).unwrap(), Reception::Taken);
    assert!(std::iter::from_fn(|| peer.poll()).any(|(to, envelope)| (to, envelope.attempt) == (neighbour, 6)));
    assert!(matches!(peer.handle(neighbour, &nothing(u64::MAX)), Err(EnvelopeFault::Attempt(u64::MAX))));
    let other = Envelope { task: [9; 32], ..nothing(9) };
    assert_eq!(peer.handle(neighbour, &other).unwrap(), Reception::OtherProblem);
}

/// A neighbour whose home was lost begins again with a number that all know.
#[test]
fn another_process_in_the_same_attempt_begins_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let (mut peer, sent) = peer(folder.path(), 0);
    let (neighbour, own) = sent[0].clone();
    let of = |process: u8, attempt| Envelope { attempt, frame: vec![process, 0, 0, 0, 0, 0], ..own.clone() };
    for _ in 0..2 {
        assert!(!peer.would_begin_anew(neighbour, &of(7, 0)));
        assert_eq!(peer.handle(neighbour, &of(7, 0)).unwrap(), Reception::Taken);
    }
    assert!(peer.would_begin_anew(neighbour, &of(8, 0)));
    assert_eq!(peer.handle(neighbour, &of(8, 0)).unwrap(), Reception::NewAttempt(1));
    // What the former process sent is of an attempt that is over, and another neighbour has processes of its own.
    assert_eq!(peer.handle(neighbour, &of(7, 0)).unwrap(), Reception::Taken);
    assert_eq!(peer.handle(neighbour, &of(8, 1)).unwrap(), Reception::Taken);
    assert_eq!(peer.handle(sent[1].0, &of(9, 1)).unwrap(), Reception::Taken);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_bytes_of_a_neighbour_end_a_peer(
        frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 1..8), from in 0_u32..8,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (mut peer, sent) = peer(folder.path(), 0);
        let own = sent[0].1.clone();
        for frame in frames {
            // A fault is returned, and nothing else happens.
            let _ = peer.handle(NodeId(from), &Envelope { frame, ..own.clone() });
        }
        prop_assert!(peer.outcome().is_none());
    }
}

/// A swarm whose processes die at any moment and restart with the number of their attempt or without.
struct Mortal {
    problem: Problem,
    communication: Arc<CommunicationPlan>,
    peers: Vec<SolverPeer>,
    /// The number of the attempt in each home.
    attempts: Vec<u64>,
    under_way: Vec<(usize, NodeId, Envelope)>,
    dice: ChaCha8Rng,
}

impl Mortal {
    fn new(problem: Problem, communication: Arc<CommunicationPlan>, seed: u64) -> Self {
        let peers = (0..NODES)
            .map(|me| {
                let part = problem.part(me).unwrap();
                SolverPeer::new(me, &problem, part, Arc::clone(&communication), 0, sums(me, NODES))
            })
            .collect();
        let dice = ChaCha8Rng::seed_from_u64(seed);
        Self { problem, communication, peers, attempts: vec![0; NODES], under_way: Vec::new(), dice }
    }

    /// One message arrives, or is lost.
    fn step(&mut self, loss: f64) {
        for (from, peer) in self.peers.iter_mut().enumerate() {
            while let Some((to, envelope)) = peer.poll() {
                self.under_way.push((from, to, envelope));
            }
        }
        if self.under_way.is_empty() {
            self.peers.iter().for_each(SolverPeer::resend);
            return;
        }
        let (from, to, envelope) = self.under_way.swap_remove(self.dice.random_range(0..self.under_way.len()));
        if self.dice.random_bool(loss) {
            return;
        }
        let me = to.index();
        let from = NodeId(u32::try_from(from).unwrap());
        if let Reception::NewAttempt(attempt) = self.peers[me].handle(from, &envelope).unwrap() {
            self.attempts[me] = attempt;
        }
    }

    /// A process dies and is restarted, some without their homes; messages that it sent before may still arrive.
    fn kill(&mut self, me: usize) {
        // Every third has lost its home.
        self.attempts[me] = if self.dice.random_bool(1.0 / 3.0) { 0 } else { self.attempts[me] + 1 };
        let part = self.problem.part(me).unwrap();
        let (communication, sums) = (Arc::clone(&self.communication), sums(me, NODES));
        let peer = SolverPeer::new(me, &self.problem, part, communication, self.attempts[me], sums);
        self.peers[me] = peer.with_process(self.dice.random());
    }
}

#[test]
fn whoever_dies_and_however_often_all_find_the_solution_in_the_end() {
    for (seed, method) in (0..12).zip([Method::CliquePhi, Method::NguyenHe].into_iter().cycle()) {
        let folder = tempfile::tempdir().unwrap();
        let (_, problem, communication) = regression(folder.path(), method, "");
        let expected = solve_all(&problem, &communication);
        let mut swarm = Mortal::new(problem, communication, seed);
        for _ in 0..8 {
            let quiet = swarm.dice.random_range(0..6_000);
            (0..quiet).for_each(|_| swarm.step(0.05));
            let victim = swarm.dice.random_range(0..NODES);
            swarm.kill(victim);
        }
        for _ in 0..2_000_000 {
            if swarm.peers.iter().all(|peer| peer.outcome().is_some()) {
                break;
            }
            swarm.step(0.05);
        }
        for (peer, expected) in swarm.peers.iter().zip(&expected) {
            let found =
                peer.outcome().unwrap_or_else(|| panic!("seed {seed}: no outcome")).unwrap().solution().unwrap();
            let pairs = coefficients(found).into_iter().zip(coefficients(expected));
            let off = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(found.converged && off < 1e-8, "seed {seed}: {off:e}");
        }
    }
}
