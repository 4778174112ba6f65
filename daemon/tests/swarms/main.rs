//! Swarms of real peers: how they meet, grow, are watched, upgraded and killed.
#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod crashes;
mod demo;
mod growing;
mod page;
mod peers;
mod swarm_life;
mod upgrade;
mod watching;
