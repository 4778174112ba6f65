//! Swarms of real peers: meeting, growth, observation, upgrades and crashes.
#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod crashes;
mod demo;
mod event_files;
mod following;
mod growing;
mod large_models;
mod late_peer;
mod multicast;
mod page;
mod peers;
mod skipped_rounds;
mod swarm_life;
mod upgrade;
mod watching;
