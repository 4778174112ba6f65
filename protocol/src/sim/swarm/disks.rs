//! Writes to disks, damage to them, and the checks after each write.

use std::sync::Arc;

use super::{Happening, SimulatedSwarm};
use crate::effect::RecordRoom;
use crate::injected_bug::Injected;
use crate::input::Input;
use crate::message::Generation;
use crate::record::{MAX_HOST_BYTES, Record, Recovered};
use crate::schedule::NodeId;
use crate::sim::disk::{DiskDamage, HandedIn, Unwritable};
use crate::sim::error::SimError;
use crate::sim::fault::Fault;
use crate::sim::trace::Entry;
use crate::time::Time;

impl SimulatedSwarm {
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

    /// Schedules another number of record slots, which a node needs; making them takes a moment.
    pub(super) fn reserve(&mut self, id: NodeId, room: RecordRoom) {
        let time = self.network.draw_between(self.config.write_time);
        let process = self.processes.get(&id).copied().unwrap_or(0);
        let slot_bytes = slot_bytes(self.config.initial.get(id.index()).map_or(0, Vec::len), room);
        let disk = self.disks.entry(id).or_default();
        disk.want(room.slots, slot_bytes);
        self.agenda.add(self.now + time * disk.slowness.max(1), Happening::Reserved { id, process });
    }

    /// Makes the slots that a node asked for last. On a full disk they are made once it has room again.
    pub(super) fn grow_slots(&mut self, id: NodeId) -> Result<(), SimError> {
        let disk = self.disks.entry(id).or_default();
        match disk.make_room(disk.wanted_slots(), 0) {
            Some(slots) => {
                let entry = (slots as u64).to_le_bytes();
                self.input(id, Input::Reserved { slots }, Entry::Reserved, &entry)
            }
            None => Ok(()),
        }
    }

    /// Recovers the state of a node that starts from its disk. If that was harmed and cannot be read, it is given up
    /// and the node starts without, as if its operator had seen to it.
    pub(super) fn recover(&mut self, id: NodeId, injected: Injected) -> Result<Option<Recovered>, SimError> {
        let disk = self.disks.entry(id).or_default();
        let found = disk.recover(injected);
        if found.as_ref().is_ok_and(|found| !disk.differs_from(found)) {
            disk.is_harmed = false;
            return Ok(found.unwrap_or_default());
        }
        let written = disk.newest().map(|newest| (newest.books.number, newest.books.generation));
        if !disk.is_harmed {
            let found = found.map(|found| found.map(|found| found.record.books.number));
            let written = written.map(|(number, _)| number);
            return Err(SimError::NotRecovered { now: self.now, id, found, written });
        }
        let found = found.unwrap_or_else(|_| {
            self.unreadable += 1;
            disk.wipe();
            None
        });
        disk.take_for_true(found.as_ref());
        self.durable_ledger.update(id, disk.newest());
        if let Some((_, generation)) = written {
            self.give_up(generation);
        }
        Ok(found)
    }

    /// Voids this generation and those before it: nothing adds up in them from here on.
    pub(super) fn give_up(&mut self, generation: Generation) {
        self.conservation.give_up(generation);
        if self.adds_up(generation) {
            self.void = Some(generation);
        }
    }

    /// Returns `true` if the sum of weights is promised in a generation.
    pub(super) fn adds_up(&self, generation: Generation) -> bool {
        self.void.is_none_or(|void| generation.replaces(&void))
    }

    /// Completes the oldest write of a node; the node is notified a moment later.
    pub(super) fn complete_write(&mut self, id: NodeId, process: u64) -> Result<(), SimError> {
        if std::mem::take(&mut self.disks.entry(id).or_default().fails_sync) {
            // The next process finds out whether the write is there.
            return self.crash(id);
        }
        let now = self.now;
        let completed = self.disks.entry(id).or_default().complete();
        let Some(record) = completed.map_err(|error| unwritable(now, id, error))? else {
            return Ok(());
        };
        let number = record.books.number;
        self.trace.record(self.now, id, Entry::Written, &number.to_le_bytes());
        self.check_record(id, &record)?;
        let at = self.now + self.network.draw_between(self.config.write_time) / 4;
        self.agenda.add(at, Happening::Persisted { id, process, number });
        self.check_disks(id, &record)
    }

