//! Damage of disks: writes that are cut off, backups that come back, contents that are lost or spoiled.

use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Disk, Unwritable};
use crate::record::{Record, SlotError, SlotMap};

const SECTOR_BYTES: usize = 512;

/// Damage to the disk of a node whose process is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sim) enum DiskDamage {
    /// One bit of a slot is another one.
    FlippedBit,
    /// A file is shorter than it was.
    Truncated,
    /// Some sectors of the last write were never written, though the disk reported them.
    LostSectors,
}

impl Disk {
    /// Ends the process that writes in the middle of a write. Returns its record if all of that arrived all the same.
    pub(in crate::sim) fn tear(&mut self, rng: &mut ChaCha8Rng) -> Result<Option<Arc<Record>>, Unwritable> {
        if std::mem::take(&mut self.is_unsynced) {
            self.undo_last_write();
        }
        let record = self.writing.pop_front().filter(|_| !self.is_full);
        self.writing.clear();
        self.unwritten = 0;
        let Some(record) = record else {
            return Ok(None);
        };
        if self.tears_postscript(&record, rng) {
            return Ok(None);
        }
        let (slot, bytes) = self.claim(&record)?;
        match rng.random_range(0..4) {
            // The system has the whole of it, and the disk nothing yet.
            0 => {
                self.write(slot, &bytes, |_| true);
                self.is_unsynced = true;
            }
            1 => {
                let arrived: Vec<bool> = bytes.chunks(SECTOR_BYTES).map(|_| rng.random_bool(0.5)).collect();
                self.write(slot, &bytes, |at| arrived[at / SECTOR_BYTES]);
            }
            2 => {
                let end = rng.random_range(0..=bytes.len());
                self.write(slot, &bytes, |at| at < end);
            }
            // The parts of a record are written one after the other.
            _ => {
                let parts: Vec<usize> =
                    record.encoded().map_err(Unwritable::Record)?.slices().map(<[u8]>::len).collect();
                let end: usize = parts[..rng.random_range(0..parts.len())].iter().sum();
                self.write(slot, &bytes, |at| at < end);
            }
        }
        if !self.files[slot].starts_with(&bytes) {
            return Ok(None);
        }
        self.note_complete(slot, &record);
        Ok(Some(record))
    }

    /// An end of the process in the middle of a postscript: every other time where the record needs one before it.
    /// Returns `true` if it came.
    fn tears_postscript(&mut self, record: &Record, rng: &mut ChaCha8Rng) -> bool {
        let claimed = self.slots.clone().claim(&record.books);
        if !self.makes_slots_as_needed || !matches!(claimed, Err(SlotError::NoneFree { .. })) {
            return false;
        }
        let Some((slot, postscript)) = self.slots.postscript(&record.books) else { return false };
        let is_torn = rng.random_bool(0.5);
        if is_torn {
            self.append(slot, &postscript, rng.random_range(0..60));
        }
        is_torn
    }

    /// Undoes the last write: the power was out before it was on the disk.
    fn undo_last_write(&mut self) {
        if let Some((slot, _, before)) = self.last_write.take()
            && let Some(file) = self.files.get_mut(slot)
        {
            *file = before;
        }
    }

    /// Makes a copy of the present contents.
    pub(in crate::sim) fn back_up(&mut self) {
        self.backup = Some(self.files.clone());
    }

    /// Puts the copy back, if there is one.
    pub(in crate::sim) fn restore(&mut self) {
        if let Some(files) = &self.backup {
            self.files.clone_from(files);
            self.is_harmed = true;
        }
    }

    /// Empties all slots.
    pub(in crate::sim) fn wipe(&mut self) {
        self.files.iter_mut().for_each(|file| file.fill(0));
        self.slots = SlotMap::new(self.files.len());
        self.last_write = None;
        self.is_harmed = true;
    }

    /// Gives up its contents on purpose, as with `--fresh`.
    pub(in crate::sim) fn give_up(&mut self) {
        self.wipe();
        self.take_for_true(None);
    }

    /// Does some damage, drawn from a seed: every other time to the record written last.
    pub(in crate::sim) fn damage(&mut self, damage: DiskDamage, seed: u64) {
        let rng = &mut ChaCha8Rng::seed_from_u64(seed);
        if self.files.is_empty() {
            return;
        }
        let any = rng.random_range(0..self.files.len());
        let hits_newest = rng.random_bool(0.5) || damage == DiskDamage::LostSectors;
        let newest = self.last_write.as_ref().filter(|(slot, ..)| hits_newest && *slot < self.files.len());
        let (slot, length) = newest.map_or_else(|| (any, self.files[any].len()), |(slot, length, _)| (*slot, *length));
        // It may have been cut off before.
        let length = length.min(self.files[slot].len());
        if length == 0 || (damage == DiskDamage::LostSectors && newest.is_none()) {
            return;
        }
        let at = rng.random_range(0..length);
        let file = &mut self.files[slot];
        match damage {
            DiskDamage::FlippedBit => file[at] ^= 1 << rng.random_range(0..8),
            DiskDamage::Truncated => file.truncate(at),
            DiskDamage::LostSectors => {
                let before = self.last_write.as_ref().map_or(&[][..], |(.., before)| before);
                for (new, old) in file.chunks_mut(SECTOR_BYTES).zip(before.chunks(SECTOR_BYTES)) {
                    if rng.random_bool(0.7) && new.len() == old.len() {
                        new.copy_from_slice(old);
                    }
                }
            }
        }
        self.is_harmed = true;
    }
}
