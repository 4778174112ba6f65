//! Why a dial failed, address by address: the difference between "cannot connect" and something to act on.

use std::fmt;

use libp2p::Multiaddr;
use libp2p::swarm::DialError;

/// One address that was tried and the reason it did not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DialAttempt {
    /// The address.
    pub(crate) address: Option<Multiaddr>,
    /// The innermost cause.
    pub(crate) reason: String,
}

impl fmt::Display for DialAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            Some(address) => write!(f, "{address}: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

/// Every address that a failed dial tried. Empty where the failure is only that a dial is under way already.
pub(super) fn attempts(error: &DialError) -> Vec<DialAttempt> {
    let one = |address: Option<Multiaddr>, reason: String| vec![DialAttempt { address, reason }];
    match error {
        DialError::Transport(tried) => tried
            .iter()
            .map(|(address, error)| DialAttempt { address: Some(address.clone()), reason: root_cause(error) })
            .collect(),
        DialError::WrongPeerId { obtained, address } => one(
            Some(address.clone()),
            format!(
                "answered by another peer, {obtained}: correct the address, or the plan if that peer has a new key"
            ),
        ),
        DialError::LocalPeerId { address } => one(Some(address.clone()), "this address is this peer's own".to_owned()),
        DialError::DialPeerConditionFalse(_) | DialError::NoAddresses | DialError::Aborted => Vec::new(),
        DialError::Denied { cause } => one(None, format!("denied: {}", root_cause(cause))),
    }
}

/// The last error in the chain of sources: what the operating system or the handshake said.
pub(super) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
