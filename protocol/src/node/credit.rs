//! Credit: the part of a node's weight that a neighbour may hold.
//!
//! A member that acknowledges parcels and gives none has books in perfect order, and would drain all others within tens
//! of rounds. The plan determines the weight that goes to a neighbour in a period of a settled swarm, and the weight
//! that comes back. The balance of a neighbour is what it received less what it gave, each in periods of these flows. A
//! node lets the balance of a neighbour exceed that of most neighbours by no more than its credit:
//!
//! ```text
//!   weight / normal weight    above 0.95           above 0.8     0.8 ... 0.6     below 0.6
//!   credit in periods         5/4, and a sixteenth    5/4         5/4 ... 1/4       1/4
//!                             forgiven in each step
//! ```
//!
//! Normal is the weight that the node has had for long, with the weight under way: unacknowledged parcels count twice, at
//! the sender and at the receiver, so that it exceeds the usual weight where acknowledgements are late. The balance of most
//! neighbours, their median, exceeds 0 where parcels are late. A single neighbour is limited only while the node is short.
//!
//! The rest stays with the node, like the share of a link that cannot take a parcel, and is divided again in the next
//! step. Sound neighbours go on mixing however short they are: what one of two received the other gave, so one of them
//! always has credit. What a rich node forgives lets weight that is unevenly spread even out.
//!
//! This needs a plan that is a [reversible](crate::Schedule::is_reversible) chain: every link carries as much one way as the
//! other, also after members stop. In other plans a neighbour may have given what it keeps to others, which cannot be
//! observed: there `weight_floor` bounds what a node gives in all. Neither is of use in steps in which the plan lets a
//! node keep nothing, as on the way up a tree. A node above is then all that stands between a branch and a member that
//! takes: only the alarm of `mass_watch` remains. On the way down nodes keep something, and credit counts.
//!
//! A neighbour that should give and gives nothing for many rounds is reported, in any plan. Where links go one way, and in
//! trees of exact averages, these are rounds that it has itself done, by its own words. In trees only those count in which
//! it got something: a branch that is cut off gives all it has away, and goes on without weight.

use super::Node;
use super::account::Account;
use super::peer::Neighbour;
use crate::config::WaitPolicy;
use crate::effect::NodeEvent;
use crate::link::InLink;
use crate::mass::{Mass, UNITS_PER_ONE};
use crate::schedule::NodeId;

/// Part of the normal weight above which credit is largest.
const ENOUGH: f64 = 0.8;
/// Part of the normal weight below which credit is smallest.
const SHORT: f64 = 0.6;
/// Part of the normal weight above which a node forgives what neighbours keep.
const RICH: f64 = 0.95;
/// Weight of the present step in the moving average.
const NEWEST: f64 = 1.0 / 8.0;
/// Weight of the present step in the slow moving average that makes what is normal.
const NEWEST_OF_NORMAL: f64 = 1.0 / 64.0;
/// The largest part of the usual weight that is normal with the weight under way: every parcel counted twice.
const MOST_NORMAL: f64 = 2.0;
/// Credit in periods at [`ENOUGH`] and at [`SHORT`].
const MOST_CREDIT: f64 = 1.25;
const LEAST_CREDIT: f64 = 0.25;
/// Periods of its flow that a neighbour without credit gets in a step: one that gets nothing at all waits for its
/// deadlines, and others for it.
const LEAST_GIVEN: f64 = 1e-6;
/// Periods of unacknowledged parcels to one neighbour that count as the node's own weight.
const MOST_UNDER_WAY: f64 = 2.0;
/// Smallest usual weight to compare with; below it, credit is unlimited.
const LEAST_USUAL: f64 = 0.25;
/// Smallest usual weight that a node compares its own weight with.
const LEAST_COMPARED: f64 = 1.0 / 64.0;
/// Usual rounds after which a neighbour that has no credit and gives nothing is reported.
const PATIENCE: f64 = 20.0;
/// The same where links go one way. There a sound neighbour that gets nothing itself sends once in 17 splits.
const PATIENCE_ONE_WAY: f64 = 80.0;

