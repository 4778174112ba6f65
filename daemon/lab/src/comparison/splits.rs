//! Robust models and their competitors over many splits of one table: means, spreads and paired differences.
//!
//! A split shuffles the rows by its seed, trains on three fifths of them, dealt out to the sites, and tests on the others.
//! All models of a split are cone programs in one place: the iteration of sites
//! ([`solve_by_lpmm`](mingle_robust::solve_by_lpmm)) ends within its duality gap of the same objective.

use std::path::{Path, PathBuf};

use mingle_planner::Plan;
use mingle_robust::{LinearSamples, RobustProblem, SiteSamples, solve_directly};
use mingle_solver::{RegressionTable, Standardization};
use mingle_solving::{ColumnScaling, Part, Problem, ProblemTask, RobustTask, in_one_place};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Normal};
use serde::{Deserialize, Serialize};

use super::{ComparisonError, Noise, all_noises, competitors, scaled, score};
use crate::evaluation::{SuiteError, read_suite_text};

/// The key that only these suites have.
const ROBUST: &str = "robust";
/// Parts of a table; three of them are for training.
const FIFTHS: usize = 5;
/// The stream of random numbers for noise on training data.
const TRAINING_NOISE: u64 = 1 << 32;

/// A suite: one robust problem over splits of its table.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SplitSuite {
    /// The title of the report [default: the name of the problem's file].
    #[serde(default)]
    pub title: String,
    /// The problem file, relative to the folder of the suite. Its table is dealt out anew in each split, with the radius of each site.
    pub robust: PathBuf,
    /// The number of sites.
    pub sites: usize,
    /// The seeds of the splits.
    pub seeds: Vec<u64>,
    /// Noise on the training data of the first site, in scaled columns; in a box its samples are clipped to it.
    #[serde(default)]
    pub training_noise: Option<Noise>,
    /// Noises on test data, in scaled columns [default: deviations from 0 to 1.5, and shifts from 0.1 to 0.5].
    #[serde(default = "all_noises")]
    pub noises: Vec<Noise>,
}

impl SplitSuite {
    /// Reads a suite and checks it. None where the file is a suite of another kind, or is not TOML.
    ///
    /// # Errors
    /// The entry that cannot be used.
    pub fn read(path: &Path) -> Result<Option<Self>, SuiteError> {
        let text = read_suite_text(path)?;
        if !toml::from_str::<toml::Table>(&text).is_ok_and(|table| table.contains_key(ROBUST)) {
            return Ok(None);
        }
        let mut suite: Self =
            toml::from_str(&text).map_err(|source| SuiteError::Toml { path: path.to_owned(), source })?;
        suite.check().map_err(|what| SuiteError::Entry { path: path.to_owned(), what })?;
        suite.robust = path.parent().unwrap_or(Path::new(".")).join(&suite.robust);
        if suite.title.is_empty() {
            suite.title = suite.robust.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        }
        Ok(Some(suite))
    }

    fn check(&self) -> Result<(), String> {
        if self.seeds.is_empty() || self.noises.is_empty() {
            return Err("a suite needs at least one seed and one noise: seeds = [0, 1, 2]".to_owned());
        }
        if self.sites < 2 {
            return Err(format!("sites = {}: two at least", self.sites));
        }
        let is_fine = |noise: &Noise| noise.mean.is_finite() && noise.deviation >= 0.0 && noise.deviation.is_finite();
        let mut noises = self.noises.iter().chain(&self.training_noise);
        match noises.find(|noise| !is_fine(noise)) {
            Some(noise) => Err(format!("a noise has a mean, and a deviation of at least 0: {noise:?}")),
            None => Ok(()),
        }
    }
}

/// The scores of all models in one split.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SplitScores {
    /// The seed of the split.
    pub seed: u64,
    /// The models and their scores, `[noises]`.
    pub models: Vec<(&'static str, Vec<f64>)>,
}

/// A problem whose table is split.
pub struct SplitProblem {
    task: RobustTask,
    table: RegressionTable,
}

