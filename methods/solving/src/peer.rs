//! One node's part in solving a problem or learning in rounds, as a function of the messages that it receives.
//!
//! An *attempt* is one solution from the beginning. A restarted process has lost the messages of its attempt, and
//! announces that by counting one attempt further than its home remembers. A node that receives a further attempt drops
//! its own and begins that one, from the solution that it had, or from the last round of learning that all have kept.
//! An envelope of an earlier attempt is answered with nothing but the number of one's own. Where the home of a process was
//! lost, it begins with a number that others know already: they see it by its [mark](crate::MarkedFrame), and begin the next.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll, Waker};

use mingle_protocol::collective::{CollectiveFault, Frame, MessageError, SequenceMessage, SizeLimits};
use mingle_protocol::{Envelope, NodeId};
use thiserror::Error;

use crate::collectives::{Collectives, SharedChannel, lock};
use crate::communication_plan::CommunicationPlan;
use crate::error::SolveError;
use crate::journal::ProgressJournal;
use crate::learning::{Learned, LocalWork};
use crate::marked_frame::MarkedFrame;
use crate::masked_sums::Sums;
use crate::problem::{Part, Problem, StoppingCriteria};
use crate::rounds::learn;
use crate::solution::{Finding, Solution};
use crate::stopping_rule::NodeOutcome;
use crate::{allocation, coupled, masked_sums, network_lasso, regression, robust};

/// The most attempts that a received number may be ahead: a damaged or malicious number must not use all of them up.
const FURTHEST_ATTEMPT: u64 = 1 << 20;

type NodeFuture = Pin<Box<dyn Future<Output = Result<Done, SolveError>> + Send>>;

/// The outcome of a node's work, before it is put into a `Finding`.
enum Done {
    Solved(NodeOutcome),
    Learned(Learned),
}

/// One node's part, driven by its host.
pub struct SolverPeer {
    me: usize,
    /// The hash of the problem, and of the protection of its sums.
    problem: [u8; 32],
    /// The hash of the problem alone.
    subject: [u8; 32],
    part: Part,
    sums: Sums,
    limits: StoppingCriteria,
    communication: Arc<CommunicationPlan>,
    attempt: u64,
    /// The mark of this process.
    process: u32,
    /// Those of the processes that its neighbours take part with in the present attempt.
    processes: BTreeMap<NodeId, u32>,
    channel: SharedChannel,
    work: Option<NodeFuture>,
    journal: ProgressJournal,
    outcome: Option<Result<Finding, SolveError>>,
    /// Nodes in an earlier attempt, which are to be sent the number of this one.
    behind: VecDeque<NodeId>,
}

/// The effect of a received envelope.
#[derive(Debug, PartialEq, Eq)]
pub enum Reception {
    /// It was taken, or is of no use any more.
    Taken,
    /// All begin a new attempt of this number: a process was restarted.
    NewAttempt(u64),
    /// The sender solves another problem.
    OtherProblem,
}

/// A fault that no correct neighbour's envelope has.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum EnvelopeFault {
    /// Its bytes are no message.
    #[error(transparent)]
    Message(MessageError),
    /// Its message does not fit the state of the collective.
    #[error(transparent)]
    Collective(CollectiveFault),
    /// Its attempt is too far ahead.
    #[error("it speaks of attempt {0}, which nobody has got to")]
    Attempt(u64),
}

impl SolverPeer {
    /// The part of node `me`, which begins this attempt. The protection of sums has to be the same at all nodes.
    pub fn new(
        me: usize,
        problem: &Problem,
        part: Part,
        communication: Arc<CommunicationPlan>,
        attempt: u64,
        sums: Sums,
    ) -> Self {
        let (_, channel) = Collectives::new(me, Arc::clone(&communication));
        let mut peer = Self {
            me,
            problem: sums.mark(problem.hash),
            subject: problem.hash,
            part,
            sums,
            limits: problem.limits,
            communication,
            attempt,
            process: 0,
            processes: BTreeMap::new(),
            channel,
            work: None,
            journal: ProgressJournal::default(),
            outcome: None,
            behind: VecDeque::new(),
        };
        peer.begin(None);
        peer.advance();
        peer
    }

