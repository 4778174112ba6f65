//! Who belongs to a swarm, and how its plan changes: the swarm's card, tickets, signed plans, and the requests by which
//! peers give them to each other.
//!
//! A swarm has one *operator*, a key. Only plans that it signed are followed, each replaces the one before, and nobody
//! needs the operator to be up: whoever has a newer plan gives it to the others. A ticket lets a newcomer in as far as the
//! waiting room; it takes part once a plan names it.

mod exchange;
mod invite;
mod lobby;
mod offer;
mod swarm;
mod ticket;

pub(crate) use exchange::{
    Hall, Progress, Verdict, Wanted, announce, ask_progress, fetch_model, fetch_plan, knock, serve,
};
pub(crate) use invite::Invite;
pub(crate) use offer::{CheckedPlan, PlanOffer};
pub(crate) use swarm::{Membership, Swarm};
pub(crate) use ticket::Ticket;
