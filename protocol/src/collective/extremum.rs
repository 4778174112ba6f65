//! The largest or smallest of all nodes' numbers, coordinate by coordinate, and the node that has it: max-consensus by
//! flooding.
//!
//! In every round a node sends the extremes that it knows to all its out-neighbours, and keeps the more extreme of its
//! own and theirs. After as many rounds as the plan's [diameter](super::diameter) all nodes hold the same, to the bit:
//! numbers are only compared, never computed with. Of equal numbers that of the lowest node counts, so that all agree
//! on the owner.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::mixing::check_inputs;
use super::{Collective, CollectiveError, CollectiveFault};
use crate::payload::MAX_DIMENSION;
use crate::schedule::{NodeId, Schedule};

/// The end of the range that is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Extreme {
    /// The largest.
    Max,
    /// The smallest.
    Min,
}

/// The extremes that a node knows in one round, as it floods them.
#[derive(Clone, Debug, PartialEq)]
pub struct FloodValue {
    /// The round, from 0.
    pub round: u64,
    /// The most extreme number of every coordinate, and its owner, `[dimension]`.
    pub values: Vec<(f64, NodeId)>,
}

/// One node's part in finding extrema.
///
/// ```
/// use mingle_protocol::collective::{Collective, Extreme, Extremum};
/// use mingle_protocol::{NodeId, Schedule, Step};
///
/// let (a, b) = (NodeId(0), NodeId(1));
/// let step = Step { keep: vec![0.5, 0.5], links: vec![(a, b, 0.5), (b, a, 0.5)] };
/// let plan = Schedule::new(2, &[step], 0)?;
/// let mut nodes = [
///     Extremum::new(&plan, a, Extreme::Max, &[3.0, 7.0], 1)?,
///     Extremum::new(&plan, b, Extreme::Max, &[5.0, 7.0], 1)?,
/// ];
/// for (from, to) in [(a, b), (b, a)] {
///     while let Some((_, best)) = nodes[from.index()].poll() {
///         nodes[to.index()].handle(from, best)?;
///     }
/// }
/// assert_eq!(nodes.map(|node| node.result().unwrap().to_vec()), [vec![(5.0, b), (7.0, a)], vec![(5.0, b), (7.0, a)]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Extremum {
    direction: Extreme,
    best: Vec<(f64, NodeId)>,
    nodes: usize,
    round: u64,
    rounds: u64,
    out_neighbours: Vec<NodeId>,
    /// Messages of in-neighbours that arrived before their round, in order.
    inboxes: BTreeMap<NodeId, Inbox>,
    outgoing: VecDeque<(NodeId, FloodValue)>,
}

#[derive(Clone, Debug, Default)]
struct Inbox {
    next_round: u64,
    waiting: VecDeque<FloodValue>,
}

impl Extremum {
    /// Takes part as node `me` of `schedule` with `values`, `[dimension]`, for `rounds` rounds: at least the
    /// [diameter](super::diameter), if all nodes are to agree. A round uses the links of all steps.
    ///
    /// # Errors
    /// [`CollectiveError`] when `me` is not in the plan, `values` is empty, too long or not finite, or there are no
    /// rounds.
    pub fn new(
        schedule: &Schedule,
        me: NodeId,
        direction: Extreme,
        values: &[f64],
        rounds: u64,
    ) -> Result<Self, CollectiveError> {
        let nodes = schedule.nodes();
        if me.index() >= nodes {
            return Err(CollectiveError::NotInPlan { id: me, nodes });
        }
        if values.is_empty() || values.len() > MAX_DIMENSION {
            return Err(CollectiveError::Dimension { dimension: values.len() });
        }
        if rounds == 0 {
            return Err(CollectiveError::NoRounds);
        }
        check_inputs(values)?;
        let mut extremum = Self {
            direction,
            best: values.iter().map(|value| (*value, me)).collect(),
            nodes,
            round: 0,
            rounds,
            out_neighbours: schedule.all_out_neighbours(me).to_vec(),
            inboxes: schedule.all_in_neighbours(me).iter().map(|from| (*from, Inbox::default())).collect(),
            outgoing: VecDeque::new(),
        };
        extremum.send();
        extremum.advance();
        Ok(extremum)
    }

    /// The extreme value of every coordinate and its owner, once all rounds are done, `[dimension]`.
    pub fn result(&self) -> Option<&[(f64, NodeId)]> {
        self.is_complete().then_some(self.best.as_slice())
    }

    fn send(&mut self) {
        for to in &self.out_neighbours {
            self.outgoing.push_back((*to, FloodValue { round: self.round, values: self.best.clone() }));
        }
    }

    fn advance(&mut self) {
        let has = |inbox: &Inbox, round| inbox.waiting.front().is_some_and(|best| best.round == round);
        while self.round < self.rounds && self.inboxes.values().all(|inbox| has(inbox, self.round)) {
            for theirs in self.inboxes.values_mut().filter_map(|inbox| inbox.waiting.pop_front()) {
                for (best, other) in self.best.iter_mut().zip(theirs.values) {
                    if is_better(self.direction, other, *best) {
                        *best = other;
                    }
                }
            }
            self.round += 1;
            if self.round < self.rounds {
                self.send();
            }
        }
    }
}

/// Returns `true` if `a` is more extreme than `b`, or equal and of a lower node. Zeros of both signs differ, so that
/// the choice is the same on all nodes.
fn is_better(direction: Extreme, (a, a_of): (f64, NodeId), (b, b_of): (f64, NodeId)) -> bool {
    let order = match direction {
        Extreme::Max => a.total_cmp(&b),
        Extreme::Min => b.total_cmp(&a),
    };
    order == Ordering::Greater || (order == Ordering::Equal && a_of < b_of)
}

impl Collective for Extremum {
    type Message = FloodValue;

    fn poll(&mut self) -> Option<(NodeId, FloodValue)> {
        self.outgoing.pop_front()
    }

    fn handle(&mut self, from: NodeId, best: FloodValue) -> Result<(), CollectiveFault> {
        let nodes = self.nodes;
        let dimension = self.best.len();
        let rounds = self.rounds;
        let Some(inbox) = self.inboxes.get_mut(&from) else {
            return Err(CollectiveFault::NoSuchLink);
        };
        if best.round < inbox.next_round {
            return Ok(());
        }
        if best.round > inbox.next_round {
            return Err(CollectiveFault::Gap);
        }
        if best.round >= rounds || inbox.waiting.len() >= nodes {
            return Err(CollectiveFault::TooFarAhead);
        }
        if best.values.len() != dimension {
            return Err(CollectiveFault::WrongDimension);
        }
        if best.values.iter().any(|(value, _)| !value.is_finite()) {
            return Err(CollectiveFault::NotFinite);
        }
        if best.values.iter().any(|(_, owner)| owner.index() >= nodes) {
            return Err(CollectiveFault::UnknownOwner);
        }
        inbox.next_round += 1;
        inbox.waiting.push_back(best);
        self.advance();
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.round >= self.rounds
    }
}
