//! Handlers of streams, messages and objections from neighbours.

use std::time::Instant;

use mingle_net::edge::EdgeEvent;
use mingle_net::neighbour_table::LinkChange;
use mingle_net::objections::Objection;
use mingle_net::transport::NetworkEvent;
use mingle_protocol::{Durability, Hello, Incarnation, Input, LinkPositions, Message, NodeConfig, NodeId};

use super::{Driver, build, link_input};
use crate::connections::News;
use crate::error::Result;
use crate::events::Event;

impl Driver<'_> {
    pub(super) fn on_edge(&mut self, event: EdgeEvent) -> Result {
        match self.member.connections.hear(event) {
            News::Link(node, change) => self.on_link_change(node, change),
            News::Message(node, message) => self.on_message(node, message),
            News::Refused(node, refusal) if refusal.is_about_plans() && self.member.compare_plans(node) => Ok(()),
            News::Refused(node, refusal) => self.object(node, Objection::refusal(&refusal)),
            News::Notice(message) => {
                self.member.warn(message);
                Ok(())
            }
        }
    }

    pub(super) fn on_network(&mut self, event: &NetworkEvent) {
        match event {
            NetworkEvent::Bootstrapped { .. } => {}
            NetworkEvent::RoundTrip { peer, time } => {
                self.watching.note_round_trip(peer, *time);
                // Events from before this peer was ready to train come now.
                if let Some(node) = self.member.connections.node(peer).filter(|_| !self.joined) {
                    self.missing.was_there(node);
                }
            }
            NetworkEvent::DialFailed { peer, attempts } if !self.joined => {
                self.member.tell_dial_failure(*peer, attempts);
            }
            NetworkEvent::DialFailed { .. } => {}
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message) -> Result {
        if let Message::Collective(_) = message {
            return self.object(from, Objection::solves());
        }
        if link_state(&message).is_some_and(|link| link.final_seq.is_some()) {
            self.member.connections.links.note_last_parcel(from);
        }
        if !self.joined && matches!(message, Message::Parcel(_)) {
            self.missing.another_has_begun(self.member.started.elapsed());
        }
        if let Message::Hello(hello) = &message
            && let Some(incarnation) = self.later_life(hello)
        {
            self.rejoin(incarnation)?;
        }
        self.feed(Input::Received { from, message })
    }

    /// The incarnation that this process must take if a neighbour remembers another process of this peer that took
    /// part. Only before this process has taken part: afterwards the other one is the newcomer.
    fn later_life(&self, hello: &Hello) -> Option<u64> {
        if self.parts.config.durability == Durability::On {
            // A node with records detects this by itself, and reports it.
            return None;
        }
        let NodeConfig { id, identity: mine, generation, keys, .. } = &self.parts.config;
        // An identity that this peer did not sign is not its own.
        let seen = hello.seen.filter(|seen| seen.is_of(*id, generation, &**keys))?.identity;
        let is_later = seen.boot_nonce != mine.boot_nonce && seen.incarnation >= mine.incarnation;
        (is_later && !self.joined).then(|| seen.incarnation.saturating_add(1))
    }

    /// Starts over as a later life of this peer: without weight, and with the swarm's model.
    fn rejoin(&mut self, incarnation: u64) -> Result {
        self.parts.config.identity = Incarnation { incarnation, ..self.parts.config.identity };
        self.member.log.tell(Event::Rejoining { incarnation });
        // It has not taken part yet: its ratio is the model that it began with.
        let initial = self.node.ratio().to_vec();
        self.node = build(&self.parts.config, initial)?;
        self.feed(Input::Start)?;
        for peer in self.member.connections.links.up() {
            self.feed(Input::LinkUp { peer })?;
        }
        Ok(())
    }

    /// Handles an objection: a neighbour and this peer do not fit together.
    pub(super) fn object(&mut self, node: NodeId, objection: Objection) -> Result {
        // The operator's task is the task of the swarm: even if no neighbour fits, they are the odd ones.
        let decides = objection.is_about_the_task && self.member.service.is_operator();
        let raised = self.member.object(node, objection);
        raised.refused.filter(|_| !self.joined && !decides).map_or(Ok(()), Err)
    }

    /// A neighbour trains something else: it is asked what, and what it says comes back through the service.
    pub(super) fn ask_for_the_difference(&mut self, node: NodeId, otherwise: String) {
        let connections = &mut self.member.connections;
        let Some(peer) = connections.peer(node) else { return };
        let Some(question) = connections.task_questions.ask(node, Instant::now()) else { return };
        let service = self.member.service.clone();
        let streams = self.member.network.streams.clone();
        tokio::spawn(async move {
            let _question = question;
            service.explain(streams, node, peer, otherwise).await;
        });
    }

    /// Asks each missing neighbour for its state: it may train something else, wait for its trainer, or have ended.
    pub(super) fn look_for_the_missing(&mut self) {
        for node in self.node.missing_neighbours() {
            let Some(peer) = self.member.connections.peer(node).filter(|_| self.missing.ask(node)) else { continue };
            let service = self.member.service.clone();
            let streams = self.member.network.streams.clone();
            tokio::spawn(async move { service.look_for_missing(streams, node, peer).await });
        }
    }

    fn on_link_change(&mut self, node: NodeId, change: LinkChange) -> Result {
        self.watching.note();
        link_input(node, change).map_or(Ok(()), |input| self.feed(input))
    }
}

fn link_state(message: &Message) -> Option<&LinkPositions> {
    match message {
        Message::Hello(hello) => Some(&hello.link),
        Message::Ack(ack) => Some(&ack.link),
        _ => None,
    }
}
