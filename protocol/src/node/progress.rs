//! How far neighbours claim to be, and how much of such a claim is credible.
//!
//! Every message says how many steps its sender is through with. A node that has fallen far behind goes on where its
//! neighbours are (`pace`), so that one false number would take a node, and by what it then says itself the whole swarm, to
//! the end of training. A neighbour's word therefore counts only as far as
//!
//! - two thirds of the neighbours that are there claim as much, itself among them, or this node is there itself, or
//! - time can have carried it there: [`FASTER`] times as fast as the rounds of this node usually are, from the step that was
//!   last believed, and [`LEAD`] rounds beyond that, which are not granted anew with every message.
//!
//! Liars that are fewer can thus make others skip about as many rounds as they do, not all of them, whether or not they agree.
//! A node that has only one neighbour in its plan has no other to ask: when it starts it believes that one, but not that
//! training is over.

use std::time::Duration;

use super::Node;
use crate::effect::Event;
use crate::injected_bug::InjectedBug;
use crate::peer::Peer;
use crate::schedule::NodeId;
use crate::time::Time;

/// A neighbour may be this many times as fast as this node for its word alone to be taken.
const FASTER: u32 = 2;

/// Rounds that a neighbour may be ahead of what time explains: what the waits allow, and what a node makes up for at once.
const LEAD: u64 = 36;

/// A neighbour that has been silent for so many heartbeats bears out nothing, and keeps nothing from being borne out.
const HEARTBEATS_OF_A_WITNESS: u32 = 12;

/// The shortest usual round that a claim is measured by.
const SHORTEST_ROUND: Duration = Duration::from_micros(1);

/// What is believed of a neighbour's word on how far it is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Belief {
    /// The step last believed, and when it was said.
    anchor: Option<(u64, Time)>,
    doubted_since: Option<Time>,
    doubt_is_told: bool,
}

/// Steps that are borne out by more than one claim.
#[derive(Clone, Copy, Debug)]
pub(super) struct Witnessed {
    /// Those that two thirds of the neighbours claim to be through with.
    by_neighbours: u64,
    /// Those that this node is through with.
    own: u64,
}

impl Witnessed {
    fn steps(self) -> u64 {
        self.by_neighbours.max(self.own)
    }
}

impl Node {
    /// What neighbours bear out together. One that has been silent for long, or was never there, is no witness; a single one
    /// bears out nothing.
    pub(super) fn witnessed(&self) -> Witnessed {
        let patience = self.config.heartbeat * HEARTBEATS_OF_A_WITNESS;
        let is_there = |peer: &&Peer| peer.was_met && !peer.left && self.now < peer.heard_at + patience;
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

    /// How many steps a neighbour is through with, as far as its word counts.
    pub(super) fn credible(&self, peer: &Peer, witnessed: Witnessed) -> u64 {
        if self.has(InjectedBug::BelievesAnyone) {
            return peer.passed;
        }
        peer.passed.min(witnessed.steps().max(self.reach(peer)))
    }

    /// Whether one of these neighbours has sent a parcel of this step or a later one, which it can have got to.
    pub(super) fn has_any_brought<'a>(&'a self, mut from: impl Iterator<Item = &'a Peer>) -> bool {
        let witnessed = self.witnessed();
        let can_be_here =
            |peer: &Peer| self.has(InjectedBug::BelievesAnyone) || witnessed.steps().max(self.reach(peer)) >= self.step;
        let has_brought = |peer: &Peer| peer.incoming.as_ref().is_some_and(|link| link.has_brought(self.step));
        from.any(|peer| has_brought(peer) && can_be_here(peer))
    }

    /// How many steps the neighbour that is furthest is through with, as far as that is credible.
    pub(super) fn furthest(&self) -> u64 {
        let witnessed = self.witnessed();
        self.peers.values().map(|peer| self.credible(peer, witnessed)).max().unwrap_or(0)
    }

    /// The furthest step that time can have carried a neighbour to.
    fn explained(&self, peer: &Peer) -> u64 {
        let Some((step, at)) = peer.belief.anchor else {
            return 0;
        };
        let usual = self.clock.usual().map(|usual| usual.max(SHORTEST_ROUND).as_micros());
        let rounds = usual.map_or(0, |usual| u128::from(FASTER) * self.now.since(at).as_micros() / usual);
        let rounds = u64::try_from(rounds).unwrap_or(u64::MAX);
        step.saturating_add(rounds.saturating_mul(self.config.schedule.round_length()))
    }

    /// The furthest step at which a neighbour's word counts without a witness.
    fn reach(&self, peer: &Peer) -> u64 {
        let lead = LEAD.saturating_mul(self.config.schedule.round_length());
        if peer.belief.anchor.is_some() { self.explained(peer).saturating_add(lead) } else { 0 }
    }

    /// The node begins: from here on time tells how far others can be. Returns the step to begin with.
    pub(super) fn anchor_beliefs(&mut self) -> u64 {
        let (now, own) = (self.now, self.passed());
        let last_round = self.last_step.saturating_sub(self.config.schedule.round_length());
        let is_only_one = self.peers.values().filter(|peer| !peer.left).count() == 1;
        for peer in self.peers.values_mut() {
            let step = if is_only_one { peer.passed.min(last_round).max(own) } else { own };
            peer.belief.anchor = Some((step, now));
        }
        self.furthest()
    }

    /// A neighbour has said how far it is.
    pub(super) fn weigh_claim(&mut self, from: NodeId) {
        let (now, heartbeat) = (self.now, self.config.heartbeat);
        let lead = LEAD.saturating_mul(self.config.schedule.round_length());
        let witnessed = self.witnessed();
        let Some(peer) = self.peers.get(&from) else {
            return;
        };
        let (claimed, credible) = (peer.passed, self.credible(peer, witnessed));
        let (explained, reach) = (self.explained(peer), self.reach(peer));
        let witnessed = claimed.min(witnessed.by_neighbours);
        let Some(peer) = self.peers.get_mut(&from) else {
            return;
        };
        let belief = &mut peer.belief;
        // Who is ahead of what time explains is so once, and gains no other lead with every message; nor by this node's having followed.
        if claimed <= explained.max(witnessed) {
            belief.anchor = belief.anchor.map(|_| (claimed, now));
        } else if claimed > reach && witnessed.saturating_add(lead) > reach {
            belief.anchor = Some((witnessed, now));
        }
        if claimed <= credible.saturating_add(lead) {
            (belief.doubted_since, belief.doubt_is_told) = (None, false);
            return;
        }
        let since = *belief.doubted_since.get_or_insert(now);
        if now >= since + heartbeat && !std::mem::replace(&mut belief.doubt_is_told, true) {
            let round = |step: u64| step / self.config.schedule.round_length();
            self.report(Event::ProgressDoubted { peer: from, claimed: round(claimed), credible: round(credible) });
        }
    }
}
