//! Errors of multicast, with the interface or group at fault.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

/// Payloads cannot go by multicast.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum MulticastError {
    /// No interface has this name or address.
    #[error("this machine has no interface `{name}`: it has {}", known.join(", "))]
    NoInterface { name: String, known: Vec<String> },
    /// The interface has no IPv4 address.
    #[error("interface `{name}` has no IPv4 address, which multicast needs: is it up?")]
    NoAddress { name: String },
    /// The interfaces cannot be listed.
    #[error("cannot list the interfaces of this machine")]
    Interfaces(#[source] io::Error),
    /// The port of the group is in use.
    #[error("cannot listen on {group}: another program uses port {} for itself", group.port())]
    PortInUse {
        group: SocketAddrV4,
        #[source]
        source: io::Error,
    },
    /// The group cannot be joined.
    #[error("cannot join group {group} {}: {source}; name an interface that can, as in --medium multicast%eth0", on(*interface))]
    Join {
        /// The group.
        group: SocketAddrV4,
        /// The address of the interface; unspecified if the system chose it.
        interface: Ipv4Addr,
        /// The error of the system.
        source: io::Error,
    },
    /// A socket cannot be set up.
    #[error("cannot set up a socket for {group}: {source}")]
    Socket { group: SocketAddrV4, source: io::Error },
    /// A thread cannot be started.
    #[error("cannot start a thread for multicast: {source}")]
    Thread { source: io::Error },
    /// The system gives no random numbers for a key.
    #[error("the operating system gives no random numbers")]
    NoKey,
}

fn on(interface: Ipv4Addr) -> String {
    if interface.is_unspecified() {
        return "on the interface that the system chooses".to_owned();
    }
    format!("on the interface with {interface}")
}