/// The credit that a node gives to each of its neighbours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Credit {
    /// Moving average of the node's weight, as a part of the usual one: one good moment does not lift the limit.
    mean: f64,
    /// Normal weight with that under way, which counts parcels a second time that have arrived and are not acknowledged
    /// yet.
    normal: Normal,
    /// The largest part of the usual weight that the node has had without that under way, at most 1: hubs begin with less.
    reference: f64,
    /// The weight to divide in the present step, without that under way, as a part of the usual weight times `reference`.
    own_share: Option<f64>,
    /// The largest balance of a neighbour in the present step, in periods; `None` without limit.
    limit: Option<f64>,
    /// Set when the node can forgive what neighbours keep.
    is_rich: bool,
}

/// The normal weight of a node as a part of the usual one: the largest value of its slow moving average. Hubs begin with
/// less than their usual weight, and delays keep a part of it away from a node.
#[derive(Clone, Copy, Debug, Default)]
struct Normal {
    mean: Option<f64>,
    most: f64,
}

impl Normal {
    fn of(share: f64) -> Self {
        Self { mean: Some(share), most: share }
    }

    /// Takes a further share into account. Returns it as a part of what is normal.
    fn compare(&mut self, share: f64) -> f64 {
        let before = self.mean.unwrap_or(share.min(1.0));
        let mean = before + NEWEST_OF_NORMAL * (share - before);
        self.mean = Some(mean);
        self.most = self.most.max(mean).min(MOST_NORMAL);
        share / self.most
    }
}

impl Default for Credit {
    fn default() -> Self {
        Self { mean: 1.0, normal: Normal::default(), reference: 0.0, own_share: None, limit: None, is_rich: false }
    }
}

impl Credit {
    /// Sets share and limit for a node whose weight is this share of its usual one.
    fn measure(&mut self, share: f64, is_reversible: bool) {
        let share = self.normal.compare(share);
        self.mean += NEWEST * (share - self.mean);
        let fullness = ((share.min(self.mean) - SHORT) / (ENOUGH - SHORT)).clamp(0.0, 1.0);
        self.limit = is_reversible.then_some(LEAST_CREDIT + (MOST_CREDIT - LEAST_CREDIT) * fullness);
        self.is_rich = share.min(self.mean) > RICH;
    }
}

impl Node {
    /// Measures the weight that there is to divide in a step, and sets each neighbour's credit for it.
    pub(super) fn measure_credit(&mut self) {
        let usual = self.config.schedule.stationary_weight(self.config.id, self.step);
        self.credit.own_share = None;
        self.credit.limit = None;
        if usual < LEAST_COMPARED {
            return;
        }
        let own_share = self.w() / usual;
        self.credit.reference = self.credit.reference.max(own_share.min(1.0));
        self.credit.own_share = Some(own_share / self.credit.reference).filter(|share| share.is_finite());
        if usual < LEAST_USUAL {
            return;
        }
        self.credit.measure(own_share + self.counted_under_way() / usual, self.config.schedule.is_reversible());
        if self.credit.is_rich {
            self.peers.values_mut().for_each(|peer| peer.account.forgive());
        }
        self.credit.limit = match self.usual_balance() {
            Some(balance) => self.credit.limit.map(|limit| limit + balance),
            None => self.credit.limit.filter(|limit| *limit < MOST_CREDIT),
        };
    }

    /// The weight of unacknowledged parcels that counts as the node's own: where they take longer than rounds, much of a
    /// sound node's weight is under way.
    fn counted_under_way(&self) -> f64 {
        let is_slow = match self.config.policy {
            WaitPolicy::Sync => false,
            WaitPolicy::Bounded { .. } => self.config.retransmit_after.is_some(),
            WaitPolicy::Async => true,
        };
        if is_slow { self.peers.values().map(counted_under_way_to).sum() } else { 0.0 }
    }

    /// The balance of most neighbours, which is not 0 where parcels are late: the lower median. `None` where there is one
    /// neighbour alone, whose parcels have nothing to be compared with.
    fn usual_balance(&self) -> Option<f64> {
        let is_in_reach = |peer: &&Neighbour| peer.is_active() && peer.account.flows.to > 0.0;
        let mut balances: Vec<f64> = self.peers.values().filter(is_in_reach).map(|peer| peer.account.balance).collect();
        if balances.len() < 2 {
            return None;
        }
        let middle = (balances.len() - 1) / 2;
        let (_, median, _) = balances.select_nth_unstable_by(middle, f64::total_cmp);
        Some(median.max(0.0))
    }

