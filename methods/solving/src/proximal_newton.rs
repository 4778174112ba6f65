//! The end of a regression whose iteration is slow: the proximal Newton method of `mingle-solver` over exact sums of all
//! nodes' vectors. Every node holds the same state, so nothing but the sums is sent.

use mingle_solver::{LeastSquares, ProximalNewton, Query, SharedFacts, Smooth, SparsityPenalty};

use crate::collectives::Collectives;
use crate::error::SolveError;
use crate::journal::ProgressJournal;
use crate::stopping_rule::{StoppingRule, size};

/// The sums beyond one for each independent direction: gradients, and directions that lead away again.
const MORE_SUMS: u64 = 10;
/// The iterations of mixing that cost as much as a sum, which goes up a tree and down again, twice where it is masked.
const ITERATIONS_PER_SUM: u64 = 4;

/// The iterations of mixing that cost as much as this method, for so many columns and rows of all nodes.
pub(crate) fn cost(columns: usize, rows: u64) -> u64 {
    ITERATIONS_PER_SUM.saturating_mul(rows.min(columns as u64) + MORE_SUMS)
}

/// A regression that all nodes bring to its end.
pub(crate) struct SharedRegression<'a> {
    /// The node's own rows.
    pub(crate) fit: &'a LeastSquares,
    pub(crate) ridge: f64,
    /// The number of rows of all nodes.
    pub(crate) rows: u64,
    /// The step of the iteration: one over the largest Lipschitz constant.
    pub(crate) step: f64,
}

impl SharedRegression<'_> {
    /// Goes on from the mean of all nodes' solutions until it is solved, rounding allows no more, or the iterations are
    /// over. The solution is the same at all nodes.
    pub(crate) async fn solve(
        &self,
        penalty: Box<dyn SparsityPenalty>,
        collectives: &Collectives,
        (pace, journal): (&mut StoppingRule, &ProgressJournal),
        x: &[f64],
    ) -> Result<Vec<f64>, SolveError> {
        let center = mean(collectives, x).await?;
        let mut shared = self.gradient(&center);
        shared.push(self.fit.trace());
        let mut gradient = mean(collectives, &shared).await?;
        let trace = gradient.pop().ok_or(SolveError::NoResult)?;
        let size = size(&center);
        let facts = SharedFacts {
            trace,
            rows: usize::try_from(self.rows).unwrap_or(usize::MAX),
            ridge: self.ridge,
            smoothness: 1.0 / self.step,
            tolerance: pace.tolerance() * size * (1.0 / self.step).min(1.0),
        };
        let mut newton = ProximalNewton::new(penalty, facts, center, gradient);
        while pace.goes_on()
            && let Some(query) = newton.query()
        {
            let own = match query {
                Query::Product(direction) => self.fit.curvature(&direction),
                Query::Gradient(x) => self.gradient(&x),
            };
            newton.answer(mean(collectives, &own).await?);
            pace.note_shared(journal, newton.violation() * self.step, newton.solution());
        }
        // Rounding may allow no more than the movement that ends mixing too.
        pace.converged = newton.is_solved() || newton.violation() * self.step <= pace.tolerance() * size;
        Ok(newton.solution().to_vec())
    }

    fn gradient(&self, x: &[f64]) -> Vec<f64> {
        let mut gradient = vec![0.0; x.len()];
        self.fit.gradient(x, &mut gradient);
        gradient
    }
}

/// The mean of all nodes' vectors, the same bits at all nodes.
pub(crate) async fn mean(collectives: &Collectives, values: &[f64]) -> Result<Vec<f64>, SolveError> {
    let nodes = collectives.communication.schedule.nodes() as f64;
    Ok(collectives.total(values).await?.into_iter().map(|total| total / nodes).collect())
}
