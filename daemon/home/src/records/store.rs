//! The record store: writes record files so that no crash loses or doubles mass.
//!
//! ```text
//!   look      read what an earlier process left
//!   load      the newest record that is whole, and the payloads it owes
//!   make_room make every slot as long as the longest record, filled with zeros, and wait until that is on the disk,
//!             as well as what was found there
//!   reserve   the same in a running process, when a plan gives the node more receivers; slots too many are removed later
//!   (of large models, slots beyond two are made when a record needs one: see Room)
//!   write     into a free slot, wait until it is on the disk; only then may anything of it leave the process
//! ```
//!
//! **A sync that fails ends the process.** The operating system may drop the pages it could not write, and a second
//! sync would succeed without them: the state of the disk would be unknown. [`StoreError::Sync`] therefore is final,
//! and the store refuses all further writes. The next start reads what is really there.
//!
//! A write that fails before that ([`StoreError::Write`]) spoils a slot that was free, and nothing else. Slots are filled
//! beforehand, so a full disk does that only where files are copied on write (btrfs, ZFS); the record may be written
//! again.

mod error;
mod room;
mod slot_files;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use mingle_protocol::Record;
use mingle_protocol::record::{Postscript, Recovered, RecoveryError, SlotContent, SlotError, SlotMap, Survey, survey};

use super::folder::{Contents, MAX_SLOTS, RecordFolder};
use super::replacement::Replacement;
use crate::owner_only::{create_private, sync_folder};
pub use error::StoreError;
pub use room::Room;
use slot_files::fill_slots;

/// The length of a slot that is made because a record needs it now, and that this record lengthens.
const SMALLEST_SLOT_BYTES: u64 = 4096;

/// The record files of one peer, for the process that holds its home.
#[derive(Debug)]
pub struct RecordStore {
    folder: RecordFolder,
    contents: Contents,
    found: Result<Option<Survey>, RecoveryError>,
    map: SlotMap,
    /// The room that was made last.
    room: Option<Room>,
    /// Set when a sync has failed.
    is_spoiled: bool,
    /// The replacement that the first record completes, if these are to take the place of other records.
    replacement: Option<Replacement>,
}

impl RecordStore {
    /// Reads the records in `path`, which need not exist, and changes nothing. Damaged slots are an error of
    /// [`load`](Self::load), not of this function.
    ///
    /// # Errors
    /// [`StoreError::Folder`] if the folder cannot be read.
    pub fn look(path: &Path) -> Result<Self, StoreError> {
        let folder = RecordFolder::at(path);
        let contents = match folder.read() {
            Ok(contents) => contents,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Contents::default(),
            Err(error) => return Err(in_folder("cannot read the records in", path, error)),
        };
        let found = survey(&contents.slots);
        let map = SlotMap::found(&contents.slots, found.as_ref().ok().and_then(Option::as_ref));
        Ok(Self { folder, contents, found, map, room: None, is_spoiled: false, replacement: None })
    }

    /// Makes the first record of the store put all of it in the place of other records.
    pub(super) fn in_place_of(self, replacement: Replacement) -> Self {
        Self { replacement: Some(replacement), ..self }
    }

    /// Makes the store write through symbolic links: tests put devices of a failing disk in the place of slots.
    #[cfg(test)]
    pub(super) fn through_links(mut self) -> Self {
        self.folder.opens = |path, options| options.open(path);
        self
    }

    /// Makes and lengthens slots where needed. Before this nothing can be written.
    ///
    /// Surplus slots stay while they may hold payloads that are owed.
    ///
    /// # Errors
    /// [`StoreError::NoSpace`] if the disk is too full for the missing slots, others if the folder cannot be used.
    pub fn make_room(&mut self, room: Room) -> Result<(), StoreError> {
        let path = self.folder.path();
        create_private(path).map_err(|error| in_folder("cannot create", path, error))?;
        remove_unfinished(path).map_err(|error| in_folder("cannot clear", path, error))?;
        self.contents.slots.resize(self.contents.slots.len().max(room.first_slots()), SlotContent::Empty);
        fill_slots(&self.folder, self.contents.slots.len(), room.slot_bytes())?;
        self.sync_records()?;
        self.map = SlotMap::found(&self.contents.slots, self.found.as_ref().ok().and_then(Option::as_ref));
        self.room = Some(room);
        Ok(())
    }

    /// Waits until the records found are on the disk. A process killed before its sync leaves a record that can be
    /// read, but that a loss of power undoes: nothing that relies on it may leave this process.
    fn sync_records(&self) -> Result<(), StoreError> {
        for (slot, content) in self.contents.slots.iter().enumerate() {
            if let SlotContent::Holds(_) = content {
                let path = self.folder.file(slot);
                let synced = self.folder.open_slot(slot).and_then(|file| file.sync_data());
                synced.map_err(|error| StoreError::Sync { path, error })?;
            }
        }
        Ok(())
    }

