//! The choice of the slot that the next record overwrites.
//!
//! A slot is a file of fixed size that holds one record. It may be overwritten unless it holds the newest record on
//! disk, or one whose payload the newest still owes to a receiver. In the worst case every link is stuck with a full
//! outbox, each of its parcels is of another step, and all of these are in other records than the newest: out-degree *
//! [`WINDOW`] slots that cannot be touched, one for the newest, and one to write.
//!
//! Two slots and a [`Postscript`] to each newest record are enough where nothing was acknowledged late.

use std::collections::BTreeSet;

use thiserror::Error;

use super::postscript::Postscript;
use super::recovery::{SlotContent, Survey};
use super::{Books, HostState};
use crate::window::WINDOW;

/// The contents of a node's slots: pure bookkeeping, which writes nothing itself.
///
/// ```
/// # use mingle_protocol::{Books, Generation, Mass, NodeId, record::SlotMap};
/// # let books = |number| Books {
/// #     number, generation: Generation { counter: 0, plan_hash: [0; 32] }, task: [0; 32], id: NodeId(0),
/// #     incarnation: 1, brought: Mass::ONE, mass: Mass::ONE, step: 0, split_done: false,
/// #     neighbours: Default::default(), incoming: Default::default(), outgoing: Default::default(), left: Vec::new(), evidence: Default::default(), host: Default::default(),
/// # };
/// let mut slots = SlotMap::new(SlotMap::worst_case(0));
/// let slot = slots.claim(&books(1))?;
/// // Here the host writes the record and waits until it is on the disk.
/// slots.complete(slot, &books(1));
/// assert_ne!(slots.claim(&books(2))?, slot);
/// # Ok::<(), mingle_protocol::record::SlotError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlotMap {
    slots: Vec<Held>,
    newest: Option<Newest>,
}

/// The content of one slot. The order is that in which free slots are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Held {
    /// A write that was not completed, or something that cannot be read. Taken first, so that a crash leaves no more
    /// than one such slot: more than one is the mark of a damaged disk.
    Torn,
    /// Nothing.
    Empty,
    /// The record with this number.
    Record(u64),
}

/// The newest record on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Newest {
    number: u64,
    owed: BTreeSet<u64>,
    /// Its books, without the state of the host.
    books: Books,
    has_postscript: bool,
}

impl SlotMap {
    /// As many slots as a node with `out_links` links to others can ever need.
    pub const fn worst_case(out_links: usize) -> usize {
        out_links.saturating_mul(WINDOW).saturating_add(2)
    }

    /// New slots, all of them empty.
    pub fn new(slots: usize) -> Self {
        Self { slots: vec![Held::Empty; slots], newest: None }
    }

    /// Slots that were there already, and the result of a [`survey`](super::survey) of them.
    ///
    /// Without a survey nothing in them is protected: for a host that has given up the records in them.
    pub fn found(contents: &[SlotContent], survey: Option<&Survey>) -> Self {
        let slots = contents
            .iter()
            .map(|content| match content {
                SlotContent::Empty => Held::Empty,
                SlotContent::Unreadable => Held::Torn,
                SlotContent::Holds(outline) => Held::Record(outline.books.number),
            })
            .collect();
        let newest = survey.and_then(|survey| match contents.get(survey.newest) {
            Some(SlotContent::Holds(outline)) => {
                Some(Newest { has_postscript: outline.has_postscript, ..Newest::of(&outline.books) })
            }
            _ => None,
        });
        Self { slots, newest }
    }

    /// Adds empty slots, up to this many in all.
    pub fn grow(&mut self, slots: usize) {
        self.slots.resize(self.slots.len().max(slots), Held::Empty);
    }

    /// The last slot, if there are more than `slots`, it holds nothing that is needed, and another one is free for the
    /// next record, or `makes_as_needed` is set and the host makes one: the host may remove it, and then calls
    /// [`remove_last`](Self::remove_last). Always the last, so that no gap is left among those that remain.
    pub fn superfluous(&self, slots: usize, makes_as_needed: bool) -> Option<usize> {
        let last = self.slots.len().checked_sub(1)?;
        let is_spare = makes_as_needed || self.slots[..last].iter().any(|held| self.is_free(*held));
        (last >= slots && is_spare && self.is_free(self.slots[last])).then_some(last)
    }

