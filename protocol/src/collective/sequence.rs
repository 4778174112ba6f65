//! A sequence of collectives over the same links, one operation after the other, for distributed algorithms that
//! exchange, average and reduce in turn.
//!
//! All nodes run the same operations in the same order; an operation is one collective, named by its number in the
//! sequence. A node begins the next one when the last is complete and it has decided, from results that are the same at
//! all nodes, what comes next. Messages of later operations, from neighbours that are ahead, are kept until this node
//! gets there; there are at most 2 n + 16 of them a neighbour, for n nodes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::{
    AllReduce, Collective, CollectiveError, CollectiveFault, Exchange, ExchangeMessage, Extreme, Extremum, FloodValue,
    ModularPartial, ModularSum, Modulus, Partial, Pull, PullMessage, PullRoutes, Reduction, Share, TrackingAverage,
    Trees,
};
use crate::schedule::{NodeId, Schedule};

/// Messages that a neighbour may be ahead, besides two for each node of the plan.
const SLACK: usize = 16;

/// A message of one operation, by the collective that it runs.
#[derive(Clone, Debug, PartialEq)]
pub enum OperationMessage {
    /// Of an [`Extremum`].
    Extremum(FloodValue),
    /// Of a [`TrackingAverage`].
    Share(Share),
    /// Of an [`Exchange`].
    Exchange(ExchangeMessage),
    /// Of an [`AllReduce`].
    Partial(Partial),
    /// Of a [`Pull`].
    Pull(PullMessage),
    /// Of a [`ModularSum`].
    ModularPartial(ModularPartial),
}

/// A message of a sequence: its operation, and the message of that operation's collective.
#[derive(Clone, Debug, PartialEq)]
pub struct SequenceMessage {
    /// The operation, counted from 1.
    pub operation: u64,
    /// The message of its collective.
    pub payload: OperationMessage,
}

/// One node's part in a sequence of collectives.
///
/// ```
/// use std::sync::Arc;
/// use mingle_protocol::collective::{Collective, Extreme, CollectiveSequence};
/// use mingle_protocol::{NodeId, Schedule, Step};
///
/// let (a, b) = (NodeId(0), NodeId(1));
/// let step = Step { keep: vec![0.5, 0.5], links: vec![(a, b, 0.5), (b, a, 0.5)] };
/// let plan = Arc::new(Schedule::new(2, &[step], 0)?);
/// let mut nodes = [a, b].map(|node| CollectiveSequence::new(Arc::clone(&plan), node));
/// let mut carry = |nodes: &mut [CollectiveSequence; 2]| {
///     for (from, to) in [(a, b), (b, a)] {
///         while let Some((_, message)) = nodes[from.index()].poll() {
///             nodes[to.index()].handle(from, message).unwrap();
///         }
///     }
/// };
/// nodes[0].begin_extremum(Extreme::Max, &[3.0], 1)?;
/// nodes[1].begin_extremum(Extreme::Max, &[4.0], 1)?;
/// carry(&mut nodes);
/// assert_eq!(nodes[0].extremum(), Some(&[(4.0, b)][..]));
/// nodes[0].begin_exchange(&[b], &[5.0])?;
/// nodes[1].begin_exchange(&[a], &[6.0])?;
/// carry(&mut nodes);
/// assert_eq!(*nodes[0].exchanged().unwrap()[&b], [6.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct CollectiveSequence {
    schedule: Arc<Schedule>,
    me: NodeId,
    /// The present operation; 0 before the first.
    operation: u64,
    now: Now,
    /// The tracking average, kept from one of its operations to the next.
    tracking: Option<TrackingAverage>,
    /// Messages of later operations, in order.
    early: BTreeMap<NodeId, VecDeque<SequenceMessage>>,
    /// Messages of earlier operations, not sent yet.
    late: VecDeque<(NodeId, SequenceMessage)>,
}

/// The collective of the present operation.
#[derive(Clone, Debug)]
enum Now {
    Nothing,
    Extremum(Extremum),
    AllReduce(AllReduce),
    Exchange(Exchange),
    Pull(Pull),
    ModularSum(ModularSum),
    /// The tracking average, which is kept in `CollectiveSequence::tracking`.
    Tracking,
}

impl CollectiveSequence {
    /// Node `me` of `schedule`, before its first operation.
    pub fn new(schedule: Arc<Schedule>, me: NodeId) -> Self {
        Self {
            schedule,
            me,
            operation: 0,
            now: Now::Nothing,
            tracking: None,
            early: BTreeMap::new(),
            late: VecDeque::new(),
        }
    }

    /// Begins to look for the largest or smallest of all nodes' values; see [`Extremum::new`].
    ///
    /// # Errors
    /// [`CollectiveError`]; [`CollectiveError::NotComplete`] while the operation before is under way.
    pub fn begin_extremum(&mut self, direction: Extreme, values: &[f64], rounds: u64) -> Result<(), CollectiveError> {
        self.check_complete()?;
        let extremum = Extremum::new(&self.schedule, self.me, direction, values, rounds)?;
        self.begin(Now::Extremum(extremum))
    }

