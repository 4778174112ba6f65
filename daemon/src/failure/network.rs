//! Failures of the network, with the exit code and the hint that belong to each.

use std::error::Error;
use std::io;

use mingle_net::{NetworkError, ProbeError};

use super::{Failure, Kind};

impl From<NetworkError> for Failure {
    fn from(error: NetworkError) -> Self {
        let kind = match &error {
            NetworkError::Listen { .. } | NetworkError::NoAddress => Kind::Unreachable,
            NetworkError::Setup(_) | NetworkError::Dns(_) | NetworkError::AlreadyAccepted { .. } => Kind::Unexpected,
        };
        let failure = Self::new(kind, with_causes(&error));
        match error {
            NetworkError::Listen { system, .. } => failure.hint(how_to_listen(system)),
            _ => failure,
        }
    }
}

impl From<ProbeError> for Failure {
    fn from(error: ProbeError) -> Self {
        let kind = match &error {
            ProbeError::Refused { .. } => Kind::Refused,
            ProbeError::Unreachable { .. } | ProbeError::BrokeOff { .. } | ProbeError::TimedOut { .. } => {
                Kind::Unreachable
            }
            ProbeError::Closed | ProbeError::Signing(_) => Kind::Unexpected,
        };
        let failure = Self::new(kind, with_causes(&error));
        match error {
            ProbeError::Unreachable { .. } => failure.hint("test an address from there with: mingle ping ADDR"),
            _ => failure,
        }
    }
}

/// What to do about an address that cannot be listened on.
fn how_to_listen(system: Option<io::ErrorKind>) -> &'static str {
    match system {
        Some(io::ErrorKind::AddrInUse) => {
            "another process uses this port: choose one with --listen, port 0 takes any that is free"
        }
        Some(io::ErrorKind::AddrNotAvailable) => {
            "this machine has no such address: --listen takes one of its own, or 0.0.0.0 (:: for IPv6) for all of them"
        }
        Some(io::ErrorKind::PermissionDenied) => {
            "this user may not use this port: choose one of 1024 or above with --listen, port 0 takes any that is free"
        }
        _ => "--listen takes addresses such as /ip4/0.0.0.0/udp/4717/quic-v1 and /ip4/0.0.0.0/tcp/4717",
    }
}

/// An error and its causes, in one line.
fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn who_cannot_listen_is_told_why_and_what_to_do() {
        for (system, words) in [
            (Some(io::ErrorKind::AddrInUse), "another process uses this port"),
            (Some(io::ErrorKind::AddrNotAvailable), "this machine has no such address"),
            (Some(io::ErrorKind::PermissionDenied), "this user may not use this port"),
            (None, "--listen takes addresses such as"),
        ] {
            let address = "/ip4/192.0.2.7/tcp/80".parse().unwrap();
            let failure = Failure::from(NetworkError::Listen { address, system, source: "no luck".into() });
            assert_eq!(failure.to_string(), "cannot listen on /ip4/192.0.2.7/tcp/80: no luck");
            assert_eq!((failure.code(), failure.kind_name()), (3, "unreachable"));
            assert!(failure.hint.unwrap().contains(words), "{system:?}");
        }
    }
}
