//! The two sockets of a group: one sends from any port, one listens on the group's port beside those of other processes.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::time::Duration;

use if_addrs::IfAddr;
use socket2::{Domain, Protocol, Socket, Type};

use super::error::MulticastError;

/// Receive buffer that is asked for; the system may give less.
const RECEIVE_BUFFER: usize = 4 << 20;
/// Hops of a packet: it does not leave the local network.
const TIME_TO_LIVE: u32 = 1;
/// Interval at which the receiver looks whether it is to end.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The sockets of a group.
pub(super) struct Sockets {
    pub(super) send: UdpSocket,
    pub(super) receive: UdpSocket,
}

/// The IPv4 address of an interface, given by its name or by that address.
///
/// # Errors
/// There is none, or it has no IPv4 address.
pub fn interface_address(name: &str) -> Result<Ipv4Addr, MulticastError> {
    let interfaces = if_addrs::get_if_addrs().map_err(MulticastError::Interfaces)?;
    let wanted: Option<Ipv4Addr> = name.parse().ok();
    let mut is_known = false;
    for interface in &interfaces {
        is_known |= interface.name == name;
        if let IfAddr::V4(address) = &interface.addr
            && (interface.name == name || wanted == Some(address.ip))
        {
            return Ok(address.ip);
        }
    }
    if is_known {
        return Err(MulticastError::NoAddress { name: name.to_owned() });
    }
    let mut known: Vec<String> = interfaces.into_iter().map(|interface| interface.name).collect();
    known.sort();
    known.dedup();
    Err(MulticastError::NoInterface { name: name.to_owned(), known })
}

/// Opens the sockets of a group on an interface, or on that which the system chooses.
pub(super) fn open(group: SocketAddrV4, interface: Option<&str>) -> Result<Sockets, MulticastError> {
    let interface = interface.map_or(Ok(Ipv4Addr::UNSPECIFIED), interface_address)?;
    let failed = |source| MulticastError::Socket { group, source };
    let receive = listening(group).map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => MulticastError::PortInUse { group, source },
        _ => MulticastError::Socket { group, source },
    })?;
    receive.join_multicast_v4(group.ip(), &interface).map_err(|source| MulticastError::Join {
        group,
        interface,
        source,
    })?;
    let send = sending(interface).map_err(failed)?;
    Ok(Sockets { send: send.into(), receive: receive.into() })
}

fn listening(group: SocketAddrV4) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_address(true)?;
    // Elsewhere this is what lets several processes of one machine listen.
    #[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
    socket.set_reuse_port(true)?;
    if let Err(error) = socket.set_recv_buffer_size(RECEIVE_BUFFER) {
        tracing::debug!(%error, "the receive buffer keeps its size");
    }
    // A socket bound to the group does not get what is sent to the port alone. Windows cannot bind to it.
    let address = if cfg!(unix) { *group.ip() } else { Ipv4Addr::UNSPECIFIED };
    socket.bind(&SocketAddr::from((address, group.port())).into())?;
    socket.set_read_timeout(Some(LOOK_EVERY))?;
    Ok(socket)
}

fn sending(interface: Ipv4Addr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.bind(&SocketAddr::from((interface, 0)).into())?;
    socket.set_multicast_if_v4(&interface)?;
    // Several peers may run on one machine.
    socket.set_multicast_loop_v4(true)?;
    socket.set_multicast_ttl_v4(TIME_TO_LIVE)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_loopback_interface_is_found_by_its_address_and_an_unknown_one_is_named() {
        assert_eq!(interface_address("127.0.0.1").unwrap(), Ipv4Addr::LOCALHOST);
        let error = interface_address("no-such-0").unwrap_err().to_string();
        assert!(error.contains("no interface `no-such-0`: it has "), "{error}");
    }

    #[test]
    fn two_sockets_of_one_machine_hear_one_packet() {
        let group = SocketAddrV4::new(Ipv4Addr::new(239, 255, 13, 7), 23_119);
        let sockets: Vec<Sockets> = (0..2).map(|_| open(group, Some("127.0.0.1")).unwrap()).collect();
        sockets[0].send.send_to(b"once", SocketAddr::from(group)).unwrap();
        for socket in &sockets {
            let mut buffer = [0; 16];
            socket.receive.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            assert_eq!(socket.receive.recv(&mut buffer).unwrap(), 4);
        }
    }
}
