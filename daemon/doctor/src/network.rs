//! The network: the ports are bound as a run would bind them, and the resulting addresses are checked.

use std::net::IpAddr;

use libp2p::Multiaddr;
use libp2p::identity::Keypair;
use libp2p::multiaddr::Protocol;
use libp2p_metrics::Registry;
use mingle_net::transport::{Network, NetworkOptions};
use mingle_peer::error::Context;
use mingle_peer::{ErrorKind, Home, Result};

use crate::check::Check;
use crate::interfaces::{AddressReach, Interfaces};

/// Binds each address to listen on, one after the other, and releases it; checks which of the resulting addresses other
/// machines could use. Blocks, on a runtime of its own.
///
/// # Errors
/// No runtime can be started. An address that cannot be bound is a failed check.
pub fn examine(home: &Home, listen: &[Multiaddr]) -> Result<Vec<Check>> {
    if home.hold_still().is_err() {
        let finding = format!("a peer runs in {} and has its ports", home.root().display());
        return Ok(vec![Check::ok("ports", finding)]);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context(ErrorKind::Unexpected, "cannot start the event loop")?;
    let mut checks = Vec::new();
    let mut addresses = Vec::new();
    for address in listen {
        let (check, found) = runtime.block_on(bind(address));
        checks.push(check);
        addresses.extend(found);
    }
    addresses.sort();
    addresses.dedup();
    checks.push(reachable(&Interfaces::of_this_machine(), &addresses));
    Ok(checks)
}

/// Binds an address to listen on, and releases it. Returns the IP addresses at which a peer could be reached.
async fn bind(address: &Multiaddr) -> (Check, Vec<IpAddr>) {
    // A key of its own: this must not be taken for the peer.
    let key = Keypair::generate_ed25519();
    let mut uncounted = Registry::default();
    let options = NetworkOptions { listen: std::slice::from_ref(address), ..NetworkOptions::default() };
    match Network::start(&key, &options, &mut uncounted).await {
        Ok((network, _)) => {
            let finding = format!("{address} {}", if is_any_port(address) { "takes any port" } else { "is free" });
            (Check::ok("ports", finding), network.addresses.iter().filter_map(ip_of).collect())
        }
        Err(failure) => {
            let remedy = "stop what has it, or choose another port with --listen; port 0 takes any that is free";
            (Check::fail("ports", format!("{failure:#}"), remedy), Vec::new())
        }
    }
}

/// Checks which addresses other machines could use.
fn reachable(interfaces: &Interfaces, addresses: &[IpAddr]) -> Check {
    let mut useful = Vec::new();
    let mut ignored = Vec::new();
    for &address in addresses {
        match interfaces.reach(address) {
            AddressReach::Outside => {
                let name = interfaces.name_of(address).map_or_else(String::new, |name| format!(" ({name})"));
                useful.push(format!("{address}{name}"));
            }
            AddressReach::Loopback => ignored.push(format!("{address} (loopback)")),
            AddressReach::Bridge(name) => ignored.push(format!("{address} ({name}, containers)")),
            AddressReach::LinkLocal => ignored.push(format!("{address} (link-local)")),
        }
    }
    let ignored = if ignored.is_empty() { String::new() } else { format!("; ignored: {}", ignored.join(", ")) };
    if useful.is_empty() {
        let finding = format!("no address that other machines could use{ignored}");
        return Check::warn("network", finding, "listen on one, such as --listen /ip4/0.0.0.0/udp/4717/quic-v1");
    }
    Check::ok("network", format!("others can try {}{ignored}", useful.join(", ")))
}

fn ip_of(address: &Multiaddr) -> Option<IpAddr> {
    address.iter().find_map(|part| match part {
        Protocol::Ip4(ip) => Some(IpAddr::V4(ip)),
        Protocol::Ip6(ip) => Some(IpAddr::V6(ip)),
        _ => None,
    })
}

fn is_any_port(address: &Multiaddr) -> bool {
    address.iter().any(|part| matches!(part, Protocol::Tcp(0) | Protocol::Udp(0)))
}
