//! Distributionally robust models: one site's work, by AD-LPMM of `mingle-robust` without a server.
//!
//! All sites do the work of the server. Each computes the consensus model itself, as a mean over the sites. The numbers
//! that a server would keep, the penalties among them, are a replicated state, which every site advances by itself from
//! one row of each. The rows hold a hash of that state: two sites whose hashes differ have computed differently, and
//! report it. Every few iterations all sites sum their models and the subgradients of their worst losses, and so find
//! the same duality gap, by which they stop.

use std::sync::Arc;

use mingle_protocol::NodeId;
use mingle_robust::{
    CHECK_ROW, DataScale, DualityGap, GAP_INTERVAL, GapSearch, LinearSamples, MOST_FAILURES, PENALTY_FACTOR, Residuals,
    RobustError, RobustProblem, SharedState, Site, SiteIteration, SiteSamples, SiteWeights, Steering, check_models,
    check_terms,
};
use mingle_solver::{RegressionTable, Standardization};

use crate::collectives::Collectives;
use crate::error::SolveError;
use crate::journal::ProgressJournal;
use crate::problem::{ColumnScaling, NominalWeights, ROW, RobustTask, SampleError, StoppingCriteria};
use crate::regression::{agree_on_columns, column_means, deviations};
use crate::schedule::node;
use crate::solution::{Answer, Certificate, Coefficient, RobustSite};
use crate::stopping_rule::NodeOutcome;

/// The first iterations after a beginning. Their largest residual is what later ones are compared with.
const SETTLING: u64 = 10;
/// Growth of the residual beyond that at which everything begins anew with twice the tracking steps: tracking averages
/// can swing. A residual that grows from a small one proves nothing: a hinge loss lets it fall far, and rise again.
const LARGEST_GROWTH: f64 = 10.0;
/// The most restarts with more steps.
const MOST_RESTARTS: u32 = 4;
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
        let rows = collectives.gather(&own_row(progress, &site, &state)).await?;
        run.check(&rows, site.failures().2)?;
        let steering = state.steering();
        state.finish_iteration(&rows.iter().map(|row| iteration_of(row)).collect::<Vec<_>>());
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
    Ok(conclude(&task, &table, &facts, &state, &run, last))
}

/// The messages of a site to the averages. A change of the penalty moves the messages of the sites far apart, and
/// averages by tracking keep a part of that as an error. So a site takes back the change of its own message, and adds the
/// mean change of all: the mean stays what it is, and all inputs have moved alike.
#[derive(Default)]
struct Messages {
    /// The sum of what was taken back and added, `[columns]`; over all sites it is zero.
    added: Vec<f64>,
}

impl Messages {
    /// The message of the next iteration, with these penalties.
    async fn next(
        &mut self,
        collectives: &Collectives,
        site: &mut Site,
        steering: Steering,
    ) -> Result<Vec<f64>, SolveError> {
        let before = site.message();
        let is_new = steering != site.steering();
        site.steer(steering).map_err(SolveError::Robust)?;
        let mut message = site.message();
        self.added.resize(message.len(), 0.0);
        if is_new && collectives.tracks() {
            let own: Vec<f64> = message.iter().zip(&before).map(|(after, before)| after - before).collect();
            let sites = collectives.communication.schedule.nodes() as f64;
            let all = collectives.total(&own).await?;
            for ((added, own), all) in self.added.iter_mut().zip(&own).zip(&all) {
                *added += all / sites - own;
            }
        }
        message.iter_mut().zip(&self.added).for_each(|(value, added)| *value += added);
        Ok(message)
    }
}

/// The units of the data of all sites, from the worst loss of the zero model at each, and the mean target.
async fn agree_on_scale(
    task: &RobustTask,
    facts: &SiteFacts,
    collectives: &Collectives,
    site: &Site,
) -> Result<DataScale, SolveError> {
    let zero = vec![0.0; site.model().len()];
    let worst = site.worst_loss(&zero).map_err(SolveError::Robust)?;
    let rows = collectives.gather(&[worst, site.mean_target()]).await?;
    let weights = facts.weights(task)?;
    let prediction = rows.iter().zip(weights.nominal()).map(|(row, weight)| row[1] * weight).sum();
    let losses: Vec<f64> = rows.iter().map(|row| row[0]).collect();
    Ok(DataScale::new(weights.worst(&losses).1, prediction))
}

