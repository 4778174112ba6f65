//! The rule by which all nodes stop, and the outcome of their work.

use crate::collectives::Collectives;
use crate::error::SolveError;
use crate::journal::ProgressJournal;
use crate::problem::StoppingCriteria;
use crate::solution::{Answer, Certificate};

/// The outcome of a node's work.
pub(crate) struct NodeOutcome {
    pub(crate) iterations: u64,
    pub(crate) converged: bool,
    pub(crate) step: f64,
    pub(crate) objective: f64,
    pub(crate) certificate: Certificate,
    pub(crate) answer: Answer,
}

/// Counts iterations and makes all nodes stop after the same one.
pub(crate) struct StoppingRule {
    limits: StoppingCriteria,
    /// Iterations between two checks.
    interval: u64,
    pub(crate) iterations: u64,
    pub(crate) converged: bool,
    /// The largest residual of all nodes at the last check, as a share of the solution where that is larger than 1.
    pub(crate) worst: f64,
    growth: Growth,
    /// The iteration of an earlier check, and the largest residual there.
    earlier: (u64, f64),
    /// The iterations that are still expected, at the speed between two checks.
    expected: Option<u64>,
}

/// The fewest iterations between two checks. A check takes as long as a message there and back, so the interval is also
/// at least the diameter in hops.
const SHORTEST_INTERVAL: u64 = 10;

/// The iterations before the first forecast. Most regressions need fewer.
const FIRST_FORECAST: u64 = 200;

impl StoppingRule {
    pub(crate) fn new(collectives: &Collectives, limits: StoppingCriteria, remedy: &'static str) -> Self {
        let interval = collectives.communication.diameter.max(SHORTEST_INTERVAL);
        let growth = Growth { nodes: collectives.communication.schedule.nodes(), least: (0, f64::INFINITY), remedy };
        Self {
            limits,
            interval,
            iterations: 0,
            converged: false,
            worst: f64::INFINITY,
            growth,
            earlier: (0, f64::INFINITY),
            expected: None,
        }
    }

    pub(crate) fn goes_on(&self) -> bool {
        !self.converged && self.iterations < self.limits.iterations
    }

    pub(crate) fn tolerance(&self) -> f64 {
        self.limits.tolerance
    }

    /// Returns `true` if the last forecast expects more than so many further iterations. The same at all nodes.
    pub(crate) fn takes_longer_than(&self, iterations: u64) -> bool {
        self.expected.is_some_and(|expected| expected > iterations)
    }

    /// Counts an iteration after which all nodes have the same solution, and know its residual.
    pub(crate) fn note_shared(&mut self, journal: &ProgressJournal, residual: f64, x: &[f64]) {
        self.iterations += 1;
        self.worst = residual / size(x);
        journal.note(residual, x);
        journal.note_check(self.worst);
    }

    /// Forecasts the iterations that are left after a check, whenever the iterations have doubled since the last forecast.
    fn forecast(&mut self) {
        let (since, before) = self.earlier;
        if self.iterations < FIRST_FORECAST / 2 || self.iterations < 2 * since {
            return;
        }
        self.earlier = (self.iterations, self.worst);
        if since == 0 {
            return;
        }
        // By multiplications alone: every machine gets the same bits.
        let factor = self.worst / before;
        let mut expected = 0_u64;
        let mut residual = self.worst;
        while residual > self.limits.tolerance && expected < self.limits.iterations && factor < 1.0 {
            residual *= factor;
            expected = expected.saturating_add(self.iterations - since);
        }
        self.expected = Some(if factor < 1.0 { expected } else { u64::MAX });
    }

    /// Ends an iteration. Every `interval` iterations, and at the end, all nodes learn the largest residual of any
    /// node.
    ///
    /// # Errors
    /// The residual has grown by so much that the iteration diverges; all nodes find out after the same iteration.
    pub(crate) async fn note(
        &mut self,
        journal: &ProgressJournal,
        collectives: &Collectives,
        residual: f64,
        x: &[f64],
    ) -> Result<(), SolveError> {
        self.iterations += 1;
        journal.note(residual, x);
        if self.iterations.is_multiple_of(self.interval) || !self.goes_on() {
            let largest = collectives.most(&[residual / size(x), residual]).await?;
            self.worst = largest[0];
            self.converged = self.worst <= self.limits.tolerance;
            journal.note_check(self.worst);
            self.forecast();
            let watched = self.growth.watch(self.iterations, largest[1], x.len());
            if !self.converged {
                watched?;
            }
        }
        Ok(())
    }
}

/// The size of a solution, to which residuals are compared: its largest magnitude, and at least 1.
pub(crate) fn size(x: &[f64]) -> f64 {
    x.iter().map(|x| x.abs()).fold(1.0, f64::max)
}

/// Detects residuals that grow.
///
/// The splittings are averaged operators: with exact averages and a step that is small enough, the distance between two
/// iterates never grows in the Euclidean norm, so the largest of `n d` coordinates never by more than `sqrt(n d)`.
/// Tracking averages grow a little for a while; an iteration beyond [`LARGEST_GROWTH`] times that does not recover.
struct Growth {
    nodes: usize,
    /// The smallest residual at any check, and after which iteration that was.
    least: (u64, f64),
    /// The advice to give when the iteration diverges.
    remedy: &'static str,
}

/// The growth of the residual beyond `sqrt(n d)` that counts as divergence; see [`Growth`].
const LARGEST_GROWTH: f64 = 1e3;

impl Growth {
    /// Takes the largest residual of all nodes' coordinates after this iteration, `dimension` coordinates at each node.
    ///
    /// # Errors
    /// The iteration diverges.
    fn watch(&mut self, iteration: u64, residual: f64, dimension: usize) -> Result<(), SolveError> {
        if residual < self.least.1 {
            self.least = (iteration, residual);
        }
        let (since, least) = self.least;
        if residual > LARGEST_GROWTH * least * ((self.nodes * dimension) as f64).sqrt() {
            return Err(SolveError::Diverged { least, since, residual, iteration, remedy: self.remedy });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residuals_that_fall_or_wander_are_left_alone_and_those_that_grow_are_told() {
        let new = || Growth { nodes: 4, least: (0, f64::INFINITY), remedy: "" };
        let mut falling = new();
        assert!((1..60).all(|at| falling.watch(10 * at, 0.5_f64.powi(at as i32), 25).is_ok()));
        let mut wandering = new();
        assert!((1..60).all(|at| wandering.watch(10 * at, 1.0 + (at % 7) as f64 * 500.0, 25).is_ok()));
        let mut growing = new();
        let told = (1..).find_map(|at: u64| growing.watch(10 * at, 3.0_f64.powi(at as i32), 25).err());
        let told = told.map(|error| error.to_string()).unwrap_or_default();
        // 3^(k - 1) exceeds 1000 sqrt(4 * 25) at k = 10.
        assert_eq!(told, "the iteration diverges: the residual was 3.0e0 after 10 iterations and is 5.9e4 after 100");
    }
}
