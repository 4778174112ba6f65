//! The auditor of the wire: mass is neither made nor lost, in any event, by any node.
//!
//! It trusts no total a node keeps. It sees every parcel when it is handed to the disk in a record, or put on the wire
//! where there are no records. From a node it reads only its weight and the number up to which it has applied each
//! link. All mass a node gained must be in parcels that the auditor saw another node give, each once. All mass it lost
//! must be in parcels that the auditor saw it give. And the parcels on the wire must be those handed to the disk
//! before.
//!
//! A process that dies takes back what it did since the record it starts again from. So the auditor keeps the moves of
//! each node since the record that is known to be on its disk, and undoes them when the node starts from there. It
//! holds one ledger a generation. Where a disk lost a record, or a member lies, the generation is void: nothing is
//! checked, nor counted as checked, until a newer one.

mod account;
mod balance;
mod parcels;

use std::collections::{BTreeMap, VecDeque};

use account::{Account, HandedIn};
use parcels::{Lives, ParcelId};

use super::error::SimError;
use crate::ledger::LedgerSummary;
use crate::mass::Mass;
use crate::message::{Generation, ParcelHeader};
use crate::node::Node;
use crate::record::Books;
use crate::schedule::NodeId;
use crate::time::Time;

/// The state of the auditor.
#[derive(Debug)]
pub(super) struct Conservation {
    generations: Vec<Generation>,
    sums: Vec<Sums>,
    /// This generation and all before it are void.
    void: Option<Generation>,
    keeps_records: bool,
    /// Every parcel ever seen, until it is applied or taken back.
    under_way: BTreeMap<Lives, BTreeMap<u64, Mass>>,
    /// Those of them that the receiver refused.
    refused: BTreeMap<Lives, BTreeMap<u64, Mass>>,
    last_given: BTreeMap<Lives, u64>,
    accounts: BTreeMap<NodeId, Account>,
    checks: u64,
}

/// The sums of one generation, in units. Those of a void one mean nothing.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    /// The mass that all nodes brought when they entered it.
    founded: i128,
    held: i128,
    outstanding: i128,
    lost_with_nodes: i128,
}

impl Conservation {
    pub(super) fn new(keeps_records: bool) -> Self {
        Self {
            generations: Vec::new(),
            sums: Vec::new(),
            void: None,
            keeps_records,
            under_way: BTreeMap::new(),
            refused: BTreeMap::new(),
            last_given: BTreeMap::new(),
            accounts: BTreeMap::new(),
            checks: 0,
        }
    }

    /// Comparisons of sums that could have failed.
    pub(super) fn checks(&self) -> u64 {
        self.checks
    }

    /// Mass that died with crashed nodes, in units, not counting parcels to or from them.
    pub(super) fn lost_with_nodes(&self) -> u128 {
        self.sum_of(|sums| sums.lost_with_nodes)
    }

    /// Mass in parcels not applied by the life they are meant for, in units; those to dead lives never will be.
    pub(super) fn outstanding(&self) -> u128 {
        self.sum_of(|sums| sums.outstanding)
    }

    fn sum_of(&self, what: fn(&Sums) -> i128) -> u128 {
        self.sums.iter().map(what).sum::<i128>().unsigned_abs()
    }

    /// Voids this generation and those before it: nothing adds up in them any more.
    pub(super) fn give_up(&mut self, generation: Generation) {
        if self.void.is_none_or(|void| generation.replaces(&void)) {
            self.void = Some(generation);
        }
        let is_void: Vec<bool> = (0..self.generations.len()).map(|ledger| self.is_void(ledger)).collect();
        let is_exact = |lives: &Lives| !is_void[lives.ledger];
        self.under_way.retain(|lives, _| is_exact(lives));
        self.refused.retain(|lives, _| is_exact(lives));
        self.last_given.retain(|lives, _| is_exact(lives));
    }

    /// Opens the account of a node that begins with no record.
    pub(super) fn born(&mut self, id: NodeId, generation: Generation, books: LedgerSummary) {
        self.forget(id);
        let ledger = self.ledger_of(generation);
        self.sums[ledger].founded += units(books.initial);
        self.sums[ledger].held += units(books.mass);
        self.accounts.insert(id, Account { ledger, founded: books.initial, seen: books, ..Account::default() });
    }

    /// Closes the account of a node that is gone with all it held.
    pub(super) fn died(&mut self, id: NodeId) {
        if let Some(account) = self.accounts.remove(&id) {
            self.sums[account.ledger].held -= units(account.seen.mass);
            self.sums[account.ledger].lost_with_nodes += units(account.seen.mass);
        }
    }

