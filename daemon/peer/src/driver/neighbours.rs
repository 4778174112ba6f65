//! What comes from neighbours: streams, messages and objections.

use libp2p::PeerId;
use mingle_net::edge::{EdgeEvent, Refusal};
use mingle_net::neighbour_table::LinkChange;
use mingle_net::transport::{DialAttempt, NetworkEvent};
use mingle_protocol::{Durability, Hello, Identity, Input, LinkState, Message, NodeId};

use super::{Driver, build, link_input};
use crate::error::{Error, ErrorKind, Result};
use crate::events::Event;
use crate::objections::Objection;

impl Driver<'_> {
    pub(super) fn on_edge(&mut self, event: EdgeEvent) -> Result {
        match event {
            EdgeEvent::Up { node, direction, handle } => {
                self.objections.withdraw(node);
                let change = self.parts.wiring.links.attach(node, direction, handle);
                self.on_link_change(node, change)
            }
            EdgeEvent::Message { node, message } => self.on_message(node, message),
            EdgeEvent::Down { node, direction, stream, error } => {
                if let Some(error) = &error {
                    tracing::debug!(%node, ?direction, error, "a stream broke");
                }
                let change = self.parts.wiring.links.detach(node, direction, stream, error.is_none());
                self.on_link_change(node, change)
            }
            EdgeEvent::Refused { node, refusal } => {
                let may_be_older = matches!(refusal, Refusal::OtherPlan { .. } | Refusal::NotANeighbour);
                if may_be_older && self.compare_plans(node) {
                    return Ok(());
                }
                self.object(node, Objection::refusal(&refusal))
            }
        }
    }

    pub(super) fn on_network(&mut self, event: &NetworkEvent) {
        match event {
            NetworkEvent::Bootstrapped { .. } => {}
            NetworkEvent::RoundTrip { peer, time } => self.watching.note_round_trip(peer, *time),
            NetworkEvent::DialFailed { peer, attempts } => self.on_dial_failed(*peer, attempts),
        }
    }

    fn on_dial_failed(&mut self, peer: Option<PeerId>, attempts: &[DialAttempt]) {
        let attempts: Vec<String> = attempts.iter().map(ToString::to_string).collect();
        let fresh: Vec<String> = attempts.into_iter().filter(|text| self.dial_failures.insert(text.clone())).collect();
        if !self.joined && !fresh.is_empty() {
            self.parts.log.tell(Event::DialFailed { peer: peer.map(|peer| peer.to_string()), attempts: fresh });
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message) -> Result {
        if let Message::Collective(_) = message {
            return self.object(from, Objection::solves());
        }
        if link_state(&message).is_some_and(|link| link.final_seq.is_some()) {
            self.parts.wiring.links.note_last_parcel(from);
        }
        if let Message::Hello(hello) = &message
            && let Some(incarnation) = self.later_life(hello)
        {
            self.rejoin(incarnation)?;
        }
        self.feed(Input::Received { from, message })
    }

    /// The incarnation that this process must take, where a neighbour remembers another process of this peer that took
    /// part. Only before this process has: afterwards the other one is the newcomer.
    fn later_life(&self, hello: &Hello) -> Option<u64> {
        if self.parts.config.durability == Durability::On {
            // A node with records finds out by itself, and says so.
            return None;
        }
        let mine = self.parts.config.identity;
        let seen =
            hello.seen.filter(|seen| seen.boot_nonce != mine.boot_nonce && seen.incarnation >= mine.incarnation)?;
        (!self.joined).then(|| seen.incarnation.saturating_add(1))
    }

    /// Starts over as a later life of this peer: it begins with no weight, and takes the swarm's model.
    fn rejoin(&mut self, incarnation: u64) -> Result {
        self.parts.config.identity = Identity { incarnation, ..self.parts.config.identity };
        self.parts.log.tell(Event::Rejoining { incarnation });
        self.node = build(&self.parts.config)?;
        self.feed(Input::Start)?;
        for peer in self.parts.wiring.links.up() {
            self.feed(Input::LinkUp { peer })?;
        }
        Ok(())
    }

    /// A neighbour and this peer do not fit together.
    pub(super) fn object(&mut self, node: NodeId, objection: Objection) -> Result {
        let name = self.parts.wiring.peer(node).map_or_else(|| "unknown".to_owned(), |peer| peer.to_string());
        let sentence = format!("node {node} ({name}) {}", objection.what);
        let (hint, is_about_the_task) = (objection.hint, objection.is_about_the_task);
        if self.objections.raise(node, objection) {
            self.warn(sentence.clone());
        }
        // What the operator trains is the task of the swarm: whoever does not fit is the odd one, were they all.
        let decides = is_about_the_task && self.parts.hall.is_operator();
        if !self.joined && !decides && self.objections.are_final(self.parts.wiring.receivers()) {
            return Err(Error::new(ErrorKind::Refused, sentence).hint(hint));
        }
        Ok(())
    }

    /// A neighbour trains something else: it is asked what, and what it says comes back through the hall.
    pub(super) fn ask_for_the_difference(&self, node: NodeId, otherwise: String) {
        let Some(peer) = self.parts.wiring.peer(node) else { return };
        let (hall, streams) = (self.parts.hall.clone(), self.parts.network.streams.clone());
        tokio::spawn(async move { hall.explain(streams, node, peer, otherwise).await });
    }

    fn on_link_change(&mut self, node: NodeId, change: LinkChange) -> Result {
        self.watching.note();
        link_input(node, change).map_or(Ok(()), |input| self.feed(input))
    }
}

fn link_state(message: &Message) -> Option<&LinkState> {
    match message {
        Message::Hello(hello) => Some(&hello.link),
        Message::Ack(ack) => Some(&ack.link),
        _ => None,
    }
}