    /// Creates and lengthens slots for a node whose links have changed, between two records. In any case the contents
    /// of the slots stay as they are, and slots made before an error can be used.
    ///
    /// # Errors
    /// Those of [`make_room`](Self::make_room). After [`StoreError::Sync`] the process has to end.
    pub fn reserve(&mut self, room: Room) -> Result<(), StoreError> {
        if self.is_spoiled {
            return Err(StoreError::Spoiled);
        }
        self.room = Some(room);
        let path = self.folder.path();
        remove_unfinished(path).map_err(|error| in_folder("cannot clear", path, error))?;
        let filled = fill_slots(&self.folder, self.map.len().max(room.first_slots()), room.slot_bytes());
        self.is_spoiled |= matches!(filled, Err(StoreError::Sync { .. }));
        let made = (self.map.len()..room.first_slots()).take_while(|slot| self.folder.file(*slot).exists()).count();
        self.map.grow(self.map.len() + made);
        filled
    }

    /// Number of slots that records can have: those that are there, and those that are made when they are needed.
    pub fn slots(&self) -> usize {
        let as_needed = self.room.filter(Room::is_made_as_needed).map_or(0, |room| room.slots);
        self.map.len().max(as_needed)
    }

    /// Removes surplus slots, from the last one down. Each removal is synced before the next one: a gap among the slots
    /// would look like an unreadable one.
    fn trim(&mut self) {
        let Some(room) = self.room else { return };
        while let Some(slot) = self.map.superfluous(room.first_slots(), room.is_made_as_needed()) {
            let path = self.folder.file(slot);
            if let Err(error) = fs::remove_file(&path).and_then(|()| sync_folder(self.folder.path())) {
                tracing::warn!(%error, path = %path.display(), "a record slot that is not needed stays");
                break;
            }
            self.map.remove_last();
        }
    }

    /// The newest record and the payloads it owes; `None` if no record was ever completed.
    ///
    /// # Errors
    /// [`StoreError::Recovery`] if resuming could lose or double mass.
    pub fn load(&self) -> Result<Option<Recovered>, StoreError> {
        let found = self.found.clone().map_err(|error| self.not_recovered(error))?;
        let mut bytes = Vec::new();
        found.map(|survey| survey.read(|slot| self.decode(slot, &mut bytes))).transpose()
    }

    /// The records whose payloads the newest one owes, ascending. The newest may be among them.
    ///
    /// # Errors
    /// Those of [`load`](Self::load).
    pub(super) fn owed(&self) -> Result<Vec<Record>, StoreError> {
        let found = self.found.clone().map_err(|error| self.not_recovered(error))?;
        let mut bytes = Vec::new();
        let slots = found.into_iter().flat_map(|survey| survey.payloads.into_values());
        slots.map(|slot| self.decode(slot, &mut bytes)).collect()
    }

    /// Writes these records into the slots of an empty store, and puts it in the place of the records that it replaces.
    /// The last record is the newest; the others hold the payloads that it owes.
    ///
    /// # Errors
    /// Those of [`write`](Self::write) and [`look`](Self::look).
    pub(super) fn adopt(mut self, records: &[Record]) -> Result<Self, StoreError> {
        self.extend_to(records.len())?;
        records.iter().enumerate().try_for_each(|(slot, record)| self.write_slot(slot, record))?;
        self.take_their_place()?;
        let adopted = Self::look(self.folder.path())?;
        Ok(Self { room: self.room, ..adopted })
    }

    /// Writes a record into a free slot. Once this returns without an error the record is on the disk, and its contents
    /// may leave the process.
    ///
    /// # Errors
    /// After [`StoreError::Sync`] the process has to end. After any other error the record before this one is still the
    /// durable one.
    pub fn write(&mut self, record: &Record) -> Result<(), StoreError> {
        self.put(record)?;
        self.take_their_place()
    }

    /// Puts the store in the place of the records that it replaces, if that is still to be done.
    fn take_their_place(&mut self) -> Result<(), StoreError> {
        let Some(replacement) = self.replacement.take() else { return Ok(()) };
        if let Err(error) = replacement.complete() {
            self.is_spoiled = true;
            return Err(StoreError::Sync { path: replacement.records().to_path_buf(), error });
        }
        self.folder.moved_to(replacement.records());
        Ok(())
    }

    /// Writes a record where the store lies now.
    pub(super) fn put(&mut self, record: &Record) -> Result<(), StoreError> {
        if self.is_spoiled {
            return Err(StoreError::Spoiled);
        }
        if let Err(error) = &self.found {
            return Err(self.not_recovered(error.clone()));
        }
        let slot = self.claim(record)?;
        self.write_slot(slot, record)?;
        self.map.complete(slot, &record.books);
        self.trim();
        Ok(())
    }