/// A site's row of an iteration.
fn own_row(progress: SiteIteration, site: &Site, state: &SharedState) -> [f64; ROW] {
    let SiteIteration { worst, apart, moved, size, price } = progress;
    let (failures, in_a_row, _) = site.failures();
    [worst, apart, moved, size, price, f64::from(in_a_row), f64::from(failures), hash(state)]
}

/// A site's iteration as its row has it.
fn iteration_of(row: &[f64]) -> SiteIteration {
    SiteIteration { worst: row[0], apart: row[1], moved: row[2], size: row[3], price: row[4] }
}

/// A model of all sites and its distance from the best one: the same at all sites.
struct Check {
    /// `[columns]`.
    model: Vec<f64>,
    gap: DualityGap,
    /// For each site: the worst loss of the model, its mean loss over the samples, the distance of the site's own model
    /// from it.
    rows: Vec<[f64; 3]>,
}

impl Check {
    async fn of(
        search: &mut GapSearch,
        collectives: &Collectives,
        state: &SharedState,
        site: &Site,
    ) -> Result<Self, SolveError> {
        let sums = collectives.total(&check_terms(state, collectives.me, site)).await?;
        let models = check_models(state.set().nominal().len(), &sums);
        let [last, mean, one, other] = site.check_row(&models);
        let [apart_of_last, apart_of_mean] = models.each_ref().map(|model| largest_difference(site.model(), model));
        let [loss_of_last, loss_of_mean] = models.each_ref().map(|model| site.nominal_loss(model));
        let own = [last, mean, one, other, loss_of_last, loss_of_mean, apart_of_last, apart_of_mean];
        let rows = collectives.gather(&own).await?;
        let checked: Vec<[f64; CHECK_ROW]> = rows.iter().map(|row| [row[0], row[1], row[2], row[3]]).collect();
        let (gap, is_mean) = search.conclude(state, &sums, &checked);
        let at = usize::from(is_mean);
        let [last, mean] = models;
        Ok(Self {
            model: if is_mean { mean } else { last },
            gap,
            rows: rows.iter().map(|row| [row[at], row[4 + at], row[6 + at]]).collect(),
        })
    }
}

fn largest_difference(own: &[f64], model: &[f64]) -> f64 {
    own.iter().zip(model).map(|(own, mean)| (own - mean).abs()).fold(0.0, f64::max)
}

fn unfit(error: &SampleError) -> SolveError {
    SolveError::Support { reason: error.to_string() }
}

/// The facts about all sites that every site knows before the iterations.
struct SiteFacts {
    scaling: Standardization,
    /// Columns with the same value at all sites, by name.
    constant: Vec<String>,
    /// For each site: its samples, those with the second label, and the values that were clipped to the box.
    rows: Vec<Vec<f64>>,
    clipped: usize,
}

impl SiteFacts {
    async fn of(task: &RobustTask, collectives: &Collectives, table: &RegressionTable) -> Result<Self, SolveError> {
        let (least, largest) = extrema(collectives, table).await?;
        let pairs = table.columns().iter().zip(least.iter().zip(&largest));
        let constant = pairs.filter(|(_, (least, largest))| !Standardization::varies(**least, **largest));
        let constant = constant.map(|(column, _)| column.clone()).collect();
        let scaling = match task.scaling {
            ColumnScaling::None => Standardization::none(table.columns().len()),
            ColumnScaling::Range => {
                let (lower, upper) = task.bounds().unwrap_or((-1.0, 1.0));
                Standardization::to_range(&least, &largest, lower, upper)
            }
            ColumnScaling::Standard => {
                let (means, rows) = column_means(collectives, table).await?;
                deviations(collectives, table, means, rows).await?.of_columns_alone()
            }
        };
        let positive = table.rows().filter(|(_, label)| *label > 0.0).count();
        let clipped = match task.bounds() {
            Some((lower, upper)) if task.clip => samples(task, table, &scaling)?.clip(lower, upper),
            _ => 0,
        };
        let rows = collectives.gather(&[table.row_count() as f64, positive as f64, clipped as f64]).await?;
        Ok(Self { scaling, constant, rows, clipped })
    }

