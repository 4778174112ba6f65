//! The network lasso: one node's work. Each node fits a linear model of its own to its rows, and linked nodes draw their
//! models together.

use std::sync::Arc;

use mingle_solver::{CliqueMessage, ConsensusTerms, Nothing, RegressionTable};

use crate::cliques::OwnCliques;
use crate::collectives::Collectives;
use crate::error::SolveError;
use crate::journal::ProgressJournal;
use crate::problem::{NetworkLassoTask, StoppingCriteria};
use crate::regression::{agree_on_columns, scale};
use crate::solution::{Answer, Coefficient, ModelDistance};
use crate::stopping_rule::NodeOutcome;

/// The advice to give when the iteration diverges.
const REMEDY: &str = "numbers of very different size do that: standardize = true brings columns to one";

/// One node's work, from its table to its model. It begins at `start`, else at zero.
pub(crate) async fn solve(
    task: Arc<NetworkLassoTask>,
    table: RegressionTable,
    limits: StoppingCriteria,
    collectives: Collectives,
    journal: ProgressJournal,
    start: Option<Vec<f64>>,
) -> Result<NodeOutcome, SolveError> {
    agree_on_columns(&collectives, &table).await?;
    let (scaling, rows) = scale(task.standardize, &collectives, &table).await?;
    let rows_per_node = rows / collectives.communication.schedule.nodes() as f64;
    let fit = table.least_squares_with_constant(&scaling, 1.0 / rows_per_node, task.ridge);
    let own = ConsensusTerms { smooth: Box::new(fit), nonsmooth: Box::new(Nothing) };
    let columns = table.columns().len();
    let mine = OwnCliques::new(&task.terms(), collectives.me, columns + 1, task.metric());
    let found = mine.split(own, limits, (&collectives, &journal), start, REMEDY).await?;
    let (coefficients, shift) = Coefficient::of(&table, &scaling, &found.x[..columns]);
    let distance = |(&node, said): (&usize, &CliqueMessage)| {
        let squares = said.x.iter().zip(&found.x).map(|(other, own)| (other - own).powi(2));
        ModelDistance { node, distance: squares.sum::<f64>().sqrt() }
    };
    let others = found.messages.iter().filter(|(node, _)| **node != collectives.me);
    let answer = Answer::NetworkLasso {
        coefficients,
        intercept: shift + found.x[columns],
        rows: table.row_count() as u64,
        neighbours: others.map(distance).collect(),
    };
    Ok(found.outcome(answer))
}
