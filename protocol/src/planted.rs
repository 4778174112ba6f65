//! Bugs on request: a test that never fails proves nothing, so the fault tests are tried on nodes that break the rules.
#![cfg_attr(
    not(feature = "sim"),
    allow(unreachable_pub, dead_code, reason = "only tests outside of the crate name it")
)]

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

#[cfg(feature = "sim")]
use crate::config::NodeConfig;

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
    /// Parcels meant for another life of a node are applied.
    IgnoresLives,
    /// Parcels of another generation are applied.
    IgnoresGenerations,
    /// Weights are applied without their numerators.
    DropsNumerators,
    /// What others remember of later states is ignored.
    NeverDiscards,
    /// A new life keeps the weight of the one before.
    KeepsMassWhenSetBack,
    /// The marks by which neighbours repeat what was confirmed to them are ignored.
    IgnoresMarks,
    /// Parcels are told apart by their numbers alone.
    IgnoresChains,
    /// What an earlier life of a neighbour may have applied is sent again to its new one.
    RenumbersForNewLives,
    /// A node that starts again does not remember what it owes.
    ForgetsOutboxes,
    /// More parcels than the window holds are owed on one link.
    IgnoresWindow,
    /// A node that leaves does not wait until it has handed everything over.
    LeavesWithMass,
    /// A node that leaves does not wait until its neighbours have heard what it applied.
    LeavesUnheard,
    /// Only parcels tell of a newer generation, so that idle nodes never hear of it.
    HearsParcelsOnly,
    /// Messages of an older generation are not answered.
    LeavesOldGenerationsAlone,
    /// A node asks for no more record slots when a plan gives it more receivers, and splits all the same.
    NeverReserves,
    /// Whatever a neighbour says of this node's lives, or of how far it is itself, is taken for true.
    BelievesAnyone,
    /// A node that is cut off from others goes on as fast as it can.
    NeverPaces,
    /// It sends no mass. No ledger is wrong by it: the others only notice that they have less and less.
    KeepsAll,
    /// A node that starts takes a record for whole whatever its checksum says.
    BelievesTornRecords,
    /// A node that starts does not see its newest record.
    OverlooksNewestRecord,
    /// A node that starts goes on from a record that it could read, without making sure that it is on the disk.
    TrustsUnsyncedRecords,
}

impl Planted {
    /// All of them.
    pub const ALL: [Self; 24] = [
        Self::SendsBeforeWriting,
        Self::ConfirmsBeforeWriting,
        Self::AppliesTwice,
        Self::IgnoresLives,
        Self::IgnoresGenerations,
        Self::DropsNumerators,
        Self::NeverDiscards,
        Self::KeepsMassWhenSetBack,
        Self::IgnoresMarks,
        Self::IgnoresChains,
        Self::RenumbersForNewLives,
        Self::ForgetsOutboxes,
        Self::IgnoresWindow,
        Self::LeavesWithMass,
        Self::LeavesUnheard,
        Self::HearsParcelsOnly,
        Self::LeavesOldGenerationsAlone,
        Self::NeverReserves,
        Self::BelievesAnyone,
        Self::NeverPaces,
        Self::KeepsAll,
        Self::BelievesTornRecords,
        Self::OverlooksNewestRecord,
        Self::TrustsUnsyncedRecords,
    ];

    /// Its name on a command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SendsBeforeWriting => "sends-before-writing",
            Self::ConfirmsBeforeWriting => "confirms-before-writing",
            Self::AppliesTwice => "applies-twice",
            Self::IgnoresLives => "ignores-lives",
            Self::IgnoresGenerations => "ignores-generations",
            Self::DropsNumerators => "drops-numerators",
            Self::NeverDiscards => "never-discards",
            Self::KeepsMassWhenSetBack => "keeps-mass-when-set-back",
            Self::IgnoresMarks => "ignores-marks",
            Self::IgnoresChains => "ignores-chains",
            Self::RenumbersForNewLives => "renumbers-for-new-lives",
            Self::ForgetsOutboxes => "forgets-outboxes",
            Self::IgnoresWindow => "ignores-window",
            Self::LeavesWithMass => "leaves-with-mass",
            Self::LeavesUnheard => "leaves-unheard",
            Self::HearsParcelsOnly => "hears-parcels-only",
            Self::LeavesOldGenerationsAlone => "leaves-old-generations-alone",
            Self::NeverReserves => "never-reserves",
            Self::BelievesAnyone => "believes-anyone",
            Self::NeverPaces => "never-paces",
            Self::KeepsAll => "keeps-all",
            Self::BelievesTornRecords => "believes-torn-records",
            Self::OverlooksNewestRecord => "overlooks-newest-record",
            Self::TrustsUnsyncedRecords => "trusts-unsynced-records",
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

#[cfg(feature = "sim")]
impl NodeConfig {
    /// Plants a bug in a node.
    pub fn plant(&mut self, bug: Planted) {
        self.planted = Some(bug);
    }
}