    fn weights(&self, task: &RobustTask) -> Result<SiteWeights, SolveError> {
        weights(task, &self.rows.iter().map(|row| row[0]).collect::<Vec<_>>())
    }

    /// This site, once the samples of all sites fit.
    async fn site(
        &self,
        task: &RobustTask,
        collectives: &Collectives,
        table: &RegressionTable,
        start: Option<Vec<f64>>,
    ) -> Result<Site, SolveError> {
        let lay_out = || {
            let robust = task.robust(table.columns(), &self.scaling).map_err(|error| unfit(&error))?;
            let mut samples = samples(task, table, &self.scaling)?;
            if let (Some((lower, upper)), true) = (task.bounds(), self.clipped > 0) {
                samples.clip(lower, upper);
            }
            let model = start.clone().filter(|start| start.len() == samples.columns());
            let model = model.unwrap_or_else(|| vec![0.0; samples.columns()]);
            let site = SiteSamples { samples, radius: task.radii[collectives.me] };
            Site::new(&robust, site, Steering::begin(&task.penalty, DataScale::ONE), model).map_err(SolveError::Robust)
        };
        let site = lay_out();
        let refused = collectives.largest(&[f64::from(u8::from(site.is_err()))]).await?;
        match refused[..] {
            [(refused, finder)] if refused > 0.0 && site.is_ok() => Err(SolveError::SamplesElsewhere { finder }),
            _ => site,
        }
    }

    /// Warnings about the samples, in words.
    fn warnings(&self, task: &RobustTask) -> Vec<String> {
        let mut warnings: Vec<String> = self
            .constant
            .iter()
            .map(|column| format!("the column `{column}` is the same everywhere and tells nothing"))
            .collect();
        for (site, row) in self.rows.iter().enumerate() {
            let count = row[0];
            let positive = row[1];
            let clipped = row[2];
            if let Some([negative, other]) = &task.labels
                && (positive == 0.0 || positive == count)
            {
                let label = if positive == 0.0 { negative } else { other };
                warnings.push(format!("all {count} samples of site {site} have the label `{label}`"));
            }
            if clipped > 0.0 {
                warnings
                    .push(format!("{clipped} numbers of site {site} were outside the support and are on its edge now"));
            }
        }
        warnings
    }
}

async fn extrema(collectives: &Collectives, table: &RegressionTable) -> Result<(Vec<f64>, Vec<f64>), SolveError> {
    let (least, largest) = table.extrema();
    let columns = largest.len();
    let both: Vec<f64> = largest.into_iter().chain(least.into_iter().map(|least| -least)).collect();
    let mut most = collectives.most(&both).await?;
    let least = most.split_off(columns).into_iter().map(|negated| -negated).collect();
    Ok((least, most))
}

/// A site's rows, scaled, with a column of ones behind them for an intercept.
fn samples(task: &RobustTask, table: &RegressionTable, scaling: &Standardization) -> Result<LinearSamples, SolveError> {
    let movable = table.columns().len();
    let mut values = Vec::new();
    let mut targets = Vec::new();
    for (row, target) in table.rows() {
        values.extend(scaling.scaled(row));
        values.extend(task.intercept.then_some(1.0));
        targets.push(target);
    }
    LinearSamples::new(movable + usize::from(task.intercept), movable, values, targets).map_err(SolveError::Robust)
}

/// The problem of all sites with all of their tables in one place, with columns scaled by `scaling`.
///
/// # Errors
/// The samples do not fit the problem.
pub fn in_one_place(
    task: &RobustTask,
    tables: &[RegressionTable],
    scaling: &Standardization,
) -> Result<RobustProblem, SolveError> {
    let columns = tables.first().map_or(&[][..], RegressionTable::columns);
    let site = |(table, radius): (&RegressionTable, &f64)| {
        let mut samples = samples(task, table, scaling)?;
        if let (Some((lower, upper)), true) = (task.bounds(), task.clip) {
            samples.clip(lower, upper);
        }
        Ok(SiteSamples { samples, radius: *radius })
    };
    let counts: Vec<f64> = tables.iter().map(|table| table.row_count() as f64).collect();
    Ok(RobustProblem {
        robust: task.robust(columns, scaling).map_err(|error| unfit(&error))?,
        sites: tables.iter().zip(&task.radii).map(site).collect::<Result<_, SolveError>>()?,
        weights: weights(task, &counts)?,
    })
}

