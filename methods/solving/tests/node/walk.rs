//! A swarm of walkers, a learning in rounds made for tests, with disks that outlive the peers.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use mingle_planner::{DesignOptions, Medium, Method, Topology};
use mingle_protocol::{Envelope, NodeId};
use mingle_solving::{
    Aggregation, CommunicationPlan, Finding, Learned, LearningError, MemoryStore, Problem, RoundLearning, RoundRules,
    RoundStore, RoundTask, SolveError, SolverPeer, StatisticsTable, schedule,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::support::sums;

pub(crate) const SHARED: usize = 70_000;
pub(crate) const ROUNDS: u64 = 6;

/// The rounds that each node has trained, in order: (node, round).
pub(crate) type TrainedRounds = Arc<Mutex<Vec<(usize, u64)>>>;

/// The task of the walkers below, with an injected fault.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    pub(crate) rules: RoundRules,
    pub(crate) fault: Fault,
    /// `true` if the vectors of all are one model, and nodes have nothing of their own.
    pub(crate) is_common: bool,
    pub(crate) trained: TrainedRounds,
    /// The rounds after which each node has measured its model.
    pub(crate) measured: TrainedRounds,
}

impl Walk {
    /// Rounds whose best one is kept.
    fn judged(fault: Fault, patience: Option<u64>) -> Self {
        let rules = RoundRules::new(ROUNDS, vec!["score".to_owned(), "rare".to_owned()]).unwrap();
        let rules = rules.judged_by("score", patience).unwrap();
        Self { rules, fault, is_common: false, trained: TrainedRounds::default(), measured: TrainedRounds::default() }
    }

    /// Rounds with one model for all.
    pub(crate) fn in_common() -> Self {
        let rules = RoundRules::new(ROUNDS, vec!["score".to_owned(), "rare".to_owned()]).unwrap();
        Self {
            rules,
            fault: Fault::None,
            is_common: true,
            trained: TrainedRounds::default(),
            measured: TrainedRounds::default(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    None,
    TrainingAt(usize, u64),
    LongRow(usize),
    Opening(usize),
    /// The node hands over another model than it has.
    OtherModel(usize),
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
    fn has_common_model(&self) -> bool {
        self.is_common
    }
    fn open(&self, node: usize, _: &[String]) -> Result<Box<dyn RoundLearning>, LearningError> {
        if self.fault == Fault::Opening(node) {
            return Err(LearningError("shop.csv, line 3: no item".to_owned()));
        }
        let dice = ChaCha8Rng::seed_from_u64(node as u64);
        Ok(Box::new(Walker { node, task: self.clone(), shared: vec![0.0; SHARED], own: 0.0, others: Vec::new(), dice }))
    }
}

/// One node: a shared vector that it pulls to a place of its own, and a number that it never shares.
pub(crate) struct Walker {
    node: usize,
    task: Walk,
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
            [] if self.task.fault == Fault::LongRow(self.node) => Ok(Some(vec![1.0; 3])),
            [] => Ok(Some(vec![self.node as f64 + 1.0, 0.5])),
            [first] => Ok(Some(vec![first.iter().map(|row| row[0]).sum::<f64>() / (self.node as f64 + 1.0)])),
            [_, second, ..] => {
                self.others = second.iter().map(|row| row[0]).collect();
                Ok(None)
            }
        }
    }
    fn train(&mut self, round: u64) -> Result<Vec<f32>, LearningError> {
        if self.task.fault == Fault::TrainingAt(self.node, round) {
            return Err(LearningError("the disk is on fire".to_owned()));
        }
        self.task.trained.lock().unwrap().push((self.node, round));
        if self.task.is_common {
            self.own = 0.0;
            self.dice.set_word_pos(u128::from(round) * 1_000_000);
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
    fn evaluate(&mut self, rounds: u64) -> Result<Vec<Option<f64>>, LearningError> {
        self.task.measured.lock().unwrap().push((self.node, rounds));
        if self.task.is_common {
            return Ok(vec![Some(f64::from(self.shared[0])), None]);
        }
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
    fn common(&self) -> Vec<u8> {
        let told = if self.task.fault == Fault::OtherModel(self.node) { 1.0 } else { 0.0 };
        self.shared.iter().flat_map(|value| (value + told).to_le_bytes()).collect()
    }
    fn adopt(&mut self, common: &[u8]) -> Result<(), LearningError> {
        self.shared = common.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        Ok(())
    }
    fn files(&self) -> Result<Vec<(String, Vec<u8>)>, LearningError> {
        Ok(vec![("walk.bin".to_owned(), self.state())])
    }
}

/// A disk that outlives its peer.
#[derive(Clone, Default)]
pub(crate) struct Disk(Arc<Mutex<MemoryStore>>);

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
pub(crate) struct Swarm {
    pub(crate) problem: Problem,
    communication: Arc<CommunicationPlan>,
    pub(crate) disks: Vec<Disk>,
    pub(crate) peers: Vec<SolverPeer>,
    attempts: Vec<u64>,
    under_way: Vec<(NodeId, NodeId, Envelope)>,
    pub(crate) dice: ChaCha8Rng,
}

impl Swarm {
    pub(crate) fn new(nodes: usize, fault: Fault, patience: Option<u64>, seed: u64) -> Self {
        Self::with_disks(Walk::judged(fault, patience), (0..nodes).map(|_| Disk::default()).collect(), seed)
    }

    /// Peers that begin with these disks.
    pub(crate) fn with_disks(walk: Walk, disks: Vec<Disk>, seed: u64) -> Self {
        let nodes = disks.len();
        let options = DesignOptions { medium: Medium::PointToPoint, ..DesignOptions::default() };
        let topology = Topology::generate(&format!("ring:n={nodes}")).unwrap();
        let plan = mingle_planner::design(&topology, Method::NguyenHe, &options).unwrap();
        let names = plan.nodes().map(|(name, _)| name.to_owned()).collect();
        let problem = Problem::of_rounds(Arc::new(walk), Arc::new(names));
        let communication = Arc::new(problem.communication(&plan, Arc::new(schedule(&plan).unwrap())).unwrap());
        let dice = ChaCha8Rng::seed_from_u64(seed);
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
    pub(crate) fn restart(&mut self, me: usize) {
        self.attempts[me] += 1;
        self.under_way.retain(|(from, to, _)| from.index() != me && to.index() != me);
        self.peers[me] = self.begin(me);
    }

    /// Does a node's local work. Returns `false` if it has none.
    fn work(&mut self, at: usize) -> bool {
        let work = self.peers[at].local_work();
        work.map(|work| work.run()).map(|()| self.peers[at].worked()).is_some()
    }

    /// Some node works or receives a message, in random order and with losses. Returns `false` when nothing is left to
    /// do.
    pub(crate) fn step(&mut self, loss: f64) -> bool {
        for me in 0..self.peers.len() {
            while let Some((to, envelope)) = self.peers[me].poll() {
                self.under_way.push((NodeId(me as u32), to, envelope));
            }
        }
        let at = (self.dice.next_u32() as usize) % self.peers.len();
        if self.work(at) || self.under_way.is_empty() && (0..self.peers.len()).any(|peer| self.work(peer)) {
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

    pub(crate) fn finish(&mut self, loss: f64) -> Vec<Result<Learned, SolveError>> {
        while self.step(loss) {}
        let learned = |found: &Finding| found.learned().unwrap().clone();
        self.peers.iter().map(|peer| peer.outcome().unwrap().map(learned).map_err(Clone::clone)).collect()
    }
}
