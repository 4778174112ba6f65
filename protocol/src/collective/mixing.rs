//! Rounds of push-sum in f64, in lockstep: the engine of a tracking average.
//!
//! ```text
//!   one round   s' = A s,  w' = A w       A column-stochastic: the schedule's step
//! ```
//!
//! w is counted in integer units of 2^-40, so the sum of all weights is an identity; a share takes the same fraction of
//! s as of w, and the sender keeps what is left after subtracting what it sent.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::fault::LARGEST_INPUT;
use super::{CollectiveError, CollectiveFault};
use crate::mass::Mass;
use crate::payload::MAX_DIMENSION;
use crate::schedule::{NodeId, Schedule};

/// Largest magnitude in a share: more than all inputs together.
const LARGEST_SHARE: f64 = 1e300;

/// A share of one node's sum, for one neighbour, in one round.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// The round it belongs to, counted from the beginning of the collective.
    pub round: u64,
    /// Its weight.
    pub mass: Mass,
    /// Its part of the sum, `[dimension]`.
    pub values: Vec<f64>,
}

/// The push-sum pair of one node, and the rounds it goes through.
#[derive(Clone, Debug)]
pub(super) struct PushSumMixing {
    schedule: Arc<Schedule>,
    me: NodeId,
    sum: Vec<f64>,
    mass: Mass,
    /// The ratio when there last was mass.
    ratio: Vec<f64>,
    /// Rounds completed.
    round: u64,
    /// Rounds to complete.
    until: u64,
    /// Set when the shares of the present round are cut.
    is_split: bool,
    inboxes: BTreeMap<NodeId, Inbox>,
    outgoing: VecDeque<(NodeId, Share)>,
}

/// Shares of one in-neighbour that arrived before their round, in order.
#[derive(Clone, Debug, Default)]
struct Inbox {
    /// Rounds before this one have arrived.
    next_round: u64,
    shares: VecDeque<Share>,
}

impl PushSumMixing {
    pub(super) fn new(schedule: Arc<Schedule>, me: NodeId, values: &[f64]) -> Result<Self, CollectiveError> {
        if me.index() >= schedule.nodes() {
            return Err(CollectiveError::NotInPlan { id: me, nodes: schedule.nodes() });
        }
        if values.is_empty() || values.len() > MAX_DIMENSION {
            return Err(CollectiveError::Dimension { dimension: values.len() });
        }
        check_inputs(values)?;
        let inboxes = schedule.all_in_neighbours(me).iter().map(|from| (*from, Inbox::default())).collect();
        Ok(Self {
            schedule,
            me,
            sum: values.to_vec(),
            mass: Mass::ONE,
            ratio: values.to_vec(),
            round: 0,
            until: 0,
            is_split: false,
            inboxes,
            outgoing: VecDeque::new(),
        })
    }

    /// Adds `rounds` to the rounds to complete, and advances.
    pub(super) fn run(&mut self, rounds: u64) {
        self.until = self.until.saturating_add(rounds);
        self.advance();
    }

    /// Adds `change` to the sum.
    pub(super) fn inject(&mut self, change: impl Iterator<Item = f64>) {
        self.sum.iter_mut().zip(change).for_each(|(sum, change)| *sum += change);
        self.update_ratio();
    }

    pub(super) fn is_complete(&self) -> bool {
        self.round >= self.until
    }

    pub(super) fn dimension(&self) -> usize {
        self.sum.len()
    }

    pub(super) fn mass(&self) -> Mass {
        self.mass
    }

    pub(super) fn sum(&self) -> &[f64] {
        &self.sum
    }

    /// s / w, or what it was when there last was mass.
    pub(super) fn ratio(&self) -> &[f64] {
        &self.ratio
    }

    pub(super) fn poll(&mut self) -> Option<(NodeId, Share)> {
        self.outgoing.pop_front()
    }

    pub(super) fn handle(&mut self, from: NodeId, share: Share) -> Result<(), CollectiveFault> {
        let Some(inbox) = self.inboxes.get(&from) else {
            return Err(CollectiveFault::NoSuchLink);
        };
        if share.round < inbox.next_round {
            return Ok(());
        }
        self.check(from, inbox, &share)?;
        if let Some(inbox) = self.inboxes.get_mut(&from) {
            inbox.next_round = share.round + 1;
            inbox.shares.push_back(share);
        }
        self.advance();
        Ok(())
    }

