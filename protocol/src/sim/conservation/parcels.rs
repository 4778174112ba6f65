//! The parcels that are under way between two lives, and those that were refused.

use super::{Conservation, units};
use crate::mass::Mass;
use crate::schedule::NodeId;
use crate::sim::error::SimError;
use crate::time::Time;

/// A link between two lives, in one ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lives {
    /// The index of its generation.
    pub(super) ledger: usize,
    pub(super) from: NodeId,
    pub(super) sender_incarnation: u64,
    pub(super) to: NodeId,
    pub(super) receiver_incarnation: u64,
}

/// A parcel by its link and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ParcelId {
    pub(super) lives: Lives,
    pub(super) seq: u64,
}

/// The set in which the auditor keeps a parcel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Where {
    UnderWay,
    Refused,
}

/// A move of a node, of which its next process may have no record.
#[derive(Clone, Copy, Debug)]
pub(super) enum Move {
    /// It gave a parcel away.
    Gave(ParcelId),
    /// It made a parcel part of what it holds.
    Applied(ParcelId, Mass),
    /// It refused a parcel.
    Refused(ParcelId, Mass),
    /// It took a parcel of its own back, which the receiver had refused or not applied.
    TookBack(ParcelId, Mass, Where),
    /// It entered another ledger; the one that it left, and the mass it held there.
    Entered { from: usize, left: Mass, brought: Mass },
}

impl Conservation {
    pub(super) fn arrived(&self, lives: Lives, applied: u64) -> Vec<u64> {
        let parcels = self.under_way.get(&lives);
        parcels.map(|parcels| parcels.range(..=applied).map(|(seq, _)| *seq).collect()).unwrap_or_default()
    }

    /// Moves a parcel from the wire to its receiver.
    pub(super) fn apply(&mut self, now: Time, parcel: ParcelId) -> Result<i128, SimError> {
        let Lives { from, to, .. } = parcel.lives;
        let mass = self.take(Where::UnderWay, parcel);
        let mass = mass.ok_or(SimError::UnknownParcel { now, from, to, seq: parcel.seq })?;
        self.note(to, Move::Applied(parcel, mass));
        Ok(units(mass))
    }

    pub(super) fn put(&mut self, place: Where, ParcelId { lives, seq }: ParcelId, mass: Mass) {
        let parcels = if place == Where::UnderWay { &mut self.under_way } else { &mut self.refused };
        parcels.entry(lives).or_default().insert(seq, mass);
        self.sums[lives.ledger].outstanding += units(mass);
    }

    pub(super) fn take(&mut self, place: Where, ParcelId { lives, seq }: ParcelId) -> Option<Mass> {
        let parcels = if place == Where::UnderWay { &mut self.under_way } else { &mut self.refused };
        let mass = parcels.get_mut(&lives)?.remove(&seq)?;
        self.sums[lives.ledger].outstanding -= units(mass);
        Some(mass)
    }
}
