//! Causes of a failed dial, address by address, precise enough to act on.

use std::fmt;

use libp2p::swarm::DialError;
use libp2p::{Multiaddr, PeerId};

/// An address that was tried, and why it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DialAttempt {
    /// The address.
    pub address: Option<Multiaddr>,
    /// The innermost cause.
    pub reason: String,
}

impl fmt::Display for DialAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            Some(address) => write!(f, "{address}: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

/// The peer that answers at an address instead of the one that was dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnotherPeer {
    /// This peer itself.
    Ourselves,
    /// A third peer.
    Other(PeerId),
}

impl fmt::Display for AnotherPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ourselves => f.write_str("this address is this peer's own"),
            Self::Other(obtained) => write!(
                f,
                "answered by another peer, {obtained}: correct the address, or the plan if that peer has a new key"
            ),
        }
    }
}

impl std::error::Error for AnotherPeer {}

/// Every address that a failed dial tried. Empty if it failed only because a dial is already under way, no address is
/// known, or it was aborted.
pub(super) fn attempts(error: &DialError) -> Vec<DialAttempt> {
    let one = |address: Option<Multiaddr>, reason: String| vec![DialAttempt { address, reason }];
    match error {
        DialError::Transport(tried) => tried
            .iter()
            .map(|(address, error)| DialAttempt { address: Some(address.clone()), reason: root_cause(error) })
            .collect(),
        DialError::WrongPeerId { obtained, address } => {
            one(Some(address.clone()), AnotherPeer::Other(*obtained).to_string())
        }
        DialError::LocalPeerId { address } => one(Some(address.clone()), AnotherPeer::Ourselves.to_string()),
        DialError::DialPeerConditionFalse(_) | DialError::NoAddresses | DialError::Aborted => Vec::new(),
        DialError::Denied { cause } => one(None, format!("denied: {}", root_cause(cause))),
    }
}

/// The last error in the chain of sources: that of the operating system or of the handshake.
pub(super) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
