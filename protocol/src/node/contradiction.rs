//! Neighbours whose books contradict this node's: which of the two lost state, and the consequence.
//!
//! ```text
//!   a greeting shows this node's own code under what it does not remember   it was rolled back: it discards what it holds
//!   an Ack or a parcel contradicts its books                                it asks the neighbour to greet it
//!   a greeting contradicts its books, and shows nothing of the kind         the neighbour is suspended; nothing is given up
//! ```
//!
//! A sound neighbour always has evidence ([`Evidence`]): all that it knows of this node came with this node's code.

use super::Node;
use super::peer::Neighbour;
use crate::chain::Chain;
use crate::config::Durability;
use crate::effect::{InputFault, Suspension};
use crate::evidence::{Evidence, Lives, Sent};
use crate::injected_bug::InjectedBug;
use crate::link::OutLink;
use crate::message::{LeaveCertificate, LinkPositions};
use crate::schedule::NodeId;

/// The message in which a neighbour contradicts the books of this node. A greeting shows all the evidence that the
/// neighbour has; other messages show none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    InGreeting,
    Elsewhere,
}

impl Node {
    fn lives(&self, own: u64, neighbour: (NodeId, u64)) -> Lives {
        Lives { generation: self.config.generation, own: (self.config.id, own), neighbour }
    }

    /// The state of the links with a neighbour, with this node's code for what it has applied.
    pub(super) fn link_state(&self, peer: &Neighbour) -> LinkPositions {
        let mut state = peer.link_state(self.own_state());
        if let Some(confirmed) = peer.incoming.as_ref().and_then(|link| link.confirmed()).filter(|_| self.is_durable())
        {
            let lives = self.lives(self.config.identity.incarnation, (peer.id, peer.incarnation()));
            state.applied_mac = lives.applied(confirmed, &*self.config.keys).mac;
        }
        state
    }

    /// This node's code for having sent a parcel; empty where there are no records to roll back to.
    pub(super) fn sent(&self, to: &Neighbour, seq: u64, chain: Chain) -> Sent {
        if !self.is_durable() {
            return Sent::default();
        }
        let lives = self.lives(self.config.identity.incarnation, (to.id, to.incarnation()));
        lives.sent(seq, chain, &*self.config.keys)
    }

    /// Checks the evidence that a neighbour shows in a greeting of this life. If the node does not remember what it
    /// once said, it was started from an old copy of its records, or without them, and discards its state.
    pub(super) fn on_evidence(&mut self, from: NodeId, life: u64, evidence: &Evidence) {
        let Some(peer) = self.peers.get(&from).filter(|_| self.is_durable() && !self.has_left()) else {
            return;
        };
        let is_known = peer.incarnation() == life;
        if peer.left && is_known {
            return;
        }
        let own = self.config.identity.incarnation;
        let lives = self.lives(own, (from, life));
        let keys = &*self.config.keys;
        let remembers_sent = |sent: &Sent| is_known && self.remembers(peer.outgoing.as_ref(), sent);
        let has_applied = |seq| peer.incoming.as_ref().is_some_and(|link| link.has_applied(seq));
        let forgot_sent = evidence.sent.is_some_and(|sent| !remembers_sent(&sent) && lives.have_sent(&sent, keys));
        let forgot_applied = evidence.applied.is_some_and(|applied| {
            !(is_known && has_applied(applied.seq))
                && lives.have_applied(&applied, keys)
                && !self.has(InjectedBug::IgnoresAckEchoes)
        });
        if forgot_sent || forgot_applied {
            self.discard(own);
        }
    }

    fn remembers(&self, link: Option<&OutLink>, sent: &Sent) -> bool {
        let chain = Some(sent.chain).filter(|_| !self.has(InjectedBug::IgnoresChains));
        link.is_some_and(|link| link.has_sent(sent.seq, chain))
    }

    /// Returns `true` if a certificate proves that this node has sent the leaver more than it remembers.
    pub(super) fn has_forgotten(&self, certificate: &LeaveCertificate, own: u64, sent: &Sent) -> bool {
        let leaver = (certificate.leaver, certificate.incarnation);
        let peer = self.peers.get(&leaver.0).filter(|peer| peer.incarnation() == leaver.1);
        let is_present = own == self.config.identity.incarnation;
        let remembers = is_present && peer.is_some_and(|peer| self.remembers(peer.outgoing.as_ref(), sent));
        self.is_durable() && !remembers && self.lives(own, leaver).have_sent(sent, &*self.config.keys)
    }

    /// Handles a neighbour whose account of the parcels between the two contradicts the books here, without evidence.
    pub(super) fn on_contradiction(&mut self, with: NodeId, said: Said) -> Result<(), InputFault> {
        if self.config.durability == Durability::Off {
            return Err(InputFault::ImpossibleAck);
        }
        if self.has(InjectedBug::BelievesAnyone) {
            self.discard(self.config.identity.incarnation);
            return Ok(());
        }
        if let Some(peer) = self.peers.get_mut(&with) {
            // Until this is settled, no parcel is sent to it or accepted from it.
            peer.mutual = false;
        }
        if said == Said::Elsewhere {
            self.note_refusal(InputFault::Contradiction);
            self.ask_for_greeting(with);
            return Ok(());
        }
        self.suspend(with, Suspension::Contradicts);
        Err(InputFault::Contradiction)
    }
}
