//! `mingle join`: use a ticket, then run.

use std::io::{BufRead, Read};

use mingle_peer::error::Context;
use mingle_peer::membership::{Membership, Ticket};
use mingle_peer::{ErrorKind, Home, Identity, Result};

use crate::arguments::check;
use crate::cli::JoinArgs;
use crate::out;
use crate::provisional::Provisional;

/// Longest ticket, in bytes.
const MAX_TICKET_BYTES: u64 = 64 << 10;

/// Runs this peer for the swarm of the ticket. Once a member has admitted it, the home remembers the swarm, and later
/// starts need no ticket. If it is not admitted, nothing is kept.
pub(super) fn execute(arguments: &JoinArgs, json: bool) -> Result {
    let ticket = ticket(&arguments.ticket)?;
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

/// The ticket in an argument, or on the first line of standard input where that is `-`.
pub(super) fn ticket(argument: &str) -> Result<Ticket> {
    match argument {
        "-" => ticket_from_input()?.parse(),
        ticket => ticket.parse(),
    }
}

/// The first line of standard input.
fn ticket_from_input() -> Result<String> {
    let mut line = String::new();
    let read = std::io::stdin().lock().take(MAX_TICKET_BYTES).read_line(&mut line);
    read.context(ErrorKind::BadInput, "cannot read a ticket from standard input")?;
    Ok(line.trim().to_owned())
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
