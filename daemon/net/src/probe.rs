//! Link measurement: round-trip time and throughput between any two peers of a swarm.
//!
//! A planner that knows the links makes a better plan, so links are measured before there is one. Measuring costs
//! traffic, and an attacker could make peers flood each other with it. A peer therefore measures, and lets itself be
//! measured, only among members of its plan, or with a [`ProbeToken`] that the operator of the swarm signed for these
//! two.

mod conversation;
mod prober;
mod token;

pub use conversation::LinkMeasurement;
pub use prober::{Prober, serve};
pub use token::{ProbeToken, ProbedLink, SpentTokens};
