//! Links that go up and down, silent neighbours, and the timers that detect them.
//!
//! Suspending a neighbour is local and reversible and never touches mass, so a false alarm costs nothing but time.

use super::peer::Neighbour;
use super::{Node, Phase};
use crate::effect::{NodeEvent, Suspension};
use crate::schedule::NodeId;
use crate::time::Time;

/// Heartbeats a neighbour may miss before it is suspended; a restarted node also waits this many for missing ones.
pub(super) const MISSED_HEARTBEATS: u32 = 3;
/// Heartbeats that a resumed node waits for neighbours that may remember more of it than it does.
const HEARTBEATS_BEFORE_RESUMING: u32 = 12;

impl Node {
    pub(super) fn on_start(&mut self) {
        if self.started {
            return;
        }
        self.started = true;
        self.begin_process();
        let patience = match (self.resumed, self.config.identity.incarnation) {
            (true, _) => Some(self.config.heartbeat * HEARTBEATS_BEFORE_RESUMING),
            (false, 1) => self.config.gather_for,
            (false, _) => Some(self.config.heartbeat * MISSED_HEARTBEATS),
        };
        let give_up_at = patience.map(|patience| self.now + patience);
        if let Phase::Gathering { .. } = self.phase {
            self.phase = Phase::Gathering { give_up_at };
        }
        self.reserve();
        if !self.resumed {
            self.commit(None);
        }
    }

    pub(super) fn on_link_up(&mut self, peer: NodeId) {
        let now = self.now;
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.link_up = true;
            peer.is_gone = false;
            peer.heard_at = now;
            peer.heard_since_up = false;
            peer.greeted = false;
            peer.greetings = (now, 0);
            peer.renewal.begin();
        }
        self.send_hello(peer);
        // The neighbour's Hello may have come before the host reported the link as up; then nothing else sends the
        // parcels again.
        self.resend(peer);
    }

    pub(super) fn on_gone(&mut self, peer: NodeId) {
        if let Some(peer) = self.peers.get_mut(&peer).filter(|peer| !peer.mutual) {
            peer.is_gone = true;
        }
    }

    pub(super) fn on_link_down(&mut self, peer: NodeId) {
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.link_up = false;
            peer.mutual = false;
            peer.outgoing.iter_mut().for_each(|link| link.disarm());
        }
        self.suspend(peer, Suspension::LinkDown);
    }

    /// Suspends a neighbour, or raises the reason to a stronger one.
    pub(super) fn suspend(&mut self, peer: NodeId, reason: Suspension) {
        if let Some(entry) = self.peers.get_mut(&peer)
            && entry.suspended < Some(reason)
        {
            entry.suspended = Some(reason);
            self.report(NodeEvent::NeighbourSuspended { peer, reason });
        }
    }

    /// Notes a sound message from the known process of a neighbour.
    pub(super) fn on_vouched(&mut self, from: NodeId) {
        self.peers.entry(from).and_modify(|peer| peer.vouched_at = self.now);
        self.on_heard(from);
    }

    /// Notes any sound message from a neighbour's present life.
    pub(super) fn on_heard(&mut self, from: NodeId) {
        let now = self.now;
        let Some(peer) = self.peers.get_mut(&from) else {
            return;
        };
        peer.heard_at = now;
        peer.heard_since_up = true;
        let is_back = match peer.suspended {
            Some(Suspension::Silent) => true,
            Some(Suspension::LinkDown) => peer.link_up,
            Some(Suspension::Late | Suspension::Refused | Suspension::Contradicts) | None => false,
        };
        if is_back {
            self.reinstate(from);
        }
    }

    /// Notes that a neighbour took or sent a parcel, or went on to a later step.
    pub(super) fn on_progress(&mut self, from: NodeId) {
        if self.peers.get(&from).is_some_and(|peer| peer.suspended == Some(Suspension::Late)) {
            self.reinstate(from);
        }
    }

    fn reinstate(&mut self, peer: NodeId) {
        let was_alone = !self.peers.values().any(Neighbour::is_active);
        if let Some(entry) = self.peers.get_mut(&peer) {
            entry.suspended = None;
            self.report(NodeEvent::NeighbourBack { peer });
        }
        if was_alone {
            self.usual_steps.learn_anew();
        }
    }

    pub(super) fn on_tick(&mut self) {
        let now = self.now;
        let ids: Vec<NodeId> = self.peers.keys().copied().collect();
        for id in ids {
            let Some(peer) = self.peers.get_mut(&id).filter(|peer| peer.link_up) else {
                continue;
            };
            let resend = peer.outgoing.as_mut().filter(|link| link.resend_at().is_some_and(|at| at <= now));
            // A neighbour whose messages arrive only loses some: a longer back-off would not reduce that.
            let is_heard = now < peer.heard_at + self.config.heartbeat * MISSED_HEARTBEATS;
            let resend = resend.map(|link| if is_heard { link.disarm() } else { link.back_off() }).is_some();
            let heartbeat = peer.sent_at + self.config.heartbeat <= now;
            let is_silent = peer.identity.is_some() && peer.heard_at + self.silence() <= now;
            if is_silent {
                self.suspend(id, Suspension::Silent);
            }
            if resend {
                self.resend(id);
            }
            if heartbeat {
                self.beat(id);
            }
        }
    }

    pub(super) fn patience_from_now(&self) -> Time {
        self.now + self.config.heartbeat * MISSED_HEARTBEATS
    }

    /// Sends the present state again: an Ack, or a Hello to a neighbour that has not answered one.
    fn beat(&mut self, id: NodeId) {
        match self.peers.get_mut(&id) {
            Some(peer) if peer.mutual => peer.ack_owed = true,
            Some(_) => self.send_hello(id),
            None => {}
        }
    }

    fn silence(&self) -> std::time::Duration {
        self.config.heartbeat * MISSED_HEARTBEATS
    }

    /// Times at which heartbeats, retransmissions and suspicions are due.
    pub(super) fn link_deadlines(&self) -> impl Iterator<Item = Time> {
        self.peers.values().filter(|peer| peer.link_up).flat_map(|peer| {
            let heartbeat = Some(peer.sent_at + self.config.heartbeat);
            let watched = peer.identity.is_some() && peer.suspended < Some(Suspension::Silent);
            let silence = watched.then(|| peer.heard_at + self.silence());
            let resend = peer.outgoing.as_ref().and_then(|link| link.resend_at());
            [heartbeat, silence, resend].into_iter().flatten()
        })
    }
}
