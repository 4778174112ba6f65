//! Errors of the network, with the cause that the operating system reported.

use std::error::Error;
use std::io;
use std::time::Duration;

use libp2p::identity::SigningError;
use libp2p::{Multiaddr, PeerId, StreamProtocol};

use crate::dial_error::DialAttempt;

/// Setting up the network failed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum NetworkError {
    /// A transport or a behaviour of libp2p cannot be made.
    #[error("cannot set up the network")]
    Setup(#[source] Box<dyn Error + Send + Sync>),
    /// The settings of this machine's name servers cannot be read.
    #[error("cannot read this machine's DNS settings")]
    Dns(#[source] io::Error),
    /// An address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address, as it was given.
        address: Multiaddr,
        /// The kind of error that the operating system reported, where it is known.
        system: Option<io::ErrorKind>,
        /// The innermost cause, in words.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// No listener came up in time.
    #[error("the operating system gave no listening address")]
    NoAddress,
    /// Another part of this process accepts the streams of this protocol already.
    #[error("cannot accept streams of {protocol}: this process accepts them already")]
    AlreadyAccepted { protocol: StreamProtocol },
}

/// A measurement of a link failed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum ProbeError {
    /// The peer cannot be reached.
    #[error("peer {peer} cannot be reached; {}", tried(attempts))]
    Unreachable {
        /// The peer that cannot be reached.
        peer: PeerId,
        /// Every address that was tried, and why it did not work.
        attempts: Vec<DialAttempt>,
    },
    /// The peer refuses to be measured.
    #[error("peer {peer} is not to be measured: {reason}")]
    Refused { peer: PeerId, reason: String },
    /// The stream broke.
    #[error("the measurement with {peer} broke off")]
    BrokeOff { peer: PeerId, source: io::Error },
    /// The measurement exceeded its time limit.
    #[error("the measurement with {peer} was not over in {} s", limit.as_secs())]
    TimedOut {
        /// The peer at the other end.
        peer: PeerId,
        /// The longest time that a measurement may take.
        limit: Duration,
    },
    /// This peer makes no more measurements.
    #[error("this peer measures no more")]
    Closed,
    /// A permission to measure cannot be signed.
    #[error("cannot sign a permission to measure")]
    Signing(#[from] SigningError),
}

fn tried(attempts: &[DialAttempt]) -> String {
    if attempts.is_empty() {
        return "no address of it is known".to_owned();
    }
    let lines: Vec<String> = attempts.iter().map(ToString::to_string).collect();
    format!("tried\n  {}", lines.join("\n  "))
}
