//! Fault profiles: the kinds of faults that hit a swarm, and their numbers; a seed draws the swarm and the schedule.

mod fault_generator;
mod scenario;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub(super) use fault_generator::fault_schedule;
pub use scenario::Scenario;

use fault_generator::Mix;

/// A kind of fault schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Processes are killed at any moment, also while they write, and start again; the network loses and reorders.
    Kill,
    /// Six to seven of ten messages are lost.
    Loss,
    /// The swarm is partitioned for an hour at a time, with everything slower to match.
    Partition,
    /// Members come and go: they leave, are removed and join.
    Churn,
    /// Kills, pauses, partitions, full and slow disks, members that come and go, in swarms of up to 64.
    Mixed,
    /// Disks come back as an older copy of themselves.
    Rollback,
    /// Disks come back empty, as an older copy, or with flipped bits, files cut off and sectors that were never
    /// written.
    LossyDisk,
    /// The plan averages exactly over a tree, and nodes send differences to what they had in common, while processes are
    /// killed, streams break and members come and go.
    ExactAverage,
    /// A member sends arbitrary messages, until a plan without it begins a new generation.
    Hostile,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 9] = [
        Self::Kill,
        Self::Loss,
        Self::Partition,
        Self::Churn,
        Self::Mixed,
        Self::Rollback,
        Self::LossyDisk,
        Self::ExactAverage,
        Self::Hostile,
    ];

    /// The name on a command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Loss => "loss",
            Self::Partition => "partition",
            Self::Churn => "churn",
            Self::Mixed => "mixed",
            Self::Rollback => "rollback",
            Self::LossyDisk => "lossy-disk",
            Self::ExactAverage => "exact-average",
            Self::Hostile => "hostile",
        }
    }

    /// Returns `true` if disks lose what was on them, so that the sum of weights is not promised.
    pub const fn loses_records(self) -> bool {
        matches!(self, Self::Rollback | Self::LossyDisk)
    }

    fn most_nodes(self) -> u32 {
        match self {
            Self::Kill | Self::ExactAverage => 8,
            Self::Partition | Self::Churn | Self::Rollback | Self::LossyDisk | Self::Hostile => 16,
            Self::Loss | Self::Mixed => 64,
        }
    }

    /// The number of faults of each kind per 120 s.
    fn mix(self) -> Mix {
        match self {
            Self::Kill => Mix { kills: 55, breaks: 15, ..Mix::default() },
            Self::Loss => Mix { kills: 30, mutes: 10, ..Mix::default() },
            Self::Partition => Mix { kills: 40, partitions: 7, ..Mix::default() },
            Self::Churn => Mix { kills: 10, breaks: 5, replans: 2, resizes: 5, leaves: 3, ..Mix::default() },
            Self::Mixed => Mix {
                kills: 30,
                breaks: 15,
                partitions: 2,
                pauses: 8,
                full_disks: 5,
                slow_disks: 5,
                replans: 2,
                resizes: 2,
                leaves: 1,
                mutes: 5,
                failed_syncs: 3,
                ..Mix::default()
            },
            Self::Rollback => Mix { kills: 5, breaks: 5, rollbacks: 1, ..Mix::default() },
            Self::LossyDisk => {
                Mix { kills: 15, breaks: 5, rollbacks: 4, wipes: 4, damages: 6, replans: 4, ..Mix::default() }
            }
            Self::ExactAverage => {
                Mix { kills: 25, breaks: 10, pauses: 4, replans: 1, leaves: 1, mutes: 3, ..Mix::default() }
            }
            Self::Hostile => Mix { kills: 10, breaks: 5, mutes: 3, hostile: 1, ..Mix::default() },
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        Self::ALL.into_iter().find(|profile| profile.name() == name).ok_or_else(|| UnknownProfile(name.to_owned()))
    }
}

/// A name that no profile has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no profile \"{0}\": take {names}", names = Profile::ALL.map(Profile::name).join(", "))]
pub struct UnknownProfile(String);

/// The factor by which everything is slower than usual: partitions of an hour are only bearable in a swarm with long
/// rounds.
fn pace(profile: Profile) -> u32 {
    if profile == Profile::Partition { 300 } else { 1 }
}
