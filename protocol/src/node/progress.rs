//! The progress that neighbours claim, and how much of such a claim is credible.
//!
//! Every message says how many steps its sender has passed. A node that has fallen far behind goes on where its
//! neighbours are (`pace`). So one false number would take a node, and through its own messages the whole swarm, to the
//! end of training. A neighbour's claim therefore counts only as far as
//!
//! - two thirds of the neighbours that are there claim as much, itself among them, or this node is there itself, or
//! - time explains it: [`FASTER`] times the pace of this node's own rounds, the usual or the mean one, whichever is
//!   slower, from the step last believed, and [`LEAD`] rounds beyond that, which are not granted anew with every message, nor when others have followed.
//!
//! In a tree of exact averages, a claim of a neighbour that this node hands ratios down to explains no more than a period:
//! it waits for what this node hands down, and where it has gone on without that, there is nothing to follow it for. A node
//! that has been away follows the neighbour that hands down to it, or two thirds of all.
//!
//! A minority of liars can thus make others skip about as many rounds as they do, not all of them, whether or not they
//! agree. A node that has only one neighbour in its plan cannot ask another: when it starts it believes that one, but
//! not that training is over.

use std::time::Duration;

use super::Node;
use super::peer::Neighbour;
use crate::effect::NodeEvent;
use crate::injected_bug::InjectedBug;
use crate::schedule::NodeId;
use crate::time::Time;

/// Largest ratio of a neighbour's pace to this node's for its claim alone to be believed. Nodes that follow each other come
/// to the pace of the fastest; all the same they skip no more rounds than they finish.
const FASTER: Ratio = Ratio { of: 5, to: 4 };

/// The same for the claims of a single neighbour.
const FASTER_ALONE: Ratio = Ratio { of: 2, to: 1 };

/// Rounds that a neighbour may be ahead of what time explains: the lag that waits allow, and the rounds that a node
/// makes up for at once.
const LEAD: u64 = 36;

/// Heartbeats of silence after which a neighbour is no witness: its claim neither supports nor prevents another.
const HEARTBEATS_OF_A_WITNESS: u32 = 12;

/// The least time by which a process that stood still misses its deadline.
const STANDSTILL: Duration = Duration::from_millis(500);

/// The shortest usual round that claims are measured by.
const SHORTEST_ROUND: Duration = Duration::from_micros(1);

/// A ratio of whole numbers.
struct Ratio {
    of: u128,
    to: u128,
}

/// Steps that are supported by more than one claim.
#[derive(Clone, Copy, Debug)]
pub(super) struct Witnessed {
    /// Steps that two thirds of the neighbours claim to have passed.
    by_neighbours: u64,
    /// Steps that this node has passed.
    own: u64,
}

impl Witnessed {
    fn steps(self) -> u64 {
        self.by_neighbours.max(self.own)
    }
}

impl Node {
    /// Notes that the process stood still until `now`, as on a suspended machine: it missed its own deadline. Neighbours
    /// went on meanwhile at the usual pace.
    pub(super) fn note_standstill(&mut self, now: Time) {
        if now.since(self.now) < STANDSTILL {
            return;
        }
        let overdue = self.next_deadline().map(|due| now.since(due.max(self.now)));
        if let Some(overdue) = overdue.filter(|overdue| *overdue >= STANDSTILL) {
            self.clock.stand_still(overdue);
        }
    }

    /// The steps that neighbours support together. A neighbour that has been silent for long, or was never there, is no
    /// witness; a single witness supports none.
    pub(super) fn witnessed(&self) -> Witnessed {
        let patience = self.config.heartbeat * HEARTBEATS_OF_A_WITNESS;
        let is_there = |peer: &&Neighbour| peer.was_met && !peer.left && self.now < peer.heard_at + patience;
        let mut claims: Vec<u64> = self.peers.values().filter(is_there).map(|peer| peer.passed).collect();
        let needed = claims.len() - claims.len().saturating_sub(1) / 3;
        let by_neighbours = if needed < 2 {
            0
        } else {
            let (_, claim, _) = claims.select_nth_unstable_by(needed - 1, |a, b| b.cmp(a));
            *claim
        };
        Witnessed { by_neighbours, own: self.passed() }
    }

    /// The steps that two thirds of the neighbours support.
    pub(super) fn witnessed_by_neighbours(&self) -> u64 {
        self.witnessed().by_neighbours
    }

    /// The steps that a neighbour has passed, as far as its claim is credible.
    pub(super) fn credible(&self, peer: &Neighbour, witnessed: Witnessed) -> u64 {
        if self.has(InjectedBug::BelievesAnyone) {
            return peer.passed;
        }
        peer.passed.min(witnessed.steps().max(self.reach(peer)))
    }

