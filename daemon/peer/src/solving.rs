//! Coupled convex problems on a swarm: where the solvers meet the protocol's collectives.
//!
//! A `SolverPeer` is one node's part in solving a [`Problem`]. It does no input or output: it is given envelopes that came and
//! asked for those to send, by [`solve_here`], which runs all nodes of a plan in this process on virtual time over links that may
//! lose, and by `host`, which gives it real streams and a real clock. What a node does is written as one
//! `async` function per kind of problem, in the order in which it happens; it waits for nothing but collectives.

mod allocation;
mod attempt;
mod curves;
pub(crate) mod host;
mod journal;
mod pace;
mod peer;
mod problem;
mod regression;
mod solution;
mod swarm;
mod talk;
mod ways;

#[cfg(test)]
mod tests;

pub use curves::files as solution_files;
pub use problem::{Problem, Task};
pub use solution::{Answer, Coefficient, Paid, Solution};
pub use swarm::{Conditions, Solved, solve_here};
pub use ways::{Ways, symmetric_rows};