    /// Begins to reduce all nodes' values to one vector; see [`AllReduce::new`].
    ///
    /// # Errors
    /// As [`begin_extremum`](Self::begin_extremum).
    pub fn begin_all_reduce(
        &mut self,
        trees: &Arc<Trees>,
        reduction: Reduction,
        values: &[f64],
    ) -> Result<(), CollectiveError> {
        self.check_complete()?;
        let all_reduce = AllReduce::new(Arc::clone(trees), self.me, reduction, values)?;
        self.begin(Now::AllReduce(all_reduce))
    }

    /// Begins to add all nodes' integers up; see [`ModularSum::new`].
    ///
    /// # Errors
    /// As [`begin_extremum`](Self::begin_extremum).
    pub fn begin_modular_sum(
        &mut self,
        trees: &Arc<Trees>,
        modulus: Modulus,
        words: Vec<u64>,
    ) -> Result<(), CollectiveError> {
        self.check_complete()?;
        let sum = ModularSum::new(Arc::clone(trees), self.me, modulus, words)?;
        self.begin(Now::ModularSum(sum))
    }

    /// Gives the tracking average of this sequence its next input; see [`TrackingAverage::new`]. `rounds` count at the
    /// first input only.
    ///
    /// # Errors
    /// As [`begin_extremum`](Self::begin_extremum).
    pub fn begin_tracking(&mut self, values: &[f64], rounds: u64) -> Result<(), CollectiveError> {
        self.check_complete()?;
        self.finish();
        match &mut self.tracking {
            Some(tracking) => tracking.begin(values)?,
            None => {
                let schedule = Arc::clone(&self.schedule);
                self.tracking = Some(TrackingAverage::new(schedule, self.me, values, rounds)?);
            }
        }
        self.begin(Now::Tracking)
    }

    /// Discards the tracking average: the next operation of one begins anew, and may have other rounds. All nodes have
    /// to do so between the same two operations.
    ///
    /// # Errors
    /// [`CollectiveError::NotComplete`] while an operation is under way.
    pub fn forget_tracking(&mut self) -> Result<(), CollectiveError> {
        self.check_complete()?;
        self.finish();
        if matches!(self.now, Now::Tracking) {
            self.now = Now::Nothing;
        }
        self.tracking = None;
        Ok(())
    }

    /// Begins to send a vector to each partner, and to receive one from each; see [`Exchange::new`].
    ///
    /// # Errors
    /// As [`begin_extremum`](Self::begin_extremum).
    pub fn begin_exchange(&mut self, partners: &[NodeId], values: &[f64]) -> Result<(), CollectiveError> {
        self.check_complete()?;
        let exchange = Exchange::new(&self.schedule, self.me, partners, values)?;
        self.begin(Now::Exchange(exchange))
    }

    /// Begins to send a vector to the nodes that want it, and to receive those that this node wants; see [`Pull::new`].
    ///
    /// # Errors
    /// As [`begin_extremum`](Self::begin_extremum).
    pub fn begin_pull(&mut self, routes: &Arc<PullRoutes>, values: &[f64]) -> Result<(), CollectiveError> {
        self.check_complete()?;
        let pull = Pull::new(Arc::clone(routes), self.me, values)?;
        self.begin(Now::Pull(pull))
    }

    /// The result of this operation, if it is a complete extremum.
    pub fn extremum(&self) -> Option<&[(f64, NodeId)]> {
        if let Now::Extremum(extremum) = &self.now { extremum.result() } else { None }
    }

    /// The result of this operation, if it is a complete reduction.
    pub fn reduced(&self) -> Option<&[f64]> {
        if let Now::AllReduce(all_reduce) = &self.now { all_reduce.result() } else { None }
    }

    /// The result of this operation, if it is a complete modular sum.
    pub fn summed(&self) -> Option<&[u64]> {
        if let Now::ModularSum(sum) = &self.now { sum.result() } else { None }
    }

    /// The mean as this node has it, if this operation is a complete one of the tracking average.
    pub fn average(&self) -> Option<&[f64]> {
        let tracking = self.tracking.as_ref().filter(|_| matches!(self.now, Now::Tracking));
        tracking.and_then(TrackingAverage::result)
    }

    /// The result of this operation, if it is a complete exchange.
    pub fn exchanged(&self) -> Option<&BTreeMap<NodeId, Arc<[f64]>>> {
        if let Now::Exchange(exchange) = &self.now { exchange.result() } else { None }
    }

    /// The result of this operation, if it is a complete pull.
    pub fn pulled(&self) -> Option<&BTreeMap<NodeId, Arc<[f64]>>> {
        if let Now::Pull(pull) = &self.now { pull.result() } else { None }
    }

