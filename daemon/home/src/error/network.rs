//! Errors of the network, with the kind and the hint that belong to each.

use std::io;

use mingle_net::{NetworkError, ProbeError};

use super::{Error, ErrorKind};

impl From<NetworkError> for Error {
    fn from(error: NetworkError) -> Self {
        let kind = match &error {
            NetworkError::Listen { .. } | NetworkError::NoAddress => ErrorKind::Unreachable,
            NetworkError::Setup(_) | NetworkError::Dns(_) | NetworkError::AlreadyAccepted { .. } => {
                ErrorKind::Unexpected
            }
        };
        let hint = match &error {
            NetworkError::Listen { system, .. } => Some(how_to_listen(*system)),
            _ => None,
        };
        let error = Self::of(kind, error);
        hint.into_iter().fold(error, Self::hint)
    }
}

impl From<ProbeError> for Error {
    fn from(error: ProbeError) -> Self {
        let kind = match &error {
            ProbeError::Refused { .. } => ErrorKind::Refused,
            ProbeError::Unreachable { .. } | ProbeError::BrokeOff { .. } | ProbeError::TimedOut { .. } => {
                ErrorKind::Unreachable
            }
            ProbeError::Closed | ProbeError::Signing(_) => ErrorKind::Unexpected,
        };
        let is_unreachable = matches!(error, ProbeError::Unreachable { .. });
        let error = Self::of(kind, error);
        if is_unreachable { error.hint("test an address from there with: mingle ping ADDR") } else { error }
    }
}

/// Advice for an address that cannot be listened on.
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
            let failure = Error::from(NetworkError::Listen { address, system, source: "no luck".into() });
            assert_eq!(format!("{failure:#}"), "cannot listen on /ip4/192.0.2.7/tcp/80: no luck");
            assert_eq!(failure.kind(), ErrorKind::Unreachable);
            assert!(failure.hint.unwrap().contains(words), "{system:?}");
        }
    }
}
