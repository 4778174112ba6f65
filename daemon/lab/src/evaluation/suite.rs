//! The suite file of a comparison of designs.

use std::io::{self, Read};
use std::num::NonZero;
use std::path::{Path, PathBuf};

use mingle_models::{AskedWeight, Augmentation, ObjectiveKind, Split};
use mingle_plaintext::InputFile;
use mingle_planner::{ExtraEdges, Method};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::simulation::MetricTarget;

/// The longest suite or problem file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// A suite: designs x topologies x splits x seeds.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Suite {
    /// The title of the report.
    pub title: String,
    /// Seeds of the split, the minibatches and the losses.
    pub seeds: Vec<u64>,
    /// The slots after which a run stops without having reached its target.
    pub max_slots: u64,
    /// Rounds between two evaluations.
    #[serde(default = "every_fourth")]
    pub evaluate_every: u64,
    /// The training of all runs.
    pub training: Training,
    /// The designs that the others are compared with, by name; the first of them is the yardstick.
    #[serde(default)]
    pub baselines: Vec<String>,
    /// The base graphs.
    pub topology: Vec<TopologyEntry>,
    /// The splits of the data.
    pub split: Vec<SplitEntry>,
    /// The designs of plans.
    pub design: Vec<DesignEntry>,
}

/// The training of every run.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Training {
    /// `digits`, `idx:DIR`, `cifar10:DIR` or `csv:FILE`; folders and files are relative to the folder of the suite.
    pub data: String,
    /// The model.
    pub model: String,
    /// The objective: `classification`, or `regression` of a table.
    #[serde(default, skip_serializing_if = "is_classification")]
    pub task: ObjectiveKind,
    /// Samples in a gradient step.
    pub batch_size: usize,
    /// The augmentation of training images.
    #[serde(default, skip_serializing_if = "is_no_augmentation")]
    pub augment: Augmentation,
    /// Step size of SGD.
    pub learning_rate: f64,
    /// Momentum of SGD.
    #[serde(default)]
    pub momentum: f64,
    /// Weight decay of SGD.
    #[serde(default)]
    pub weight_decay: f64,
    /// The weight of a site's changes: `equal`, `samples`, where a site with the mean number of samples counts as one,
    /// or `samples:N`.
    #[serde(default, skip_serializing_if = "is_equal")]
    pub weight: AskedWeight,
    /// The number of test samples on which models are evaluated [default: all].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_samples: Option<NonZero<usize>>,
    /// The device that computes.
    #[serde(default = "cpu")]
    pub device: String,
}

/// One topology.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TopologyEntry {
    /// Its name in the report.
    pub name: String,
    /// A generator, or a file relative to the folder of the suite.
    pub source: String,
}

/// One split of the data, with its target.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SplitEntry {
    /// `iid`, `label-sorted` or `dirichlet:ALPHA`.
    pub split: String,
    /// The accuracy that the mean of three evaluations has to reach.
    #[serde(default)]
    pub target_accuracy: Option<f64>,
    /// A target of any metric for that mean, such as `r2=0.9`, `rmse=12` or `loss=0.3`.
    #[serde(default)]
    pub target: Option<MetricTarget>,
}

/// One design.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DesignEntry {
    /// Its name in the report.
    pub name: String,
    /// The method, as in `mingle plan make`.
    pub method: String,
    /// The number of extra edges, or `auto`.
    #[serde(default = "auto")]
    pub extra_edges: String,
    /// Gradient steps in a round.
    #[serde(default = "one")]
    pub local_steps: u32,
    /// The weight of a site's changes in this design [default: as in the training].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<AskedWeight>,
    /// The share of messages that is lost.
    #[serde(default)]
    pub loss: f64,
    /// `true` if lost parcels are sent again; without a ledger they are gone, as in textbooks.
    #[serde(default = "yes")]
    pub ledger: bool,
    /// The topologies that it is run on [default: all].
    #[serde(default, skip_serializing)]
    pub topologies: Vec<String>,
}