    /// Returns `true` if one of these neighbours has sent a parcel of this step or a later one, and that progress is
    /// credible.
    pub(super) fn has_any_brought<'a>(&'a self, mut from: impl Iterator<Item = &'a Neighbour>) -> bool {
        let witnessed = self.witnessed_by_neighbours();
        // That this node is there itself says nothing: it got there one step at a time, by such parcels.
        let can_be_here =
            |peer: &Neighbour| self.has(InjectedBug::BelievesAnyone) || witnessed.max(self.reach(peer)) >= self.step;
        let has_brought = |peer: &Neighbour| peer.incoming.as_ref().is_some_and(|link| link.has_brought(self.step));
        from.any(|peer| has_brought(peer) && can_be_here(peer))
    }

    /// The largest number of steps that a neighbour has passed, as far as that is credible.
    pub(super) fn furthest(&self) -> u64 {
        let witnessed = self.witnessed();
        self.peers.values().map(|peer| self.credible(peer, witnessed)).max().unwrap_or(0)
    }

    /// The furthest step that a neighbour can have reached in the time since its last believed claim, and the part of
    /// that time which makes whole rounds, as an instant: the rest counts after a new anchor.
    fn explained(&self, peer: &Neighbour) -> (u64, Time) {
        let Some((step, at)) = peer.belief.anchor else {
            return (0, self.now);
        };
        // A single neighbour has no witnesses whatever it claims.
        let has_one_neighbour = self.has_one_neighbour();
        let mean = self.clock.mean(self.now).filter(|_| !has_one_neighbour).unwrap_or_default();
        let faster = if has_one_neighbour { FASTER_ALONE } else { FASTER };
        let Some(usual) = self.clock.usual().map(|usual| usual.max(mean).max(SHORTEST_ROUND)) else {
            return (step, self.now);
        };
        let rounds = faster.of * self.now.since(at).as_micros() / (faster.to * usual.as_micros());
        let rounds = u64::try_from(rounds).unwrap_or(u64::MAX);
        let whole = u128::from(rounds) * usual.as_micros() * faster.to / faster.of;
        let whole = Duration::from_micros(u64::try_from(whole).unwrap_or(u64::MAX));
        (step.saturating_add(rounds.saturating_mul(self.config.schedule.round_length())), at + whole)
    }

    fn has_one_neighbour(&self) -> bool {
        self.peers.values().filter(|peer| !peer.left).count() == 1
    }

    /// The furthest step at which a neighbour's claim counts without a witness; of one below this node in a tree a period
    /// from here, unless there is no other neighbour.
    fn reach(&self, peer: &Neighbour) -> u64 {
        if peer.belief.anchor.is_none() {
            return 0;
        }
        let explained = self.explained(peer).0.saturating_add(peer.belief.lead);
        let is_bound_to_us = peer.is_below && !self.has_one_neighbour();
        let same_period = self.passed().saturating_add(self.config.schedule.period());
        if is_bound_to_us { explained.min(same_period) } else { explained }
    }

    /// [`LEAD`] in steps.
    fn longest_lead(&self) -> u64 {
        LEAD.saturating_mul(self.config.schedule.round_length())
    }

    /// Starts measuring from now on how far time explains others' claims. Returns the step to begin with.
    pub(super) fn anchor_beliefs(&mut self) -> u64 {
        let now = self.now;
        let own = self.passed();
        let lead = self.longest_lead();
        let last_round = self.last_step.saturating_sub(self.config.schedule.round_length());
        let is_only_one = self.has_one_neighbour();
        for peer in self.peers.values_mut() {
            let step = if is_only_one { peer.passed.min(last_round).max(own) } else { own };
            peer.belief.anchor = Some((step, now));
            peer.belief.lead = lead;
        }
        self.furthest()
    }

    /// Handles a neighbour's claim of progress: moves the anchor of belief, or reports a lasting doubt.
    pub(super) fn weigh_claim(&mut self, from: NodeId) {
        let now = self.now;
        let heartbeat = self.config.heartbeat;
        let lead = self.longest_lead();
        let witnessed = self.witnessed();
        let Some(peer) = self.peers.get(&from) else {
            return;
        };
        let claimed = peer.passed;
        let credible = self.credible(peer, witnessed);
        let (explained, counted) = self.explained(peer);
        let reach = self.reach(peer);
        let witnessed = claimed.min(witnessed.by_neighbours);
        let Some(peer) = self.peers.get_mut(&from) else {
            return;
        };
        let belief = &mut peer.belief;
        // A neighbour ahead of what time explains gains that lead once, not with every message, nor from this node's or
        // others' having followed it: a new anchor leaves the end of what is believed where it was, unless neighbours
        // are beyond that together.
        let anchor = if claimed <= explained.max(witnessed) {
            belief.anchor.map(|_| claimed)
        } else {
            Some(witnessed).filter(|step| claimed > reach && step.saturating_add(lead) > reach)
        };
        if let Some(step) = anchor {
            belief.anchor = Some((step, counted));
            belief.lead = reach.saturating_sub(step).min(lead);
        }
        if claimed <= credible.saturating_add(lead) {
            belief.doubted_since = None;
            belief.doubt_is_told = false;
            return;
        }
        let since = *belief.doubted_since.get_or_insert(now);
        if now >= since + heartbeat && !std::mem::replace(&mut belief.doubt_is_told, true) {
            let round = |step: u64| step / self.config.schedule.round_length();
            self.report(NodeEvent::ProgressDoubted { peer: from, claimed: round(claimed), credible: round(credible) });
        }
    }
}
