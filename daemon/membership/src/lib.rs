//! Membership of a swarm, and changes of its plan: the swarm's card, tickets, signed plans, and the requests with which
//! peers exchange them.
//!
//! A swarm has one *operator*, a key. Members follow only plans that it or its *delegate* signed; each replaces the one
//! before. The operator need not be up: any peer with a newer plan passes it on. A ticket lets a newcomer queue for
//! admission; it takes part once a plan names it.

mod appointment;
mod authority;
mod auto_planner;
mod donors;
mod door;
mod early_end;
mod exchange;
mod failure_detector;
mod followers;
mod forks;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod golden;
mod introductions;
mod invite;
mod issued_invites;
mod lent_state;
mod local_steps;
mod member_keys;
mod membership;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod mutated_inputs;
mod offer;
mod pending_peers;
pub mod plan_apply;
pub mod plan_peers;
pub mod plan_without;
mod probing;
mod problem_card;
mod recovery_key;
mod requests;
mod revocations;
mod service;
mod shared_noise;
mod signers;
mod sum_member;
mod swarm;
pub mod task;
mod tasks;
mod ticket;
mod times;
mod token_text;
mod turned_away;

pub use appointment::Appointment;
pub use authority::{Authority, CLOCK_SKEW_S, Role};
pub use auto_planner::{AutoPlanner, AutomaticPlanning};
pub use donors::{Borrowed, borrow_model};

pub use early_end::{EndWish, Wish};
pub use exchange::{TaskAnswer, announce, ask_progress, fetch_plan, fetch_task, request_admission};
pub use introductions::Introductions;
pub use invite::{Claim, Invite, SecretInvite};
pub use issued_invites::{IssuedInvite, IssuedInvites};
pub use lent_state::borrow_state;
pub use member_keys::MemberKeys;
pub use membership::Membership;
pub use offer::{CheckedPlan, PlanNews, PlanNumber, PlanOffer, PlannedBy};
pub use pending_peers::entitled;
pub use recovery_key::RecoveryKey;
pub use requests::{PeerProgress, PlanVerdict, RoundCosts, Waiting};
pub use revocations::{MAX_REVOKED, Revocations};
pub use service::{MembershipService, Standing, StateSource, Wanted, serve};
pub use shared_noise::{NoiseInUse, NoiseOfPeer, NotShared, PlaceOfNoise};
pub use sum_member::sum_member;
pub use swarm::{Permission, Signer, SwarmIdentity};
pub use ticket::Ticket;
pub use times::{date, now_unix_s};
pub use turned_away::{known_revocations, turned_away};
