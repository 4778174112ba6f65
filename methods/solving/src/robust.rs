//! Distributionally robust models: one site's work, by AD-LPMM of `mingle-robust` without a server.
//!
//! All sites do the work of the server. Each computes the consensus model itself, as a mean over the sites. The numbers
//! that a server would keep, the penalties among them, are a replicated state, which every site advances by itself from
//! one row of each. The rows hold a hash of that state: two sites whose hashes differ have computed differently, and
//! report it. Every few iterations all sites sum their models and the subgradients of their worst losses, and so find
//! the same duality gap, by which they stop.

mod gap_check;
mod iteration_run;
mod messages;
mod site_facts;
mod site_row;

use std::sync::Arc;

use mingle_robust::{DataScale, GapSearch, Residuals, SharedState, Site};
use mingle_solver::RegressionTable;

use crate::collectives::Collectives;
use crate::error::SolveError;
use crate::journal::ProgressJournal;
use crate::problem::{RobustTask, StoppingCriteria};
use crate::regression::agree_on_columns;
use crate::solution::{Answer, Certificate, Coefficient, RobustSite};
use crate::stopping_rule::NodeOutcome;
use gap_check::Check;
use iteration_run::IterationRun;
use messages::Messages;
pub use site_facts::in_one_place;
use site_facts::{SiteFacts, agreed};
use site_row::SiteRow;

/// The largest scaled coefficient of a model that predicts nothing.
const NOTHING: f64 = 1e-4;

/// One site's work, from its table to the model. Its model begins at `start`, else at zero.
pub(crate) async fn solve(
    task: Arc<RobustTask>,
    table: RegressionTable,
    limits: StoppingCriteria,
    mut collectives: Collectives,
    journal: ProgressJournal,
    start: Option<Vec<f64>>,
) -> Result<NodeOutcome, SolveError> {
    agree_on_columns(&collectives, &table).await?;
    let facts = SiteFacts::of(&task, &collectives, &table).await?;
    let mut site = facts.site(&task, &collectives, &table, start).await?;
    let scale = agree_on_scale(&task, &facts, &collectives, &site).await?;
    let new_state = || Ok::<_, SolveError>(SharedState::new(facts.weights(&task)?, task.penalty, scale));
    let mut state = new_state()?;
    let mut run = IterationRun::new(limits, scale);
    let mut search = GapSearch::new(scale);
    let mut messages = Messages::default();
    let mut last = None;
    while run.goes_on(last.as_ref()) {
        let message = messages.next(&collectives, &mut site, state.steering()).await?;
        let model = collectives.mix(&message).await?;
        state.begin_iteration();
        let progress = site.advance(&model, state.of_site(collectives.me));
        let rows = collectives.gather(&SiteRow::of(progress, &site, &state).numbers()).await?;
        let rows: Vec<SiteRow> = rows.iter().map(|row| SiteRow::read(row)).collect();
        run.check(&rows, site.failures().2)?;
        let steering = state.steering();
        state.finish_iteration(&rows.iter().map(|row| row.iteration).collect::<Vec<_>>());
        if steering != state.steering() {
            run.note_penalty();
        }
        if run.is_gap_due() {
            last = Some(Check::of(&mut search, &collectives, &state, &site).await?);
            if state.begins_window() {
                site.begin_window();
            }
        }
        if run.note(&mut collectives, &journal, &state, last.as_ref(), &model)? {
            state = new_state()?;
            site.begin_anew();
            messages = Messages::default();
        }
    }
    let last = match last {
        Some(last) => last,
        None => Check::of(&mut search, &collectives, &state, &site).await?,
    };
    Ok(conclude(&task, &table, &facts, &state, &run, &last))
}

/// The units of the data of all sites, from the worst loss of the zero model at each, and the mean target.
async fn agree_on_scale(
    task: &RobustTask,
    facts: &SiteFacts,
    collectives: &Collectives,
    site: &Site,
) -> Result<DataScale, SolveError> {
    let zero = vec![0.0; site.model().len()];
    let worst = agreed(collectives, site.worst_loss(&zero).map_err(SolveError::Robust)).await?;
    let rows = collectives.gather(&[worst, site.mean_target()]).await?;
    let weights = facts.weights(task)?;
    let prediction = rows.iter().zip(weights.nominal()).map(|(row, weight)| row[1] * weight).sum();
    let losses: Vec<f64> = rows.iter().map(|row| row[0]).collect();
    Ok(DataScale::new(weights.worst(&losses).1, prediction))
}

/// The final model, which is the exact mean of all sites' models, with its certificate.
fn conclude(
    task: &RobustTask,
    table: &RegressionTable,
    facts: &SiteFacts,
    state: &SharedState,
    run: &IterationRun,
    last: &Check,
) -> NodeOutcome {
    let columns = table.columns().len();
    let (weights, minus_sigma) = state.weights();
    let identity = weights.iter().zip(&minus_sigma).map(|(zeta, minus)| (zeta - minus).abs()).fold(0.0, f64::max);
    let Residuals { primal, dual, value } = state.residuals();
    let mut warnings = facts.warnings(task);
    warnings.extend(run.warnings());
    warnings.extend(tells_nothing(&last.model[..columns]));
    let (coefficients, shift) = Coefficient::of(table, &facts.scaling, &last.model[..columns]);
    let (means, divisors) = facts.scaling.columns();
    NodeOutcome {
        iterations: run.iterations,
        converged: run.is_solved(last),
        step: task.penalty.c,
        objective: last.gap.value,
        certificate: Certificate {
            gap: Some(last.gap.gap()),
            kkt: dual.max(identity),
            violation: primal.max(last.rows.iter().map(|row| row[2]).fold(0.0, f64::max)),
            residual: value,
        },
        answer: Answer::Robust {
            coefficients,
            intercept: shift + if task.intercept { last.model[columns] } else { 0.0 },
            labels: task.labels.clone(),
            scaling: means.iter().copied().zip(divisors.iter().copied()).collect(),
            split_value: state.value(),
            sites: site_reports(task, facts, &last.rows, weights),
            warnings,
        },
    }
}

/// The model's performance at each site, by their rows of the worst and the mean loss.
fn site_reports(task: &RobustTask, facts: &SiteFacts, rows: &[[f64; 3]], weights: &[f64]) -> Vec<RobustSite> {
    let of_site = |(site, row): (usize, &[f64; 3])| RobustSite {
        site,
        samples: facts.rows[site][0] as u64,
        radius: task.radii[site],
        loss: row[1],
        worst_loss: row[0],
        weight: weights[site],
    };
    rows.iter().enumerate().map(of_site).collect()
}

/// The warning about a model all of whose coefficients are near zero.
fn tells_nothing(coefficients: &[f64]) -> Option<String> {
    let message = "no column tells anything that the worst distribution could not undo: the model says the same of everybody. Choose a smaller radius or a larger kappa";
    coefficients.iter().all(|value| value.abs() <= NOTHING).then(|| message.to_owned())
}
