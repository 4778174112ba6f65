//! Bytes over a libp2p stream, with nothing else in the program: the speed of the library alone.

use std::time::Duration;

use futures::StreamExt;
use libp2p::swarm::SwarmEvent;
use libp2p::{Multiaddr, Stream, StreamProtocol, Swarm, SwarmBuilder, noise, tcp, yamux};
use mingle_home::error::Context;
use mingle_home::{Error, ErrorKind, Result};
use tokio::task::JoinSet;

use super::Transport;
use super::exchange::{answer_each, send};

const PROTOCOL: StreamProtocol = StreamProtocol::new("/mingle/bench/1");

type Streams = libp2p_stream::Behaviour;

/// A stream between two swarms; a task reads its far end.
pub(super) struct StreamPair {
    near: Stream,
    message: Vec<u8>,
    /// Tasks of the swarms, ended with the pair.
    _swarms: JoinSet<()>,
}

impl StreamPair {
    /// A pair for messages of `bytes` bytes.
    pub(super) async fn connect(transport: Transport, bytes: usize) -> Result<Self> {
        let doing = "cannot open a libp2p stream over the loopback interface";
        let (mut near, mut far) = (build()?, build()?);
        far.listen_on(transport.address()).context(ErrorKind::Unreachable, doing)?;
        near.dial(listening(&mut far).await).context(ErrorKind::Unreachable, doing)?;
        let (mut opener, mut taker) = (near.behaviour().new_control(), far.behaviour().new_control());
        let peer = *far.local_peer_id();
        let mut swarms = JoinSet::new();
        let mut incoming = taker.accept(PROTOCOL).context(ErrorKind::Unexpected, doing)?;
        let (connected, connects) = tokio::sync::oneshot::channel();
        swarms.spawn(serve(near, Some(connected)));
        swarms.spawn(serve(far, None));
        connects.await.context(ErrorKind::Unreachable, doing)?;
        swarms.spawn(async move {
            if let Some((_, stream)) = incoming.next().await {
                // The end of the stream is the end of the measurement.
                let _ = answer_each(stream, bytes).await;
            }
        });
        let near = opener.open_stream(peer, PROTOCOL).await.context(ErrorKind::Unreachable, doing)?;
        Ok(Self { near, message: vec![7; bytes], _swarms: swarms })
    }

    /// Sends one message and waits for the answer.
    pub(super) async fn send(&mut self) -> Result<Duration> {
        send(&mut self.near, &self.message).await.context(ErrorKind::Unreachable, "the libp2p stream broke")
    }
}

/// A swarm with no protocol but streams, set up as in the library's documentation.
fn build() -> Result<Swarm<Streams>> {
    let swarm = SwarmBuilder::with_new_identity()
        .with_tokio()
        .with_tcp(tcp::Config::default().nodelay(true), noise::Config::new, yamux::Config::default)
        .map_err(|error| Error::new(ErrorKind::Unexpected, format!("cannot set up encryption: {error}")))?
        .with_quic()
        .with_behaviour(|_| Streams::new())
        .map_err(|error| Error::new(ErrorKind::Unexpected, format!("cannot set up libp2p: {error}")))?
        .with_swarm_config(|config| config.with_idle_connection_timeout(Duration::from_secs(60)))
        .build();
    Ok(swarm)
}

async fn listening(swarm: &mut Swarm<Streams>) -> Multiaddr {
    loop {
        if let SwarmEvent::NewListenAddr { address, .. } = swarm.select_next_some().await {
            return address;
        }
    }
}

async fn serve(mut swarm: Swarm<Streams>, mut connected: Option<tokio::sync::oneshot::Sender<()>>) {
    loop {
        if let SwarmEvent::ConnectionEstablished { .. } = swarm.select_next_some().await
            && let Some(connected) = connected.take()
        {
            // The receiver may be gone.
            let _ = connected.send(());
        }
    }
}