fn every_fourth() -> u64 {
    4
}

fn is_no_augmentation(augmentation: &Augmentation) -> bool {
    *augmentation == Augmentation::NONE
}

fn is_equal(weight: &AskedWeight) -> bool {
    *weight == AskedWeight::Equal
}

fn is_classification(task: &ObjectiveKind) -> bool {
    *task == ObjectiveKind::Classification
}

fn cpu() -> String {
    "cpu".to_owned()
}

fn auto() -> String {
    "auto".to_owned()
}

fn one() -> u32 {
    1
}

fn yes() -> bool {
    true
}

impl Suite {
    /// Reads a suite and checks all of its entries.
    ///
    /// # Errors
    /// The entry that cannot be used, with its line or name.
    pub fn read(path: &Path) -> Result<Self, SuiteError> {
        Self::parse(&read_suite_text(path)?, path)
    }

    /// Parses the text of a suite file.
    fn parse(text: &str, path: &Path) -> Result<Self, SuiteError> {
        let mut suite: Self =
            toml::from_str(text).map_err(|source| SuiteError::Toml { path: path.to_owned(), source })?;
        suite.check().map_err(|what| SuiteError::Entry { path: path.to_owned(), what })?;
        suite.resolve(path.parent().unwrap_or(Path::new(".")));
        Ok(suite)
    }

    fn check(&self) -> Result<(), String> {
        if self.seeds.is_empty() || self.topology.is_empty() || self.split.is_empty() || self.design.is_empty() {
            return Err("a suite needs at least one seed, [[topology]], [[split]] and [[design]]".to_owned());
        }
        if self.max_slots == 0 || self.evaluate_every == 0 {
            return Err("max-slots and evaluate-every must be at least 1".to_owned());
        }
        for entry in &self.split {
            entry.split.parse::<Split>().map_err(|error| format!("split {}: {error}", entry.split))?;
            entry.target().map_err(|error| format!("split {}: {error}", entry.split))?;
        }
        self.design.iter().try_for_each(|design| self.check_design(design))?;
        let unique = |names: Vec<&str>, what: &str| {
            let repeated = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name));
            repeated.map_or(Ok(()), |(_, name)| Err(format!("two {what} are called {name}")))
        };
        unique(self.design.iter().map(|design| design.name.as_str()).collect(), "designs")?;
        unique(self.topology.iter().map(|topology| topology.name.as_str()).collect(), "topologies")?;
        unique(self.split.iter().map(|entry| entry.split.as_str()).collect(), "splits")?;
        let unknown = self.baselines.iter().find(|name| self.design.iter().all(|design| design.name != **name));
        unknown.map_or(Ok(()), |name| Err(format!("baselines: there is no design {name}")))
    }

    fn check_design(&self, design: &DesignEntry) -> Result<(), String> {
        let name = &design.name;
        design.method.parse::<Method>().map_err(|error| format!("design {name}: {error}"))?;
        design.extra_edges().map_err(|error| format!("design {name}: {error}"))?;
        if design.local_steps == 0 {
            return Err(format!("design {name}: local-steps must be at least 1"));
        }
        if !(0.0..1.0).contains(&design.loss) {
            return Err(format!("design {name}: loss is a share from 0 to below 1"));
        }
        let knows = |topology: &String| self.topology.iter().any(|entry| entry.name == *topology);
        let unknown = design.topologies.iter().find(|topology| !knows(topology));
        unknown.map_or(Ok(()), |topology| Err(format!("design {name}: there is no topology {topology}")))
    }

    /// Resolves the names of files relative to the folder of the suite.
    fn resolve(&mut self, folder: &Path) {
        let from_here = |path: &str| -> PathBuf { folder.join(path) };
        for entry in &mut self.topology {
            if !mingle_planner::Topology::looks_like_generator(&entry.source) {
                entry.source = from_here(&entry.source).display().to_string();
            }
        }
        if let Some((kind, path)) = self.training.data.split_once(':') {
            self.training.data = format!("{kind}:{}", from_here(path).display());
        }
    }
}

