//! Addresses as people write them: multiaddresses, and `HOST:PORT` for QUIC and TCP at that port.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use libp2p::Multiaddr;
use libp2p::multiaddr::Protocol;

/// Longest host name, in bytes (RFC 1035, section 2.3.4).
const HOST_NAME_MAX: usize = 253;
/// An example address, for messages.
const EXAMPLE: &str = "10.0.1.5:4717 or /ip4/10.0.1.5/udp/4717/quic-v1";

/// One address as written: a multiaddress, or the two for which `HOST:PORT` stands, QUIC first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerAddress(Vec<Multiaddr>);

/// The multiaddresses of all addresses, in their order.
pub fn multiaddrs(addresses: &[PeerAddress]) -> Vec<Multiaddr> {
    addresses.iter().flat_map(|address| address.0.iter().cloned()).collect()
}

/// Parses the address of a peer to connect to.
///
/// # Errors
/// The text is no such address; the words say how to write one.
pub fn peer_address(text: &str) -> Result<PeerAddress, String> {
    if text.starts_with('/') {
        return multiaddr(text);
    }
    let (host, port) = host_and_port(text)?;
    if port == 0 {
        return Err("nobody can be reached at port 0: write the port that the peer prints at its start".to_owned());
    }
    Ok(both_transports(&host.to_dial(), port))
}

/// Parses an address of this machine to listen on.
///
/// # Errors
/// The text is no such address; the words say how to write one.
pub fn listen_address(text: &str) -> Result<PeerAddress, String> {
    if text.starts_with('/') {
        return multiaddr(text);
    }
    let (host, port) = host_and_port(text)?;
    Ok(both_transports(&host.to_listen(port)?, port))
}

/// Parses an address of this machine for a page or a trainer: an IP address or `localhost`, and a port.
///
/// # Errors
/// The text is no such address; the words say how to write one.
pub fn socket_address(text: &str) -> Result<SocketAddr, String> {
    match host_and_port(text)? {
        (AddressHost::Ip(ip), port) => Ok(SocketAddr::new(ip, port)),
        (AddressHost::ThisMachine, port) => Ok(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port)),
        (AddressHost::Name(_), port) => {
            Err(format!("write the IP address of this machine in place of a name, such as 127.0.0.1:{port}"))
        }
    }
}

fn multiaddr(text: &str) -> Result<PeerAddress, String> {
    let address = Multiaddr::from_str(text).map_err(|error| format!("{error}: write it as {EXAMPLE}"))?;
    Ok(PeerAddress(vec![address]))
}

fn both_transports(host: &Protocol<'_>, port: u16) -> PeerAddress {
    let host = Multiaddr::empty().with(host.clone());
    let quic = host.clone().with(Protocol::Udp(port)).with(Protocol::QuicV1);
    PeerAddress(vec![quic, host.with(Protocol::Tcp(port))])
}

/// The part of an address before its port.
#[derive(Debug)]
enum AddressHost<'a> {
    Ip(IpAddr),
    ThisMachine,
    Name(&'a str),
}

impl AddressHost<'_> {
    fn to_dial(&self) -> Protocol<'_> {
        match self {
            Self::Ip(ip) => (*ip).into(),
            Self::ThisMachine => Ipv4Addr::LOCALHOST.into(),
            Self::Name(name) => Protocol::Dns((*name).into()),
        }
    }

    fn to_listen(&self, port: u16) -> Result<Protocol<'static>, String> {
        match self {
            Self::Ip(ip) => Ok((*ip).into()),
            Self::ThisMachine => Ok(Ipv4Addr::LOCALHOST.into()),
            Self::Name(_) => Err(format!(
                "a peer listens on an address of this machine, not on a name: write 0.0.0.0:{port} for all of them, \
                 or [::]:{port} with IPv6"
            )),
        }
    }
}

fn host_and_port(text: &str) -> Result<(AddressHost<'_>, u16), String> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok((AddressHost::Ip(address.ip()), address.port()));
    }
    if let Some((scheme, rest)) = text.split_once("://") {
        let rest = rest.trim_end_matches('/');
        return Err(format!(
            "an address has no {scheme}:// before it: write it as {rest}, with a port as in {EXAMPLE}"
        ));
    }
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Err(format!("it has no port: write it as {}", SocketAddr::new(ip, 4717)));
    }
    let Some((host, port)) = text.rsplit_once(':') else {
        return Err(format!("it has no port: write it as {EXAMPLE}"));
    };
    let port = port.parse().map_err(|_| format!("the port is no number up to {}: write it as {EXAMPLE}", u16::MAX))?;
    if host.eq_ignore_ascii_case("localhost") {
        return Ok((AddressHost::ThisMachine, port));
    }
    // A last part without a letter belongs to a malformed IPv4 address, not to a domain.
    let has_letter = host.rsplit('.').next().is_some_and(|last| last.contains(|c: char| c.is_ascii_alphabetic()));
    let is_of_names = |c: char| c.is_ascii_alphanumeric() || ['-', '.', '_'].contains(&c);
    if !has_letter || host.len() > HOST_NAME_MAX || !host.chars().all(is_of_names) {
        return Err(format!("it names no host: write it as {EXAMPLE}"));
    }
    Ok((AddressHost::Name(host), port))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn texts(address: &PeerAddress) -> Vec<String> {
        address.0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_host_with_a_port_stands_for_quic_and_tcp() {
        for (text, host) in [
            ("127.0.0.1:4710", "/ip4/127.0.0.1"),
            ("[::1]:4710", "/ip6/::1"),
            ("localhost:4710", "/ip4/127.0.0.1"),
            ("ana.example:4710", "/dns/ana.example"),
            ("ward-7:4710", "/dns/ward-7"),
        ] {
            let wanted = [format!("{host}/udp/4710/quic-v1"), format!("{host}/tcp/4710")];
            assert_eq!(texts(&peer_address(text).unwrap()), wanted);
            if !host.starts_with("/dns") {
                assert_eq!(texts(&listen_address(text).unwrap()), wanted);
            }
        }
        assert_eq!(texts(&listen_address("0.0.0.0:0").unwrap())[1], "/ip4/0.0.0.0/tcp/0");
        assert_eq!(texts(&peer_address("/ip4/10.0.1.5/tcp/4717").unwrap()), ["/ip4/10.0.1.5/tcp/4717"]);
    }

    #[test]
    fn what_is_no_address_is_refused_with_one_to_write() {
        for text in ["10.0.1.5", "::1", "ana.example", "ana.example:http", "10.0.1:4717", "", ":", "a b:1", "4717"] {
            let refusal = peer_address(text).unwrap_err();
            assert!(refusal.contains(":4717"), "{text}: {refusal}");
        }
        assert!(peer_address("10.0.1.5").unwrap_err().contains("write it as 10.0.1.5:4717"));
        assert!(peer_address("http://ana.example:4717/").unwrap_err().contains("write it as ana.example:4717"));
        assert!(peer_address("ana.example:0").unwrap_err().contains("port 0"));
        assert!(peer_address("/ip4/10.0.1.5/tcp").unwrap_err().contains(EXAMPLE));
        assert!(listen_address("ana.example:4710").unwrap_err().contains("0.0.0.0:4710"));
        assert_eq!(socket_address("localhost:7717").unwrap().to_string(), "127.0.0.1:7717");
        assert_eq!(socket_address("[::1]:7717").unwrap().to_string(), "[::1]:7717");
        assert!(socket_address("ana.example:7717").unwrap_err().contains("127.0.0.1:7717"));
        assert!(socket_address("7717").unwrap_err().contains("no port"));
    }
}
