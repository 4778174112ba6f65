//! The progress of the iterations of a robust model: when to check, to begin anew, and to end.

use mingle_protocol::NodeId;
use mingle_robust::{DataScale, GAP_INTERVAL, MOST_FAILURES, PENALTY_FACTOR, Residuals, RobustError, SharedState};

use super::gap_check::Check;
use super::site_row::SiteRow;
use crate::collectives::Collectives;
use crate::error::SolveError;
use crate::journal::ProgressJournal;
use crate::problem::StoppingCriteria;
use crate::schedule::node;

/// The first iterations after a beginning. Their largest residual is what later ones are compared with.
const SETTLING: u64 = 10;
/// Growth of the residual beyond that at which everything begins anew with twice the tracking steps: tracking averages
/// can swing. A residual that grows from a small one proves nothing: a hinge loss lets it fall far, and rise again.
const LARGEST_GROWTH: f64 = 10.0;
/// The most restarts with more steps.
const MOST_RESTARTS: u32 = 4;

/// The progress of the iterations, the same at all sites.
pub(super) struct IterationRun {
    limits: StoppingCriteria,
    scale: DataScale,
    pub(super) iterations: u64,
    /// The largest primal residual of the first iterations since the last beginning.
    most: f64,
    /// The iteration after which the work last began anew.
    began: u64,
    restarts: u32,
    /// Subproblems that failed, by site.
    failures: Vec<f64>,
}

impl IterationRun {
    pub(super) fn new(limits: StoppingCriteria, scale: DataScale) -> Self {
        Self { limits, scale, iterations: 0, most: 0.0, began: 0, restarts: 0, failures: Vec::new() }
    }

    pub(super) fn goes_on(&self, last: Option<&Check>) -> bool {
        self.iterations < self.limits.iterations && !last.is_some_and(|last| self.is_solved(last))
    }

    /// Returns `true` if the gap is within the tolerance.
    pub(super) fn is_solved(&self, last: &Check) -> bool {
        last.gap.gap() <= self.limits.tolerance * self.scale.loss
    }

    pub(super) fn is_gap_due(&self) -> bool {
        self.iterations.is_multiple_of(GAP_INTERVAL) || self.iterations == self.limits.iterations
    }

    /// Lets the residual be so much larger: half the penalty doubles it.
    pub(super) fn note_penalty(&mut self) {
        self.most *= PENALTY_FACTOR;
    }

    /// Checks that all sites are in the same state, and that no site has failed too often in a row.
    pub(super) fn check(&mut self, rows: &[SiteRow], own: Option<&RobustError>) -> Result<(), SolveError> {
        self.iterations += 1;
        self.failures = rows.iter().map(|row| row.failures).collect();
        if let Some(other) = rows.iter().position(|row| row.state.to_bits() != rows[0].state.to_bits()) {
            return Err(SolveError::StatesDiffer { one: NodeId(0), other: node(other), iteration: self.iterations });
        }
        match rows.iter().position(|row| row.failures_in_a_row >= f64::from(MOST_FAILURES)) {
            Some(failed) => {
                let reason = own.map_or_else(|| "it says there why".to_owned(), ToString::to_string);
                Err(SolveError::Subproblem { site: node(failed), iteration: self.iterations, reason })
            }
            None => Ok(()),
        }
    }

    /// Warnings about subproblems that failed and were passed over, in words.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        let failed = self.failures.iter().enumerate().filter(|(_, count)| **count > 0.0);
        failed.map(|(site, count)| format!("subproblems of site {site} that failed and were passed over: {count}"))
    }

    /// Ends an iteration. Returns `true` if averages swing, so that everything has to begin anew. That happens at all
    /// sites after the same iteration, for the residual is one of the replicated numbers.
    pub(super) fn note(
        &mut self,
        collectives: &mut Collectives,
        journal: &ProgressJournal,
        state: &SharedState,
        last: Option<&Check>,
        model: &[f64],
    ) -> Result<bool, SolveError> {
        let Residuals { primal, dual, .. } = state.residuals();
        journal.note(primal, model);
        if let Some(last) = last.filter(|_| self.is_gap_due()) {
            journal.note_check(primal.max(dual));
            journal.note_gap(last.gap.gap());
        }
        if self.iterations - self.began <= SETTLING {
            self.most = self.most.max(primal);
        } else if collectives.tracks() && primal > LARGEST_GROWTH * self.most && self.restarts < MOST_RESTARTS {
            self.restarts += 1;
            self.most = 0.0;
            self.began = self.iterations;
            collectives.average_more()?;
            return Ok(true);
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The rows of two sites in an iteration: the second failed so often in a row, and in all.
    fn rows(failures_in_a_row: f64, failures: f64) -> [SiteRow; 2] {
        [SiteRow::default(), SiteRow { failures_in_a_row, failures, ..SiteRow::default() }]
    }

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let numbers = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
        let row = SiteRow::read(&numbers);
        assert_eq!((row.iteration.price, row.failures_in_a_row, row.state), (5.0, 6.0, 8.0));
        assert_eq!(row.numbers(), numbers);
    }

    #[test]
    fn failed_subproblems_are_counted_by_site_and_too_many_in_a_row_end_it_with_what_to_do() {
        let limits = StoppingCriteria { tolerance: 1e-5, iterations: 10 };
        let mut run = IterationRun::new(limits, DataScale::ONE);
        run.check(&rows(0.0, 0.0), None).unwrap();
        assert_eq!(run.warnings().count(), 0);
        run.check(&rows(2.0, 5.0), None).unwrap();
        let warnings: Vec<String> = run.warnings().collect();
        assert_eq!(warnings, ["subproblems of site 1 that failed and were passed over: 5"]);
        let failure = RobustError::Solver { status: "NumericalError".to_owned() };
        let told = run.check(&rows(3.0, 6.0), Some(&failure)).unwrap_err().to_string();
        for words in ["site 1", "3 times in a row", "iteration 3", "NumericalError", "scaling =", "penalty"] {
            assert!(told.contains(words), "{words}: {told}");
        }
        let elsewhere = run.check(&rows(3.0, 6.0), None).unwrap_err().to_string();
        assert!(elsewhere.contains("site 1") && elsewhere.contains("it says there why"), "{elsewhere}");
    }
}
