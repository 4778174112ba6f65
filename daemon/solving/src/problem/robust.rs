//! Robust models: what all sites agree on, and what is checked before anything runs.

mod file;
mod support;

pub(super) use file::{ROBUST_CLASSIFICATION, ROBUST_REGRESSION, RobustFile};
pub use support::SampleError;

use std::path::PathBuf;

use mingle_robust::{HalfSpace, Loss, Penalty, RobustError, RobustLoss, Support, WeightNorm};
use mingle_solver::{Scaling, Table};
use serde::{Deserialize, Serialize};

use super::file::FileError;
use super::{Limits, TableSource};
use crate::communication_plan::Averaging;
use support::{HalfSpaceEntry, SupportEntry, check_box, check_half_spaces};

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
