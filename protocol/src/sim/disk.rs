//! A node's simulated disk: slots of bytes, in which records are whole, cut off, spoiled, out of date or not there.
//!
//! The slots are written by [`Record::encode`] and read as a production host reads them: [`Outline::read`] of every
//! slot, [`survey`], then [`Record::decode`] of the slots that the survey names. Beside the bytes the disk keeps the
//! records as they were handed in. No process that starts sees those: the simulator compares with them.
//!
//! A write changes whole sectors of 512 bytes, in any order; a process that dies leaves any part of them.

mod damage;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

pub(super) use damage::DiskDamage;

use crate::injected_bug::{Injected, InjectedBug};
use crate::record::{
    Outline, Postscript, Record, RecordError, Recovered, RecoveryError, SlotContent, SlotError, SlotMap,
    forge_checksum, record_length, survey,
};

/// Records that a node may hand in before any of them is on its disk: one is being written, and another replaces one
/// that waits when the node begins a new life or a new generation meanwhile.
pub(super) const MOST_UNWRITTEN: u32 = 8;

/// The record files of one node, and the writes to them.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    files: Vec<Vec<u8>>,
    /// The records in its slots: as many slots as a production host would have.
    slots: SlotMap,
    /// The slots that the node asked for last.
    wanted_slots: usize,
    /// The length of a new slot.
    slot_bytes: usize,
    /// Set when slots beyond two are made as records need them, as a host does for a large model.
    pub(super) makes_slots_as_needed: bool,
    /// The record being written, and one that waits for it.
    writing: VecDeque<Arc<Record>>,
    /// Records handed in since one was last complete.
    unwritten: u32,
    /// The last write that is complete: its slot and its length, and the content of the slot before.
    last_write: Option<(usize, usize, Vec<u8>)>,
    /// Set when the last write can be read, but a loss of power would undo it.
    is_unsynced: bool,
    /// The newest record that is complete, and those whose payloads it owes: recovery should find these.
    complete: BTreeMap<u64, Arc<Record>>,
    backup: Option<Vec<Vec<u8>>>,
    /// Set when it may hold something else than was written to it.
    pub(super) is_harmed: bool,
    /// Set when nothing can be written.
    pub(super) is_full: bool,
    /// Set when the next write fails in such a way that it is unknown whether it is there.
    pub(super) fails_sync: bool,
    /// The factor by which writes take longer than usual.
    pub(super) slowness: u32,
}

/// A record that was handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandedIn {
    /// It is being written, or will be.
    Queued,
    /// It takes the place of one that waited.
    Merged,
}

/// A reason why a record cannot be written.
#[derive(Debug)]
pub(super) enum Unwritable {
    /// No slot can take it.
    Slot(SlotError),
    /// It breaks a rule of the format.
    Record(RecordError),
}

impl Disk {
    /// Takes a record to be written. As in production, one that waits is replaced by a newer one that does not owe it.
    ///
    /// # Errors
    /// The number of records handed in since one was complete, where it is larger than any sound node's.
    pub(super) fn begin(&mut self, record: Arc<Record>) -> Result<HandedIn, u32> {
        self.unwritten += 1;
        if self.unwritten > MOST_UNWRITTEN {
            return Err(self.unwritten);
        }
        let is_superseded = |waiting: &Arc<Record>| !record.books.owed_records().contains(&waiting.books.number);
        if self.writing.len() > 1
            && let Some(waiting) = self.writing.back_mut().filter(|waiting| is_superseded(waiting))
        {
            *waiting = record;
            return Ok(HandedIn::Merged);
        }
        self.writing.push_back(record);
        Ok(HandedIn::Queued)
    }

    /// Completes the oldest write; returns the record, which is the newest on this disk from now on.
    pub(super) fn complete(&mut self) -> Result<Option<Arc<Record>>, Unwritable> {
        let Some(record) = self.writing.pop_front() else {
            return Ok(None);
        };
        let (slot, bytes) = self.claim(&record)?;
        self.write(slot, &bytes, |_| true);
        self.note_complete(slot, &record);
        self.is_unsynced = false;
        Ok(Some(record))
    }

