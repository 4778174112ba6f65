//! The numbers of a site that all sites get in an iteration.

use mingle_robust::{SharedState, Site, SiteIteration};

use crate::problem::ROW;

/// A site's row of an iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct SiteRow {
    pub(super) iteration: SiteIteration,
    /// Subproblems that failed in a row.
    pub(super) failures_in_a_row: f64,
    /// Subproblems that failed in all.
    pub(super) failures: f64,
    /// The hash of the replicated state.
    pub(super) state: f64,
}

impl SiteRow {
    /// The row of this site.
    pub(super) fn of(iteration: SiteIteration, site: &Site, state: &SharedState) -> Self {
        let (failures, in_a_row, _) = site.failures();
        Self { iteration, failures_in_a_row: f64::from(in_a_row), failures: f64::from(failures), state: hash(state) }
    }

    pub(super) fn numbers(&self) -> [f64; ROW] {
        let SiteIteration { worst, apart, moved, size, price } = self.iteration;
        [worst, apart, moved, size, price, self.failures_in_a_row, self.failures, self.state]
    }

    /// The row with these numbers; those that are missing are zero.
    pub(super) fn read(numbers: &[f64]) -> Self {
        let mut row = [0.0; ROW];
        row.iter_mut().zip(numbers).for_each(|(own, number)| *own = *number);
        let [worst, apart, moved, size, price, failures_in_a_row, failures, state] = row;
        Self { iteration: SiteIteration { worst, apart, moved, size, price }, failures_in_a_row, failures, state }
    }
}

/// A number that stands for the replicated state, exact in an f64.
fn hash(state: &SharedState) -> f64 {
    let mut hasher = blake3::Hasher::new();
    for number in state.numbers() {
        hasher.update(&number.to_bits().to_le_bytes());
    }
    let [a, b, c, d, e, f, ..] = *hasher.finalize().as_bytes();
    u64::from_le_bytes([a, b, c, d, e, f, 0, 0]) as f64
}
