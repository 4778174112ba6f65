//! Writes to disks, what goes wrong with them, and what is checked after each.

use std::sync::Arc;

use super::{Happening, Swarm};
use crate::input::Input;
use crate::record::Record;
use crate::schedule::NodeId;
use crate::sim::disk::HandedIn;
use crate::sim::error::SimError;
use crate::sim::fault::Fault;
use crate::sim::trace::Entry;

impl Swarm {
    pub(super) fn begin_write(&mut self, id: NodeId, record: Arc<Record>) -> Result<(), SimError> {
        let time = self.network.draw_between(self.config.write_time);
        let process = self.processes.get(&id).copied().unwrap_or(0);
        let disk = self.disks.entry(id).or_default();
        let now = self.now;
        let handed_in = disk.begin(record).map_err(|records| SimError::RecordsPileUp { now, id, records })?;
        if !disk.is_full && handed_in == HandedIn::Queued {
            self.agenda.add(now + time * disk.slowness.max(1), Happening::Written { id, process });
        }
        Ok(())
    }

    /// A node needs another number of record slots, which takes a moment to make.
    pub(super) fn reserve(&mut self, id: NodeId, slots: usize) {
        let time = self.network.draw_between(self.config.write_time);
        let process = self.processes.get(&id).copied().unwrap_or(0);
        let disk = self.disks.entry(id).or_default();
        disk.want(slots);
        self.agenda.add(self.now + time * disk.slowness.max(1), Happening::Reserved { id, process });
    }

    /// Makes the slots that a node asked for last, unless its disk is full: then when it has room again.
    pub(super) fn grow_slots(&mut self, id: NodeId) -> Result<(), SimError> {
        let disk = self.disks.entry(id).or_default();
        match disk.reserve(disk.wanted_slots()) {
            Some(slots) => {
                let entry = (slots as u64).to_le_bytes();
                self.input(id, Input::Reserved { slots }, Entry::Reserved, &entry)
            }
            None => Ok(()),
        }
    }

    /// The oldest write of a node is on its disk; that the node hears of it takes another moment.
    pub(super) fn complete_write(&mut self, id: NodeId, process: u64) -> Result<(), SimError> {
        if std::mem::take(&mut self.disks.entry(id).or_default().fails_sync) {
            // What became of it is found out by the next process.
            return self.crash(id);
        }
        let now = self.now;
        let completed = self.disks.entry(id).or_default().complete();
        let Some(record) = completed.map_err(|error| SimError::Slots { now, id, error })? else {
            return Ok(());
        };
        let number = record.books.number;
        self.trace.record(self.now, id, Entry::Written, &number.to_le_bytes());
        self.check_record(id, &record)?;
        let at = self.now + self.network.draw_between(self.config.write_time) / 4;
        self.agenda.add(at, Happening::Persisted { id, process, number });
        self.check_disks(id, &record)
    }

    /// A record keeps to the rules of its format, and adds up by itself.
    pub(super) fn check_record(&self, id: NodeId, record: &Record) -> Result<(), SimError> {
        let now = self.now;
        record.check().map_err(|error| SimError::Record { now, id, error })?;
        let books = &record.books;
        let received = books.incoming.values().map(|link| link.applied_total + link.applied_from_earlier_lives);
        let returned = books.outgoing.values().map(|link| link.returned);
        let sent = books.outgoing.values().map(|link| link.sent_total);
        let should_hold = u128::from(books.brought.units()) + received.sum::<u128>() + returned.sum::<u128>();
        let should_hold = should_hold as i128 - sent.sum::<u128>() as i128;
        let holds = u128::from(books.mass.units());
        if holds as i128 == should_hold { Ok(()) } else { Err(SimError::NodeMass { now, id, holds, should_hold }) }
    }

    pub(super) fn check_disks(&mut self, id: NodeId, record: &Arc<Record>) -> Result<(), SimError> {
        let before = self.durable_ledger.generation();
        self.durable_ledger.update(id, Some(record));
        if self.durable_ledger.generation() != before {
            // Whatever disks lost before, a new ledger begins.
            self.disks_are_whole = true;
        }
        let (total, expected) = self.durable_ledger.check();
        if !self.disks_are_whole || total == expected {
            return Ok(());
        }
        Err(SimError::DurableMass { now: self.now, id, total, expected })
    }

    /// A process died while its disk was writing: each write, in order, was complete or it was not.
    pub(super) fn end_writes(&mut self, id: NodeId) -> Result<(), SimError> {
        let disk = self.disks.entry(id).or_default();
        while disk.writing() > 0 && !disk.is_full && self.network.toss() {
            let completed = disk.complete().map_err(|error| SimError::Slots { now: self.now, id, error })?;
            if let Some(record) = completed {
                self.durable_ledger.update(id, Some(&record));
            }
        }
        disk.tear();
        match disk.newest().cloned() {
            Some(newest) => self.check_disks(id, &newest),
            None => Ok(()),
        }
    }

    pub(super) fn harm_disk(&mut self, fault: Fault) {
        let (Fault::FillDisk(id)
        | Fault::FreeDisk(id)
        | Fault::SlowDisk(id, _)
        | Fault::BackUpDisk(id)
        | Fault::RestoreDisk(id)
        | Fault::WipeDisk(id)) = fault
        else {
            return;
        };
        let is_dead = !self.nodes.contains_key(&id);
        let process = self.processes.get(&id).copied().unwrap_or(0);
        let disk = self.disks.entry(id).or_default();
        match fault {
            Fault::FillDisk(_) => disk.is_full = true,
            Fault::FreeDisk(_) if disk.is_full => {
                (disk.is_full, disk.fails_sync) = (false, false);
                for _ in 0..disk.writing() {
                    self.agenda.add(self.now, Happening::Written { id, process });
                }
                if disk.lacks_slots() {
                    self.agenda.add(self.now, Happening::Reserved { id, process });
                }
            }
            Fault::FreeDisk(_) => disk.fails_sync = false,
            Fault::SlowDisk(_, slowness) => disk.slowness = slowness,
            Fault::BackUpDisk(_) => disk.back_up(),
            Fault::RestoreDisk(_) if is_dead && disk.restore() => self.disks_are_whole = false,
            Fault::WipeDisk(_) if is_dead => {
                disk.wipe();
                self.disks_are_whole = false;
            }
            _ => {}
        }
        let newest = disk.newest().cloned();
        self.durable_ledger.update(id, newest.as_ref());
    }
}
