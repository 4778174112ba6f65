//! The file of a robust model: its keys, their defaults, and the task that results.

use mingle_plaintext::class_name;
use mingle_planner::Plan;
use mingle_robust::{Linearisation, Loss, Penalty, WeightNorm};
use mingle_solver::Selection;
use serde::Deserialize;

use super::support::{HalfSpaceEntry, SupportEntry};
use super::{ColumnScaling, NominalWeights, RobustTask};
use crate::communication_plan::Averaging;
use crate::problem::file_error::FileError;
use crate::problem::kinds::ROBUST_CLASSIFICATION;
use crate::problem::node_name::NodeName;
use crate::problem::{StoppingCriteria, TableSource};

/// The file of a robust model.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(in crate::problem) struct RobustFile {
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
    #[serde(default = "yes")]
    adaptive: bool,
    #[serde(default = "usual_relaxation")]
    relaxation: f64,
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

/// The norm 1, 2 or inf, as a TOML float.
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
    None,
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

fn usual_relaxation() -> f64 {
    Penalty::default().relaxation
}

fn usual_tolerance() -> f64 {
    1e-4
}

fn usual_iterations() -> u64 {
    2_000
}

impl RobustFile {
    /// The task, its limits, and the JSON that the peers have to agree on.
    pub(in crate::problem) fn resolve(
        self,
        plan: &Plan,
        names: &[String],
    ) -> Result<(RobustTask, StoppingCriteria, serde_json::Value), FileError> {
        let loss = self.loss()?;
        let radii = self.radii(plan, names)?;
        let limits = StoppingCriteria { tolerance: self.tolerance, iterations: self.iterations };
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
            Constants::None => Linearisation::None,
            Constants::Least => Linearisation::Least,
            Constants::Paper => Linearisation::Paper,
        };
        let penalty = Penalty { c: self.penalty, linearisation, adaptive: self.adaptive, relaxation: self.relaxation };
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
            labels: self.labels.map(|labels| labels.map(|label| class_name(&label))),
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
            Some([a, b]) if is_classification && class_name(a) != class_name(b) => Ok(loss),
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
