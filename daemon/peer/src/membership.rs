//! Who belongs to a swarm, and how its plan changes: the swarm's card, tickets, signed plans, and the requests by which
//! peers give them to each other.
//!
//! A swarm has one *operator*, a key. Only plans that it signed are followed, each replaces the one before, and nobody
//! needs the operator to be up: whoever has a newer plan gives it to the others. A ticket lets a newcomer in as far as the
//! waiting room; it takes part once a plan names it.

mod census;
mod donors;
mod exchange;
mod hall;
mod introductions;
mod invite;
mod lobby;
mod offer;
mod probing;
mod steward;
mod swarm;
mod tasks;
mod ticket;
mod words;

pub use donors::Borrowed;
pub(crate) use donors::borrow_model;
pub use exchange::{announce, ask_progress, fetch_plan, fetch_task, knock};
pub use hall::{Hall, Standing, Wanted, serve};
pub use introductions::Introductions;
pub use invite::Invite;
pub use offer::{CheckedPlan, PlanOffer};
pub use steward::Steward;
pub use swarm::{Membership, Swarm};
pub use ticket::Ticket;
pub use words::{Progress, Verdict};
