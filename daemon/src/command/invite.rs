//! `mingle invite`: prints a ticket with which others can join the swarm of this peer.

use std::net::IpAddr;
use std::time::Duration;

use libp2p::Multiaddr;
use libp2p::multiaddr::Protocol;
use mingle_peer::membership::{IssuedInvites, Role, SecretInvite, Signer, Ticket, date, known_revocations, now_unix_s};
use mingle_peer::{Error, ErrorKind, Home, Result};

use super::operator::signer_of;
use crate::cli::{InviteArgs, multiaddrs};
use crate::{limits, out};

/// Shortest lifetime of a ticket, whose times are whole seconds.
const SHORTEST_TICKET: Duration = Duration::from_secs(1);

/// Prints the ticket, and nothing else, on stdout.
pub(super) fn execute(arguments: &InviteArgs, json: bool) -> Result {
    let home = Home::at(arguments.home.home.as_deref())?;
    let signer = signer_of(&home)?;
    if arguments.list {
        return list(&home, &signer, json);
    }
    if let Some(id) = &arguments.revoke {
        return revoke(&home, &signer, id, json);
    }
    limits::check_time("expires", arguments.expires, SHORTEST_TICKET..=limits::LONGEST_EVICTION)?;
    signer.check_time()?;
    let lasts = arguments.expires.min(time_left(&signer));
    let named = multiaddrs(&arguments.address);
    let addresses = if named.is_empty() { reachable(home.addresses()?) } else { named };
    if addresses.is_empty() {
        return Err(Error::new(ErrorKind::BadInput, "nobody could use this ticket: no address of a member is known")
            .hint("start this peer with `mingle run` first, or name an address with --address"));
    }
    let secret = SecretInvite::sign(&signer, arguments.uses, lasts)?;
    let invite = secret.invite.clone();
    IssuedInvites::of(&home)?.add(&invite, &home)?;
    let ticket = Ticket::new(signer.swarm().clone(), secret, addresses.clone());
    if json {
        out::line(serde_json::json!({
            "schema": "mingle.invite/1",
            "ticket": ticket.to_string(),
            "swarm": signer.swarm().name,
            "uses": invite.uses,
            "expires_unix_s": invite.expires_unix_s,
            "addresses": addresses,
        }));
        return Ok(());
    }
    out::line(&ticket);
    let peers = if invite.uses == 1 { "one peer".to_owned() } else { format!("{} peers", invite.uses) };
    let delegated = if lasts < arguments.expires { ", as long as the delegation to this home" } else { "" };
    let within = humantime::format_duration(lasts);
    remark!("for {peers}, within {within}{delegated}; whoever has it can use it");
    remark!("on the other machines: mingle join {ticket}");
    if addresses.iter().all(is_loopback) {
        remark!("warning: this peer has no address but loopback: the ticket works on this machine only");
    }
    Ok(())
}

/// Time for which this key may sign, and for which its signatures count.
fn time_left(signer: &Signer) -> Duration {
    match signer.role() {
        Role::Operator => Duration::MAX,
        Role::Delegate(until) => Duration::from_secs(until.saturating_sub(now_unix_s())),
    }
}

/// Prints the invitations that have not expired.
fn list(home: &Home, signer: &Signer, json: bool) -> Result {
    let (issued, revoked) = (IssuedInvites::of(home)?, known_revocations(home, signer)?);
    if json {
        let invites: Vec<_> = issued
            .iter()
            .map(|invite| {
                serde_json::json!({
                    "id": invite.id,
                    "uses": invite.uses,
                    "expires_unix_s": invite.expires_unix_s,
                    "revoked": revoked.has_invite(&invite.id),
                })
            })
            .collect();
        out::line(serde_json::json!({ "schema": "mingle.invites/1", "invites": invites }));
        return Ok(());
    }
    if issued.iter().next().is_none() {
        out::line("no invitation can be used");
    }
    for invite in issued.iter() {
        let expires = date(invite.expires_unix_s);
        let peers = if invite.uses == 1 { "1 peer".to_owned() } else { format!("{} peers", invite.uses) };
        let state = if revoked.has_invite(&invite.id) { ", revoked" } else { "" };
        out::line(format_args!("{}  {peers}, until {expires}{state}", invite.id));
    }
    Ok(())
}

/// Adds an invitation to the revocations that accompany every plan.
fn revoke(home: &Home, signer: &Signer, id: &str, json: bool) -> Result {
    let issued = IssuedInvites::of(home)?;
    let invite = issued.find(id)?;
    let mut revoked = known_revocations(home, signer)?;
    let is_news = revoked.revoke(&invite.id);
    revoked.keep(home)?;
    if json {
        out::line(serde_json::json!({ "schema": "mingle.revoke/1", "id": invite.id, "changed": is_news }));
        return Ok(());
    }
    out::line(format_args!("{} lets nobody in any more", invite.id));
    remark!("this peer turns it away from now on, the other members with the next plan");
    Ok(())
}

/// The addresses for others: loopback addresses only if there are no others.
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
