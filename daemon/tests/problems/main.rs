//! Problems that peers solve, or learn in rounds: convex problems, graphs and recommenders.
#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod coupled;
mod demos;
#[path = "../../../methods/graphs/tests/federation/mod.rs"]
mod federation;
mod graphs;
mod members_of_rounds;
mod private_sums;
mod private_training;
mod recommendations;
mod robust_models;
#[cfg(unix)]
mod scripts_over_sums;
mod solving;
