//! `mingle join`: use a ticket, then run.

use mingle_peer::membership::{Membership, Ticket};
use mingle_peer::provisional::Provisional;
use mingle_peer::{Home, Identity, Result};

use crate::arguments::check;
use crate::cli::JoinArgs;
use crate::out;

/// Runs this peer for the swarm of the ticket. Once a member has admitted it, the home remembers the swarm, and later
/// starts need no ticket. If it is not admitted, nothing is kept.
pub(super) fn execute(arguments: &JoinArgs, json: bool) -> Result {
    let ticket = Ticket::of_argument(&arguments.ticket)?;
    check(&arguments.run)?;
    let home = Home::at(arguments.run.home.home.as_deref())?;
    let before = Provisional::look(&home);
    let joined = join(arguments, ticket, json);
    // Once admitted, it is a peer of that swarm, whatever happens.
    if joined.is_err() && Membership::of(&home)?.is_none() {
        before.undo();
    }
    joined
}

fn join(arguments: &JoinArgs, ticket: Ticket, json: bool) -> Result {
    let home = Home::create(arguments.run.home.home.as_deref())?;
    let identity = Identity::load_or_create(&home.identity())?;
    let membership = ticket.membership(identity.peer_id(), &home)?;
    if !json {
        out::remark(format_args!("swarm      {}, as {}", membership.swarm.name, identity.peer_id()));
    }
    super::run::execute_in(&arguments.run, Some(membership), json)
}
