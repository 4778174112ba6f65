//! `mingle join`: use a ticket, then run.

use crate::cli::JoinArgs;
use crate::failure::Outcome;
use crate::home::Home;
use crate::identity::Identity;
use crate::membership::{Membership, Ticket};
use crate::out;

/// Remembers the swarm of the ticket in the home, and runs this peer. Later starts need no ticket.
pub(super) fn execute(arguments: &JoinArgs, json: bool) -> Outcome {
    let ticket: Ticket = arguments.ticket.parse()?;
    let home = Home::create(arguments.run.home.home.as_deref())?;
    let identity = Identity::load_or_create(&home.identity())?;
    let Ticket { swarm, invite, bootstrap } = ticket;
    if !json {
        out::remark(format_args!("swarm      {}, as {}", swarm.name, identity.peer_id()));
    }
    let membership = if swarm.operator()? == identity.peer_id() {
        Membership::founder(swarm)
    } else {
        Membership::invited(swarm, invite, bootstrap)
    };
    membership.write(&home)?;
    super::run::execute(&arguments.run, json)
}
