//! A robust model compared with its competitors, on test data with more and more noise.
//!
//! The competitors are cone programs over the samples of all sites in one place, with the loss and the scaling of the
//! problem:
//!
//! | name | objective to minimise |
//! | --- | --- |
//! | usual | the mean loss of the sites by their nominal weights |
//! | AFL | the mean loss for the worst weights within `theta` (agnostic federated learning) |
//! | DRFA | the loss of the worst site |
//! | WAFL | the worst mean loss within one ball around the mixture of all sites, with the mean of their radii |
//! | robust | the solution that the sites found together: worst-case weights and worst-case distributions |

use mingle_plot::{Horizontal, LineWeight, Panel, Scale, Series, line_chart};
use mingle_robust::{RobustError, RobustProblem, aggregate_then_robustify, solve_directly};
use mingle_solver::{RegressionTable, Standardization};
use mingle_solving::{
    Answer, Coefficient, Part, Problem, ProblemError, ProblemTask, Solution, SolveError, in_one_place,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Normal};
use serde::Serialize;
use thiserror::Error;

/// Standard deviations of the noise with mean 0 on test data, in the scale in which the model is robust.
const DEVIATIONS: [f64; 7] = [0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5];
/// Means of the noise that shifts all columns, with deviation 0.1.
const SHIFTS: [f64; 3] = [0.1, 0.25, 0.5];
const SHIFT_DEVIATION: f64 = 0.1;
/// Draws of the noise over which a score is averaged.
const DRAWS: u64 = 20;
/// The largest distance between two weight vectors of sites, in any norm.
const WHOLE_SIMPLEX: f64 = 2.0;

/// The reason for which there is no comparison.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum ComparisonError {
    /// The problem is not a robust model.
    #[error("only robust models have competitors: kind = \"robust-classification\" or \"robust-regression\"")]
    NotRobust,
    /// The test data cannot be used.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// The samples do not fit the problem.
    #[error(transparent)]
    Solve(#[from] SolveError),
    /// The program of a competitor was not solved.
    #[error("{name} was not found")]
    Competitor { name: &'static str, source: RobustError },
}

/// The scores of all models under all noises.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// `accuracy`, the larger the better, or `mean squared error`.
    pub measure: &'static str,
    /// Draws of each noise.
    pub draws: u64,
    /// The noises: rows of the table.
    pub noises: Vec<Noise>,
    /// The models and their scores: columns of the table.
    pub models: Vec<Scores>,
}

/// A noise on every column of every test sample, in the scale of the model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Noise {
    /// Its mean.
    pub mean: f64,
    /// Its standard deviation.
    pub deviation: f64,
}

/// The scores of one model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scores {
    /// Its name.
    pub name: &'static str,
    /// Its largest scaled coefficient: where that is near 0, its scores mean nothing.
    pub largest_coefficient: f64,
    /// The score over all test samples, by noise.
    pub mean: Vec<f64>,
    /// The score of the worst site, by noise.
    pub worst_site: Vec<f64>,
}

/// Compares the model that the sites found with its competitors. `test` is the name of a table that is dealt out to the
/// sites, or of one for each with `{node}` in it.
///
/// # Errors
/// The problem is not a robust model, the test data cannot be used, or a competitor's program was not solved.
pub fn compare(problem: &Problem, solution: &Solution, test: &str, seed: u64) -> Result<Comparison, ComparisonError> {
    let (ProblemTask::Robust(task), Answer::Robust { scaling, coefficients, intercept, .. }) =
        (&problem.task, &solution.answer)
    else {
        return Err(ComparisonError::NotRobust);
    };
    let (means, divisors): (Vec<f64>, Vec<f64>) = scaling.iter().copied().unzip();
    let found = scaled_model(coefficients, task.intercept.then_some(*intercept), &means);
    let scaling = Standardization::of(means, divisors);
    let tables: Vec<RegressionTable> = problem.parts()?.into_iter().filter_map(table).collect();
    let one_place = in_one_place(task, &tables, &scaling)?;
    let mut models = competitors(&one_place)?;
    models.push(("robust", found));
    let tests = problem.tables_like(test, &tables)?;
    let sites: Vec<Vec<(Vec<f64>, f64)>> = tests.iter().map(|table| scaled(table, &scaling)).collect();
    let noises = all_noises();
    let is_classification = task.loss.is_classification();
    let scores = |(name, model): &(&'static str, Vec<f64>)| {
        let by_noise = noises
            .iter()
            .enumerate()
            .map(|(at, noise)| score(model, &sites, *noise, is_classification, seed.wrapping_add(at as u64)));
        let (mean, worst_site) = by_noise.unzip();
        let columns = coefficients.len();
        let largest_coefficient = model[..columns].iter().map(|value| value.abs()).fold(0.0, f64::max);
        Scores { name, largest_coefficient, mean, worst_site }
    };
    Ok(Comparison {
        measure: if is_classification { "accuracy" } else { "mean squared error" },
        draws: DRAWS,
        models: models.iter().map(scores).collect(),
        noises,
    })
}