impl SplitEntry {
    /// The target of this split.
    ///
    /// # Errors
    /// There is no target, or there are two, or it is invalid.
    pub fn target(&self) -> Result<MetricTarget, String> {
        match (self.target, self.target_accuracy) {
            (Some(target), None) => Ok(target),
            (None, Some(accuracy)) => MetricTarget::accuracy(accuracy).map_err(|error| format!("target-{error}")),
            _ => Err("it needs a target-accuracy, or a target such as \"r2=0.9\", and not both".to_owned()),
        }
    }
}

impl DesignEntry {
    /// The extra edges: `K` of Algorithm 1.
    pub(super) fn extra_edges(&self) -> Result<ExtraEdges, String> {
        if self.extra_edges == "auto" {
            return Ok(ExtraEdges::Auto);
        }
        self.extra_edges.parse().map(ExtraEdges::Exactly).map_err(|_| "extra-edges: a number, or \"auto\"".to_owned())
    }
}

/// The text of a suite file, or of a problem file that it names.
///
/// # Errors
/// It cannot be read, or is too long.
pub(crate) fn read_suite_text(path: &Path) -> Result<String, SuiteError> {
    let unreadable = |source| SuiteError::Unreadable { path: path.to_owned(), source };
    let mut text = String::new();
    let mut file = InputFile::open(path).map_err(unreadable)?.take(MAX_BYTES + 1);
    let bytes = file.read_to_string(&mut text).map_err(unreadable)? as u64;
    if bytes > MAX_BYTES {
        return Err(SuiteError::TooLong { path: path.to_owned(), bytes });
    }
    Ok(text)
}

/// A suite that cannot be run.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum SuiteError {
    /// The file cannot be read.
    #[error("cannot read the suite {}", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// The file is longer than any suite.
    #[error("cannot read the suite {}: {bytes} bytes are too many", .path.display())]
    TooLong { path: PathBuf, bytes: u64 },
    /// It is not TOML, or has unknown entries.
    #[error("cannot read the suite {}", .path.display())]
    Toml { path: PathBuf, source: toml::de::Error },
    /// An entry cannot be used.
    #[error("{}: {what}", .path.display())]
    Entry { path: PathBuf, what: String },
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const SOUND: &str = "title='t'\nseeds=[0,1]\nmax-slots=3_000\nbaselines=['a']\n[training]\ndata='csv:t.csv'\nmodel='softmax'\nbatch-size=8\n\
                         learning-rate=0.5\n[[topology]]\nname='g'\nsource='grid:rows=3,cols=3'\n[[split]]\nsplit='dirichlet:0.3'\ntarget='r2=0.9'\n\
                         [[split]]\nsplit='iid'\ntarget-accuracy=0.8\n[[design]]\nname='a'\nmethod='nguyen-he'\nextra-edges='3'\nloss=0.1\n\
                         [[design]]\nname='b'\nmethod='d-psgd'\nlocal-steps=4\ntopologies=['g']\n";

    #[test]
    fn mutated_suites_are_refused_or_can_be_run() {
        let parse = |text: &str| Suite::parse(text, Path::new("/suites/suite.toml"));
        let sound = parse(SOUND);
        assert!(sound.is_ok(), "{sound:?}");
        mingle_mutations::for_each_input("suite", &[SOUND.as_bytes().to_vec()], |input| {
            let Ok(suite) = parse(&String::from_utf8_lossy(input)) else { return };
            assert!(suite.max_slots > 0 && suite.split.iter().all(|entry| entry.target().is_ok()));
            assert!(suite.design.iter().all(|design| design.local_steps > 0 && design.extra_edges().is_ok()));
        });
    }
}
