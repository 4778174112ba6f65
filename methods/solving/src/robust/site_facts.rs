//! The facts about all sites that each of them knows before the iterations, and the samples of a site.

use mingle_robust::{DataScale, LinearSamples, RobustProblem, Site, SiteSamples, SiteWeights, Steering};
use mingle_solver::{RegressionTable, Standardization};

use crate::collectives::Collectives;
use crate::error::SolveError;
use crate::problem::{ColumnScaling, NominalWeights, RobustTask, SampleError};
use crate::regression::{column_means, deviations};

/// The facts about all sites that every site knows before the iterations.
pub(super) struct SiteFacts {
    pub(super) scaling: Standardization,
    /// Columns with the same value at all sites, by name.
    constant: Vec<String>,
    /// For each site: its samples, those with the second label, and the values that were clipped to the box.
    pub(super) rows: Vec<Vec<f64>>,
    clipped: usize,
}

impl SiteFacts {
    pub(super) async fn of(
        task: &RobustTask,
        collectives: &Collectives,
        table: &RegressionTable,
    ) -> Result<Self, SolveError> {
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

    pub(super) fn weights(&self, task: &RobustTask) -> Result<SiteWeights, SolveError> {
        weights(task, &self.rows.iter().map(|row| row[0]).collect::<Vec<_>>())
    }

    /// This site, once the samples of all sites fit.
    pub(super) async fn site(
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
        agreed(collectives, lay_out()).await
    }

    /// Warnings about the samples, in words.
    pub(super) fn warnings(&self, task: &RobustTask) -> Vec<String> {
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

/// A result of every site: where one of them has an error, all end, and the others name it.
pub(super) async fn agreed<T>(collectives: &Collectives, own: Result<T, SolveError>) -> Result<T, SolveError> {
    let failed = collectives.largest(&[f64::from(u8::from(own.is_err()))]).await?;
    match failed[..] {
        [(failed, finder)] if failed > 0.0 && own.is_ok() => Err(SolveError::SamplesElsewhere { finder }),
        _ => own,
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

fn unfit(error: &SampleError) -> SolveError {
    SolveError::Support { reason: error.to_string() }
}
