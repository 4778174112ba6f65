//! Learning in rounds: the common result, and that neither losses nor restarts change a bit of it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use mingle_planner::{DesignOptions, Medium, Method, Topology};
use mingle_protocol::{Envelope, NodeId};
use mingle_solving::{
    Aggregation, CommunicationPlan, Finding, Learned, LearningError, MemoryStore, Problem, ProblemTask, RoundLearning,
    RoundRules, RoundStore, RoundTask, SolveError, SolverPeer, StatisticsTable, schedule,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::support::sums;

const SHARED: usize = 70_000;
const ROUNDS: u64 = 6;

/// The task of the walkers below, with an injected fault.
#[derive(Clone, Debug)]
struct Walk {
    rules: RoundRules,
    fault: Fault,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    TrainingAt(usize, u64),
    LongRow(usize),
    Opening(usize),
}

impl RoundTask for Walk {
    fn hash(&self) -> [u8; 32] {
        [7; 32]
    }
    fn describe(&self) -> String {
        "a walk".to_owned()
    }
    fn title(&self) -> String {
        "Walk".to_owned()
    }
    fn rules(&self) -> &RoundRules {
        &self.rules
    }
    fn open(&self, node: usize, _: &[String]) -> Result<Box<dyn RoundLearning>, LearningError> {
        if self.fault == Fault::Opening(node) {
            return Err(LearningError("shop.csv, line 3: no item".to_owned()));
        }
        let dice = ChaCha8Rng::seed_from_u64(node as u64);
        Ok(Box::new(Walker { node, fault: self.fault, shared: vec![0.0; SHARED], own: 0.0, others: Vec::new(), dice }))
    }
}

/// One node: a shared vector that it pulls to a place of its own, and a number that it never shares.
struct Walker {
    node: usize,
    fault: Fault,
    shared: Vec<f32>,
    own: f32,
    others: Vec<f64>,
    dice: ChaCha8Rng,
}

impl RoundLearning for Walker {
    fn identity(&self) -> [u8; 32] {
        [self.node as u8; 32]
    }
    fn statistics(&mut self, tables: &[StatisticsTable]) -> Result<Option<Vec<f64>>, LearningError> {
        match tables {
            [] if self.fault == Fault::LongRow(self.node) => Ok(Some(vec![1.0; 3])),
            [] => Ok(Some(vec![self.node as f64 + 1.0, 0.5])),
            [first] => Ok(Some(vec![first.iter().map(|row| row[0]).sum::<f64>() / (self.node as f64 + 1.0)])),
            [_, second, ..] => {
                self.others = second.iter().map(|row| row[0]).collect();
                Ok(None)
            }
        }
    }
    fn train(&mut self, round: u64) -> Result<Vec<f32>, LearningError> {
        if self.fault == Fault::TrainingAt(self.node, round) {
            return Err(LearningError("the disk is on fire".to_owned()));
        }
        let unit = |bits: u32| (bits >> 8) as f32 / (1 << 24) as f32;
        self.own += unit(self.dice.next_u32()) + self.others[self.node] as f32;
        for value in &mut self.shared {
            *value += 0.3 * (self.own - *value) + unit(self.dice.next_u32());
        }
        Ok(self.shared.clone())
    }
    fn aggregation(&self, round: u64) -> Aggregation {
        if round == 0 { Aggregation::None } else { Aggregation::Mean }
    }
    fn take(&mut self, _: u64, aggregate: &[f32]) -> Result<(), LearningError> {
        self.shared.copy_from_slice(aggregate);
        Ok(())
    }
    fn evaluate(&mut self) -> Result<Vec<Option<f64>>, LearningError> {
        // Best after the third round; only node 1 can measure the second metric.
        let score = -(f64::from(self.own) - 3.0 * (self.others[self.node] + 0.5)).abs();
        Ok(vec![Some(score), (self.node == 1).then_some(4.0)])
    }
    fn state(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.shared.iter().flat_map(|value| value.to_le_bytes()).collect();
        bytes.extend(self.own.to_le_bytes());
        bytes.extend(self.dice.get_word_pos().to_le_bytes());
        bytes
    }
    fn restore(&mut self, state: &[u8]) -> Result<(), LearningError> {
        let (shared, rest) = state.split_at(4 * SHARED);
        self.shared = shared.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        self.own = f32::from_le_bytes(rest[..4].try_into().unwrap());
        self.dice.set_word_pos(u128::from_le_bytes(rest[4..].try_into().unwrap()));
        Ok(())
    }
    fn files(&self) -> Result<Vec<(String, Vec<u8>)>, LearningError> {
        Ok(vec![("walk.bin".to_owned(), self.state())])
    }
}

/// A disk that outlives its peer.
#[derive(Clone, Default)]
struct Disk(Arc<Mutex<MemoryStore>>);

impl RoundStore for Disk {
    fn held(&self) -> BTreeSet<u64> {
        self.0.lock().unwrap().held()
    }
    fn load(&self, round: u64) -> Result<Vec<u8>, LearningError> {
        self.0.lock().unwrap().load(round)
    }
    fn keep(&mut self, round: u64, bytes: &[u8]) -> Result<(), LearningError> {
        self.0.lock().unwrap().keep(round, bytes)
    }
    fn retain(&mut self, rounds: &BTreeSet<u64>) {
        self.0.lock().unwrap().retain(rounds);
    }
    fn released(&self, rounds: u64) -> Result<Option<Vec<u8>>, LearningError> {
        self.0.lock().unwrap().released(rounds)
    }
    fn keep_released(&mut self, rounds: u64, bytes: &[u8]) -> Result<(), LearningError> {
        self.0.lock().unwrap().keep_released(rounds, bytes)
    }
    fn count(&self) -> Result<Option<String>, LearningError> {
        self.0.lock().unwrap().count()
    }
    fn keep_count(&mut self, text: &str) -> Result<(), LearningError> {
        self.0.lock().unwrap().keep_count(text)
    }
}

/// Peers, their disks, and the messages under way.
struct Swarm {
    problem: Problem,
    communication: Arc<CommunicationPlan>,
    disks: Vec<Disk>,
    peers: Vec<SolverPeer>,
    attempts: Vec<u64>,
    under_way: Vec<(NodeId, NodeId, Envelope)>,
    dice: ChaCha8Rng,
}

impl Swarm {
    fn new(nodes: usize, fault: Fault, patience: Option<u64>, seed: u64) -> Self {
        let options = DesignOptions { medium: Medium::PointToPoint, ..DesignOptions::default() };
        let topology = Topology::generate(&format!("ring:n={nodes}")).unwrap();
        let plan = mingle_planner::design(&topology, Method::NguyenHe, &options).unwrap();
        let rules = RoundRules::new(ROUNDS, vec!["score".to_owned(), "rare".to_owned()]).unwrap();
        let rules = rules.judged_by("score", patience).unwrap();
        let names = plan.nodes().map(|(name, _)| name.to_owned()).collect();
        let problem = Problem::of_rounds(Arc::new(Walk { rules, fault }), Arc::new(names));
        let communication = Arc::new(problem.communication(&plan, Arc::new(schedule(&plan).unwrap())).unwrap());
        let dice = ChaCha8Rng::seed_from_u64(seed);
        let disks = (0..nodes).map(|_| Disk::default()).collect();
        let attempts = vec![0; nodes];
        let mut swarm =
            Self { problem, communication, disks, peers: Vec::new(), attempts, under_way: Vec::new(), dice };
        swarm.peers = (0..nodes).map(|me| swarm.begin(me)).collect();
        swarm
    }

    fn begin(&self, me: usize) -> SolverPeer {
        let part = self.problem.part_that_keeps(me, Box::new(self.disks[me].clone())).unwrap();
        SolverPeer::new(
            me,
            &self.problem,
            part,
            Arc::clone(&self.communication),
            self.attempts[me],
            sums(me, self.attempts.len()),
        )
    }

    /// The process dies wherever it is; another one begins with its disk.
    fn restart(&mut self, me: usize) {
        self.attempts[me] += 1;
        self.under_way.retain(|(from, to, _)| from.index() != me && to.index() != me);
        self.peers[me] = self.begin(me);
    }

    /// Some node works or receives a message, in random order and with losses. Returns `false` when nothing is left to
    /// do.
    fn step(&mut self, loss: f64) -> bool {
        for me in 0..self.peers.len() {
            while let Some((to, envelope)) = self.peers[me].poll() {
                self.under_way.push((NodeId(me as u32), to, envelope));
            }
        }
        let at = (self.dice.next_u32() as usize) % self.peers.len();
        if let Some(work) = self.peers[at].local_work() {
            work.run();
            self.peers[at].worked();
            return true;
        }
        if self.under_way.is_empty() {
            let (is_owed, idle) = (self.peers.iter().any(SolverPeer::is_owed), self.dice.next_u32());
            self.peers.iter().for_each(SolverPeer::resend);
            return is_owed || self.peers.iter().any(|peer| peer.outcome().is_none()) && !idle.is_multiple_of(64);
        }
        let next = (self.dice.next_u64() % self.under_way.len() as u64) as usize;
        let (from, to, envelope) = self.under_way.swap_remove(next);
        if f64::from(self.dice.next_u32()) < loss * f64::from(u32::MAX) {
            return true;
        }
        self.peers[to.index()].handle(from, &envelope).unwrap();
        let attempt = &mut self.attempts[to.index()];
        *attempt = (*attempt).max(envelope.attempt);
        true
    }

    fn finish(&mut self, loss: f64) -> Vec<Result<Learned, SolveError>> {
        while self.step(loss) {}
        let learned = |found: &Finding| found.learned().unwrap().clone();
        self.peers.iter().map(|peer| peer.outcome().unwrap().map(learned).map_err(Clone::clone)).collect()
    }
}

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
    while swarm.step(0.0) {
        // What comes to nothing now must not have cost the others what they have.
        assert!(swarm.disks[..2].iter().all(|disk| !disk.held().is_empty()));
    }
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
    let task = Walk { rules: RoundRules::new(1, Vec::new()).unwrap(), fault: Fault::Opening(0) };
    let problem = Problem::of_rounds(Arc::new(task), Arc::new(vec!["shop".to_owned()]));
    let told = problem.part(0).unwrap_err();
    assert_eq!(told.to_string(), "node shop cannot learn");
    assert!(std::error::Error::source(&told).unwrap().to_string().contains("line 3"));
}