    /// The slot for a record, and its bytes.
    fn claim(&mut self, record: &Record) -> Result<(usize, Vec<u8>), Unwritable> {
        let mut bytes = Vec::new();
        record.encode(&mut bytes).map_err(Unwritable::Record)?;
        let slot = match self.slots.claim(&record.books) {
            Err(SlotError::NoneFree { slots }) if self.makes_slots_as_needed => {
                match self.slots.postscript(&record.books) {
                    Some((slot, postscript)) => self.add_postscript(slot, &postscript),
                    None => self.grow(slots + 1),
                }
                self.slots.claim(&record.books)
            }
            claimed => claimed,
        };
        Ok((slot.map_err(Unwritable::Slot)?, bytes))
    }

    /// Writes the bytes for whose index `arrives` is true to a slot, from its beginning.
    fn write(&mut self, slot: usize, bytes: &[u8], arrives: impl Fn(usize) -> bool) {
        let file = &mut self.files[slot];
        let before = std::mem::take(file);
        file.extend_from_slice(&before);
        file.resize(before.len().max(bytes.len()), 0);
        let arriving = bytes.iter().enumerate().filter(|(at, _)| arrives(*at));
        arriving.for_each(|(at, byte)| file[at] = *byte);
        self.last_write = Some((slot, bytes.len(), before));
    }

    fn note_complete(&mut self, slot: usize, record: &Arc<Record>) {
        self.unwritten = 0;
        self.slots.complete(slot, &record.books);
        self.keep_complete(record);
        self.trim();
    }

    /// Makes room for the records of a node that needs so many slots of such a length. Returns how many there are;
    /// `None` while the disk is full.
    pub(super) fn make_room(&mut self, slots: usize, slot_bytes: usize) -> Option<usize> {
        self.slot_bytes = self.slot_bytes.max(slot_bytes);
        self.wanted_slots = slots;
        if self.is_full && self.slots.len() < self.first_slots() {
            return None;
        }
        self.grow(self.first_slots());
        Some(self.slots())
    }

    /// Writes a postscript to the newest record.
    fn add_postscript(&mut self, slot: usize, postscript: &Postscript) {
        self.append(slot, postscript, usize::MAX);
        self.slots.add_postscript(postscript);
        let Some((_, newest)) = self.complete.last_key_value() else { return };
        let mut record = Record::clone(newest);
        postscript.apply(&mut record.books);
        self.keep_complete(&Arc::new(record));
    }

    /// Writes up to so many bytes of a postscript behind the record in a slot.
    fn append(&mut self, slot: usize, postscript: &Postscript, most: usize) {
        let file = &mut self.files[slot];
        let Some(length) = record_length(file).ok().and_then(|length| usize::try_from(length).ok()) else { return };
        let bytes = postscript.encode(&file[length - 32..length]);
        let at = Postscript::offset(length as u64) as usize;
        file.resize(file.len().max(at + bytes.len()), 0);
        let arriving = &bytes[..bytes.len().min(most)];
        file[at..at + arriving.len()].copy_from_slice(arriving);
    }

    fn keep_complete(&mut self, record: &Arc<Record>) {
        let owed = record.books.owed_records();
        self.complete.retain(|number, _| owed.contains(number));
        self.complete.insert(record.books.number, Arc::clone(record));
    }

    fn grow(&mut self, slots: usize) {
        self.slots.grow(slots);
        self.files.resize(self.slots.len(), Vec::new());
        let length = self.slot_bytes;
        self.files.iter_mut().for_each(|file| file.resize(file.len().max(length), 0));
    }

    /// The slots that are made before a record needs them.
    fn first_slots(&self) -> usize {
        if self.makes_slots_as_needed { self.wanted_slots.min(2) } else { self.wanted_slots }
    }

    /// Notes the slots that its node needs from now on, and the largest length of a record.
    pub(super) fn want(&mut self, slots: usize, slot_bytes: usize) {
        self.wanted_slots = slots;
        self.slot_bytes = self.slot_bytes.max(slot_bytes);
    }