    /// The present operation; 0 before the first.
    pub fn operation(&self) -> u64 {
        self.operation
    }

    fn check_complete(&self) -> Result<(), CollectiveError> {
        if self.is_complete() { Ok(()) } else { Err(CollectiveError::NotComplete { iteration: self.operation }) }
    }

    /// Keeps the messages that the present operation still has to send.
    fn finish(&mut self) {
        while let Some((to, payload)) = self.poll_now() {
            self.late.push_back((to, SequenceMessage { operation: self.operation, payload }));
        }
    }

    fn begin(&mut self, next: Now) -> Result<(), CollectiveError> {
        if !matches!(next, Now::Tracking) {
            self.finish();
        }
        self.now = next;
        self.operation += 1;
        let due = |messages: &mut VecDeque<SequenceMessage>, operation| {
            let is_due = messages.front().is_some_and(|message| message.operation <= operation);
            if is_due { messages.pop_front() } else { None }
        };
        let neighbours: Vec<NodeId> = self.early.keys().copied().collect();
        for from in neighbours {
            while let Some(message) = self.early.get_mut(&from).and_then(|messages| due(messages, self.operation)) {
                self.take(from, message.payload).map_err(|fault| CollectiveError::Neighbour { from, fault })?;
            }
        }
        Ok(())
    }

    fn poll_now(&mut self) -> Option<(NodeId, OperationMessage)> {
        match &mut self.now {
            Now::Nothing => None,
            Now::Extremum(extremum) => extremum.poll().map(|(to, best)| (to, OperationMessage::Extremum(best))),
            Now::AllReduce(all_reduce) => {
                all_reduce.poll().map(|(to, partial)| (to, OperationMessage::Partial(partial)))
            }
            Now::Exchange(exchange) => exchange.poll().map(|(to, message)| (to, OperationMessage::Exchange(message))),
            Now::Pull(pull) => pull.poll().map(|(to, message)| (to, OperationMessage::Pull(message))),
            Now::ModularSum(sum) => sum.poll().map(|(to, partial)| (to, OperationMessage::ModularPartial(partial))),
            Now::Tracking => self.tracking.as_mut()?.poll().map(|(to, share)| (to, OperationMessage::Share(share))),
        }
    }

    /// Takes a message of the present operation.
    fn take(&mut self, from: NodeId, payload: OperationMessage) -> Result<(), CollectiveFault> {
        match (&mut self.now, payload) {
            (Now::Extremum(extremum), OperationMessage::Extremum(best)) => extremum.handle(from, best),
            (Now::AllReduce(all_reduce), OperationMessage::Partial(partial)) => all_reduce.handle(from, partial),
            (Now::Exchange(exchange), OperationMessage::Exchange(message)) => exchange.handle(from, message),
            (Now::Pull(pull), OperationMessage::Pull(message)) => pull.handle(from, message),
            (Now::ModularSum(sum), OperationMessage::ModularPartial(partial)) => sum.handle(from, partial),
            (Now::Tracking, OperationMessage::Share(share)) => match &mut self.tracking {
                Some(tracking) => tracking.handle(from, share),
                None => Err(CollectiveFault::OtherCollective),
            },
            _ => Err(CollectiveFault::OtherCollective),
        }
    }
}

impl Collective for CollectiveSequence {
    type Message = SequenceMessage;

    fn poll(&mut self) -> Option<(NodeId, SequenceMessage)> {
        let operation = self.operation;
        self.late
            .pop_front()
            .or_else(|| self.poll_now().map(|(to, payload)| (to, SequenceMessage { operation, payload })))
    }

    fn handle(&mut self, from: NodeId, message: SequenceMessage) -> Result<(), CollectiveFault> {
        if self.schedule.all_in_neighbours(self.me).binary_search(&from).is_err() {
            return Err(CollectiveFault::NoSuchLink);
        }
        if message.operation < self.operation {
            return Ok(());
        }
        if message.operation == self.operation {
            return self.take(from, message.payload);
        }
        let most = 2 * self.schedule.nodes() + SLACK;
        let messages = self.early.entry(from).or_default();
        if messages.back().is_some_and(|last| last.operation > message.operation) {
            return Err(CollectiveFault::Gap);
        }
        if messages.len() >= most {
            return Err(CollectiveFault::TooFarAhead);
        }
        messages.push_back(message);
        Ok(())
    }

    /// Returns `true` if the present operation is complete, and before the first.
    fn is_complete(&self) -> bool {
        match &self.now {
            Now::Nothing => true,
            Now::Extremum(extremum) => extremum.is_complete(),
            Now::AllReduce(all_reduce) => all_reduce.is_complete(),
            Now::Exchange(exchange) => exchange.is_complete(),
            Now::Pull(pull) => pull.is_complete(),
            Now::ModularSum(sum) => sum.is_complete(),
            Now::Tracking => self.tracking.as_ref().is_some_and(Collective::is_complete),
        }
    }
}
