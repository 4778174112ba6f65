//! An undo log of each node: its moves since the oldest record that it may start again from.

use std::collections::VecDeque;

use super::parcels::{Move, Where};
use super::{Conservation, units};
use crate::ledger::LedgerSummary;
use crate::mass::Mass;
use crate::schedule::NodeId;

/// The moves of a node, as far as they can be undone.
#[derive(Debug, Default)]
pub(super) struct Account {
    pub(super) ledger: usize,
    /// The mass it began its first ledger with.
    pub(super) founded: Mass,
    /// The books of the node when they were last seen.
    pub(super) seen: LedgerSummary,
    /// Those before, to be written over.
    pub(super) spare: LedgerSummary,
    /// Moves since the oldest of the records below.
    pub(super) moves: VecDeque<Move>,
    /// The number of moves before those.
    pub(super) settled: u64,
    pub(super) records: VecDeque<HandedIn>,
}

/// A state that the node may start again from.
#[derive(Debug)]
pub(super) struct HandedIn {
    pub(super) number: u64,
    /// Moves up to there.
    pub(super) moves: u64,
    pub(super) ledger: usize,
    pub(super) mass: Mass,
}

impl Conservation {
    /// Keeps a move as long as it may have to be undone.
    pub(super) fn note(&mut self, id: NodeId, what: Move) {
        if let Some(account) = self.accounts.get_mut(&id).filter(|_| self.keeps_records) {
            account.moves.push_back(what);
        }
    }

    /// Undoes all that is not known to be on the disk of a node, down to its birth.
    pub(super) fn forget(&mut self, id: NodeId) {
        self.undo(id, 0);
        if let Some(before) = self.accounts.remove(&id) {
            self.sums[before.ledger].founded -= units(before.founded);
        }
    }

    /// Undoes the moves of a node after its first `moves`. The caller then sets what it holds.
    pub(super) fn undo(&mut self, id: NodeId, moves: u64) {
        let Some(account) = self.accounts.get_mut(&id) else {
            return;
        };
        let keep = moves.saturating_sub(account.settled) as usize;
        let undone = account.moves.split_off(keep.min(account.moves.len()));
        let mut ledger = account.ledger;
        let mut holds = account.seen.mass;
        for what in undone.into_iter().rev() {
            match what {
                Move::Gave(parcel) if self.is_void(parcel.lives.ledger) => {}
                Move::Gave(parcel) => {
                    // Where it was applied before it was on disk it is not there any more, and the sums are off.
                    let _ = self.take(Where::UnderWay, parcel).or_else(|| self.take(Where::Refused, parcel));
                    self.last_given.insert(parcel.lives, parcel.seq - 1);
                }
                Move::Applied(parcel, _) | Move::Refused(parcel, _) | Move::TookBack(parcel, ..)
                    if self.is_void(parcel.lives.ledger) => {}
                Move::Applied(parcel, mass) => self.put(Where::UnderWay, parcel, mass),
                Move::Refused(parcel, mass) => {
                    self.take(Where::Refused, parcel);
                    self.put(Where::UnderWay, parcel, mass);
                }
                Move::TookBack(parcel, mass, place) => self.put(place, parcel, mass),
                Move::Entered { from, left, brought } => {
                    self.sums[ledger].founded -= units(brought);
                    self.sums[ledger].held -= units(holds);
                    self.sums[from].lost_with_nodes -= units(left);
                    self.sums[from].held += units(left);
                    ledger = from;
                    holds = left;
                }
            }
        }
        self.sums[ledger].held -= units(holds);
        if let Some(account) = self.accounts.get_mut(&id) {
            account.ledger = ledger;
            account.seen.mass = Mass::ZERO;
        }
    }
}