    /// Writes a record into a slot, and waits until it is on the disk.
    fn write_slot(&mut self, slot: usize, record: &Record) -> Result<(), StoreError> {
        let number = record.books.number;
        let encoded = record.encoded().map_err(|error| StoreError::Record { number, error })?;
        let path = self.folder.file(slot);
        let written = self.folder.open_slot(slot).and_then(|mut file| {
            encoded.slices().try_for_each(|part| file.write_all(part))?;
            self.shorten(&file, encoded.total_bytes())?;
            Ok(file)
        });
        let file = written.map_err(|error| StoreError::Write { path: path.clone(), error })?;
        // The file keeps its length and its blocks, so only its data need a sync. If many nodes have left, their
        // certificates make it longer; this waits for the new length as well.
        if let Err(error) = file.sync_data() {
            self.is_spoiled = true;
            return Err(StoreError::Sync { path, error });
        }
        Ok(())
    }

    /// Gives back what an earlier, longer record left behind this one, where a slot is as long as records usually are.
    fn shorten(&self, file: &File, record_bytes: u64) -> io::Result<()> {
        let Some(room) = self.room.filter(Room::is_made_as_needed) else { return Ok(()) };
        let bytes = record_bytes.max(room.slot_bytes());
        if file.metadata()?.len() > bytes { file.set_len(bytes) } else { Ok(()) }
    }

    /// Makes slots until there are so many. Those of a large model become as long as the record that needs them.
    fn extend_to(&mut self, slots: usize) -> Result<(), StoreError> {
        if slots <= self.map.len() {
            return Ok(());
        }
        match self.room.filter(Room::is_made_as_needed) {
            None => fill_slots(&self.folder, slots, self.longest_slot())?,
            Some(room) => {
                let made = fill_slots(&self.folder, slots, SMALLEST_SLOT_BYTES);
                made.map_err(|error| error.for_records_of(room.slot_bytes()))?;
            }
        }
        self.map.grow(slots);
        Ok(())
    }

    fn longest_slot(&self) -> u64 {
        let present = (0..self.map.len()).filter_map(|slot| fs::metadata(self.folder.file(slot)).ok());
        present.map(|file| file.len()).max().unwrap_or(0)
    }

    /// The slot for a record. If each slot holds something owed, acknowledgements that came since the newest record are
    /// written behind it where that makes one free. Otherwise another slot is made: no plan or neighbour may end the
    /// process for want of a slot.
    fn claim(&mut self, record: &Record) -> Result<usize, StoreError> {
        match self.map.claim(&record.books) {
            Err(SlotError::NoneFree { slots }) if slots < MAX_SLOTS => {
                match self.map.postscript(&record.books) {
                    Some((slot, postscript)) => self.add_postscript(slot, &postscript)?,
                    None => self.extend_to(slots + 1)?,
                }
                self.map.claim(&record.books).map_err(StoreError::Refused)
            }
            claimed => claimed.map_err(StoreError::Refused),
        }
    }

    /// Writes a postscript to the newest record, and waits until it is on the disk.
    fn add_postscript(&mut self, slot: usize, postscript: &Postscript) -> Result<(), StoreError> {
        let path = self.folder.file(slot);
        let file = self.folder.write_behind(slot, postscript);
        let file = file.map_err(|error| StoreError::Write { path: path.clone(), error })?;
        if let Err(error) = file.sync_data() {
            self.is_spoiled = true;
            return Err(StoreError::Sync { path, error });
        }
        self.map.add_postscript(postscript);
        Ok(())
    }

    fn decode(&self, slot: usize, bytes: &mut Vec<u8>) -> Result<Record, StoreError> {
        let failed = |error| StoreError::Folder { doing: "cannot read a record".to_owned(), error };
        self.folder.read_bytes(slot, bytes).map_err(failed)?;
        Record::decode(bytes).map_err(|error| StoreError::Changed { path: self.folder.file(slot), error })
    }

    fn not_recovered(&self, error: RecoveryError) -> StoreError {
        let faults = self.contents.faults.iter().map(|(slot, fault)| format!("slot {slot}: {fault}")).collect();
        StoreError::Recovery { folder: self.folder.path().to_path_buf(), error, faults }
    }
}

fn in_folder(doing: &str, path: &Path, error: io::Error) -> StoreError {
    StoreError::Folder { doing: format!("{doing} {}", path.display()), error }
}

/// Removes slots whose creation was interrupted by the end of a process.
fn remove_unfinished(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "new") {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod large_tests;
#[cfg(test)]
mod tests;
