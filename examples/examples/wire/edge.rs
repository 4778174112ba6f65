//! Parcels over an edge, between two networks like those of peers of a swarm.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libp2p::PeerId;
use libp2p::identity::Keypair;
use libp2p_metrics::Registry;
use mingle_home::error::Context;
use mingle_home::timeline::Timeline;
use mingle_home::{Error, ErrorKind, Result};
use mingle_net::edge::{EdgeEvent, EdgeHandle, Edges, Greeting, LinkDirection};
use mingle_net::transport::{Network, NetworkEvent, NetworkOptions};
use mingle_protocol::{Chain, Envelope, Generation, Mass, Message, NodeId, Parcel, ParcelHeader, Payload};
use tokio::sync::mpsc;

use super::Transport;

const NEAR: NodeId = NodeId(0);
const FAR: NodeId = NodeId(1);

/// One end of the edge.
struct End {
    network: Network,
    peer: PeerId,
    /// Receiver of network events; the network ends when it is dropped.
    _news: mpsc::Receiver<NetworkEvent>,
}

/// An edge between two networks; a task reads its far end.
pub(super) struct EdgePair {
    edge: EdgeHandle,
    events: mpsc::Receiver<EdgeEvent>,
    values: Vec<f32>,
    sent: u64,
    /// Kept alive until the measurement is over.
    _ends: [End; 2],
    _edges: [Edges; 2],
}

impl EdgePair {
    /// A pair for parcels of `parameters` coordinates.
    pub(super) async fn connect(transport: Transport, parameters: usize) -> Result<Self> {
        let (near, far) = (End::start(transport).await?, End::start(transport).await?);
        if !near.network.reach().connect(far.peer, far.network.addresses.clone()).await {
            return Err(Error::new(ErrorKind::Unreachable, "two ends of this machine did not find each other"));
        }
        let nobody = BTreeMap::new();
        let (to_far, to_near) = (BTreeMap::from([(FAR, far.peer)]), BTreeMap::from([(NEAR, near.peer)]));
        let greeting = |boot_nonce| Greeting { plan_hash: [0; 32], boot_nonce };
        let start = |end: &End, greeting, out, inward| {
            Edges::start(&end.network.streams, greeting, parameters, None, out, inward, Arc::new(Timeline::default()))
        };
        let (far_edges, far_events) = start(&far, greeting(2), &nobody, &to_near)?;
        tokio::spawn(answer_each(far_events));
        let (near_edges, mut events) = start(&near, greeting(1), &to_far, &nobody)?;
        let edge = loop {
            match events.recv().await {
                Some(EdgeEvent::Up { direction: LinkDirection::Out, handle, .. }) => break handle,
                Some(_) => {}
                None => return Err(Error::new(ErrorKind::Unexpected, "the edges ended before one was open")),
            }
        };
        let values = (0..parameters).map(|index| (index as f32 * 0.1).sin()).collect();
        Ok(Self { edge, events, values, sent: 0, _ends: [near, far], _edges: [near_edges, far_edges] })
    }

    /// Sends one parcel and waits for the answer.
    pub(super) async fn send(&mut self) -> Result<Duration> {
        // A payload whose hash has not been computed yet.
        let payload = Payload::new(&self.values).context(ErrorKind::Unexpected, "the parcel cannot be made")?;
        self.sent += 1;
        let parcel = Parcel { header: header(self.sent), payload };
        let began = Instant::now();
        self.edge.send(Message::Parcel(parcel));
        match self.events.recv().await {
            Some(EdgeEvent::Message { .. }) => Ok(began.elapsed()),
            _ => Err(Error::new(ErrorKind::Unreachable, "the edge broke")),
        }
    }
}

impl End {
    async fn start(transport: Transport) -> Result<Self> {
        let keypair = Keypair::generate_ed25519();
        let options = NetworkOptions { listen: &[transport.address()], ..NetworkOptions::default() };
        let (network, news) = Network::start(&keypair, &options, &mut Registry::default()).await?;
        Ok(Self { network, peer: keypair.public().to_peer_id(), _news: news })
    }
}

/// Answers each parcel with the smallest message.
async fn answer_each(mut events: mpsc::Receiver<EdgeEvent>) {
    let mut back = None;
    while let Some(event) = events.recv().await {
        match (event, &back) {
            (EdgeEvent::Up { handle, .. }, _) => back = Some(handle),
            (EdgeEvent::Message { .. }, Some(handle)) => {
                handle.send(Message::Collective(Envelope { task: [0; 32], attempt: 0, frame: Vec::new() }));
            }
            _ => {}
        }
    }
}

fn header(seq: u64) -> ParcelHeader {
    ParcelHeader {
        generation: Generation { counter: 0, plan_hash: [0; 32] },
        sender_incarnation: 1,
        receiver_incarnation: 1,
        base: 0,
        acked: 0,
        seq,
        previous: Chain::default(),
        chain: Chain::default(),
        step: 0,
        mass: Mass::from_units(1),
        mac: mingle_protocol::Mac::default(),
    }
}
