//! The addresses of this machine that other machines could use, and their interfaces.
//!
//! A peer listens on all of them. An address of a container bridge exists on every machine and cannot be reached from
//! outside; to announce it is the most common complaint about programs that choose addresses by themselves.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Prefixes of the names of interfaces that lead only to containers and virtual machines of this host.
const LOCAL_BRIDGES: [&str; 12] =
    ["docker", "br-", "veth", "virbr", "cni", "podman", "lxcbr", "lxdbr", "flannel", "cali", "vmnet", "vboxnet"];

/// The networks (IPv4) and the addresses (IPv6) of the interfaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interfaces {
    networks: Vec<(Ipv4Addr, Ipv4Addr, String)>,
    addresses: Vec<(Ipv6Addr, String)>,
}

/// The reach of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AddressReach {
    /// It can be used by other machines.
    Outside,
    /// It can be used within this machine.
    Loopback,
    /// It can be used by this machine's containers, on this bridge.
    Bridge(String),
    /// It can be used on one link, and only with the interface's name.
    LinkLocal,
}

impl Interfaces {
    /// The interfaces that Linux lists; none on other systems.
    pub(crate) fn of_this_machine() -> Self {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        Self { networks: parse_routes(&read("/proc/net/route")), addresses: parse_inet6(&read("/proc/net/if_inet6")) }
    }

    /// The interface of this address, where it is known.
    pub(crate) fn name_of(&self, address: IpAddr) -> Option<&str> {
        match address {
            IpAddr::V4(address) => self.networks.iter().find_map(|(network, mask, name)| {
                let in_network = address.to_bits() & mask.to_bits() == network.to_bits();
                (in_network && mask.to_bits() != 0).then_some(name.as_str())
            }),
            IpAddr::V6(address) => {
                self.addresses.iter().find_map(|(own, name)| (*own == address).then_some(name.as_str()))
            }
        }
    }

    /// The reach of this address.
    pub(crate) fn reach(&self, address: IpAddr) -> AddressReach {
        let is_link_local = match address {
            IpAddr::V4(address) => address.is_link_local(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        };
        let name = self.name_of(address);
        let bridge = name.filter(|name| LOCAL_BRIDGES.iter().any(|bridge| name.starts_with(bridge)));
        match bridge {
            _ if address.is_loopback() => AddressReach::Loopback,
            Some(bridge) => AddressReach::Bridge(bridge.to_owned()),
            None if is_link_local => AddressReach::LinkLocal,
            None => AddressReach::Outside,
        }
    }
}

/// Networks, masks and interfaces of `/proc/net/route`: numbers in hexadecimal, as they lie in memory.
fn parse_routes(text: &str) -> Vec<(Ipv4Addr, Ipv4Addr, String)> {
    let address = |text: &str| Some(Ipv4Addr::from(u32::from_str_radix(text, 16).ok()?.to_ne_bytes()));
    let route = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let name = fields.first()?;
        let network = fields.get(1)?;
        let mask = fields.get(7)?;
        Some((address(network)?, address(mask)?, (*name).to_owned()))
    };
    text.lines().skip(1).filter_map(route).collect()
}

/// Addresses and interfaces of `/proc/net/if_inet6`.
fn parse_inet6(text: &str) -> Vec<(Ipv6Addr, String)> {
    let address = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let bits = u128::from_str_radix(fields.first()?, 16).ok()?;
        Some((Ipv6Addr::from_bits(bits), (*fields.get(5)?).to_owned()))
    };
    text.lines().filter_map(address).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The tables as a little-endian machine writes them.
    const ROUTES: &str = "\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t0101000A\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t0001000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
broken line
";
    const INET6: &str = "\
20010db8000000000000000000000002 04 40 00 82     eth0
00000000000000000000000000000001 01 80 10 80       lo
fe8000000000000000fc00fffe000001 04 40 20 80     eth0
fd000000000000000000000000000001 05 40 00 80 br-3f2a
nonsense
";

    #[test]
    #[cfg(target_endian = "little")]
    fn addresses_of_container_bridges_are_told_from_those_that_others_can_use() {
        let interfaces = Interfaces { networks: parse_routes(ROUTES), addresses: parse_inet6(INET6) };
        let reach = |address: &str| interfaces.reach(address.parse().unwrap());
        assert_eq!(reach("10.0.1.5"), AddressReach::Outside);
        assert_eq!(interfaces.name_of("10.0.1.5".parse().unwrap()), Some("eth0"));
        assert_eq!(reach("172.17.0.1"), AddressReach::Bridge("docker0".to_owned()));
        assert_eq!(reach("127.0.0.1"), AddressReach::Loopback);
        assert_eq!(reach("169.254.3.4"), AddressReach::LinkLocal);
        assert_eq!(reach("203.0.113.9"), AddressReach::Outside, "an interface that is not known is not ignored");
        assert_eq!(reach("2001:db8::2"), AddressReach::Outside);
        assert_eq!(reach("::1"), AddressReach::Loopback);
        assert_eq!(reach("fe80::fc:ff:fe00:1"), AddressReach::LinkLocal);
        assert_eq!(reach("fd00::1"), AddressReach::Bridge("br-3f2a".to_owned()));
    }

    #[test]
    fn what_is_no_table_is_no_interface() {
        for text in ["", "\n", "x", "Iface\nx y z"] {
            assert!(parse_routes(text).is_empty() && parse_inet6(text).is_empty());
        }
    }
}
