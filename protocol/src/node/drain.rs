//! The end of a node's part: announce the last parcel of every link, absorb what still arrives, and wait until
//! everything sent has been applied. A drained node goes on answering, so that its neighbours can drain too.
//!
//! A neighbour that answers is given longer than one that does not, but not for ever: a member that never closes its
//! links would else keep all others from ending.

use super::peer::Neighbour;
use super::{Node, Phase};
use crate::effect::{Effect, NodeEvent};
use crate::schedule::NodeId;
use crate::time::Time;

/// Drain deadlines that a neighbour has which answers.
const DEADLINES_TO_SETTLE: u32 = 3;
/// Usual rounds that such a neighbour has beyond these. It applies parcels when it comes to their step: one that is ten
/// times slower and five rounds behind needs fifty.
const ROUNDS_TO_SETTLE: u32 = 100;

impl Node {
    pub(super) fn on_stop(&mut self) {
        self.stopping = true;
        // Before its sends a step has promised nothing; after them it is finished first.
        if matches!(self.phase, Phase::Gathering { .. } | Phase::Training { .. } | Phase::AwaitingRoom(_)) {
            self.begin_draining();
        }
    }

    pub(super) fn begin_draining(&mut self) -> bool {
        self.set_ready_aside();
        for peer in self.peers.values_mut() {
            if !self.quitting {
                peer.outgoing.iter_mut().for_each(|link| link.close());
            }
            peer.ack_owed = true;
        }
        // Rounds in which a node neither sends nor absorbs are in no record yet, nor is what it trained in them.
        self.commits.soil();
        let give_up_at = self.now + self.config.drain_deadline;
        let longer = self.config.drain_deadline.saturating_mul(DEADLINES_TO_SETTLE);
        let rounds = self.clock.usual().unwrap_or_default().saturating_mul(ROUNDS_TO_SETTLE);
        self.phase = Phase::Draining { give_up_at, end_at: self.now + longer + rounds };
        self.report(NodeEvent::Draining { steps: self.step });
        self.absorb_on_arrival();
        true
    }

    /// Ends draining once every link is closed and settled. Unreachable neighbours are given up at `give_up_at`, those
    /// that answer at `end_at`.
    pub(super) fn try_finish_draining(&mut self, give_up_at: Time, end_at: Time) -> bool {
        let gives_up = self.now >= give_up_at;
        let ends = self.now >= end_at;
        if self.quitting && !gives_up && !self.try_depart() {
            return false;
        }
        let has_left = self.has_left();
        let blocks = |peer: &&Neighbour| {
            peer.identity.is_some() && !peer.is_drained() && !has_left && !ends && (peer.is_active() || !gives_up)
        };
        if self.peers.values().any(|peer| blocks(&peer)) || !self.commits.is_settled() {
            return false;
        }
        let undelivered: Vec<(NodeId, crate::mass::Mass)> = self
            .peers
            .values()
            .filter(|peer| peer.identity.is_some() && !peer.is_drained() && !has_left)
            .map(|peer| (peer.id, peer.outgoing.as_ref().map(|link| link.undelivered()).unwrap_or_default()))
            .collect();
        if !undelivered.is_empty() {
            self.report(NodeEvent::DrainGaveUp { undelivered });
        }
        self.phase = Phase::Drained;
        self.effects.push(Effect::Drained);
        true
    }
}
