//! One collective after the other over the same links: what an algorithm is made of that now exchanges, now averages, now
//! sums up.
//!
//! All nodes take the same *turns* in the same order; a turn is one collective. A node begins its next turn when the last
//! one is complete and it has decided, from results that are the same for all, what comes next. A neighbour may be ahead:
//! what it says of later turns is kept until this node gets there.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::{
    AllReduce, Best, Collective, CollectiveError, CollectiveFault, Direction, Exchange, Extremum, Partial, Reduction,
    Said, Share, TrackingAverage, Trees,
};
use crate::schedule::{NodeId, Schedule};

/// Messages that a neighbour may be ahead, besides two for each node of the plan.
const SLACK: usize = 16;

/// A message of one of the collectives.
#[derive(Clone, Debug, PartialEq)]
pub enum Talk {
    /// Of an [`Extremum`].
    Best(Best),
    /// Of a [`TrackingAverage`].
    Share(Share),
    /// Of an [`Exchange`].
    Said(Said),
    /// Of an [`AllReduce`].
    Partial(Partial),
}

/// A message, and the turn it belongs to.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// Counts from 1.
    pub number: u64,
    /// What is said in it.
    pub talk: Talk,
}

/// One node's part in a series of collectives.
///
/// ```
/// use std::sync::Arc;
/// use mingle_protocol::collective::{Collective, Direction, Series};
/// use mingle_protocol::{NodeId, Schedule, Step};
///
/// let (a, b) = (NodeId(0), NodeId(1));
/// let step = Step { keep: vec![0.5, 0.5], links: vec![(a, b, 0.5), (b, a, 0.5)] };
/// let plan = Arc::new(Schedule::new(2, &[step], 0)?);
/// let mut nodes = [a, b].map(|node| Series::new(Arc::clone(&plan), node));
/// let mut carry = |nodes: &mut [Series; 2]| {
///     for (from, to) in [(a, b), (b, a)] {
///         while let Some((_, turn)) = nodes[from.index()].poll() {
///             nodes[to.index()].handle(from, turn).unwrap();
///         }
///     }
/// };
/// nodes[0].begin_extremum(Direction::Max, &[3.0], 1)?;
/// nodes[1].begin_extremum(Direction::Max, &[4.0], 1)?;
/// carry(&mut nodes);
/// assert_eq!(nodes[0].extremum(), Some(&[(4.0, b)][..]));
/// nodes[0].begin_exchange(&[b], &[5.0])?;
/// nodes[1].begin_exchange(&[a], &[6.0])?;
/// carry(&mut nodes);
/// assert_eq!(*nodes[0].exchanged().unwrap()[&b], [6.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Series {
    schedule: Arc<Schedule>,
    me: NodeId,
    /// The present turn; 0 before the first.
    number: u64,
    now: Now,
    /// Goes on from one of its turns to the next.
    tracking: Option<TrackingAverage>,
    /// Of later turns, in order.
    early: BTreeMap<NodeId, VecDeque<Turn>>,
    /// Of earlier turns, not sent yet.
    late: VecDeque<(NodeId, Turn)>,
}

/// The collective of the present turn.
#[derive(Clone, Debug)]
enum Now {
    Nothing,
    Extremum(Extremum),
    AllReduce(AllReduce),
    Exchange(Exchange),
    /// The one that is kept.
    Tracking,
}

impl Series {
    /// Node `me` of `schedule`, before its first turn.
    pub fn new(schedule: Arc<Schedule>, me: NodeId) -> Self {
        Self {
            schedule,
            me,
            number: 0,
            now: Now::Nothing,
            tracking: None,
            early: BTreeMap::new(),
            late: VecDeque::new(),
        }
    }

    /// Looks for the largest or smallest of everybody's values; see [`Extremum::new`].
    ///
    /// # Errors
    /// [`CollectiveError`]; [`CollectiveError::NotComplete`] while the turn before is under way.
    pub fn begin_extremum(&mut self, direction: Direction, values: &[f64], rounds: u64) -> Result<(), CollectiveError> {
        self.check_complete()?;
        let extremum = Extremum::new(&self.schedule, self.me, direction, values, rounds)?;
        self.begin(Now::Extremum(extremum))
    }

    /// Reduces everybody's values to one vector; see [`AllReduce::new`].
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

    /// Gives the tracking average of this series its next input; see [`TrackingAverage::new`]. `rounds` count with the
    /// first.
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

    /// Says something to each partner, and hears something from each; see [`Exchange::new`].
    ///
    /// # Errors
    /// As [`begin_extremum`](Self::begin_extremum).
    pub fn begin_exchange(&mut self, partners: &[NodeId], values: &[f64]) -> Result<(), CollectiveError> {
        self.check_complete()?;
        let exchange = Exchange::new(&self.schedule, self.me, partners, values)?;
        self.begin(Now::Exchange(exchange))
    }

    /// The result of this turn, if it is a complete extremum.
    pub fn extremum(&self) -> Option<&[(f64, NodeId)]> {
        if let Now::Extremum(extremum) = &self.now { extremum.result() } else { None }
    }

