//! When all nodes stop, and what their work comes to.

use super::journal::Journal;
use super::problem::Limits;
use super::solution::{Answer, Certificate};
use super::talk::Talk;
use crate::failure::Outcome;

/// What a node's work comes to.
pub(super) struct Found {
    pub(super) iterations: u64,
    pub(super) converged: bool,
    pub(super) step: f64,
    pub(super) objective: f64,
    pub(super) certificate: Certificate,
    pub(super) answer: Answer,
}

/// Counts iterations, and lets all nodes stop after the same one.
pub(super) struct Pace {
    limits: Limits,
    /// Between two checks.
    interval: u64,
    pub(super) iterations: u64,
    pub(super) converged: bool,
    /// The largest residual of all nodes at the last check.
    pub(super) worst: f64,
}

/// A check takes as long as a message there and back: iterations between two are no fewer than hops.
const SHORTEST_INTERVAL: u64 = 10;

impl Pace {
    pub(super) fn new(talk: &Talk, limits: Limits) -> Self {
        let interval = talk.ways.diameter.max(SHORTEST_INTERVAL);
        Self { limits, interval, iterations: 0, converged: false, worst: f64::INFINITY }
    }

    pub(super) fn goes_on(&self) -> bool {
        !self.converged && self.iterations < self.limits.iterations
    }

    /// An iteration is over. Every so often all nodes find out how far the one moved that moved most.
    pub(super) async fn note(&mut self, journal: &Journal, talk: &Talk, residual: f64, x: &[f64]) -> Outcome {
        self.iterations += 1;
        journal.note(residual, x);
        if self.iterations.is_multiple_of(self.interval) || !self.goes_on() {
            let size = x.iter().map(|x| x.abs()).fold(1.0, f64::max);
            self.worst = talk.most(&[residual / size]).await?[0];
            self.converged = self.worst <= self.limits.tolerance;
            journal.note_check(self.worst);
        }
        Ok(())
    }
}