    /// Notes that the last slot was removed.
    pub fn remove_last(&mut self) {
        self.slots.pop();
    }

    /// The number of slots.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns `true` if there is no slot at all.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The highest number of any record in a slot, protected or not: the next one must exceed it to be found.
    pub fn highest(&self) -> Option<u64> {
        let number = |held: &Held| if let Held::Record(number) = held { Some(*number) } else { None };
        self.slots.iter().filter_map(number).max()
    }

    /// Chooses the slot for a record that is to be written now. Until [`complete`](Self::complete) is called the slot
    /// counts as torn, so a write that fails is made good by the next.
    ///
    /// # Errors
    /// [`SlotError`] when the record must not be written, or there is no room for it.
    pub fn claim(&mut self, books: &Books) -> Result<usize, SlotError> {
        let number = books.number;
        if let Some(newest) = self.highest().filter(|highest| *highest >= number) {
            return Err(SlotError::NotNewer { number, newest });
        }
        let is_held = |record: &u64| *record == number || self.slots.contains(&Held::Record(*record));
        if let Some(record) = books.owed_records().into_iter().find(|record| !is_held(record)) {
            return Err(SlotError::NotHeld { number, record });
        }
        let free = self.slots.iter().enumerate().filter(|(_, held)| self.is_free(**held));
        let (slot, _) = free.min_by_key(|(_, held)| **held).ok_or(SlotError::NoneFree { slots: self.slots.len() })?;
        self.slots[slot] = Held::Torn;
        Ok(slot)
    }

    /// Notes that the record of these books is on the disk, in this slot.
    pub fn complete(&mut self, slot: usize, books: &Books) {
        if let Some(held) = self.slots.get_mut(slot) {
            *held = Held::Record(books.number);
            self.newest = Some(Newest::of(books));
        }
    }

    /// The postscript to the newest record that would make a slot free for the record of these books, and the slot that it
    /// is to be written to. Once it is on the disk, the host calls [`add_postscript`](Self::add_postscript).
    pub fn postscript(&self, books: &Books) -> Option<(usize, Postscript)> {
        let newest = self.newest.as_ref().filter(|newest| !newest.has_postscript)?;
        let postscript = Postscript::between(&newest.books, books)?;
        let after = newest.with(&postscript);
        let is_freed = |held: &Held| matches!(held, Held::Record(number) if newest.owed.contains(number) && !after.is_needed(*number));
        let slot = self.slots.iter().position(|held| *held == Held::Record(newest.number))?;
        self.slots.iter().any(is_freed).then_some((slot, postscript))
    }

    /// Notes that a postscript to the newest record is on the disk.
    pub fn add_postscript(&mut self, postscript: &Postscript) {
        self.newest = self.newest.take().map(|newest| newest.with(postscript));
    }

    fn is_free(&self, held: Held) -> bool {
        match (held, &self.newest) {
            (Held::Record(number), Some(newest)) => !newest.is_needed(number),
            _ => true,
        }
    }
}

impl Newest {
    fn of(books: &Books) -> Self {
        let known = Books { host: HostState::default(), ..books.clone() };
        Self { number: books.number, owed: books.owed_records(), books: known, has_postscript: false }
    }

    /// The newest record with a postscript.
    fn with(&self, postscript: &Postscript) -> Self {
        let mut books = self.books.clone();
        postscript.apply(&mut books);
        Self { has_postscript: true, ..Self::of(&books) }
    }

    fn is_needed(&self, number: u64) -> bool {
        number == self.number || self.owed.contains(&number)
    }
}

/// A reason why a record must not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum SlotError {
    /// Its number does not exceed that of a record in another slot: it would not be found again.
    #[error("record {number} cannot follow record {newest}: the numbers must ascend")]
    NotNewer { number: u64, newest: u64 },
    /// It names a payload that is in no slot: it could not be recovered.
    #[error("record {number} owes a payload of record {record}, which is in no slot")]
    NotHeld { number: u64, record: u64 },
    /// Every slot holds something that is still needed.
    #[error("all {slots} slots hold payloads that are still owed")]
    NoneFree { slots: usize },
}

#[cfg(test)]
mod tests;
