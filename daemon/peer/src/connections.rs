//! The streams of one plan: opened when a peer takes its place in it, closed when it changes to another plan.

use std::sync::Arc;
use std::time::Instant;

use libp2p::PeerId;
use mingle_net::edge::{EdgeEvent, Edges, Greeting, StreamRefusal};
use mingle_net::neighbour_table::{LinkChange, NeighbourTable};
use mingle_net::objections::{Objection, Objections};
use mingle_net::questions::Questions;
use mingle_net::traffic::Traffic;
use mingle_protocol::{Message, NodeId};
use tokio::sync::mpsc;

use crate::error::{Error, ErrorKind, Result};
use crate::medium::PeerMedium;
use crate::place::Place;
use crate::timeline::Timeline;

/// A place in a plan, and the streams to the neighbours there.
pub(crate) struct Connections {
    /// The place.
    pub place: Place,
    /// The links that are up.
    pub links: NeighbourTable,
    /// Limits how often each neighbour is asked for the difference of its task.
    pub task_questions: Questions,
    /// Limits how often each neighbour is sent this peer's plan, or asked for a newer one.
    pub plan_questions: Questions,
    objections: Objections,
    edges: Edges,
}

/// The consequence of an event on a stream, once the neighbour table is updated.
#[allow(clippy::large_enum_variant, reason = "messages are most of all events, and none is kept")]
pub(crate) enum News {
    /// A change of a link's state, if any.
    Link(NodeId, LinkChange),
    /// A message from a neighbour.
    Message(NodeId, Message),
    /// A stream that a neighbour refused.
    Refused(NodeId, StreamRefusal),
    /// A change of the medium that a person should know of.
    Notice(String),
}

/// The consequence of an objection.
pub(crate) struct Raised {
    /// A sentence for people, unless it was reported before.
    pub warning: Option<String>,
    /// Set when every receiver of this peer objects: the error with which the peer ends.
    pub refused: Option<Error>,
}

impl Connections {
    /// Begins to open and accept the streams of a place, on which parcels of `dimension` parameters travel.
    ///
    /// # Errors
    /// The streams of another place are still being accepted.
    pub(crate) fn open(
        streams: &libp2p_stream::Control,
        place: Place,
        boot_nonce: u64,
        dimension: usize,
        medium: Option<&PeerMedium>,
        timeline: &Timeline,
    ) -> Result<(Self, mpsc::Receiver<EdgeEvent>)> {
        let (out, inward) = place.neighbours();
        let greeting = Greeting { plan_hash: place.plan.generation().plan_hash, boot_nonce };
        let observer = Arc::new(timeline.clone());
        let multicast = medium.map(|medium| medium.under(&place, dimension));
        let (edges, events) = Edges::start(streams, greeting, dimension, multicast.as_ref(), &out, &inward, observer)?;
        let links = NeighbourTable::new(out.keys().copied(), inward.keys().copied());
        let task_questions = Questions::default();
        let plan_questions = Questions::default();
        Ok((Self { place, links, task_questions, plan_questions, objections: Objections::default(), edges }, events))
    }

    /// Applies an event of a stream to the neighbour table. Returns the consequence.
    pub(crate) fn hear(&mut self, event: EdgeEvent) -> News {
        match event {
            EdgeEvent::Up { node, direction, handle } => {
                self.objections.withdraw(node);
                News::Link(node, self.links.attach(node, direction, handle))
            }
            EdgeEvent::Message { node, message } => News::Message(node, message),
            EdgeEvent::Down { node, direction, stream, error } => {
                if let Some(error) = &error {
                    tracing::debug!(%node, ?direction, error, "a stream broke");
                }
                News::Link(node, self.links.detach(node, direction, stream, error.is_none()))
            }
            EdgeEvent::Refused { node, refusal } => News::Refused(node, refusal),
            EdgeEvent::Notice { message } => News::Notice(message),
        }
    }

    /// Records that a neighbour and this peer do not fit together.
    pub(crate) fn object(&mut self, node: NodeId, objection: Objection) -> Raised {
        let name = self.peer(node).map_or_else(|| "unknown".to_owned(), |peer| peer.to_string());
        let sentence = format!("node {node} ({name}) {}", objection.what);
        let hint = objection.hint;
        let now = Instant::now();
        let is_new = self.objections.raise(node, objection, now);
        let is_final = self.objections.are_final(self.receivers(), now);
        Raised {
            warning: is_new.then(|| sentence.clone()),
            refused: is_final.then(|| Error::new(ErrorKind::Refused, sentence).hint(hint)),
        }
    }

    /// Nodes that this peer sends to.
    fn receivers(&self) -> &[NodeId] {
        self.place.schedule.all_out_neighbours(self.place.node)
    }

    /// The PeerId of a node.
    pub(crate) fn peer(&self, node: NodeId) -> Option<PeerId> {
        self.place.peers.get(&node).copied()
    }

    /// The node of the plan that this peer fills.
    pub(crate) fn node(&self, peer: &PeerId) -> Option<NodeId> {
        self.place.peers.iter().find_map(|(node, other)| (other == peer).then_some(*node))
    }

    /// Traffic of the streams, and of packets beside them.
    pub(crate) fn traffic(&self) -> Traffic {
        self.links.traffic() + self.edges.packets()
    }

    /// The group that payloads go to, if they go by multicast.
    pub(crate) fn group(&self) -> Option<String> {
        self.edges.group().map(|group| group.to_string())
    }

    /// Ends all streams. Returns their traffic.
    pub(crate) async fn end(&mut self) -> Traffic {
        self.edges.shutdown().await;
        self.traffic()
    }
}