    /// Checks that a record adds up by itself.
    pub(super) fn check_record(&self, id: NodeId, record: &Record) -> Result<(), SimError> {
        let now = self.now;
        let books = &record.books;
        let received = books.incoming.values().map(|link| link.applied_total + link.applied_from_earlier_lives);
        let returned = books.outgoing.values().map(|link| link.returned);
        let sent = books.outgoing.values().map(|link| link.sent_total);
        let should_hold = u128::from(books.brought.units()) + received.sum::<u128>() + returned.sum::<u128>();
        let should_hold = should_hold as i128 - sent.sum::<u128>() as i128;
        let holds = u128::from(books.mass.units());
        if holds as i128 == should_hold { Ok(()) } else { Err(SimError::NodeMass { now, id, holds, should_hold }) }
    }

    /// Notes that a record is on a disk, and checks that all of them together still add up.
    pub(super) fn check_disks(&mut self, id: NodeId, record: &Arc<Record>) -> Result<(), SimError> {
        self.conservation.written(id, record.books.number);
        self.learning.written(id, record.books.number);
        self.durable_ledger.update(id, Some(record));
        if !self.is_exact() {
            return Ok(());
        }
        self.disk_checks += 1;
        let (total, expected) = self.durable_ledger.total_and_brought();
        if total == expected { Ok(()) } else { Err(SimError::DurableMass { now: self.now, id, total, expected }) }
    }

    /// Ends the writes of a process that died: each write, in order, was complete or it was not, and of the first that
    /// was not there is some part or nothing.
    pub(super) fn end_writes(&mut self, id: NodeId) -> Result<(), SimError> {
        let now = self.now;
        let mut completed = Vec::new();
        let disk = self.disks.entry(id).or_default();
        while disk.writing() > 0 && !disk.is_full && self.network.toss() {
            completed.extend(disk.complete().map_err(|error| unwritable(now, id, error))?);
        }
        completed.extend(disk.tear(self.network.rng()).map_err(|error| unwritable(now, id, error))?);
        completed.into_iter().try_for_each(|record| self.check_disks(id, &record))
    }

    pub(super) fn harm_disk(&mut self, fault: Fault) {
        let Some(id) = fault.nodes().next() else {
            return;
        };
        let is_dead = !self.nodes.contains_key(&id);
        let process = self.processes.get(&id).copied().unwrap_or(0);
        let disk = self.disks.entry(id).or_default();
        match fault {
            Fault::FillDisk(_) => disk.is_full = true,
            Fault::FreeDisk(_) if disk.is_full => {
                disk.is_full = false;
                disk.fails_sync = false;
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
            Fault::RestoreDisk(_) if is_dead => disk.restore(),
            Fault::WipeDisk(_) if is_dead => disk.wipe(),
            Fault::FlipBit(_, seed) if is_dead => disk.damage(DiskDamage::FlippedBit, seed),
            Fault::TruncateSlot(_, seed) if is_dead => disk.damage(DiskDamage::Truncated, seed),
            Fault::LoseSectors(_, seed) if is_dead => disk.damage(DiskDamage::LostSectors, seed),
            _ => {}
        }
    }
}

/// The length of the slots of a node: as in production, but without room for the state of hosts, which keep none here.
pub(super) fn slot_bytes(dimension: usize, room: RecordRoom) -> usize {
    let longest = Record::largest_bytes(dimension, room.senders, room.receivers).unwrap_or(0);
    usize::try_from(longest).unwrap_or(0).saturating_sub(MAX_HOST_BYTES)
}

fn unwritable(now: Time, id: NodeId, why: Unwritable) -> SimError {
    match why {
        Unwritable::Slot(error) => SimError::Slots { now, id, error },
        Unwritable::Record(error) => SimError::Record { now, id, error },
    }
}
