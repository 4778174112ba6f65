//! Robust models in problem files: what they say, and what is checked before anything runs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use mingle_planner::Plan;
use mingle_robust::{HalfSpace, Linearisation, Loss, Penalty, RobustError, RobustLoss, Support, WeightNorm};
use mingle_solver::{Scaling, Selection, Table};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::file::{FileError, NodeName};
use super::{Limits, TableSource};
use crate::communication_plan::Averaging;

/// A sample that is out by less is out by rounding.
const ROUNDING: f64 = 1e-12;

/// Numbers in a site's row: `pi`, how far its model is from that of all, how far it moved, subproblems that failed in a row and in
/// all, and the hash of the replicated state.
pub(crate) const ROW: usize = 6;

/// A robust model.
#[derive(Clone, Debug)]
pub struct RobustTask {
    /// The loss.
    pub loss: Loss,
    /// What a changed label, or a target that moves by 1, costs the adversary.
    pub kappa: f64,
    /// How far the worst distribution may be from the samples of each site.
    pub radii: Vec<f64>,
    /// How far the worst weights may be from the nominal ones.
    pub theta: f64,
    /// In which norm.
    pub norm: WeightNorm,
    /// What the sites weigh nominally.
    pub weights: NominalWeights,
    /// The penalty of the method.
    pub penalty: Penalty,
    /// How means over all sites are made.
    pub averaging: Averaging,
    /// How columns are scaled.
    pub scaling: ColumnScaling,
    /// Whether the model has an intercept, which nobody perturbs.
    pub intercept: bool,
    /// The label that becomes -1, and the one that becomes 1.
    pub labels: Option<[String; 2]>,
    /// Whether samples outside the support are brought to its edge.
    pub clip: bool,
    pub(super) support: SupportEntry,
    pub(super) source: TableSource,
}

/// What the sites weigh nominally.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NominalWeights {
    /// All the same.
    #[default]
    Equal,
    /// As many as they have samples.
    Samples,
}

/// How columns are scaled, by what all sites together have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ColumnScaling {
    /// The least number becomes the lower bound of the box, the largest the upper one; else -1 and 1.
    Range,
    /// Mean 0, deviation 1.
    Standard,
    /// Not at all.
    None,
}

/// The support as the file says it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SupportEntry {
    Unbounded,
    Box { lower: f64, upper: f64 },
    HalfSpaces(Vec<HalfSpaceEntry>),
}

/// `sum of coefficients * columns + target * target <= bound`, in the numbers of the tables.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HalfSpaceEntry {
    coefficients: BTreeMap<String, f64>,
    #[serde(default)]
    target: f64,
    bound: f64,
}

/// A table that does not fit the robust model.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SampleError {
    /// A sample outside the support.
    #[error("row {row}, column `{column}`: {value} is outside the support, {lower} to {upper}")]
    OutsideBox {
        /// Counts from 1, below the names of the columns.
        row: usize,
        /// The column.
        column: String,
        /// What is there.
        value: f64,
        /// The least that may be.
        lower: f64,
        /// The largest.
        upper: f64,
    },
    /// A sample beyond a half-space.
    #[error("row {row} exceeds bound {half_space} of the support by {by:.3e}")]
    OutsideHalfSpace {
        /// Counts from 1.
        row: usize,
        /// Counts from 1, in the order of the file.
        half_space: usize,
        /// By how much.
        by: f64,
    },
    /// A half-space with a column that is not used.
    #[error("a half-space names the column `{0}`, which the model does not use")]
    NoColumn(String),
}

impl RobustTask {
    /// The box, if that is the support.
    pub(crate) fn bounds(&self) -> Option<(f64, f64)> {
        if let SupportEntry::Box { lower, upper } = self.support { Some((lower, upper)) } else { None }
    }

    /// What the adversary may do, for scaled columns.
    pub(crate) fn robust(&self, columns: &[String], scaling: &Scaling) -> Result<RobustLoss, SampleError> {
        let support = match &self.support {
            SupportEntry::Unbounded => Support::Unbounded,
            SupportEntry::Box { lower, upper } => Support::Box { lower: *lower, upper: *upper },
            SupportEntry::HalfSpaces(entries) => {
                let spaces = entries.iter().map(|entry| entry.scaled(columns, scaling));
                Support::Polyhedron(spaces.collect::<Result<_, _>>()?)
            }
        };
        Ok(RobustLoss { loss: self.loss, support, kappa: self.kappa })
    }