impl SplitProblem {
    /// Reads the problem file of a suite, for the sites of a plan.
    ///
    /// # Errors
    /// The file cannot be read, or is not a robust model.
    pub fn read(path: &Path, plan: &Plan) -> Result<Self, ComparisonError> {
        let problem = Problem::read(path, plan)?;
        let ProblemTask::Robust(task) = &problem.task else { return Err(ComparisonError::NotRobust) };
        let mut tables = problem.parts()?.into_iter().filter_map(|part| match part {
            Part::Robust { table, .. } => Some(table),
            _ => None,
        });
        let mut table = tables.next().ok_or(ComparisonError::NotRobust)?;
        for other in tables {
            // The parts of a problem have the same columns.
            table.append(&other).map_err(|_| ComparisonError::NotRobust)?;
        }
        Ok(Self { task: RobustTask::clone(task), table })
    }

    /// The name of the measure: the larger the better, or the smaller.
    #[must_use]
    pub fn measure(&self) -> &'static str {
        if self.task.loss.is_classification() { "accuracy" } else { "mean squared error" }
    }

    /// Makes a split and all models of it.
    ///
    /// # Errors
    /// The samples do not fit the problem, or a program was not solved.
    pub fn split(&self, suite: &SplitSuite, seed: u64) -> Result<SplitScores, ComparisonError> {
        let all = self.table.shuffled(seed);
        let fifths = |places: &[usize]| {
            let mut part = all.dealt(places[0], FIFTHS);
            // Parts of one table have the same columns.
            places[1..].iter().for_each(|&place| part.append(&all.dealt(place, FIFTHS)).unwrap_or_default());
            part
        };
        let (training, test) = (fifths(&[0, 2, 4]), fifths(&[1, 3]));
        let scaling = self.scaling(&training);
        let tables: Vec<RegressionTable> = (0..suite.sites).map(|site| training.dealt(site, suite.sites)).collect();
        let mut problem = in_one_place(&self.task, &tables, &scaling)?;
        if let Some(noise) = suite.training_noise {
            self.disturb(&mut problem, noise, seed)?;
        }
        let mut models = competitors(&problem)?;
        let named = |source| ComparisonError::Competitor { name: "robust", source };
        models.push(("robust", solve_directly(&problem).map_err(named)?.model));
        let test = [scaled(&test, &scaling)];
        let scores = |model: &[f64]| -> Vec<f64> {
            let noises = suite.noises.iter().enumerate();
            let is_classification = self.task.loss.is_classification();
            noises.map(|(at, noise)| score(model, &test, *noise, is_classification, seed + at as u64).0).collect()
        };
        Ok(SplitScores { seed, models: models.iter().map(|(name, model)| (*name, scores(model))).collect() })
    }

    /// The scaling that the sites of this training data would agree on.
    fn scaling(&self, training: &RegressionTable) -> Standardization {
        match self.task.scaling {
            ColumnScaling::None => Standardization::none(training.columns().len()),
            ColumnScaling::Range => {
                let (least, largest) = training.extrema();
                let (lower, upper) = self.task.bounds().unwrap_or((-1.0, 1.0));
                Standardization::to_range(&least, &largest, lower, upper)
            }
            ColumnScaling::Standard => {
                let centering = Standardization::centering(&training.sums());
                let squares = training.squares(&centering);
                centering.with_deviations(&squares, training.row_count() as f64).of_columns_alone()
            }
        }
    }

    /// Adds noise to the movable columns of the first site.
    fn disturb(&self, problem: &mut RobustProblem, noise: Noise, seed: u64) -> Result<(), ComparisonError> {
        let mut dice = ChaCha8Rng::seed_from_u64(seed.wrapping_add(TRAINING_NOISE));
        let normal = Normal::new(noise.mean, noise.deviation).ok();
        let SiteSamples { samples, .. } = &mut problem.sites[0];
        let (columns, movable) = (samples.columns(), samples.movable());
        let mut values = Vec::new();
        let mut targets = Vec::new();
        for (row, target) in samples.rows() {
            let off = |value: &f64| value + normal.map_or(0.0, |normal| normal.sample(&mut dice));
            values.extend(row[..movable].iter().map(off));
            values.extend(&row[movable..]);
            targets.push(target);
        }
        let named = |source| ComparisonError::Competitor { name: "robust", source };
        *samples = LinearSamples::new(columns, movable, values, targets).map_err(named)?;
        if let Some((lower, upper)) = self.task.bounds() {
            samples.clip(lower, upper);
        }
        Ok(())
    }
}

