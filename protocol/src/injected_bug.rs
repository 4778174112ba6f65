//! Bugs that a node has on purpose (mutation testing): each breaks one rule of the protocol, and the fault tests must
//! find it.
//!
//! They are there only with the feature `injected-bugs`. Without it [`Injected::is`] is the constant `false`, so that
//! no branch on a bug is left in the program, and a request for one is an error.
#![cfg_attr(
    not(feature = "sim"),
    allow(unreachable_pub, dead_code, reason = "only tests outside of the crate name it")
)]

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A rule that a node breaks on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InjectedBug {
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
    /// A neighbour's proof that the node was rolled back is ignored.
    NeverDiscards,
    /// A new life keeps the weight of the one before.
    KeepsMassAfterRollback,
    /// Cumulative ack echoes, by which neighbours repeat what was confirmed to them, are ignored.
    IgnoresAckEchoes,
    /// Parcels are distinguished by their numbers alone.
    IgnoresChains,
    /// Parcels that an earlier life of a neighbour may have applied are sent again to its new one.
    RenumbersForNewLives,
    /// A node that starts again does not remember what it owes.
    ForgetsOutboxes,
    /// More parcels than the window holds are owed on one link.
    IgnoresWindow,
    /// A node that leaves does not wait until it has handed everything over.
    LeavesWithMass,
    /// A node that leaves hands its weight over, and keeps the changes that it held back.
    LeavesWithLearning,
    /// The part of a change for which a node has no weight is dropped.
    DropsUncarried,
    /// A node that starts again does not remember the changes that it held back.
    ForgetsHeldBack,
    /// A node that leaves does not wait until its neighbours have received its acknowledgements.
    LeavesUnheard,
    /// Only parcels announce a newer generation, so that idle nodes never learn of it.
    HearsParcelsOnly,
    /// Messages of an older generation are not answered.
    LeavesOldGenerationsAlone,
    /// A node asks for no more record slots when a plan gives it more receivers, and splits all the same.
    NeverReserves,
    /// Every claim of a neighbour about this node's lives, or about its own progress, is taken for true.
    BelievesAnyone,
    /// A node that is cut off from others goes on as fast as it can.
    NeverPaces,
    /// A node gives every neighbour its share, however little comes back.
    GivesWithoutCredit,
    /// A node sends no mass. No ledger is wrong by it: the others only notice that they have less and less.
    KeepsAll,
    /// A node that starts takes a record for whole whatever its checksum is.
    BelievesTornRecords,
    /// A node that starts does not see its newest record.
    OverlooksNewestRecord,
    /// A node that starts goes on from a record that it could read, without making sure that it is on the disk.
    TrustsUnsyncedRecords,
}

impl InjectedBug {
    /// `true` if this program can inject bugs: the feature `injected-bugs`.
    pub const BUILT_IN: bool = cfg!(feature = "injected-bugs");

    /// All bugs, whether or not they are built in.
    pub const ALL: [Self; 28] = [
        Self::SendsBeforeWriting,
        Self::ConfirmsBeforeWriting,
        Self::AppliesTwice,
        Self::IgnoresLives,
        Self::IgnoresGenerations,
        Self::DropsNumerators,
        Self::NeverDiscards,
        Self::KeepsMassAfterRollback,
        Self::IgnoresAckEchoes,
        Self::IgnoresChains,
        Self::RenumbersForNewLives,
        Self::ForgetsOutboxes,
        Self::IgnoresWindow,
        Self::LeavesWithMass,
        Self::LeavesWithLearning,
        Self::DropsUncarried,
        Self::ForgetsHeldBack,
        Self::LeavesUnheard,
        Self::HearsParcelsOnly,
        Self::LeavesOldGenerationsAlone,
        Self::NeverReserves,
        Self::BelievesAnyone,
        Self::NeverPaces,
        Self::GivesWithoutCredit,
        Self::KeepsAll,
        Self::BelievesTornRecords,
        Self::OverlooksNewestRecord,
        Self::TrustsUnsyncedRecords,
    ];

    /// Refuses a bug that would have no effect.
    ///
    /// # Errors
    /// [`InjectionError::NotBuiltIn`] where there is one and the feature `injected-bugs` is off.
    pub(crate) fn check_built_in(bug: Option<Self>) -> Result<(), InjectionError> {
        checked(bug, Self::BUILT_IN)
    }