    /// The same with the mark of its process, by which neighbours know it from those before it. Hosts that start processes again
    /// draw one for each.
    #[must_use]
    pub fn with_process(self, process: u32) -> Self {
        Self { process, ..self }
    }

    /// Begins the work of the present attempt at `start`, else at zero, with keys for sums that no other attempt has.
    fn begin(&mut self, start: Option<Vec<f64>>) {
        let (mut collectives, channel) = Collectives::new(self.me, Arc::clone(&self.communication));
        let part = self.part.clone();
        let limits = self.limits;
        let journal = self.journal.clone();
        let sums = self.sums.clone();
        let attempt = self.attempt;
        self.channel = channel;
        self.work = Some(Box::pin(async move {
            collectives.agree_on_masks(&sums, attempt).await?;
            work(part, limits, collectives, journal, start).await
        }));
    }

    /// The progress of its work.
    pub fn journal(&self) -> &ProgressJournal {
        &self.journal
    }

    /// The outcome, once it is known. Keep polling after that: other nodes need the messages that are still to be sent.
    pub fn outcome(&self) -> Option<Result<&Finding, &SolveError>> {
        self.outcome.as_ref().map(Result::as_ref)
    }

    /// Returns the outcome by value, if it is known.
    pub fn into_outcome(self) -> Option<Result<Finding, SolveError>> {
        self.outcome
    }

    /// The long-running work to be done now, if any. Run it, one piece after the other, and report each with
    /// [`worked`](Self::worked). Ask after every envelope, at the start and after each piece. There is none for
    /// problems that are solved rather than learned in rounds.
    pub fn local_work(&self) -> Option<LocalWork> {
        match &self.part {
            Part::Rounds(part) => part.bench.take(),
            _ => None,
        }
    }

    /// Goes on after a piece of local work was run.
    pub fn worked(&mut self) {
        self.advance();
    }

    /// The number of collectives begun so far.
    pub fn turns(&self) -> u64 {
        lock(&self.channel).collective().operation()
    }

    /// Returns `true` if this envelope would make the node begin a new attempt.
    pub fn would_begin_anew(&self, from: NodeId, envelope: &Envelope) -> bool {
        let furthest = self.attempt.saturating_add(FURTHEST_ATTEMPT);
        let is_further = envelope.attempt > self.attempt && envelope.attempt <= furthest;
        envelope.task == self.problem && (is_further || self.is_of_another_process(from, envelope))
    }

    /// Returns `true` if the sender takes part in the present attempt with another process than before.
    fn is_of_another_process(&self, from: NodeId, envelope: &Envelope) -> bool {
        let process = MarkedFrame::process_of(&envelope.frame);
        let known = self.processes.get(&from);
        envelope.attempt == self.attempt && known.is_some_and(|known| process.is_some_and(|process| process != *known))
    }

    /// Takes a received envelope.
    ///
    /// # Errors
    /// The fault of the envelope.
    pub fn handle(&mut self, from: NodeId, envelope: &Envelope) -> Result<Reception, EnvelopeFault> {
        if envelope.task != self.problem {
            return Ok(Reception::OtherProblem);
        }
        if envelope.attempt > self.attempt.saturating_add(FURTHEST_ATTEMPT) {
            return Err(EnvelopeFault::Attempt(envelope.attempt));
        }
        if envelope.attempt < self.attempt {
            if !self.behind.contains(&from) {
                self.behind.push_back(from);
            }
            return Ok(Reception::Taken);
        }
        if self.is_of_another_process(from, envelope) {
            self.begin_anew(self.attempt + 1);
            return Ok(Reception::NewAttempt(self.attempt));
        }
        let MarkedFrame { process, frame } =
            MarkedFrame::decode(&envelope.frame, &self.sizes()).map_err(EnvelopeFault::Message)?;
        let is_new = envelope.attempt > self.attempt;
        if is_new {
            self.begin_anew(envelope.attempt);
        }
        self.processes.insert(from, process);
        let taken = lock(&self.channel).handle(from, frame);
        if taken == Err(CollectiveFault::ImpossibleAck) && !is_new {
            // It may be for a process before this one. The sender notices once it gets something of this one.
            self.behind.push_back(from);
            return Ok(Reception::Taken);
        }
        self.advance();
        if is_new {
            // The attempt has begun whatever is wrong with the message, and the home has to record it. The sender sends
            // it again.
            return Ok(Reception::NewAttempt(self.attempt));
        }
        taken.map(|()| Reception::Taken).map_err(EnvelopeFault::Collective)
    }

