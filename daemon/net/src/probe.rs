//! Measuring links: how long a round trip takes, and how fast bytes go, between any two peers of a swarm.
//!
//! A planner that knows the links makes a better plan, so links are measured before there is one. Measuring costs traffic,
//! and somebody could make peers flood each other with it; so a peer measures, and lets itself be measured, only among
//! members of its plan, or with a [`ProbeToken`] that the operator of the swarm signed for just these two.

mod conversation;
mod prober;
mod token;

pub use conversation::Measured;
pub use prober::{Prober, serve};
pub use token::{ProbeToken, ProbedLink, SpentTokens};
