//! The streams of one plan: opened when a peer takes its place in it, closed when another plan takes over.

use std::sync::Arc;
use std::time::Instant;

use libp2p::PeerId;
use mingle_net::edge::{EdgeEvent, Edges, Greeting, Refusal};
use mingle_net::neighbour_table::{LinkChange, NeighbourTable};
use mingle_net::questions::Questions;
use mingle_net::traffic::Traffic;
use mingle_protocol::{Message, NodeId};
use tokio::sync::mpsc;

use crate::error::{Error, ErrorKind, Result};
use crate::objections::{Objection, Objections};
use crate::place::Place;
use crate::timeline::Timeline;

/// A place in a plan, and the streams to the neighbours there.
pub(crate) struct Connections {
    /// The place.
    pub place: Place,
    /// What is up.
    pub links: NeighbourTable,
    /// Who is asked what another task it has.
    pub task_questions: Questions,
    /// Who is told of this peer's plan, and asked for a newer one.
    pub plan_questions: Questions,
    objections: Objections,
    edges: Edges,
}

/// What came over the streams, once it is known who is up.
pub(crate) enum News {
    /// A link is up or down, or as it was.
    Link(NodeId, LinkChange),
    /// A neighbour said something.
    Message(NodeId, Message),
    /// A neighbour turned a stream away.
    Refused(NodeId, Refusal),
}

/// What follows from an objection.
pub(crate) struct Raised {
    /// A sentence for people, where they have not heard it yet.
    pub warning: Option<String>,
    /// Everybody whom this peer would send to objects: it is the odd one, and this is why.
    pub refused: Option<Error>,
}

impl Connections {
    /// Starts to open and accept the streams of a place, on which parcels of `dimension` parameters travel.
    ///
    /// # Errors
    /// The streams of another place are still accepted.
    pub(crate) fn open(
        streams: &libp2p_stream::Control,
        place: Place,
        boot_nonce: u64,
        dimension: usize,
        timeline: &Timeline,
    ) -> Result<(Self, mpsc::Receiver<EdgeEvent>)> {
        let (out, inward) = place.neighbours();
        let greeting = Greeting { plan_hash: place.plan.generation().plan_hash, boot_nonce };
        let (edges, events) = Edges::start(streams, greeting, dimension, &out, &inward, Arc::new(timeline.clone()))?;
        let links = NeighbourTable::new(out.keys().copied(), inward.keys().copied());
        let (task_questions, plan_questions) = (Questions::default(), Questions::default());
        Ok((Self { place, links, task_questions, plan_questions, objections: Objections::default(), edges }, events))
    }

    /// Notes what happened to a stream, and says what that means.
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
        }
    }

    /// Notes that a neighbour and this peer do not fit together.
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

    /// Whom this peer sends to.
    fn receivers(&self) -> &[NodeId] {
        self.place.schedule.all_out_neighbours(self.place.node)
    }

    /// The key of a node.
    pub(crate) fn peer(&self, node: NodeId) -> Option<PeerId> {
        self.place.peers.get(&node).copied()
    }

    /// Ends all streams. Returns what went over them.
    pub(crate) async fn end(&mut self) -> Traffic {
        self.edges.shutdown().await;
        self.links.traffic()
    }
}
