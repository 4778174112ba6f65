//! Sparse regression: one node's work.

use std::sync::Arc;

use mingle_solver::{AverageNode, MixedNode, NidsNode, Nonsmooth, RegressionTable, Smooth, Standardization};

use crate::collectives::Collectives;
use crate::communication_plan::AveragingScheme;
use crate::error::SolveError;
use crate::journal::ProgressJournal;
use crate::problem::{RegressionTask, StoppingCriteria};
use crate::proximal_newton::{self, SharedRegression, mean};
use crate::solution::{Answer, Certificate, Coefficient};
use crate::stopping_rule::{NodeOutcome, StoppingRule};

/// One node's work, from its table to the coefficients. It begins at `start`, else at zero. It mixes until it is solved,
/// or until the proximal Newton method is expected to cost less than what is left.
pub(crate) async fn solve(
    task: Arc<RegressionTask>,
    table: RegressionTable,
    limits: StoppingCriteria,
    collectives: Collectives,
    journal: ProgressJournal,
    start: Option<Vec<f64>>,
) -> Result<NodeOutcome, SolveError> {
    agree_on_columns(&collectives, &table).await?;
    let (scaling, rows) = scale(task.standardize, &collectives, &table).await?;
    let rows_per_node = rows / collectives.communication.schedule.nodes() as f64;
    let terms = || task.regression.terms(&table, &scaling, rows_per_node);
    let own = task.regression.fit(&table, &scaling, rows_per_node);
    let step = agree_on_step(&collectives, own.smoothness()).await?;
    let x = start.unwrap_or_else(|| vec![0.0; own.dimension()]);
    let mut node: Box<dyn MixedNode + Send> = match collectives.communication.agreement {
        AveragingScheme::Mixing(_) => Box::new(NidsNode::starting_at(terms(), step, x)),
        AveragingScheme::Tracking { .. } | AveragingScheme::Exact => {
            Box::new(AverageNode::starting_at(terms(), step, x))
        }
    };
    let mut pace = StoppingRule::new(&collectives, limits, collectives.communication.agreement.remedy());
    let cost = proximal_newton::cost(table.columns().len(), whole(rows));
    while pace.goes_on() && !pace.takes_longer_than(cost) {
        let mixed = collectives.mix(&node.message()).await?;
        node.absorb(&mixed);
        pace.note(&journal, &collectives, node.residual(), node.solution()).await?;
    }
    let mut x = node.solution().to_vec();
    if pace.goes_on() {
        let ridge = task.regression.ridge;
        let shared = SharedRegression { fit: &own, ridge, rows: whole(rows), step };
        x = shared.solve(task.regression.penalty(table.columns()), &collectives, (&mut pace, &journal), &x).await?;
    }
    let penalty = task.regression.penalty(table.columns());
    let (objective, kkt) = judge(&collectives, &own, &*penalty, step, &x).await?;
    let violation = apart(&collectives, &x).await?;
    let (coefficients, intercept) = Coefficient::of(&table, &scaling, &x);
    Ok(NodeOutcome {
        iterations: pace.iterations,
        converged: pace.converged,
        step,
        objective,
        certificate: Certificate { gap: None, kkt, violation, residual: pace.worst },
        answer: Answer::SparseRegression { coefficients, intercept, rows: whole(rows) },
    })
}

/// A number of rows.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // not negative, and far below 2^52
fn whole(rows: f64) -> u64 {
    rows as u64
}

/// Checks that all tables have the same columns; the error names two nodes whose columns differ.
pub(crate) async fn agree_on_columns(collectives: &Collectives, table: &RegressionTable) -> Result<(), SolveError> {
    let mark = column_mark(table.columns());
    let marks = collectives.largest(&[mark, -mark]).await?;
    let [(largest, one), (negated_least, other)] = marks[..] else { return Ok(()) };
    if largest.to_bits() == (-negated_least).to_bits() {
        return Ok(());
    }
    Err(SolveError::Columns { one, other, columns: table.listed_columns() })
}

/// A number that stands for the names of the columns, exact in an f64.
fn column_mark(columns: &[String]) -> f64 {
    let mut hasher = blake3::Hasher::new();
    for column in columns {
        hasher.update(&(column.len() as u64).to_le_bytes());
        hasher.update(column.as_bytes());
    }
    let [a, b, c, d, e, f, ..] = *hasher.finalize().as_bytes();
    u64::from_le_bytes([a, b, c, d, e, f, 0, 0]) as f64
}

/// Agrees on the scaling of the columns, to mean 0 and deviation 1 with `standardize`; returns it with the number of rows
/// of all nodes.
pub(crate) async fn scale(
    standardize: bool,
    collectives: &Collectives,
    table: &RegressionTable,
) -> Result<(Standardization, f64), SolveError> {
    let (centered, rows) = column_means(collectives, table).await?;
    if !standardize {
        return Ok((Standardization::none(table.columns().len()), rows));
    }
    Ok((deviations(collectives, table, centered, rows).await?, rows))
}

/// The means of all columns over all nodes, and the number of all rows.
pub(crate) async fn column_means(
    collectives: &Collectives,
    table: &RegressionTable,
) -> Result<(Standardization, f64), SolveError> {
    let sums = collectives.total(&table.sums()).await?;
    Ok((Standardization::centering(&sums), sums[0]))
}

/// The scaling by these means and by the deviations from them over all nodes.
pub(crate) async fn deviations(
    collectives: &Collectives,
    table: &RegressionTable,
    centered: Standardization,
    rows: f64,
) -> Result<Standardization, SolveError> {
    let squares = collectives.total(&table.squares(&centered)).await?;
    Ok(centered.with_deviations(&squares, rows))
}

/// Agrees on the step: one over the largest Lipschitz constant of all nodes.
async fn agree_on_step(collectives: &Collectives, smoothness: f64) -> Result<f64, SolveError> {
    let largest = collectives.most(&[smoothness]).await?[0];
    Ok(if largest > 0.0 { 1.0 / largest } else { 1.0 })
}

/// The objective of the whole problem and the violation of the optimality conditions, at the mean of all nodes'
/// solutions. Gradients that each node took at its own solution would belong to no one point, and could cancel where no
/// node is right.
async fn judge(
    collectives: &Collectives,
    smooth: &dyn Smooth,
    nonsmooth: &dyn Nonsmooth,
    step: f64,
    x: &[f64],
) -> Result<(f64, f64), SolveError> {
    let center = mean(collectives, x).await?;
    let mut gradient = vec![0.0; x.len() + 1];
    smooth.gradient(&center, &mut gradient[..x.len()]);
    gradient[x.len()] = smooth.value(&center);
    let mean = mean(collectives, &gradient).await?;
    let kkt = mingle_solver::optimality(nonsmooth, &center, &mean[..x.len()], step);
    Ok((mean[x.len()] + nonsmooth.value(&center), kkt))
}

/// The largest difference between two nodes' coefficients.
async fn apart(collectives: &Collectives, x: &[f64]) -> Result<f64, SolveError> {
    let both: Vec<f64> = x.iter().copied().chain(x.iter().map(|x| -x)).collect();
    let largest = collectives.most(&both).await?;
    let (most, negated_least) = largest.split_at(x.len());
    Ok(most.iter().zip(negated_least).map(|(most, negated)| most + negated).fold(0.0, f64::max))
}