    /// The next envelope to send, if any. Call it until there is none, at the start and after every other call.
    pub fn poll(&mut self) -> Option<(NodeId, Envelope)> {
        if let Some(to) = self.behind.pop_front() {
            return Some((to, self.envelope(Frame { acknowledged: 0, message: None })));
        }
        let (to, frame) = lock(&self.channel).poll()?;
        Some((to, self.envelope(frame)))
    }

    /// Sends everything again that is not known to have arrived, and acknowledges what has.
    pub fn resend(&self) {
        lock(&self.channel).resend();
    }

    /// Returns `true` if something that was sent is not known to have arrived.
    pub fn is_owed(&self) -> bool {
        lock(&self.channel).is_owed()
    }

    fn envelope(&self, frame: Frame<SequenceMessage>) -> Envelope {
        let frame = MarkedFrame { process: self.process, frame }.encode();
        Envelope { task: self.problem, attempt: self.attempt, frame }
    }

    fn sizes(&self) -> SizeLimits {
        let nodes = self.communication.schedule.nodes();
        let longest = self.part.longest_message();
        let dimension = match self.sums {
            Sums::Plain(_) => longest,
            Sums::Masked(_) => masked_sums::longest_message(longest, nodes),
        };
        SizeLimits { nodes, dimension }
    }

    fn begin_anew(&mut self, attempt: u64) {
        self.attempt = attempt;
        let start = Some(self.journal.read().x.clone()).filter(|x| !x.is_empty());
        self.begin(start);
        self.outcome = None;
        self.behind.clear();
        self.processes.clear();
        self.advance();
    }

    /// Polls the work until it waits for other nodes.
    fn advance(&mut self) {
        let Some(work) = &mut self.work else { return };
        if let Poll::Ready(found) = work.as_mut().poll(&mut task::Context::from_waker(Waker::noop())) {
            self.work = None;
            lock(&self.channel).acknowledge_at_once();
            self.outcome = Some(found.map(|done| match done {
                Done::Solved(outcome) => Finding::Solution(Box::new(self.solution(outcome))),
                Done::Learned(learned) => Finding::Learned(Box::new(learned)),
            }));
        }
    }

    fn solution(&self, outcome: NodeOutcome) -> Solution {
        let NodeOutcome { iterations, converged, step, objective, certificate, answer } = outcome;
        Solution {
            schema: Solution::schema(),
            node: self.me,
            problem: hex::encode(self.subject),
            iterations,
            converged,
            step,
            objective,
            certificate,
            answer,
        }
    }
}

/// A node's work for its part, over these collectives.
fn work(
    part: Part,
    limits: StoppingCriteria,
    collectives: Collectives,
    journal: ProgressJournal,
    start: Option<Vec<f64>>,
) -> NodeFuture {
    match part {
        Part::Regression { task, table } => {
            Box::pin(found(regression::solve(task, table, limits, collectives, journal, start)))
        }
        Part::Allocation { task, preference } => {
            Box::pin(found(allocation::solve(task, preference, limits, collectives, journal, start)))
        }
        Part::Coupled { task, own } => Box::pin(found(coupled::solve(task, own, limits, collectives, journal, start))),
        Part::NetworkLasso { task, table } => {
            Box::pin(found(network_lasso::solve(task, table, limits, collectives, journal, start)))
        }
        Part::Robust { task, table } => {
            Box::pin(found(robust::solve(task, table, limits, collectives, journal, start)))
        }
        Part::Rounds(part) => Box::pin(async { learn(part, collectives, journal).await.map(Done::Learned) }),
    }
}

async fn found(work: impl Future<Output = Result<NodeOutcome, SolveError>>) -> Result<Done, SolveError> {
    work.await.map(Done::Solved)
}
