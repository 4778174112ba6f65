//! The record store: writes record files so that no crash loses or doubles mass.
//!
//! ```text
//!   look      read what an earlier process left
//!   load      the newest record that is whole, and the payloads it owes
//!   make_room make every slot as long as the longest record, filled with zeros, and wait until that is on the disk,
//!             as well as what was found there
//!   reserve   the same in a running process, when a plan gives the node more receivers; slots too many are removed later
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

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use mingle_protocol::record::{
    MAX_HOST_BYTES, Recovered, RecoveryError, SlotContent, SlotError, SlotMap, Survey, survey,
};
use mingle_protocol::{Record, RecordRoom};

use super::folder::{Contents, MAX_SLOTS, RecordFolder};
use super::replacement::Replacement;
use crate::error::is_full_disk;
use crate::owner_only::create_private;
pub use error::StoreError;

/// The record files of one peer, for the process that holds its home.
#[derive(Debug)]
pub struct RecordStore {
    folder: RecordFolder,
    contents: Contents,
    found: Result<Option<Survey>, RecoveryError>,
    map: SlotMap,
    /// Slots that are needed; others are removed once nothing in them is owed.
    wanted_slots: usize,
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
        Ok(Self { folder, contents, found, map, wanted_slots: usize::MAX, is_spoiled: false, replacement: None })
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
        self.contents.slots.resize(self.contents.slots.len().max(room.slots), SlotContent::Empty);
        fill_slots(&self.folder, self.contents.slots.len(), room.slot_bytes)?;
        self.sync_records()?;
        self.map = SlotMap::found(&self.contents.slots, self.found.as_ref().ok().and_then(Option::as_ref));
        self.wanted_slots = room.slots;
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
        self.wanted_slots = room.slots;
        let path = self.folder.path();
        remove_unfinished(path).map_err(|error| in_folder("cannot clear", path, error))?;
        let filled = fill_slots(&self.folder, self.map.len().max(room.slots), room.slot_bytes);
        self.is_spoiled |= matches!(filled, Err(StoreError::Sync { .. }));
        let made = (self.map.len()..room.slots).take_while(|slot| self.folder.file(*slot).exists()).count();
        self.map.grow(self.map.len() + made);
        filled
    }

    /// Number of slots.
    pub fn slots(&self) -> usize {
        self.map.len()
    }

    /// Removes surplus slots, from the last one down. Each removal is synced before the next one: a gap among the slots
    /// would look like an unreadable one.
    fn trim(&mut self) {
        while let Some(slot) = self.map.superfluous(self.wanted_slots) {
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
        Ok(Self { wanted_slots: self.wanted_slots, ..adopted })
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

    /// Makes slots until there are so many, each as long as the longest.
    fn extend_to(&mut self, slots: usize) -> Result<(), StoreError> {
        if slots <= self.map.len() {
            return Ok(());
        }
        let present = (0..self.map.len()).filter_map(|slot| fs::metadata(self.folder.file(slot)).ok());
        let longest = present.map(|file| file.len()).max().unwrap_or(0);
        fill_slots(&self.folder, slots, longest)?;
        self.map.grow(slots);
        Ok(())
    }

    /// The slot for a record. If each slot holds something owed, another one is made: no plan or neighbour may end the
    /// process for want of a slot.
    fn claim(&mut self, record: &Record) -> Result<usize, StoreError> {
        match self.map.claim(&record.books) {
            Err(SlotError::NoneFree { slots }) if slots < MAX_SLOTS => {
                self.extend_to(slots + 1)?;
                self.map.claim(&record.books).map_err(StoreError::Refused)
            }
            claimed => claimed.map_err(StoreError::Refused),
        }
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

/// The number and the length of the slots that a node needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Number of slots: [`SlotMap::worst_case`] of the node's receivers.
    slots: usize,
    /// Length of each: [`Record::largest_bytes`].
    slot_bytes: u64,
}

impl Room {
    /// Adds room for up to `state_bytes` of the host's state in each record.
    #[must_use]
    pub fn with_state(self, state_bytes: usize) -> Self {
        let more = state_bytes.saturating_sub(MAX_HOST_BYTES) as u64;
        Self { slot_bytes: self.slot_bytes + more, ..self }
    }

    /// Room for records with this many parameters and links, and next to nothing of the host's.
    ///
    /// # Errors
    /// No record is that long, or a peer may not have that many slots.
    pub fn new(dimension: usize, links: RecordRoom) -> Result<Self, StoreError> {
        let RecordRoom { slots, senders, receivers } = links;
        let slot_bytes = Record::largest_bytes(dimension, senders, receivers)
            .ok_or(StoreError::TooLong { dimension, links: senders + receivers })?;
        if slots > MAX_SLOTS {
            return Err(StoreError::TooManySlots { slots });
        }
        Ok(Self { slots, slot_bytes })
    }
}

/// Waits until additions to a folder, and removals from it, are on the disk.
fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
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

/// Creates missing slots and lengthens those that are too short.
fn fill_slots(folder: &RecordFolder, slots: usize, slot_bytes: u64) -> Result<(), StoreError> {
    // Paths of the slots that are too short, with their length if the file exists.
    let short: Vec<(PathBuf, Option<u64>)> = (0..slots)
        .map(|slot| folder.file(slot))
        .map(|path| (path.clone(), fs::metadata(path).map(|file| file.len()).ok()))
        .filter(|(_, length)| length.is_none_or(|length| length < slot_bytes))
        .collect();
    let lacks = |length: Option<u64>| slot_bytes - length.unwrap_or(0);
    let mut missing_bytes: u64 = short.iter().map(|(_, length)| lacks(*length)).sum();
    for (path, length) in short {
        let made = match length {
            None => make_slot(folder, &path, slot_bytes).and_then(|()| sync_folder(folder.path())),
            Some(_) => lengthen_slot(folder, &path, lacks(length)),
        };
        made.map_err(|error| {
            if is_full_disk(&error) {
                let path = folder.path().to_path_buf();
                return StoreError::NoSpace { path, slots, slot_bytes, missing_bytes };
            }
            StoreError::Folder { doing: format!("cannot make {}", path.display()), error }
        })?;
        missing_bytes -= lacks(length);
    }
    let synced = sync_folder(folder.path());
    let above = folder.path().parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let synced = synced.and_then(|()| File::open(above)?.sync_all());
    synced.map_err(|error| StoreError::Sync { path: folder.path().to_path_buf(), error })
}

/// Makes a slot under another name, so that it is there whole or not at all.
fn make_slot(folder: &RecordFolder, path: &Path, bytes: u64) -> io::Result<()> {
    let unfinished = path.with_extension("record.new");
    let opened = folder.open(&unfinished, OpenOptions::new().write(true).create_new(true));
    let made = opened.and_then(|mut file| {
        fill(&mut file, bytes)?;
        file.sync_all()?;
        fs::rename(&unfinished, path)
    });
    if made.is_err() {
        // A full disk should not keep an incomplete slot. If this fails too, nothing can be done.
        let _ = fs::remove_file(&unfinished);
    }
    made
}

/// Appends zeros to a slot; the record in front of them does not change.
fn lengthen_slot(folder: &RecordFolder, path: &Path, bytes: u64) -> io::Result<()> {
    let mut file = folder.open(path, OpenOptions::new().append(true))?;
    fill(&mut file, bytes)?;
    file.sync_all()
}

/// Writes zeros: reserved blocks that were never written can still fail to be written later.
fn fill(file: &mut impl Write, bytes: u64) -> io::Result<()> {
    let zeros = vec![0; 1 << 20];
    let mut left = bytes;
    while left > 0 {
        let piece = usize::try_from(left).map_or(zeros.len(), |left| left.min(zeros.len()));
        file.write_all(&zeros[..piece])?;
        left -= piece as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
