//! The auditor of the disks: over durable states alone, mass is neither made nor lost.
//!
//! ```text
//!   sum of w_i + sum over links j -> i of the parcels in the outbox of j that i has not applied, or refused = founders
//! ```
//!
//! It reads nothing but the newest record on every disk, as a stranger could after a loss of power. The identity holds
//! after every single write, for the newest generation: nodes that have not entered it yet have no part in it. Only the
//! links of the node that wrote are added up again.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::mass::UNITS_PER_ONE;
use crate::message::Generation;
use crate::record::{InBooks, Record};
use crate::schedule::NodeId;

/// The mass on all disks together, in units of 2^-40.
#[derive(Debug, Default)]
pub(super) struct DurableLedger {
    generation: Option<Generation>,
    newest: BTreeMap<NodeId, Arc<Record>>,
    held: u128,
    owed: BTreeMap<(NodeId, NodeId), u128>,
    owed_in_all: u128,
}

impl DurableLedger {
    /// Sets or removes the newest record of a node.
    pub(super) fn update(&mut self, id: NodeId, record: Option<&Arc<Record>>) {
        let record = record.filter(|record| self.is_of_newest_generation(record.books.generation));
        let before = match record {
            Some(record) => self.newest.insert(id, Arc::clone(record)),
            None => self.newest.remove(&id),
        };
        let held = |record: Option<&Arc<Record>>| record.map_or(0, |record| u128::from(record.books.mass.units()));
        self.held = self.held + held(record) - held(before.as_ref());
        let links = [before.as_ref(), record].into_iter().flatten().flat_map(|record| {
            let out = record.books.outgoing.keys().map(|&to| (id, to));
            out.chain(record.books.incoming.keys().map(|&from| (from, id)))
        });
        for link in links.collect::<Vec<_>>() {
            self.add_up(link);
        }
    }

    /// Returns `true` if this is the newest generation; the first record of a new one opens its ledger.
    fn is_of_newest_generation(&mut self, generation: Generation) -> bool {
        if self.generation.is_none_or(|known| generation.replaces(&known)) {
            *self = Self { generation: Some(generation), ..Self::default() };
        }
        self.generation == Some(generation)
    }

    pub(super) fn generation(&self) -> Option<Generation> {
        self.generation
    }

    /// The mass that nodes hold, and the mass that is owed.
    pub(super) fn held_and_owed(&self) -> (u128, u128) {
        (self.held, self.owed_in_all)
    }

    /// The mass there is now, and the mass that the nodes with a record brought.
    pub(super) fn total_and_brought(&self) -> (u128, u128) {
        (self.held + self.owed_in_all, self.newest.len() as u128 * u128::from(UNITS_PER_ONE))
    }

    fn add_up(&mut self, (from, to): (NodeId, NodeId)) {
        let owed = self.owed_on(from, to);
        let before = if owed == 0 { self.owed.remove(&(from, to)) } else { self.owed.insert((from, to), owed) };
        self.owed_in_all = self.owed_in_all + owed - before.unwrap_or(0);
    }

    fn owed_on(&self, from: NodeId, to: NodeId) -> u128 {
        let Some(sender) = self.newest.get(&from) else {
            return 0;
        };
        let Some(link) = sender.books.outgoing.get(&to) else {
            return 0;
        };
        let receiver = self.newest.get(&to).map(|record| &record.books);
        let is_of_this_life = |books: &&InBooks| books.sender_incarnation == sender.books.incarnation;
        let applied = receiver.and_then(|books| books.incoming.get(&from)).filter(is_of_this_life);
        let is_owed =
            |seq: u64| applied.is_none_or(|books| seq > books.applied || books.rejected.contains(books.applied, seq));
        let owed = link.outbox.iter().filter(|parcel| is_owed(parcel.seq));
        owed.map(|parcel| u128::from(parcel.mass.units())).sum()
    }
}
