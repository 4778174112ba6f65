//! The account of a neighbour: the weight that it received and gave.

use super::recent_flow::RecentFlow;
use crate::schedule::{NodeId, Schedule};

/// The largest balance that is remembered, in either direction: older flows are no evidence.
const MOST_BALANCE: f64 = 8.0;

/// The part of a neighbour's debt that a node forgives in a step.
const FORGIVEN: f64 = 1.0 / 16.0;

/// The weight that passes between two nodes in a period of a settled swarm.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flows {
    pub(super) to: f64,
    pub(super) from: f64,
}

impl Flows {
    /// The flows of `node` to and from a neighbour.
    pub(crate) fn planned(schedule: &Schedule, node: NodeId, neighbour: NodeId) -> Self {
        Self { to: schedule.flow(node, neighbour), from: schedule.flow(neighbour, node) }
    }
}

/// The account of a neighbour: the balance of weight that it received and gave.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    pub(super) flows: Flows,
    /// In periods; positive if the neighbour received more.
    pub(super) balance: f64,
    /// The weight that the neighbour received of late.
    pub(super) taken: RecentFlow,
    /// The weight that it gave of late.
    pub(super) given: RecentFlow,
    /// Usual rounds in a row in which the neighbour should have given something, and gave nothing.
    pub(super) withheld: f64,
    pub(super) has_given: bool,
    /// Set when the neighbour received something in the present round.
    pub(super) has_taken: bool,
    /// Steps that the neighbour had passed, by its own words, when the last round ended.
    pub(super) passed: u64,
    pub(super) is_reported: bool,
}

impl Account {
    pub(crate) fn of(flows: Flows) -> Self {
        Self { flows, ..Self::default() }
    }

    /// Forgets the balance: this node's own life is over. A new life of the neighbour owes what the last one did, or it
    /// would get new credit with each.
    pub(super) fn begin_anew(&mut self) {
        *self = Self::of(self.flows);
    }

    /// Goes on from the totals of a record.
    pub(super) fn restore(&mut self, given: f64, received: f64) {
        let periods = |weight: f64, flow: f64| if flow > 0.0 { weight / flow } else { 0.0 };
        let balance = periods(given, self.flows.to) - periods(received, self.flows.from);
        self.balance = balance.clamp(-MOST_BALANCE, MOST_BALANCE);
    }

    pub(super) fn give(&mut self, weight: f64) {
        self.add(weight, self.flows.to);
        self.taken.add(weight);
        self.has_taken = true;
    }

    pub(super) fn take_back(&mut self, weight: f64) {
        self.add(-weight, self.flows.to);
        self.taken.add(-weight);
    }

    pub(super) fn receive(&mut self, weight: f64) {
        self.add(-weight, self.flows.from);
        self.given.add(weight);
        self.has_given = true;
    }

    pub(super) fn add(&mut self, weight: f64, flow: f64) {
        if flow > 0.0 {
            self.balance = (self.balance + weight / flow).clamp(-MOST_BALANCE, MOST_BALANCE);
        }
    }

    /// Forgives a part of what the neighbour received and did not give back.
    pub(super) fn forgive(&mut self) {
        self.balance -= FORGIVEN * self.balance.max(0.0);
    }

    /// The rounds that the neighbour has done since the last round ended, by its own words.
    pub(super) fn rounds_since(&mut self, passed: u64, round_length: u64) -> f64 {
        let before = std::mem::replace(&mut self.passed, passed);
        passed.saturating_sub(before) as f64 / round_length as f64
    }

    /// Ends a round for what passed of late: this `part` of the flows of a period was due, and a period has so many rounds.
    pub(super) fn end_round_of_flows(&mut self, part: f64, rounds_of_period: f64) {
        self.taken.end_round(part * self.flows.to, rounds_of_period);
        self.given.end_round(part * self.flows.from, rounds_of_period);
    }

    /// Ends a round that took this `fraction` of a usual one, in which the neighbour could keep what it had or was to give
    /// some. Returns `true` if it is time to report the neighbour.
    pub(super) fn end_round(&mut self, fraction: f64, may_keep: bool, patience: f64) -> bool {
        let has_given = std::mem::take(&mut self.has_given);
        self.has_taken = false;
        // A neighbour that gives a little now and then is not reported repeatedly.
        self.is_reported &= self.balance > 0.0 || !has_given;
        if may_keep || has_given {
            self.withheld = 0.0;
            return false;
        }
        self.withheld += fraction;
        self.withheld >= patience && !std::mem::replace(&mut self.is_reported, true)
    }
}