    /// The weight to divide in the present step, as a part of the usual one or of the most that the node has had;
    /// `None` where the usual weight is too small to compare with.
    pub(super) fn own_share(&self) -> Option<f64> {
        self.credit.own_share
    }

    /// A process goes on from a record: each restart would else give new credit, and take what is left for the usual weight.
    pub(super) fn restore_credit(&mut self) {
        self.credit.normal = Normal::of(1.0);
        self.credit.reference = 1.0;
        for peer in self.peers.values_mut() {
            let (given, received) = exchanged_with(peer);
            peer.account.restore(given, received);
        }
    }

    /// The heaviest parcel that a neighbour may get in the present step.
    pub(super) fn credit_of(&self, to: NodeId) -> Mass {
        let account = self.peers.get(&to).map(|peer| peer.account);
        let (Some(limit), Some(Account { flows, balance, .. })) = (self.credit.limit, account) else {
            return Mass::from_units(u64::MAX);
        };
        let weight = (limit - balance).max(LEAST_GIVEN) * flows.to;
        Mass::from_units((weight * UNITS_PER_ONE as f64) as u64)
    }

    /// The periods by which a neighbour may be ahead of what it gave in the present step; `None` without limit.
    pub(super) fn credit_in_periods(&self) -> Option<f64> {
        self.credit.limit
    }

    /// Returns `true` if a parcel is booked when its step is due, and not when it comes: where all wait for all, what a node
    /// gives does not depend on the network's timing.
    pub(super) fn books_in_step(&self) -> bool {
        self.config.policy == WaitPolicy::Sync
    }

    pub(super) fn note_given(&mut self, to: NodeId, mass: Mass) {
        self.peers.entry(to).and_modify(|peer| peer.account.give(mass.to_f64()));
    }

    pub(super) fn note_taken_back(&mut self, from: NodeId, mass: Mass) {
        self.peers.entry(from).and_modify(|peer| peer.account.take_back(mass.to_f64()));
    }

    pub(super) fn note_received(&mut self, from: NodeId, mass: Mass) {
        self.peers.entry(from).and_modify(|peer| peer.account.receive(mass.to_f64()));
    }

    /// Ends a round in which this part of a round's flows was due: reports neighbours that have had no credit for long and gave
    /// nothing to earn any.
    pub(super) fn report_keepers(&mut self, fraction: f64, due: f64) {
        let limit = self.credit.limit.unwrap_or(f64::INFINITY);
        let is_reversible = self.config.schedule.is_reversible();
        let patience = if is_reversible { PATIENCE } else { PATIENCE_ONE_WAY };
        let is_tree = self.config.schedule.hands_ratios_down();
        let counts_its_rounds = !is_reversible || is_tree;
        let is_short = self.credit.own_share.is_some_and(|share| share < ENOUGH);
        // Where links go one way, silence is all there is to go by, and a neighbour that is far ahead is silent until its parcels
        // have had their step. Elsewhere they are in its balance, or have their step in this round.
        let has_waiting = |peer: &Neighbour| !is_reversible && peer.incoming.as_ref().is_some_and(InLink::has_waiting);
        let is_excused = |peer: &Neighbour| !peer.is_active() || peer.has_ended() || has_waiting(peer);
        let schedule = &self.config.schedule;
        let rounds_of_period = schedule.period() as f64 / schedule.round_length() as f64;
        let mut keepers = Vec::new();
        for peer in self.peers.values_mut() {
            peer.account.end_round_of_flows(due / rounds_of_period, rounds_of_period);
            let Account { flows, balance, .. } = peer.account;
            // Where links go one way, a node does not see what a neighbour keeps, only that none of it comes.
            let may_keep = if is_reversible { balance < limit } else { !is_short || flows.from == 0.0 };
            // There, and in trees, a sound neighbour that takes far longer for its rounds gives as seldom as one that keeps
            // all: its own rounds count.
            let its_rounds = peer.account.rounds_since(peer.steps_passed(), schedule.round_length());
            let counted = if counts_its_rounds { fraction.min(its_rounds) } else { fraction };
            // A branch of a tree may be without weight: one that got nothing in a round has nothing to give in it.
            let counted = if is_tree && !peer.account.has_taken { 0.0 } else { counted };
            if peer.account.end_round(counted, may_keep || is_excused(peer), patience) {
                let (given, received) = exchanged_with(peer);
                let rounds = peer.account.withheld;
                keepers.push(NodeEvent::NeighbourKeeps { peer: peer.id, given, received, ahead: balance, rounds });
            }
        }
        keepers.into_iter().for_each(|event| self.report(event));
    }
}