    /// Starts a node again from a record: its moves after that record are undone.
    ///
    /// # Errors
    /// [`SimError::NodeMass`] where it holds another mass than when it handed in that record.
    pub(super) fn resumed(
        &mut self,
        now: Time,
        id: NodeId,
        books: &Books,
        after: LedgerSummary,
    ) -> Result<(), SimError> {
        let ledger = self.ledger_of(books.generation);
        let account = self.accounts.entry(id).or_default();
        let record = account.records.iter().find(|record| record.number == books.number);
        let Some(moves) = record.map(|record| record.moves) else {
            // An older record than its last. The generation of that is void; if it had none, its moves were seen by no
            // other node.
            self.forget(id);
            let records = VecDeque::from([HandedIn { number: books.number, moves: 0, ledger, mass: after.mass }]);
            self.accounts.insert(id, Account { ledger, seen: after, records, ..Account::default() });
            return Ok(());
        };
        self.undo(id, moves);
        let Some(account) = self.accounts.get_mut(&id) else {
            return Ok(());
        };
        account.records.retain(|record| record.number <= books.number);
        let Some(record) = account.records.back() else {
            return Ok(());
        };
        let ledger = record.ledger;
        let holds = after.mass;
        let should_hold = record.mass;
        account.ledger = ledger;
        account.seen = after;
        self.sums[ledger].held += units(should_hold);
        if self.is_void(ledger) || holds == should_hold {
            return Ok(());
        }
        Err(SimError::NodeMass { now, id, holds: holds.units().into(), should_hold: units(should_hold) })
    }

    /// Notes that a record is on the disk of a node, which never starts from an earlier one again.
    pub(super) fn written(&mut self, id: NodeId, number: u64) {
        let Some(account) = self.accounts.get_mut(&id) else {
            return;
        };
        account.records.retain(|record| record.number >= number);
        let settled = account.records.front().map_or(account.settled, |record| record.moves);
        account.moves.drain(..(settled - account.settled) as usize);
        account.settled = settled;
    }

    /// Checks the moves of a node up to a record that it hands in, with the parcels that are in no record before.
    pub(super) fn check_record(&mut self, now: Time, id: NodeId, books: &Books) -> Result<(), SimError> {
        let ledger = self.ledger_of(books.generation);
        let mut given = Vec::new();
        for (&to, link) in &books.outgoing {
            let lives = Lives {
                ledger,
                from: id,
                sender_incarnation: books.incarnation,
                to,
                receiver_incarnation: link.receiver_incarnation,
            };
            let last = self.last_given.get(&lives).copied().unwrap_or(0);
            let new = link.outbox.iter().filter(|parcel| parcel.seq > last);
            given.extend(new.map(|parcel| (ParcelId { lives, seq: parcel.seq }, parcel.mass)));
        }
        self.observe(now, id, ledger, books.ledger(), &given)?;
        if let Some(account) = self.accounts.get_mut(&id) {
            let moves = account.settled + account.moves.len() as u64;
            account.records.push_back(HandedIn { number: books.number, moves, ledger, mass: books.mass });
        }
        Ok(())
    }

    /// The ledger of a node as it is now, for [`check`](Self::check): written over one that is not needed any more.
    pub(super) fn ledger_now(&mut self, node: &Node) -> LedgerSummary {
        let account = self.accounts.get_mut(&node.id());
        let mut books = account.map(|account| std::mem::take(&mut account.spare)).unwrap_or_default();
        node.ledger_into(&mut books);
        books
    }

    /// Checks the effect of one event on `id`, which put `sent` on the wire in it.
    pub(super) fn check(
        &mut self,
        now: Time,
        id: NodeId,
        generation: Generation,
        after: LedgerSummary,
        sent: &[(NodeId, ParcelHeader)],
    ) -> Result<(), SimError> {
        let mut given = Vec::new();
        for (to, header) in sent {
            let ledger = self.ledger_of(header.generation);
            if self.is_void(ledger) {
                continue;
            }
            let lives = Lives {
                ledger,
                from: id,
                sender_incarnation: header.sender_incarnation,
                to: *to,
                receiver_incarnation: header.receiver_incarnation,
            };
            let parcel = ParcelId { lives, seq: header.seq };
            let is_new = self.last_given.get(&lives).is_none_or(|last| header.seq > *last);
            let known = self.under_way.get(&lives).and_then(|parcels| parcels.get(&header.seq));
            if (is_new && self.keeps_records) || known.is_some_and(|known| *known != header.mass) {
                return Err(SimError::UnrecordedParcel { now, from: id, to: *to, seq: header.seq });
            }
            // One event may send a parcel twice.
            if is_new && !given.iter().any(|(known, _)| *known == parcel) {
                given.push((parcel, header.mass));
            }
        }
        let ledger = self.ledger_of(generation);
        self.observe(now, id, ledger, after, &given)
    }

    fn ledger_of(&mut self, generation: Generation) -> usize {
        let known = self.generations.iter().rposition(|known| *known == generation);
        known.unwrap_or_else(|| {
            self.generations.push(generation);
            self.sums.push(Sums::default());
            self.generations.len() - 1
        })
    }

    fn is_void(&self, ledger: usize) -> bool {
        self.void.is_some_and(|void| !self.generations[ledger].replaces(&void))
    }
}

fn units(mass: Mass) -> i128 {
    i128::from(mass.units())
}

#[cfg(test)]
mod tests;
