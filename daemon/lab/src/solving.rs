//! All nodes of a plan in this process, on virtual time, over lossy links.

use std::sync::Arc;
use std::time::Duration;

use mingle_protocol::sim::Agenda;
use mingle_protocol::{Envelope, NodeId, ScheduleError, Time};
use mingle_solving::{
    CommunicationPlan, CommunicationPlanError, EnvelopeFault, Finding, Learned, LearningError, Problem, ProblemError,
    RoundRecord, Solution, SolveError, SolverPeer, SumPolicy, Sums, TooFewMembers,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use thiserror::Error;

/// The shortest delay of a message; the longest is twice that.
const DELAY_US: u64 = 1_000;
/// The time without progress after which a node retransmits.
const PATIENCE: Duration = Duration::from_micros(4 * DELAY_US);

/// The reason for which the nodes found no solution.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum SwarmError {
    /// The part of a node cannot be used.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// The plan cannot be run.
    #[error("the plan cannot be run")]
    Schedule(#[from] ScheduleError),
    /// The plan does not allow to solve or learn anything.
    #[error(transparent)]
    Plan(#[from] CommunicationPlanError),
    /// The plan has fewer nodes than sums are wanted of.
    #[error(transparent)]
    Members(#[from] TooFewMembers),
    /// A node failed.
    #[error(transparent)]
    Solve(#[from] SolveError),
    /// A node cannot learn.
    #[error("node {node} cannot go on learning")]
    Learning { node: usize, source: LearningError },
    /// A node received a faulty message.
    #[error("from node {from}")]
    Message { from: NodeId, source: EnvelopeFault },
    /// No message is under way, and a node has no outcome.
    #[error("a node has not come to an end")]
    Unfinished,
}

/// The simulated network, and the protection of sums in it. [`Default`] loses nothing and masks sums.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conditions {
    /// The share of messages that are lost.
    pub loss: f64,
    /// The seed of delays, losses and keys. No result depends on it.
    pub seed: u64,
    /// The choice between masked and plain sums.
    pub sums: SumPolicy,
}

/// The result of all nodes, and its cost.
pub struct Solved {
    /// The solution of each node, where a problem is solved.
    pub solutions: Vec<Solution>,
    /// The result of each node, where something is learned in rounds.
    pub learned: Vec<Learned>,
    /// The largest residual of all nodes, by iteration.
    pub residuals: Vec<f64>,
    /// Messages sent.
    pub messages: u64,
    /// Messages that were lost.
    pub lost: u64,
    /// The bytes of all messages.
    pub bytes: u64,
    /// The virtual time that it took, in seconds.
    pub virtual_s: f64,
}

/// Solves a problem with all parts in this process. `watch` receives the iteration and the largest residual of every
/// check.
///
/// # Errors
/// Any error of a node.
pub fn solve_here(
    problem: &Problem,
    communication: &Arc<CommunicationPlan>,
    conditions: Conditions,
    mut watch: impl FnMut(u64, f64),
) -> Result<Solved, SwarmError> {
    let mut swarm = SolvingSwarm::new(peers(problem, communication, conditions)?, conditions);
    let mut checked = None;
    while swarm.step()? {
        let now = swarm.peers[0].journal().read().checked;
        if let Some((iteration, worst)) = now.filter(|_| now != checked) {
            watch(iteration, worst);
            checked = now;
        }
    }
    swarm.finish()
}

/// Learns in rounds with all nodes in this process. `watch` receives the record of every round.
///
/// # Errors
/// Any error of a node.
pub fn learn_here(
    problem: &Problem,
    communication: &Arc<CommunicationPlan>,
    conditions: Conditions,
    mut watch: impl FnMut(&RoundRecord),
) -> Result<Solved, SwarmError> {
    let mut swarm = SolvingSwarm::new(peers(problem, communication, conditions)?, conditions);
    let mut told = 0;
    while swarm.step()? {
        let round = swarm.peers[0].journal().read().round.clone();
        if let Some(record) = round.filter(|record| record.round > told) {
            watch(&record);
            told = record.round;
        }
    }
    swarm.finish()
}

fn peers(
    problem: &Problem,
    communication: &Arc<CommunicationPlan>,
    conditions: Conditions,
) -> Result<Vec<SolverPeer>, SwarmError> {
    let nodes = communication.schedule.nodes();
    let sums = Sums::simulated(conditions.sums.protection(nodes)?, nodes, conditions.seed);
    let parts = problem.parts()?.into_iter().zip(sums).enumerate();
    let peer = |(me, (part, sums))| SolverPeer::new(me, problem, part, Arc::clone(communication), 0, sums);
    Ok(parts.map(peer).collect())
}

struct SolvingSwarm {
    peers: Vec<SolverPeer>,
    agenda: Agenda<SolvingEvent>,
    now: Time,
    dice: ChaCha8Rng,
    loss: f64,
    /// The nodes without an outcome.
    unfinished: usize,
    /// The number of collectives that each node had begun at its last check for retransmission.
    turns: Vec<u64>,
    sent: [u64; 3],
}

enum SolvingEvent {
    Arrival { from: NodeId, to: NodeId, envelope: Envelope },
    Look { node: usize },
}

impl SolvingSwarm {
    fn new(peers: Vec<SolverPeer>, conditions: Conditions) -> Self {
        let mut swarm = Self {
            turns: vec![0; peers.len()],
            unfinished: peers.iter().filter(|peer| peer.outcome().is_none()).count(),
            peers,
            agenda: Agenda::default(),
            now: Time::default(),
            dice: ChaCha8Rng::seed_from_u64(conditions.seed),
            loss: conditions.loss,
            sent: [0; 3],
        };
        for node in 0..swarm.peers.len() {
            swarm.work(node);
            swarm.send(node);
            if swarm.loss > 0.0 {
                swarm.agenda.add(swarm.now + PATIENCE, SolvingEvent::Look { node });
            }
        }
        swarm
    }

    /// Processes the next event. Returns `false` when there is none, or, with losses, when every node has its outcome.
    fn step(&mut self) -> Result<bool, SwarmError> {
        let Some((at, _)) = self.agenda.next(self.now) else { return Ok(false) };
        let Some(event) = self.agenda.pop(at) else { return Ok(false) };
        self.now = at;
        match event {
            SolvingEvent::Arrival { from, to, envelope } => self.arrive(from, to.index(), &envelope)?,
            SolvingEvent::Look { node } => self.look(node),
        }
        // Without losses there are no checks for retransmission, and events run out.
        Ok(self.loss == 0.0 || self.unfinished > 0)
    }

    fn arrive(&mut self, from: NodeId, to: usize, envelope: &Envelope) -> Result<(), SwarmError> {
        let had_ended = self.peers[to].outcome().is_some();
        self.peers[to].handle(from, envelope).map_err(|source| SwarmError::Message { from, source })?;
        self.work(to);
        if !had_ended && self.peers[to].outcome().is_some() {
            self.unfinished -= 1;
        }
        self.send(to);
        Ok(())
    }

    /// Sends again what is owed by a node that has not gone on since its last check.
    fn look(&mut self, node: usize) {
        let turns = self.peers[node].turns();
        if turns == self.turns[node] && self.peers[node].is_owed() {
            self.peers[node].resend();
            self.send(node);
        }
        self.turns[node] = turns;
        self.agenda.add(self.now + PATIENCE, SolvingEvent::Look { node });
    }

    /// Runs the local work of a node at once: it takes no virtual time.
    fn work(&mut self, node: usize) {
        while let Some(work) = self.peers[node].local_work() {
            work.run();
            self.peers[node].worked();
        }
    }

    /// Sends all envelopes that a node has to send.
    fn send(&mut self, from: usize) {
        let sender = NodeId(u32::try_from(from).unwrap_or(u32::MAX));
        while let Some((to, envelope)) = self.peers[from].poll() {
            self.sent[0] += 1;
            self.sent[2] += envelope.frame.len() as u64;
            if self.loss > 0.0 && self.share() < self.loss {
                self.sent[1] += 1;
                continue;
            }
            let delay = Duration::from_micros(DELAY_US + self.dice.next_u64() % DELAY_US);
            self.agenda.add(self.now + delay, SolvingEvent::Arrival { from: sender, to, envelope });
        }
    }

    /// A random number in `[0, 1)`.
    fn share(&mut self) -> f64 {
        (self.dice.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// The largest residual of all nodes, by iteration.
    fn residuals(&self) -> Vec<f64> {
        let longest = self.peers.iter().map(|peer| peer.journal().read().residuals.len()).max().unwrap_or(0);
        let mut residuals = vec![0.0_f64; longest];
        for peer in &self.peers {
            let entries = peer.journal().read();
            residuals.iter_mut().zip(&entries.residuals).for_each(|(worst, residual)| *worst = worst.max(*residual));
        }
        residuals
    }

    fn finish(self) -> Result<Solved, SwarmError> {
        let residuals = self.residuals();
        let mut solutions = Vec::new();
        let mut learned = Vec::new();
        let mut is_unfinished = false;
        let mut elsewhere = None;
        for (node, peer) in self.peers.into_iter().enumerate() {
            match peer.into_outcome() {
                Some(Ok(Finding::Solution(solution))) => solutions.push(*solution),
                Some(Ok(Finding::Learned(one))) => learned.push(*one),
                Some(Err(SolveError::Learning(source))) => return Err(SwarmError::Learning { node, source }),
                // The error of the node that failed has the reason, and is returned instead.
                Some(Err(failure @ SolveError::LearningElsewhere { .. })) => elsewhere = Some(failure),
                Some(Err(failure)) => return Err(failure.into()),
                // Nodes that wait for one that failed have no outcome.
                None => is_unfinished = true,
            }
        }
        if let Some(failure) = elsewhere {
            return Err(failure.into());
        }
        if is_unfinished {
            return Err(SwarmError::Unfinished);
        }
        Ok(Solved {
            solutions,
            learned,
            residuals,
            messages: self.sent[0],
            lost: self.sent[1],
            bytes: self.sent[2],
            virtual_s: self.now.micros() as f64 / 1e6,
        })
    }
}
