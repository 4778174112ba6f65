//! The choice whether a node trains while it mixes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Training of the next round while the present one is mixed, in plans whose nodes
/// [agree in every round](crate::Schedule::agrees_in_every_round). Nothing on the wire depends on it, but all nodes need the
/// same: one that trains apart takes neighbours that are ready at once for far faster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrainingOverlap {
    /// A round trains, and then mixes.
    #[default]
    Off,
    /// A round mixes while the next one trains.
    On,
}

impl TrainingOverlap {
    /// All choices.
    pub const ALL: [Self; 2] = [Self::Off, Self::On];

    /// The name on command lines and in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
        }
    }
}

impl fmt::Display for TrainingOverlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for TrainingOverlap {
    type Err = UnknownOverlap;

    fn from_str(name: &str) -> Result<Self, UnknownOverlap> {
        Self::ALL
            .into_iter()
            .find(|overlap| overlap.name() == name)
            .ok_or_else(|| UnknownOverlap { name: name.to_owned() })
    }
}

/// A name that no choice of overlap has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{name:?} is no overlap; there are off and on")]
pub struct UnknownOverlap {
    /// The name given.
    pub name: String,
}
