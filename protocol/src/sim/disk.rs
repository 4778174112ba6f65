//! A node's simulated disk: records that are written whole, torn, late or not at all, and old copies that come back.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::payload::Payload;
use crate::record::{Record, SlotError, SlotMap};

/// Records that a node may hand in before any of them is on its disk: one is being written, and another replaces one that
/// waits when the node begins a new life or a new generation meanwhile.
pub(super) const MOST_UNWRITTEN: u32 = 8;

/// The record files of one node, and what is being written to them.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    records: BTreeMap<u64, Arc<Record>>,
    /// Which record is in which of the slots that there are: as many as a production host would have.
    slots: SlotMap,
    /// As many as the node asked for last.
    wanted_slots: usize,
    /// The record being written, and one that waits for it.
    writing: VecDeque<Arc<Record>>,
    /// Records handed in since one was last complete.
    unwritten: u32,
    backup: Option<(BTreeMap<u64, Arc<Record>>, SlotMap)>,
    /// Nothing can be written.
    pub(super) is_full: bool,
    /// The next write fails in such a way that nobody knows whether it is there.
    pub(super) fails_sync: bool,
    /// How many times as long as usual a write takes.
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

    /// The oldest write is complete; returns the record, which is the newest on this disk from now on.
    ///
    /// # Errors
    /// No slot can take it.
    pub(super) fn complete(&mut self) -> Result<Option<Arc<Record>>, SlotError> {
        let Some(record) = self.writing.pop_front() else {
            return Ok(None);
        };
        self.unwritten = 0;
        let slot = self.slots.claim(&record.books)?;
        self.slots.complete(slot, &record.books);
        let owed = record.books.owed_records();
        self.records.retain(|number, _| owed.contains(number));
        self.records.insert(record.books.number, Arc::clone(&record));
        self.trim();
        Ok(Some(record))
    }

    /// Makes room for the records of a node that needs so many slots. Returns how many there are; `None` while the disk
    /// is full.
    pub(super) fn reserve(&mut self, slots: usize) -> Option<usize> {
        self.wanted_slots = slots;
        self.trim();
        if self.is_full && self.slots.len() < slots {
            return None;
        }
        self.slots.grow(slots);
        Some(self.slots.len())
    }

    /// Notes how many slots its node needs from now on.
    pub(super) fn want(&mut self, slots: usize) {
        self.wanted_slots = slots;
    }

    /// How many slots there are.
    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// What the node asked for and could not be made on a full disk.
    pub(super) fn lacks_slots(&self) -> bool {
        self.slots.len() < self.wanted_slots
    }

    pub(super) fn wanted_slots(&self) -> usize {
        self.wanted_slots
    }

    fn trim(&mut self) {
        while self.slots.superfluous(self.wanted_slots).is_some() {
            self.slots.remove_last();
        }
    }

    /// Writes that have begun, oldest first.
    pub(super) fn writing(&self) -> usize {
        self.writing.len()
    }

    /// The process that writes is gone: what is not complete never will be, and one slot may be torn.
    pub(super) fn tear(&mut self) {
        if let Some(torn) = self.writing.pop_front() {
            // Claimed and never completed: whatever it held is gone.
            let _ = self.slots.claim(&torn.books);
        }
        self.writing.clear();
        self.unwritten = 0;
    }

    /// Remembers the present contents.
    pub(super) fn back_up(&mut self) {
        self.backup = Some((self.records.clone(), self.slots.clone()));
    }

    /// Brings the remembered contents back. Returns whether there were any.
    pub(super) fn restore(&mut self) -> bool {
        if let Some((records, slots)) = &self.backup {
            self.records.clone_from(records);
            self.slots.clone_from(slots);
        }
        self.backup.is_some()
    }

    pub(super) fn wipe(&mut self) {
        self.records.clear();
        self.slots = SlotMap::new(self.slots.len());
    }

    /// The newest record.
    pub(super) fn newest(&self) -> Option<&Arc<Record>> {
        self.records.last_key_value().map(|(_, record)| record)
    }

    /// What a new process finds: the newest record, and the payloads that its outboxes name.
    pub(super) fn recover(&self) -> Option<(Record, BTreeMap<u64, Payload>)> {
        let newest = self.newest()?;
        let payload = |number: u64| Some((number, self.records.get(&number)?.payload.clone()?));
        let payloads = newest.books.owed_records().into_iter().filter_map(payload).collect();
        Some((Record::clone(newest), payloads))
    }
}