    /// The number of slots that records can have.
    pub(super) fn slots(&self) -> usize {
        if self.makes_slots_as_needed { self.slots.len().max(self.wanted_slots) } else { self.slots.len() }
    }

    /// Returns `true` if slots are missing that the node asked for and a full disk had no room for.
    pub(super) fn lacks_slots(&self) -> bool {
        self.slots.len() < self.first_slots()
    }

    pub(super) fn wanted_slots(&self) -> usize {
        self.wanted_slots
    }

    /// Removes slots that are too many, once a record is written, as in production: one that is under way may need
    /// them.
    fn trim(&mut self) {
        while self.slots.superfluous(self.first_slots(), self.makes_slots_as_needed).is_some() {
            self.slots.remove_last();
            self.files.pop();
        }
    }

    /// Writes that have begun, oldest first.
    pub(super) fn writing(&self) -> usize {
        self.writing.len()
    }

    /// The newest record that is complete, which a sound node finds.
    pub(super) fn newest(&self) -> Option<&Arc<Record>> {
        self.complete.last_key_value().map(|(_, record)| record)
    }

    /// Recovers the state of a node as a production host does: the newest record, and the payloads that its outboxes
    /// name.
    ///
    /// # Errors
    /// [`RecoveryError`] when the slots cannot be relied on.
    pub(super) fn recover(&mut self, injected: Injected) -> Result<Option<Recovered>, RecoveryError> {
        // A state that can be read is synced before anything is built on it.
        self.is_unsynced &= injected.is(InjectedBug::TrustsUnsyncedRecords);
        let forged = injected.is(InjectedBug::BelievesTornRecords).then(|| {
            let mut files = self.files.clone();
            files.iter_mut().for_each(|file| forge_checksum(file));
            files
        });
        let files = forged.as_ref().unwrap_or(&self.files);
        let mut contents: Vec<SlotContent> = files.iter().map(|bytes| Outline::read(bytes).into()).collect();
        if injected.is(InjectedBug::OverlooksNewestRecord) {
            hide_newest(&mut contents);
        }
        let found = survey(&contents);
        self.slots = SlotMap::found(&contents, found.as_ref().ok().and_then(Option::as_ref));
        // What was read a moment ago can be read again.
        Ok(found?.and_then(|survey| survey.read(|slot| Record::decode(&files[slot])).ok()))
    }

    /// Returns `true` if recovery found another record than was written, or other payloads.
    pub(super) fn differs_from(&self, found: &Option<Recovered>) -> bool {
        let (Some(found), Some(newest)) = (found, self.newest()) else {
            return found.is_some() || self.newest().is_some();
        };
        let payload = |number: u64| Some((number, self.complete.get(&number)?.payload.clone()?));
        let payloads: BTreeMap<_, _> = newest.books.owed_records().into_iter().filter_map(payload).collect();
        found.record != **newest || found.payloads != payloads
    }

    /// Takes the recovered state for the one that was written, from now on.
    pub(super) fn take_for_true(&mut self, found: Option<&Recovered>) {
        self.is_harmed = false;
        self.last_write = None;
        self.complete.clear();
        if let Some(Recovered { record, payloads, .. }) = found {
            let holders = payloads.iter().map(|(&number, payload)| {
                let mut holder = Record { payload: Some(payload.clone()), ..record.clone() };
                holder.books.number = number;
                (number, Arc::new(holder))
            });
            self.complete = holders.collect();
            self.complete.insert(record.books.number, Arc::new(record.clone()));
        }
    }
}

fn hide_newest(contents: &mut [SlotContent]) {
    let number = |content: &SlotContent| match content {
        SlotContent::Holds(outline) => Some(outline.books.number),
        _ => None,
    };
    if let Some(newest) = contents.iter_mut().filter(|content| number(content).is_some()).max_by_key(|it| number(it)) {
        *newest = SlotContent::Empty;
    }
}

#[cfg(test)]
mod tests;
