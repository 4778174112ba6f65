//! Distributionally robust models: the task of all sites, and its checks before anything runs.

mod file;
mod support;

pub(super) use file::RobustFile;

use std::path::Path;

use mingle_robust::{HalfSpace, Loss, Penalty, RobustError, RobustLoss, Support, WeightNorm};
use mingle_solver::{RegressionTable, Standardization};
use serde::{Deserialize, Serialize};

use super::error::{SampleError, TableFileError};
use super::file_error::FileError;
use super::{StoppingCriteria, TableSource};
use crate::communication_plan::Averaging;
use support::{HalfSpaceEntry, SupportEntry, check_box, check_half_spaces};

/// Numbers in a site's row: `pi`, the distance of its model from the consensus model, its last change, the largest
/// coefficient and multiplier, its failed subproblems in a row and in all, and the hash of the replicated state.
pub(crate) const ROW: usize = 8;

/// A distributionally robust model.
#[derive(Clone, Debug)]
pub struct RobustTask {
    /// The loss.
    pub loss: Loss,
    /// The cost to the adversary of a changed label, or of a target that moves by 1.
    pub kappa: f64,
    /// For each site, the radius of the Wasserstein ball around its samples.
    pub radii: Vec<f64>,
    /// The largest distance of the sites' weights from the nominal ones.
    pub theta: f64,
    /// The norm of that distance.
    pub norm: WeightNorm,
    /// The nominal weights of the sites.
    pub weights: NominalWeights,
    /// The penalty of the method.
    pub penalty: Penalty,
    /// The choice of averaging over all sites.
    pub averaging: Averaging,
    /// The scaling of the columns.
    pub scaling: ColumnScaling,
    /// `true` if the model has an intercept; the adversary does not perturb it.
    pub intercept: bool,
    /// The label that becomes -1, and the one that becomes 1.
    pub labels: Option<[String; 2]>,
    /// `true` if samples outside the support are clipped to its edge.
    pub clip: bool,
    pub(super) support: SupportEntry,
    pub(super) source: TableSource,
}

/// The nominal weights of the sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NominalWeights {
    /// Equal weights.
    #[default]
    Equal,
    /// Weights in proportion to the sites' samples.
    Samples,
}

/// The scaling of columns, by the values of all sites together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ColumnScaling {
    /// The least value becomes the lower bound of the box, the largest the upper one; without a box, -1 and 1.
    Range,
    /// Mean 0 and deviation 1.
    Standard,
    /// No scaling.
    None,
}

impl RobustTask {
    /// The bounds of the support, if it is a box.
    pub(crate) fn bounds(&self) -> Option<(f64, f64)> {
        if let SupportEntry::Box { lower, upper } = self.support { Some((lower, upper)) } else { None }
    }

    /// The loss under the adversary, with the support in scaled columns.
    pub(crate) fn robust(&self, columns: &[String], scaling: &Standardization) -> Result<RobustLoss, SampleError> {
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

    /// Checks that the samples are in the support, where columns are not scaled to it.
    pub(super) fn check(&self, table: &RegressionTable) -> Result<(), SampleError> {
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
    /// Checks the numbers that do not depend on any table.
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
        if !(1.0..2.0).contains(&self.penalty.relaxation) {
            return Err(RobustError::Relaxation(self.penalty.relaxation).into());
        }
        let support = match &self.support {
            SupportEntry::Unbounded => Support::Unbounded,
            SupportEntry::Box { lower, upper } => Support::Box { lower: *lower, upper: *upper },
            // The coefficients get their places once the columns are known.
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

    fn shared(&self, kind: &str, limits: StoppingCriteria) -> serde_json::Value {
        let bits: Vec<u64> = self.radii.iter().chain([&self.kappa, &self.theta]).map(|value| value.to_bits()).collect();
        serde_json::json!({
            "kind": kind, "loss": self.loss, "support": self.support, "numbers": bits, "norm": self.norm,
            "weights": self.weights, "penalty": self.penalty, "averaging": self.averaging, "scaling": self.scaling,
            "intercept": self.intercept, "labels": self.labels, "clip": self.clip,
            "target": self.source.selection.target, "columns": self.source.selection.columns, "limits": limits,
        })
    }

    /// Describes the model in one line.
    pub(super) fn describe(&self) -> String {
        let kind = if self.loss.is_classification() { "classification" } else { "regression" };
        let (least, most) = self.radii.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), &r| (a.min(r), b.max(r)));
        let radius = if least < most { format!("{least} to {most}") } else { format!("{least}") };
        let theta = self.theta;
        let kappa = self.kappa;
        format!(
            "robust {kind} of {}, {} loss, radius {radius}, theta {theta}, kappa {kappa}",
            self.source.selection.target,
            self.loss.name()
        )
    }

    /// The column that the model predicts.
    pub(super) fn target(&self) -> &str {
        &self.source.selection.target
    }

    /// Reads a site's table.
    pub(super) fn read(&self, path: &Path) -> Result<RegressionTable, TableFileError> {
        let file = std::io::BufReader::new(mingle_plaintext::InputFile::open(path)?);
        Ok(match &self.labels {
            Some(labels) => RegressionTable::read_labelled(file, &self.source.selection, labels)?,
            None => RegressionTable::read(file, &self.source.selection)?,
        })
    }
}