/// The weight that a neighbour has received from this node, and what its present life has given.
fn exchanged_with(peer: &Neighbour) -> (f64, f64) {
    let given = peer.outgoing.as_ref().map_or(0.0, |link| link.given());
    (given, peer.incoming.as_ref().map_or(0.0, |link| link.received_weight()))
}

/// The weight of unacknowledged parcels to one neighbour that counts as the node's own.
fn counted_under_way_to(peer: &Neighbour) -> f64 {
    let under_way = peer.outgoing.as_ref().map_or(0.0, |link| link.undelivered().to_f64());
    under_way.min(MOST_UNDER_WAY * peer.account.flows.to)
}

#[cfg(test)]
mod tests {
    use super::super::account::Flows;
    use super::*;

    fn account(to: f64, from: f64) -> Account {
        Account::of(Flows { to, from })
    }

    #[test]
    fn balances_are_in_periods_of_the_planned_flows() {
        let mut account = account(0.5, 0.25);
        account.give(1.0);
        assert_eq!(account.balance, 2.0);
        account.receive(0.25);
        assert_eq!(account.balance, 1.0);
        account.take_back(0.5);
        assert_eq!(account.balance, 0.0);
    }

    #[test]
    fn nothing_can_be_saved_up_for_more_than_eight_periods() {
        let mut account = account(1.0, 1.0);
        account.receive(1e9);
        (0..8).for_each(|_| account.give(1.0));
        assert_eq!(account.balance, 0.0);
    }

    #[test]
    fn credit_shrinks_to_a_quarter_of_a_period_as_the_weight_does() {
        let mut credit = Credit::default();
        let mut limit_at = |share: f64| {
            credit.measure(share, true);
            credit.limit
        };
        assert_eq!([1.0, 0.81].map(&mut limit_at), [Some(MOST_CREDIT); 2]);
        assert!(limit_at(0.7).is_some_and(|limit| (limit - 0.75).abs() < 1e-9));
        assert!([0.6; 10].into_iter().chain([0.1; 10]).all(|share| limit_at(share) == Some(0.25)));
        assert!(limit_at(1.0).is_some_and(|limit| limit < MOST_CREDIT), "a moment of plenty");
        assert!((0..40).any(|_| limit_at(1.0) == Some(MOST_CREDIT)), "plenty that lasts");
    }

    #[test]
    fn in_plans_that_are_not_reversible_there_is_no_credit_to_speak_of() {
        let mut credit = Credit::default();
        credit.measure(0.1, false);
        assert_eq!(credit.limit, None);
    }

    #[test]
    fn a_hub_that_begins_with_a_third_of_its_usual_weight_is_not_short_of_it() {
        let mut credit = Credit::default();
        for share in [1.0 / 3.0, 0.5, 0.7, 0.9] {
            credit.measure(share, true);
            assert_eq!(credit.limit, Some(MOST_CREDIT));
        }
        (0..200).for_each(|_| credit.measure(0.9, true));
        (0..20).for_each(|_| credit.measure(0.45, true));
        assert_eq!(credit.limit, Some(LEAST_CREDIT));
    }

    #[test]
    fn where_unacknowledged_parcels_count_twice_a_node_is_short_long_before_its_usual_weight_is_gone() {
        let mut credit = Credit::default();
        (0..400).for_each(|_| credit.measure(1.8, true));
        assert!(credit.is_rich);
        (0..20).for_each(|_| credit.measure(1.0, true));
        assert_eq!(credit.limit, Some(LEAST_CREDIT));
    }

    #[test]
    fn a_neighbour_is_reported_once_after_twenty_rounds_without_credit_in_which_it_gave_nothing() {
        let mut account = account(1.0, 1.0);
        account.give(3.0);
        assert!((0..19).all(|_| !account.end_round(1.0, false, PATIENCE)));
        account.receive(0.1);
        assert!((0..20).all(|_| !account.end_round(1.0, false, PATIENCE)), "it gave something");
        assert_eq!((0..100).filter(|_| account.end_round(1.0, false, PATIENCE)).count(), 1);
    }
}