    /// Where columns are not scaled to the support, the samples have to be in it.
    pub(super) fn check(&self, table: &Table) -> Result<(), SampleError> {
        match &self.support {
            SupportEntry::Box { lower, upper } if self.scaling == ColumnScaling::None && !self.clip => {
                check_box(table, *lower, *upper)
            }
            SupportEntry::HalfSpaces(entries) => check_half_spaces(table, entries),
            _ => Ok(()),
        }
    }
}

fn check_box(table: &Table, lower: f64, upper: f64) -> Result<(), SampleError> {
    for (at, (row, _)) in table.rows().enumerate() {
        let outside = |value: &f64| *value < lower - ROUNDING || *value > upper + ROUNDING;
        if let Some(column) = row.iter().position(outside) {
            let (value, column) = (row[column], table.columns()[column].clone());
            return Err(SampleError::OutsideBox { row: at + 1, column, value, lower, upper });
        }
    }
    Ok(())
}

fn check_half_spaces(table: &Table, entries: &[HalfSpaceEntry]) -> Result<(), SampleError> {
    let none = Scaling::none(table.columns().len());
    for (half_space, entry) in entries.iter().enumerate() {
        let space = entry.scaled(table.columns(), &none)?;
        for (row, (sample, target)) in table.rows().enumerate() {
            let by = space.coefficients.iter().zip(sample).map(|(c, x)| c * x).sum::<f64>() + space.target * target
                - space.bound;
            if by > ROUNDING {
                return Err(SampleError::OutsideHalfSpace { row: row + 1, half_space: half_space + 1, by });
            }
        }
    }
    Ok(())
}

impl HalfSpaceEntry {
    /// The same for `x' = (x - mean) / deviation`.
    fn scaled(&self, columns: &[String], scaling: &Scaling) -> Result<HalfSpace, SampleError> {
        if let Some(name) = self.coefficients.keys().find(|name| !columns.contains(name)) {
            return Err(SampleError::NoColumn(name.clone()));
        }
        let (means, deviations) = scaling.columns();
        let of = |column: &String| self.coefficients.get(column).copied().unwrap_or(0.0);
        let shift: f64 = columns.iter().zip(means).map(|(column, mean)| of(column) * mean).sum();
        let coefficients = columns.iter().zip(deviations).map(|(column, deviation)| of(column) * deviation).collect();
        Ok(HalfSpace { coefficients, target: self.target, bound: self.bound - shift })
    }
}

