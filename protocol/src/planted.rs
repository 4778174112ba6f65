//! Bugs on request: a test that never fails proves nothing, so the fault tests are tried on nodes that break the rules.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A rule that a node breaks on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Planted {
    /// Parcels leave before the record that holds them is on disk.
    SendsBeforeWriting,
    /// Parcels are confirmed before a record that has applied them is on disk.
    ConfirmsBeforeWriting,
    /// A parcel that comes twice is applied twice.
    AppliesTwice,
    /// Weights are applied without their numerators.
    DropsNumerators,
    /// What others remember of later states is ignored.
    NeverDiscards,
    /// The marks by which neighbours repeat what was confirmed to them are ignored.
    IgnoresMarks,
    /// Parcels are told apart by their numbers alone.
    IgnoresChains,
    /// It sends no mass. No ledger is wrong by it: the others only notice that they have less and less.
    KeepsAll,
}

impl Planted {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::SendsBeforeWriting,
        Self::ConfirmsBeforeWriting,
        Self::AppliesTwice,
        Self::DropsNumerators,
        Self::NeverDiscards,
        Self::IgnoresMarks,
        Self::IgnoresChains,
        Self::KeepsAll,
    ];

    /// Its name on a command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SendsBeforeWriting => "sends-before-writing",
            Self::ConfirmsBeforeWriting => "confirms-before-writing",
            Self::AppliesTwice => "applies-twice",
            Self::DropsNumerators => "drops-numerators",
            Self::NeverDiscards => "never-discards",
            Self::IgnoresMarks => "ignores-marks",
            Self::IgnoresChains => "ignores-chains",
            Self::KeepsAll => "keeps-all",
        }
    }
}

impl fmt::Display for Planted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Planted {
    type Err = UnknownBug;

    fn from_str(name: &str) -> Result<Self, UnknownBug> {
        Self::ALL.into_iter().find(|bug| bug.name() == name).ok_or_else(|| UnknownBug(name.to_owned()))
    }
}

/// A name that is no bug's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no bug \"{0}\" to plant: take {names}", names = Planted::ALL.map(Planted::name).join(", "))]
pub struct UnknownBug(String);