    /// The result of this turn, if it is a complete reduction.
    pub fn reduced(&self) -> Option<&[f64]> {
        if let Now::AllReduce(all_reduce) = &self.now { all_reduce.result() } else { None }
    }

    /// The mean as this node has it, if this turn is a complete one of the tracking average.
    pub fn average(&self) -> Option<&[f64]> {
        let tracking = self.tracking.as_ref().filter(|_| matches!(self.now, Now::Tracking));
        tracking.and_then(TrackingAverage::result)
    }

    /// The result of this turn, if it is a complete exchange.
    pub fn exchanged(&self) -> Option<&BTreeMap<NodeId, Arc<[f64]>>> {
        if let Now::Exchange(exchange) = &self.now { exchange.result() } else { None }
    }

    /// The present turn; 0 before the first.
    pub fn number(&self) -> u64 {
        self.number
    }

    fn check_complete(&self) -> Result<(), CollectiveError> {
        if self.is_complete() { Ok(()) } else { Err(CollectiveError::NotComplete { iteration: self.number }) }
    }

    /// Keeps what the present turn still has to send.
    fn finish(&mut self) {
        while let Some((to, talk)) = self.poll_now() {
            self.late.push_back((to, Turn { number: self.number, talk }));
        }
    }

    fn begin(&mut self, next: Now) -> Result<(), CollectiveError> {
        if !matches!(next, Now::Tracking) {
            self.finish();
        }
        self.now = next;
        self.number += 1;
        let due = |turns: &mut VecDeque<Turn>, number| {
            let is_due = turns.front().is_some_and(|turn| turn.number <= number);
            if is_due { turns.pop_front() } else { None }
        };
        let neighbours: Vec<NodeId> = self.early.keys().copied().collect();
        for from in neighbours {
            while let Some(turn) = self.early.get_mut(&from).and_then(|turns| due(turns, self.number)) {
                self.take(from, turn.talk).map_err(|fault| CollectiveError::Neighbour { from, fault })?;
            }
        }
        Ok(())
    }

    fn poll_now(&mut self) -> Option<(NodeId, Talk)> {
        match &mut self.now {
            Now::Nothing => None,
            Now::Extremum(extremum) => extremum.poll().map(|(to, best)| (to, Talk::Best(best))),
            Now::AllReduce(all_reduce) => all_reduce.poll().map(|(to, partial)| (to, Talk::Partial(partial))),
            Now::Exchange(exchange) => exchange.poll().map(|(to, said)| (to, Talk::Said(said))),
            Now::Tracking => self.tracking.as_mut()?.poll().map(|(to, share)| (to, Talk::Share(share))),
        }
    }

    /// Takes a message of the present turn.
    fn take(&mut self, from: NodeId, talk: Talk) -> Result<(), CollectiveFault> {
        match (&mut self.now, talk) {
            (Now::Extremum(extremum), Talk::Best(best)) => extremum.handle(from, best),
            (Now::AllReduce(all_reduce), Talk::Partial(partial)) => all_reduce.handle(from, partial),
            (Now::Exchange(exchange), Talk::Said(said)) => exchange.handle(from, said),
            (Now::Tracking, Talk::Share(share)) => match &mut self.tracking {
                Some(tracking) => tracking.handle(from, share),
                None => Err(CollectiveFault::OtherCollective),
            },
            _ => Err(CollectiveFault::OtherCollective),
        }
    }
}

impl Collective for Series {
    type Message = Turn;

    fn poll(&mut self) -> Option<(NodeId, Turn)> {
        let number = self.number;
        self.late.pop_front().or_else(|| self.poll_now().map(|(to, talk)| (to, Turn { number, talk })))
    }

    fn handle(&mut self, from: NodeId, turn: Turn) -> Result<(), CollectiveFault> {
        if self.schedule.all_in_neighbours(self.me).binary_search(&from).is_err() {
            return Err(CollectiveFault::NoSuchLink);
        }
        if turn.number < self.number {
            return Ok(());
        }
        if turn.number == self.number {
            return self.take(from, turn.talk);
        }
        let most = 2 * self.schedule.nodes() + SLACK;
        let turns = self.early.entry(from).or_default();
        if turns.back().is_some_and(|last| last.number > turn.number) {
            return Err(CollectiveFault::Gap);
        }
        if turns.len() >= most {
            return Err(CollectiveFault::TooFarAhead);
        }
        turns.push_back(turn);
        Ok(())
    }

    /// Whether the present turn is; so it is before the first.
    fn is_complete(&self) -> bool {
        match &self.now {
            Now::Nothing => true,
            Now::Extremum(extremum) => extremum.is_complete(),
            Now::AllReduce(all_reduce) => all_reduce.is_complete(),
            Now::Exchange(exchange) => exchange.is_complete(),
            Now::Tracking => self.tracking.as_ref().is_some_and(Collective::is_complete),
        }
    }
}