/// The file of a robust model.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RobustFile {
    kind: String,
    data: String,
    #[serde(default)]
    deal: bool,
    target: String,
    #[serde(default)]
    columns: Vec<String>,
    labels: Option<[String; 2]>,
    loss: Option<String>,
    epsilon: Option<f64>,
    #[serde(default)]
    support: SupportName,
    #[serde(default)]
    half_space: Vec<HalfSpaceEntry>,
    radius: f64,
    #[serde(default)]
    site: Vec<SiteEntry>,
    #[serde(default = "one")]
    kappa: f64,
    #[serde(default)]
    theta: f64,
    #[serde(default)]
    p: NormName,
    #[serde(default)]
    weights: NominalWeights,
    scaling: Option<ColumnScaling>,
    #[serde(default)]
    clip: bool,
    #[serde(default = "yes")]
    intercept: bool,
    #[serde(default = "usual_penalty")]
    penalty: f64,
    #[serde(default)]
    constants: Constants,
    #[serde(default)]
    averaging: Averaging,
    #[serde(default = "usual_tolerance")]
    tolerance: f64,
    #[serde(default = "usual_iterations")]
    iterations: u64,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SupportName {
    #[default]
    Unbounded,
    /// [-1, 1] in each column.
    Box,
    /// [0, 1] in each column.
    UnitBox,
    HalfSpaces,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SiteEntry {
    node: NodeName,
    radius: f64,
}

/// 1, 2 or inf: TOML's own numbers.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(try_from = "f64")]
struct NormName(WeightNorm);

impl TryFrom<f64> for NormName {
    type Error = &'static str;

    fn try_from(p: f64) -> Result<Self, Self::Error> {
        [(1.0, WeightNorm::One), (2.0, WeightNorm::Two), (f64::INFINITY, WeightNorm::Infinity)]
            .into_iter()
            .find(|(known, _)| known.to_bits() == p.to_bits())
            .map(|(_, norm)| Self(norm))
            .ok_or("p has to be 1, 2 or inf")
    }
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Constants {
    #[default]
    Least,
    Paper,
}

fn one() -> f64 {
    1.0
}

fn yes() -> bool {
    true
}

fn usual_penalty() -> f64 {
    Penalty::default().c
}

fn usual_tolerance() -> f64 {
    1e-5
}

fn usual_iterations() -> u64 {
    2_000
}

/// The kinds of problems that are robust models.
pub(super) const ROBUST_CLASSIFICATION: &str = "robust-classification";
pub(super) const ROBUST_REGRESSION: &str = "robust-regression";

impl RobustFile {
    /// The task, when to stop, and what the peers have to agree on.
    pub(super) fn resolve(
        self,
        plan: &Plan,
        names: &[String],
    ) -> Result<(RobustTask, Limits, serde_json::Value), FileError> {
        let loss = self.loss()?;
        let radii = self.radii(plan, names)?;
        let limits = Limits { tolerance: self.tolerance, iterations: self.iterations };
        let support = match self.support {
            SupportName::HalfSpaces => SupportEntry::HalfSpaces(self.half_space),
            _ if !self.half_space.is_empty() => return Err(FileError::HalfSpaces),
            SupportName::Unbounded => SupportEntry::Unbounded,
            SupportName::Box => SupportEntry::Box { lower: -1.0, upper: 1.0 },
            SupportName::UnitBox => SupportEntry::Box { lower: 0.0, upper: 1.0 },
        };
        let is_box = matches!(support, SupportEntry::Box { .. });
        let usual = if is_box { ColumnScaling::Range } else { ColumnScaling::Standard };
        let scaling = self.scaling.unwrap_or(usual);
        if is_box && scaling == ColumnScaling::Standard {
            return Err(FileError::ScalingOfBox);
        }
        let linearisation = match self.constants {
            Constants::Least => Linearisation::Least,
            Constants::Paper => Linearisation::Paper,
        };
        let penalty = Penalty { c: self.penalty, linearisation };
        let task = RobustTask {
            loss,
            kappa: self.kappa,
            radii,
            theta: self.theta,
            norm: self.p.0,
            weights: self.weights,
            penalty,
            averaging: self.averaging,
            scaling,
            intercept: self.intercept,
            labels: self.labels,
            clip: self.clip,
            support,
            source: TableSource::new(self.data, self.deal, Selection { target: self.target, columns: self.columns })?,
        };
        task.check_numbers()?;
        let shared = task.shared(&self.kind, limits);
        Ok((task, limits, shared))
    }

    fn loss(&self) -> Result<Loss, FileError> {
        let is_classification = self.kind == ROBUST_CLASSIFICATION;
        let (known, usual) = if is_classification { (LABEL_LOSSES, "hinge") } else { (TARGET_LOSSES, "huber") };
        let name = self.loss.as_deref().unwrap_or(usual);
        let epsilon = |usual| self.epsilon.unwrap_or(usual);
        let loss = match name {
            _ if !known.contains(&name) => {
                return Err(FileError::Loss { name: name.to_owned(), known: known.join(", ") });
            }
            "hinge" => Loss::Hinge,
            "smooth-hinge" => Loss::SmoothHinge,
            "logistic" => Loss::Logistic,
            "huber" => Loss::Huber { epsilon: epsilon(1.35) },
            "epsilon-insensitive" => Loss::EpsilonInsensitive { epsilon: epsilon(0.1) },
            _ => Loss::Pinball { epsilon: epsilon(0.5) },
        };
        match &self.labels {
            Some([a, b]) if is_classification && a != b => Ok(loss),
            None if !is_classification => Ok(loss),
            Some(_) if !is_classification => Err(FileError::LabelsOfTargets),
            _ => Err(FileError::Labels),
        }
    }

    fn radii(&self, plan: &Plan, names: &[String]) -> Result<Vec<f64>, FileError> {
        let mut radii = vec![self.radius; names.len()];
        let mut seen = vec![false; names.len()];
        for entry in &self.site {
            let node = entry.node.find(plan, names, &|| "[[site]]".to_owned())?;
            if std::mem::replace(&mut seen[node], true) {
                return Err(FileError::SiteTwice(names[node].clone()));
            }
            radii[node] = entry.radius;
        }
        Ok(radii)
    }
}

const LABEL_LOSSES: &[&str] = &["hinge", "smooth-hinge", "logistic"];
const TARGET_LOSSES: &[&str] = &["huber", "epsilon-insensitive", "pinball"];

impl RobustTask {
    /// Numbers that no table is needed for.
    fn check_numbers(&self) -> Result<(), FileError> {
        if let Some(&radius) = self.radii.iter().find(|radius| !(**radius >= 0.0 && radius.is_finite())) {
            return Err(RobustError::Radius(radius).into());
        }
        if !(self.theta >= 0.0 && self.theta.is_finite()) {
            return Err(RobustError::Theta(self.theta).into());
        }
        if !(self.penalty.c > 0.0 && self.penalty.c.is_finite()) {
            return Err(RobustError::Penalty(self.penalty.c).into());
        }
        let support = match &self.support {
            SupportEntry::Unbounded => Support::Unbounded,
            SupportEntry::Box { lower, upper } => Support::Box { lower: *lower, upper: *upper },
            // The coefficients have their places once the columns are known.
            SupportEntry::HalfSpaces(entries) => {
                let space = |entry: &HalfSpaceEntry| HalfSpace {
                    coefficients: vec![entry.coefficients.values().sum()],
                    target: entry.target,
                    bound: entry.bound,
                };
                Support::Polyhedron(entries.iter().map(space).collect())
            }
        };
        RobustLoss { loss: self.loss, support, kappa: self.kappa }.check(1)?;
        let has_target = |entry: &HalfSpaceEntry| entry.target != 0.0;
        match &self.support {
            SupportEntry::HalfSpaces(entries) if self.loss.is_classification() && entries.iter().any(has_target) => {
                Err(FileError::TargetOfLabels)
            }
            _ => Ok(()),
        }
    }

    fn shared(&self, kind: &str, limits: Limits) -> serde_json::Value {
        let bits: Vec<u64> = self.radii.iter().chain([&self.kappa, &self.theta]).map(|value| value.to_bits()).collect();
        serde_json::json!({
            "kind": kind, "loss": self.loss, "support": self.support, "numbers": bits, "norm": self.norm,
            "weights": self.weights, "penalty": self.penalty, "averaging": self.averaging, "scaling": self.scaling,
            "intercept": self.intercept, "labels": self.labels, "clip": self.clip,
            "target": self.source.selection.target, "columns": self.source.selection.columns, "limits": limits,
        })
    }

    /// In a line.
    pub(super) fn describe(&self) -> String {
        let kind = if self.loss.is_classification() { "classification" } else { "regression" };
        let (least, most) = self.radii.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), &r| (a.min(r), b.max(r)));
        let radius = if least < most { format!("{least} to {most}") } else { format!("{least}") };
        let (theta, kappa) = (self.theta, self.kappa);
        format!(
            "robust {kind} of {}, {} loss, radius {radius}, theta {theta}, kappa {kappa}",
            self.source.selection.target,
            self.loss.name()
        )
    }

    /// What is explained.
    pub(super) fn target(&self) -> &str {
        &self.source.selection.target
    }

    /// Reads a site's table.
    pub(super) fn read(&self, path: &PathBuf) -> Result<Table, super::TableFileError> {
        let file = std::io::BufReader::new(std::fs::File::open(path)?);
        Ok(match &self.labels {
            Some(labels) => Table::read_labelled(file, &self.source.selection, labels)?,
            None => Table::read(file, &self.source.selection)?,
        })
    }
}
