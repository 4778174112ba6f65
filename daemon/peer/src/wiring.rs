//! The streams of one plan: opened when a peer takes its place in it, closed when another plan takes over.

use std::sync::Arc;

use libp2p::PeerId;
use mingle_net::edge::{EdgeEvent, Edges, Greeting};
use mingle_net::neighbour_table::NeighbourTable;
use mingle_net::traffic::Traffic;
use mingle_protocol::NodeId;
use tokio::sync::mpsc;

use crate::error::Result;
use crate::place::Place;
use crate::timeline::Timeline;

/// A place in a plan, and the streams to the neighbours there.
pub(crate) struct Wiring {
    /// The place.
    pub place: Place,
    /// What is up.
    pub links: NeighbourTable,
    edges: Edges,
}

impl Wiring {
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
        Ok((Self { place, links, edges }, events))
    }

    /// Whom this peer sends to.
    pub(crate) fn receivers(&self) -> &[NodeId] {
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