/// Means and spreads over all splits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SplitSummary {
    /// The title.
    pub title: String,
    /// The measure.
    pub measure: &'static str,
    /// The seeds of the splits.
    pub seeds: Vec<u64>,
    /// For each noise, a row for each model.
    pub noises: Vec<NoiseSummary>,
    /// The scores of each split.
    pub splits: Vec<SplitScores>,
}

/// The models under one noise.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NoiseSummary {
    /// The noise on test data.
    pub noise: Noise,
    /// The models.
    pub models: Vec<ModelSummary>,
}

/// One model under one noise, over all splits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelSummary {
    /// Its name.
    pub name: &'static str,
    /// The mean score.
    pub mean: f64,
    /// The standard deviation over splits; 0 with one split.
    pub deviation: f64,
    /// The mean difference from the usual model in the same split.
    pub beyond: f64,
    /// The standard deviation of that difference.
    pub beyond_deviation: f64,
    /// Its paired t; none where all differences are equal.
    pub t: Option<f64>,
}

impl SplitSummary {
    /// The summary of these splits of a suite.
    #[must_use]
    pub fn new(suite: &SplitSuite, measure: &'static str, splits: Vec<SplitScores>) -> Self {
        let names: Vec<&'static str> =
            splits.first().map(|split| split.models.iter().map(|model| model.0).collect()).unwrap_or_default();
        let row = |(at, noise): (usize, &Noise)| {
            let values = |model: usize| -> Vec<f64> { splits.iter().map(|split| split.models[model].1[at]).collect() };
            // The usual model is the first.
            let usual = if names.is_empty() { Vec::new() } else { values(0) };
            let model = |(place, name): (usize, &&'static str)| {
                let own = values(place);
                let beyond: Vec<f64> = own.iter().zip(&usual).map(|(own, usual)| own - usual).collect();
                let (mean, deviation) = mean_and_deviation(&own);
                let (difference, spread) = mean_and_deviation(&beyond);
                let t = (spread > 0.0).then(|| difference * (beyond.len() as f64).sqrt() / spread);
                ModelSummary { name, mean, deviation, beyond: difference, beyond_deviation: spread, t }
            };
            NoiseSummary { noise: *noise, models: names.iter().enumerate().map(model).collect() }
        };
        let noises = suite.noises.iter().enumerate().map(row).collect();
        Self { title: suite.title.clone(), measure, seeds: suite.seeds.clone(), noises, splits }
    }

    /// The summary as a Markdown table.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "# {}\n\n{} over {} splits: mean ± standard deviation; beyond: the difference from the usual model in the same \
             split, and its paired t.\n\n| noise: mean, deviation | model | {} | beyond | t |\n| --- | --- | ---: | ---: | \
             ---: |\n",
            self.title,
            self.measure,
            self.seeds.len(),
            self.measure
        );
        for NoiseSummary { noise, models } in &self.noises {
            for (at, model) in models.iter().enumerate() {
                let noise = if at == 0 { format!("{}, {}", noise.mean, noise.deviation) } else { String::new() };
                let ModelSummary { name, mean, deviation, beyond, beyond_deviation, t } = model;
                let t = t.map_or_else(|| "-".to_owned(), |t| format!("{t:.2}"));
                text += &format!(
                    "| {noise} | {name} | {mean:.4} ± {deviation:.4} | {beyond:+.4} ± {beyond_deviation:.4} | {t} |\n"
                );
            }
        }
        text
    }
}

/// The mean and the standard deviation, with one degree of freedom less than values.
fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, if values.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 })
}
