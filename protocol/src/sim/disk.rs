//! A node's simulated disk: records that are written whole, torn, late or not at all, and old copies that come back.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::payload::Payload;
use crate::record::Record;

/// The record files of one node, and what is being written to them.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    records: BTreeMap<u64, Arc<Record>>,
    writing: VecDeque<Arc<Record>>,
    backup: Option<BTreeMap<u64, Arc<Record>>>,
    /// Nothing can be written.
    pub(super) is_full: bool,
    /// The next write fails in such a way that nobody knows whether it is there.
    pub(super) fails_sync: bool,
    /// How many times as long as usual a write takes.
    pub(super) slowness: u32,
}

impl Disk {
    /// A write begins.
    pub(super) fn begin(&mut self, record: Arc<Record>) {
        self.writing.push_back(record);
    }

    /// The oldest write is complete; returns the record, which is the newest on this disk from now on.
    pub(super) fn complete(&mut self) -> Option<Arc<Record>> {
        let record = self.writing.pop_front()?;
        let owed = record.books.owed_records();
        self.records.retain(|number, _| owed.contains(number));
        self.records.insert(record.books.number, Arc::clone(&record));
        Some(record)
    }

    /// Writes that have begun, oldest first.
    pub(super) fn writing(&self) -> usize {
        self.writing.len()
    }

    /// The process that writes is gone: what is not complete never will be. Torn slots hold nothing of value.
    pub(super) fn tear(&mut self) {
        self.writing.clear();
    }

    /// Remembers the present contents.
    pub(super) fn back_up(&mut self) {
        self.backup = Some(self.records.clone());
    }

    /// Brings the remembered contents back. Returns whether there were any.
    pub(super) fn restore(&mut self) -> bool {
        if let Some(backup) = &self.backup {
            self.records.clone_from(backup);
        }
        self.backup.is_some()
    }

    pub(super) fn wipe(&mut self) {
        self.records.clear();
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