    fn check(&self, from: NodeId, inbox: &Inbox, share: &Share) -> Result<(), CollectiveFault> {
        let schedule = &self.schedule;
        if !schedule.has_link(from, self.me, share.round) {
            return Err(CollectiveFault::NoSuchLink);
        }
        // Within the last period there is another round that should have come first.
        let before = share.round.checked_sub(1).and_then(|round| schedule.last_use(from, self.me, round));
        if before.is_some_and(|round| round >= inbox.next_round) {
            return Err(CollectiveFault::Gap);
        }
        // A sender that is so many shares ahead has gone on without the shares of others.
        if inbox.shares.len() >= schedule.nodes() {
            return Err(CollectiveFault::TooFarAhead);
        }
        if share.values.len() != self.dimension() {
            return Err(CollectiveFault::WrongDimension);
        }
        // False for NaN as well.
        if !share.values.iter().all(|value| value.abs() <= LARGEST_SHARE) {
            return Err(CollectiveFault::NotFinite);
        }
        // The shares that wait here are parts of the same whole as the mass held here.
        let waiting = self.inboxes.values().flat_map(|inbox| &inbox.shares).map(|share| u128::from(share.mass.units()));
        let total = u128::from(self.mass.units()) + waiting.sum::<u128>() + u128::from(share.mass.units());
        if total > schedule.nodes() as u128 * u128::from(Mass::ONE.units()) {
            return Err(CollectiveFault::ImpossibleMass);
        }
        Ok(())
    }

    /// Goes on until a share is missing.
    fn advance(&mut self) {
        while self.round < self.until {
            if !self.is_split {
                self.split();
            }
            let schedule = Arc::clone(&self.schedule);
            let senders = schedule.in_neighbours(self.me, self.round);
            if !senders.iter().all(|from| self.has_share_of(*from)) {
                return;
            }
            // By ascending id, after one's own.
            for from in senders {
                if let Some(share) = self.inboxes.get_mut(from).and_then(|inbox| inbox.shares.pop_front()) {
                    self.sum.iter_mut().zip(&share.values).for_each(|(sum, value)| *sum += value);
                    // Checked on arrival: all mass here is part of the whole.
                    self.mass = Mass::from_units(self.mass.units() + share.mass.units());
                }
            }
            self.round += 1;
            self.is_split = false;
            self.update_ratio();
        }
    }

    fn has_share_of(&self, from: NodeId) -> bool {
        let next = self.inboxes.get(&from).and_then(|inbox| inbox.shares.front());
        next.is_some_and(|share| share.round == self.round)
    }

    /// Cuts the shares of the present round.
    fn split(&mut self) {
        self.is_split = true;
        let schedule = Arc::clone(&self.schedule);
        let links = schedule.out_links(self.me, self.round);
        let keeps = schedule.keeps(self.me, self.round);
        let whole = self.mass;
        let round = self.round;
        let before = self.sum.clone();
        for (at, link) in links.iter().enumerate() {
            let is_rest = !keeps && at + 1 == links.len();
            let mass = if is_rest { self.mass } else { whole.portion(link.share) };
            let values = if is_rest {
                std::mem::replace(&mut self.sum, vec![0.0; before.len()])
            } else {
                let fraction = fraction(mass, whole);
                let values: Vec<f64> = before.iter().map(|sum| sum * fraction).collect();
                self.sum.iter_mut().zip(&values).for_each(|(sum, value)| *sum -= value);
                values
            };
            self.mass = Mass::from_units(self.mass.units() - mass.units());
            self.outgoing.push_back((link.to, Share { round, mass, values }));
        }
    }

    fn update_ratio(&mut self) {
        if !self.mass.is_zero() {
            let weight = self.mass.to_f64();
            self.ratio.iter_mut().zip(&self.sum).for_each(|(ratio, sum)| *ratio = sum / weight);
        }
    }

    /// Shares that wait here or have not been polled for.
    #[cfg(test)]
    pub(super) fn under_way(&self) -> impl Iterator<Item = &Share> {
        let waiting = self.inboxes.values().flat_map(|inbox| &inbox.shares);
        waiting.chain(self.outgoing.iter().map(|(_, share)| share))
    }
}

fn fraction(part: Mass, whole: Mass) -> f64 {
    if whole.is_zero() { 0.0 } else { part.units() as f64 / whole.units() as f64 }
}

pub(super) fn check_inputs(values: &[f64]) -> Result<(), CollectiveError> {
    match values.iter().position(|value| value.is_nan() || value.abs() > LARGEST_INPUT) {
        Some(index) => Err(CollectiveError::NotFinite { index, value: values[index] }),
        None => Ok(()),
    }
}
