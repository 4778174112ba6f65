//! The objective of a model: to predict the class of a sample, or a quantity.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The kind of objective, as written by the user: `classification` or `regression`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObjectiveKind {
    /// The class of a sample.
    #[default]
    Classification,
    /// A quantity of a sample.
    Regression,
}

/// The text names no objective.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown task {0:?}: write classification or regression")]
pub struct UnknownObjective(String);

/// The objective of a model, with the number of its outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// The class with the largest of so many logits; the loss is the cross-entropy.
    Classification {
        /// The number of classes.
        classes: usize,
    },
    /// One number, standardised; the loss is the mean squared error.
    Regression,
}

impl Objective {
    /// The number of outputs of a model.
    pub const fn outputs(self) -> usize {
        match self {
            Self::Classification { classes } => classes,
            Self::Regression => 1,
        }
    }

    /// The kind of objective.
    pub const fn kind(self) -> ObjectiveKind {
        match self {
            Self::Classification { .. } => ObjectiveKind::Classification,
            Self::Regression => ObjectiveKind::Regression,
        }
    }
}

/// A number of classes is a classification.
impl From<usize> for Objective {
    fn from(classes: usize) -> Self {
        Self::Classification { classes }
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Classification { classes } => write!(f, "{classes} classes"),
            Self::Regression => f.write_str("one number"),
        }
    }
}

impl FromStr for ObjectiveKind {
    type Err = UnknownObjective;

    fn from_str(text: &str) -> Result<Self, UnknownObjective> {
        let kinds = [Self::Classification, Self::Regression];
        kinds.into_iter().find(|kind| kind.to_string() == text).ok_or_else(|| UnknownObjective(text.to_owned()))
    }
}

impl fmt::Display for ObjectiveKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Classification => "classification",
            Self::Regression => "regression",
        })
    }
}
