//! Opens streams to a peer within a time limit, and accepts those that others open.

use std::io;
use std::time::Duration;

use libp2p::{PeerId, Stream, StreamProtocol};
use libp2p_stream::{IncomingStreams, OpenStreamError};

use crate::error::NetworkError;

/// Time limit for opening a stream; the dial that it waits for goes on.
const PATIENCE: Duration = Duration::from_secs(3);

/// Opens a stream to `peer`, which is dialled if it is not connected.
///
/// A request made at the moment when the connection comes up waits for a dial that the swarm has found needless, and is
/// never answered. So every request has a time limit: the next one finds the connection.
pub async fn open_stream(
    control: &mut libp2p_stream::Control,
    peer: PeerId,
    protocol: StreamProtocol,
) -> io::Result<Stream> {
    open_within(PATIENCE, control, peer, protocol).await
}

/// Accepts the streams of a protocol that others open from now on.
///
/// # Errors
/// Another part of this process accepts them already.
pub fn accept(control: &mut libp2p_stream::Control, protocol: StreamProtocol) -> Result<IncomingStreams, NetworkError> {
    control.accept(protocol.clone()).map_err(|_| NetworkError::AlreadyAccepted { protocol })
}

async fn open_within(
    patience: Duration,
    control: &mut libp2p_stream::Control,
    peer: PeerId,
    protocol: StreamProtocol,
) -> io::Result<Stream> {
    match tokio::time::timeout(patience, control.open_stream(peer, protocol)).await {
        Ok(Err(error @ OpenStreamError::UnsupportedProtocol(_))) => {
            Err(io::Error::new(io::ErrorKind::Unsupported, error))
        }
        Ok(opened) => opened.map_err(io::Error::other),
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "no stream could be opened in time")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn an_order_that_nobody_carries_out_is_given_up() {
        // No swarm handles its requests.
        let behaviour = libp2p_stream::Behaviour::new();
        let mut control = behaviour.new_control();
        let protocol = StreamProtocol::new("/test");
        let opened = open_within(Duration::from_millis(1), &mut control, PeerId::random(), protocol).await;
        assert_eq!(opened.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