    /// The name on a command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SendsBeforeWriting => "sends-before-writing",
            Self::ConfirmsBeforeWriting => "confirms-before-writing",
            Self::AppliesTwice => "applies-twice",
            Self::IgnoresLives => "ignores-lives",
            Self::IgnoresGenerations => "ignores-generations",
            Self::DropsNumerators => "drops-numerators",
            Self::NeverDiscards => "never-discards",
            Self::KeepsMassAfterRollback => "keeps-mass-after-rollback",
            Self::IgnoresAckEchoes => "ignores-ack-echoes",
            Self::IgnoresChains => "ignores-chains",
            Self::RenumbersForNewLives => "renumbers-for-new-lives",
            Self::ForgetsOutboxes => "forgets-outboxes",
            Self::IgnoresWindow => "ignores-window",
            Self::LeavesWithMass => "leaves-with-mass",
            Self::LeavesWithLearning => "leaves-with-learning",
            Self::DropsUncarried => "drops-uncarried",
            Self::ForgetsHeldBack => "forgets-held-back",
            Self::LeavesUnheard => "leaves-unheard",
            Self::HearsParcelsOnly => "hears-parcels-only",
            Self::LeavesOldGenerationsAlone => "leaves-old-generations-alone",
            Self::NeverReserves => "never-reserves",
            Self::BelievesAnyone => "believes-anyone",
            Self::NeverPaces => "never-paces",
            Self::GivesWithoutCredit => "gives-without-credit",
            Self::KeepsAll => "keeps-all",
            Self::BelievesTornRecords => "believes-torn-records",
            Self::OverlooksNewestRecord => "overlooks-newest-record",
            Self::TrustsUnsyncedRecords => "trusts-unsynced-records",
        }
    }
}

impl fmt::Display for InjectedBug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for InjectedBug {
    type Err = InjectionError;

    fn from_str(name: &str) -> Result<Self, InjectionError> {
        named(name, Self::BUILT_IN)
    }
}

fn named(name: &str, built_in: bool) -> Result<InjectedBug, InjectionError> {
    let known = InjectedBug::ALL.into_iter().find(|bug| bug.name() == name);
    let bug = known.ok_or_else(|| InjectionError::Unknown(name.to_owned()))?;
    checked(Some(bug), built_in)?;
    Ok(bug)
}

fn checked(bug: Option<InjectedBug>, built_in: bool) -> Result<(), InjectionError> {
    if bug.is_some() && !built_in { Err(InjectionError::NotBuiltIn) } else { Ok(()) }
}

/// A reason why a bug cannot be injected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InjectionError {
    /// A name that no bug has.
    #[error("there is no bug \"{0}\" to inject: take {names}", names = InjectedBug::ALL.map(InjectedBug::name).join(", "))]
    Unknown(String),
    /// The program was built without the feature `injected-bugs`.
    #[error(
        "this program cannot inject bugs: build it with the feature `injected-bugs` (cargo build --features injected-bugs)"
    )]
    NotBuiltIn,
}

/// The bug that a node has, if any.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Injected {
    #[cfg(feature = "injected-bugs")]
    bug: Option<InjectedBug>,
}

#[cfg(feature = "injected-bugs")]
impl Injected {
    pub(crate) fn new(bug: Option<InjectedBug>) -> Self {
        Self { bug }
    }

    pub(crate) fn is(self, bug: InjectedBug) -> bool {
        self.bug == Some(bug)
    }
}

#[cfg(not(feature = "injected-bugs"))]
impl Injected {
    /// No bug: [`InjectedBug::check_built_in`] has refused any.
    pub(crate) const fn new(_bug: Option<InjectedBug>) -> Self {
        Self {}
    }

    pub(crate) const fn is(self, _bug: InjectedBug) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_injected_bugs_says_how_to_build_one_that_has_them() {
        let bug = InjectedBug::AppliesTwice;
        assert_eq!(named("applies-twice", true), Ok(bug));
        assert_eq!(named("applies-twice", false), Err(InjectionError::NotBuiltIn));
        assert!(matches!(named("gremlins", false), Err(InjectionError::Unknown(name)) if name == "gremlins"));
        assert_eq!((checked(Some(bug), true), checked(None, false)), (Ok(()), Ok(())));
        assert_eq!(checked(Some(bug), false), Err(InjectionError::NotBuiltIn));
        assert!(InjectionError::NotBuiltIn.to_string().contains("--features injected-bugs"));
    }
}