/// The model for scaled columns with these means: their coefficients, then the constant term.
fn scaled_model(coefficients: &[Coefficient], intercept: Option<f64>, means: &[f64]) -> Vec<f64> {
    let shift: f64 = coefficients.iter().zip(means).map(|(coefficient, mean)| coefficient.value * mean).sum();
    let scaled = coefficients.iter().map(|coefficient| coefficient.scaled);
    scaled.chain(intercept.map(|intercept| intercept + shift)).collect()
}

/// The noises of test data: of all deviations with mean 0, and then of all shifts.
fn all_noises() -> Vec<Noise> {
    let zero_mean = DEVIATIONS.map(|deviation| Noise { mean: 0.0, deviation });
    let shifted = SHIFTS.map(|mean| Noise { mean, deviation: SHIFT_DEVIATION });
    zero_mean.into_iter().chain(shifted).collect()
}

fn table(part: Part) -> Option<RegressionTable> {
    if let Part::Robust { table, .. } = part { Some(table) } else { None }
}

fn scaled(table: &RegressionTable, scaling: &Standardization) -> Vec<(Vec<f64>, f64)> {
    table.rows().map(|(row, target)| (scaling.scaled(row).collect(), target)).collect()
}

fn competitors(problem: &RobustProblem) -> Result<Vec<(&'static str, Vec<f64>)>, ComparisonError> {
    let named = |name| move |source| ComparisonError::Competitor { name, source };
    let direct =
        |name, problem: &RobustProblem| solve_directly(problem).map(|found| (name, found.model)).map_err(named(name));
    let radius = problem.sites.iter().zip(problem.weights.nominal()).map(|(site, weight)| weight * site.radius).sum();
    let merged = aggregate_then_robustify(problem, radius).map_err(named("WAFL"))?;
    Ok(vec![
        direct("usual", &problem.nominal(0.0))?,
        direct("AFL", &problem.nominal(problem.weights.theta()))?,
        direct("DRFA", &problem.nominal(WHOLE_SIMPLEX))?,
        ("WAFL", merged),
    ])
}

/// The mean score over all samples and that of the worst site, over [`DRAWS`] draws of the noise; the same draws for all models.
fn score(
    model: &[f64],
    sites: &[Vec<(Vec<f64>, f64)>],
    noise: Noise,
    is_classification: bool,
    seed: u64,
) -> (f64, f64) {
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    // A deviation that is finite and not negative is valid.
    let normal = Normal::new(noise.mean, noise.deviation).ok();
    let mut sums = vec![0.0; sites.len()];
    for _ in 0..DRAWS {
        for (sum, site) in sums.iter_mut().zip(sites) {
            for (sample, target) in site {
                let off = || normal.map_or(0.0, |normal| normal.sample(&mut dice));
                let prediction = predict(model, sample, off);
                *sum += match is_classification {
                    true => f64::from(u8::from(prediction * target > 0.0)),
                    false => (prediction - target).powi(2),
                };
            }
        }
    }
    let counts = sites.iter().map(|site| site.len() as f64 * DRAWS as f64);
    let all: f64 = counts.clone().sum();
    let mean = sums.iter().sum::<f64>() / all;
    let by_site = sums.iter().zip(counts).map(|(sum, count)| sum / count);
    let worst = if is_classification { by_site.fold(f64::INFINITY, f64::min) } else { by_site.fold(0.0, f64::max) };
    (mean, worst)
}

/// The prediction for a sample each of whose values is off by a number of its own.
fn predict(model: &[f64], sample: &[f64], mut off: impl FnMut() -> f64) -> f64 {
    let constant = model.get(sample.len()).copied().unwrap_or(0.0);
    sample.iter().zip(model).fold(constant, |sum, (value, coefficient)| sum + coefficient * (value + off()))
}

impl Comparison {
    /// The scores over the deviation of noise with mean 0, as SVG.
    #[must_use]
    pub fn picture(&self, title: &str) -> String {
        let panel = |label: &str, of: fn(&Scores) -> &Vec<f64>| Panel {
            y_label: format!("{}, {label}", self.measure),
            scale: Scale::Linear,
            bands: Vec::new(),
            series: self.models.iter().map(|model| self.series(model, of(model))).collect(),
            references: Vec::new(),
        };
        let panels = [panel("all samples", |scores| &scores.mean), panel("worst site", |scores| &scores.worst_site)];
        let x = Horizontal { label: "deviation of the noise on test data", scale: Scale::Linear };
        line_chart(title, x, &panels, &[])
    }

    fn series(&self, model: &Scores, scores: &[f64]) -> Series {
        let points = self.noises.iter().zip(scores).filter(|(noise, _)| noise.mean == 0.0);
        let weight = if model.name == "robust" { LineWeight::Bold } else { LineWeight::Thin };
        let points = points.map(|(noise, score)| (noise.deviation, *score)).collect();
        Series { name: model.name.to_owned(), points, weight }
    }
}
