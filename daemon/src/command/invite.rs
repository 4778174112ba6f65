//! `mingle invite`: a ticket with which others can join the swarm of this peer.

use std::net::IpAddr;
use std::time::Duration;

use libp2p::Multiaddr;
use libp2p::multiaddr::Protocol;
use mingle_peer::membership::{Invite, Membership, Ticket};
use mingle_peer::{Error, ErrorKind, Home, Identity, Result};

use crate::cli::InviteArgs;
use crate::{limits, out};

/// The times in a ticket are whole seconds.
const SHORTEST_TICKET: Duration = Duration::from_secs(1);

/// Prints the ticket, and nothing else, on stdout.
pub(super) fn execute(arguments: &InviteArgs, json: bool) -> Result {
    let home = Home::at(arguments.home.home.as_deref())?;
    let (swarm, identity) = operator_of(&home)?;
    limits::check_time("expires", arguments.expires, SHORTEST_TICKET..=limits::LONGEST_EVICTION)?;
    let addresses = if arguments.address.is_empty() { reachable(home.addresses()?) } else { arguments.address.clone() };
    if addresses.is_empty() {
        return Err(Error::new(ErrorKind::BadInput, "nobody could use this ticket: no address of a member is known")
            .hint("start this peer with `mingle run` first, or name an address with --address"));
    }
    let invite = Invite::sign(&swarm, arguments.uses, arguments.expires, identity.keypair())?;
    let ticket = Ticket::new(swarm.clone(), invite.clone(), addresses.clone());
    if json {
        out::line(serde_json::json!({
            "schema": "mingle.invite/1",
            "ticket": ticket.to_string(),
            "swarm": swarm.name,
            "uses": invite.uses,
            "expires_unix_s": invite.expires_unix_s,
            "addresses": addresses,
        }));
        return Ok(());
    }
    out::line(&ticket);
    let peers = if invite.uses == 1 { "one peer".to_owned() } else { format!("{} peers", invite.uses) };
    eprintln!("for {peers}, within {}; whoever has it can use it", humantime::format_duration(arguments.expires));
    eprintln!("on the other machines: mingle join {ticket}");
    if addresses.iter().all(is_loopback) {
        eprintln!("warning: this peer has no address but loopback: the ticket works on this machine only");
    }
    Ok(())
}

/// The swarm of a home whose key is its operator.
///
/// # Errors
/// The home has no swarm, or its key is not the operator's.
pub(super) fn operator_of(home: &Home) -> Result<(mingle_peer::membership::Swarm, Identity)> {
    let membership = Membership::of(home)?.ok_or_else(|| {
        Error::new(ErrorKind::BadInput, format!("{} belongs to no swarm with an operator", home.root().display()))
            .hint("found one with: mingle init --swarm NAME")
    })?;
    let identity = Identity::load(&home.identity())?;
    let operator = membership.swarm.operator()?;
    if identity.peer_id() != operator {
        return Err(Error::new(
            ErrorKind::Refused,
            format!("only the operator of the swarm {} can do this: {operator}", membership.swarm.name),
        ));
    }
    Ok((membership.swarm, identity))
}

/// What others can use: addresses on this machine alone only where there are no others.
fn reachable(addresses: Vec<Multiaddr>) -> Vec<Multiaddr> {
    let others: Vec<Multiaddr> = addresses.iter().filter(|address| !is_loopback(address)).cloned().collect();
    if others.is_empty() { addresses } else { others }
}

fn is_loopback(address: &Multiaddr) -> bool {
    let ip = address.iter().find_map(|part| match part {
        Protocol::Ip4(ip) => Some(IpAddr::from(ip)),
        Protocol::Ip6(ip) => Some(IpAddr::from(ip)),
        _ => None,
    });
    ip.is_some_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_ticket_names_loopback_only_where_there_is_nothing_else() {
        let addresses: Vec<Multiaddr> = ["/ip4/127.0.0.1/tcp/1", "/ip4/10.0.1.5/tcp/1", "/ip6/::1/tcp/1"]
            .map(|address| address.parse().unwrap())
            .into();
        assert_eq!(reachable(addresses.clone()), addresses[1..2]);
        assert_eq!(reachable(addresses[..1].to_vec()), addresses[..1]);
    }
}