fn weights(task: &RobustTask, counts: &[f64]) -> Result<SiteWeights, SolveError> {
    let sites = counts.len() as f64;
    let all = counts.iter().sum::<f64>();
    let nominal = counts.iter().map(|count| match task.weights {
        NominalWeights::Equal => 1.0 / sites,
        NominalWeights::Samples => count / all,
    });
    SiteWeights::new(nominal.collect(), task.theta, task.norm).map_err(SolveError::Robust)
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

/// The progress of the iterations, the same at all sites.
struct IterationRun {
    limits: StoppingCriteria,
    scale: DataScale,
    iterations: u64,
    /// The largest primal residual of the first iterations since the last beginning.
    most: f64,
    /// The iteration after which the work last began anew.
    began: u64,
    restarts: u32,
    /// Subproblems that failed, by site.
    failures: Vec<f64>,
}

impl IterationRun {
    fn new(limits: StoppingCriteria, scale: DataScale) -> Self {
        Self { limits, scale, iterations: 0, most: 0.0, began: 0, restarts: 0, failures: Vec::new() }
    }

    fn goes_on(&self, last: Option<&Check>) -> bool {
        self.iterations < self.limits.iterations && !last.is_some_and(|last| self.is_solved(last))
    }

    /// Returns `true` if the gap is within the tolerance.
    fn is_solved(&self, last: &Check) -> bool {
        last.gap.gap() <= self.limits.tolerance * self.scale.loss
    }

    fn is_gap_due(&self) -> bool {
        self.iterations.is_multiple_of(GAP_INTERVAL) || self.iterations == self.limits.iterations
    }

    /// Lets the residual be so much larger: half the penalty doubles it.
    fn note_penalty(&mut self) {
        self.most *= PENALTY_FACTOR;
    }

    /// Checks that all sites are in the same state, and that no site has failed too often in a row.
    fn check(&mut self, rows: &[Vec<f64>], own: Option<&RobustError>) -> Result<(), SolveError> {
        self.iterations += 1;
        self.failures = rows.iter().map(|row| row[6]).collect();
        if let Some(other) = rows.iter().position(|row| row[7].to_bits() != rows[0][7].to_bits()) {
            return Err(SolveError::StatesDiffer { one: NodeId(0), other: node(other), iteration: self.iterations });
        }
        match rows.iter().position(|row| row[5] >= f64::from(MOST_FAILURES)) {
            Some(failed) => {
                let reason = own.map_or_else(|| "it says there why".to_owned(), ToString::to_string);
                Err(SolveError::Subproblem { site: node(failed), iteration: self.iterations, reason })
            }
            None => Ok(()),
        }
    }

    /// Warnings about subproblems that failed and were passed over, in words.
    fn warnings(&self) -> impl Iterator<Item = String> {
        let failed = self.failures.iter().enumerate().filter(|(_, count)| **count > 0.0);
        failed.map(|(site, count)| format!("subproblems of site {site} that failed and were passed over: {count}"))
    }

    /// Ends an iteration. Returns `true` if averages swing, so that everything has to begin anew. That happens at all
    /// sites after the same iteration, for the residual is one of the replicated numbers.
    fn note(
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

/// The final model, which is the exact mean of all sites' models, with its certificate.
fn conclude(
    task: &RobustTask,
    table: &RegressionTable,
    facts: &SiteFacts,
    state: &SharedState,
    run: &IterationRun,
    last: Check,
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
        converged: run.is_solved(&last),
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The rows of two sites in an iteration: the second failed so often in a row, and in all.
    fn rows(in_a_row: f64, in_all: f64) -> [Vec<f64>; 2] {
        [vec![0.0; ROW], vec![0.0, 0.0, 0.0, 0.0, 0.0, in_a_row, in_all, 0.0]]
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
