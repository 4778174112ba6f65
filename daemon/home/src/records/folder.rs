//! A folder of record files, read by `mingle audit` and by a peer that starts again.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use mingle_protocol::MAX_DIMENSION;
use mingle_protocol::record::{MAX_BOOKS_BYTES, Outline, Postscript, SlotContent, record_length};

use crate::error::{Error, ErrorKind, Result};
use crate::owner_only::{self, open_to_read};

/// Most slots, enough for 16,000 receivers.
pub(super) const MAX_SLOTS: usize = 1 << 16;

/// The longest record: three vectors of the largest dimension, the books, head and checksum, and a postscript.
const MAX_SLOT_BYTES: u64 = 4 * 4 * MAX_DIMENSION as u64 + 2 * MAX_BOOKS_BYTES as u64 + (1 << 10);

const EXTENSION: &str = "record";
/// Bytes from which the length of a record follows.
const FRONT_BYTES: u64 = 64;
/// The last bytes of a record.
const CHECKSUM_BYTES: usize = 32;

/// A folder of record files.
#[derive(Clone, Debug)]
pub struct RecordFolder {
    path: PathBuf,
    /// The function that opens files for writing; tests use one that follows links to devices.
    pub(super) opens: fn(&Path, &mut OpenOptions) -> io::Result<File>,
}

/// The contents of a folder's slots, as read.
#[derive(Debug, Default)]
pub struct Contents {
    /// Slot by slot. A missing file counts as unreadable if one with a higher number exists.
    pub slots: Vec<SlotContent>,
    /// Faults of the slots that cannot be read.
    pub faults: BTreeMap<usize, String>,
}

impl RecordFolder {
    /// The folder at `path`, which need not exist.
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_path_buf(), opens: owner_only::open }
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Follows the folder to another path.
    pub(super) fn moved_to(&mut self, path: &Path) {
        self.path = path.to_path_buf();
    }

    /// The file of a slot.
    pub fn file(&self, slot: usize) -> PathBuf {
        self.path.join(format!("{slot:04}.{EXTENSION}"))
    }

    /// Number of slots: one more than the highest number of a file.
    pub fn slots(&self) -> io::Result<usize> {
        let mut slots = 0;
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            let Some(slot) = name.to_str().and_then(slot_of) else {
                continue;
            };
            if slot >= MAX_SLOTS {
                let message = format!("{} has a number that no peer would give", self.path.join(name).display());
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            slots = slots.max(slot + 1);
        }
        Ok(slots)
    }

    /// Reads every slot in order, and checks all of it.
    pub fn read(&self) -> io::Result<Contents> {
        let mut contents = Contents { slots: Vec::new(), faults: BTreeMap::new() };
        let mut bytes = Vec::new();
        for slot in 0..self.slots()? {
            let content = match self.read_bytes(slot, &mut bytes) {
                // A slot is made at its full length: this one held something, or came from outside.
                Ok(()) if bytes.is_empty() => {
                    contents.faults.insert(slot, format!("{} has lost all its bytes", self.file(slot).display()));
                    SlotContent::Unreadable
                }
                Ok(()) => {
                    let read = Outline::read(&bytes);
                    let fault = read.as_ref().err().map(ToString::to_string);
                    let content = SlotContent::from(read);
                    contents.faults.extend(fault.filter(|_| content == SlotContent::Unreadable).map(|it| (slot, it)));
                    content
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
                Err(error) => {
                    contents.faults.insert(slot, error.to_string());
                    SlotContent::Unreadable
                }
            };
            contents.slots.push(content);
        }
        Ok(contents)
    }

    /// Opens a file of the folder for writing.
    pub(super) fn open(&self, path: &Path, options: &mut OpenOptions) -> io::Result<File> {
        (self.opens)(path, options)
    }

    /// Opens a slot to overwrite it from its beginning.
    pub(super) fn open_slot(&self, slot: usize) -> io::Result<File> {
        self.open(&self.file(slot), OpenOptions::new().write(true))
    }

    /// Writes a postscript behind the record in a slot. The file that is returned has still to be synced.
    pub(super) fn write_behind(&self, slot: usize, postscript: &Postscript) -> io::Result<File> {
        let mut slot_file = open_to_read(&self.file(slot))?;
        let mut front = Vec::new();
        let mut checksum = [0; CHECKSUM_BYTES];
        (&mut slot_file).take(FRONT_BYTES).read_to_end(&mut front)?;
        let length = record_length(&front).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        slot_file.seek(SeekFrom::Start(length.saturating_sub(CHECKSUM_BYTES as u64)))?;
        slot_file.read_exact(&mut checksum)?;
        let mut file = self.open_slot(slot)?;
        file.seek(SeekFrom::Start(Postscript::offset(length)))?;
        file.write_all(&postscript.encode(&checksum))?;
        Ok(file)
    }

    /// Replaces what is in `bytes` by a slot.
    pub(super) fn read_bytes(&self, slot: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
        bytes.clear();
        let path = self.file(slot);
        read_bounded(&path, bytes).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
    }
}

/// Reads and checks one record file, and returns everything but the vectors.
///
/// # Errors
/// [`ErrorKind::Integrity`] if the contents are no record, [`ErrorKind::BadInput`] if the file cannot be read.
pub fn read_outline(path: &Path) -> Result<Outline> {
    let in_file = |kind, error: &dyn std::fmt::Display| Error::new(kind, format!("{}: {error}", path.display()));
    let mut bytes = Vec::new();
    read_bounded(path, &mut bytes).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => in_file(ErrorKind::Integrity, &error),
        _ => in_file(ErrorKind::BadInput, &error),
    })?;
    Outline::read(&bytes).map_err(|error| in_file(ErrorKind::Integrity, &error))
}

/// Reads a slot of at most the bytes of the longest record.
fn read_bounded(path: &Path, bytes: &mut Vec<u8>) -> io::Result<()> {
    let file = open_to_read(path)?;
    let length = file.metadata()?.len();
    if length > MAX_SLOT_BYTES {
        let message = format!("{length} bytes are more than the {MAX_SLOT_BYTES} of the longest record");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    file.take(MAX_SLOT_BYTES).read_to_end(bytes).map(drop)
}

/// The slot of a file name such as `0012.record`.
fn slot_of(name: &str) -> Option<usize> {
    let digits = name.strip_suffix(EXTENSION)?.strip_suffix('.')?;
    let is_number = digits.len() >= 4 && digits.bytes().all(|byte| byte.is_ascii_digit());
    // A number too long for a usize is too high.
    is_number.then(|| digits.parse().unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_files_of_slots_count() {
        assert_eq!(slot_of("0012.record"), Some(12));
        assert_eq!(slot_of("123456.record"), Some(123_456));
        assert_eq!(slot_of("99999999999999999999999.record"), Some(usize::MAX));
        for other in ["12.record", "0012.record.new", "0012", "+012.record", "lock", ".record"] {
            assert_eq!(slot_of(other), None, "{other}");
        }
    }

    #[test]
    fn a_file_that_is_missing_between_others_cannot_be_read_and_a_number_too_high_is_refused() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = RecordFolder::at(temporary.path());
        assert_eq!(folder.slots().unwrap(), 0);
        fs::write(folder.file(2), [0; 100]).unwrap();
        let contents = folder.read().unwrap();
        assert_eq!(contents.slots, [SlotContent::Unreadable, SlotContent::Unreadable, SlotContent::Empty]);
        assert_eq!(contents.faults.keys().copied().collect::<Vec<_>>(), [0, 1]);
        assert!(contents.faults[&1].contains("0001.record"), "{:?}", contents.faults);
        fs::write(folder.file(0), "").unwrap();
        fs::create_dir(folder.file(1)).unwrap();
        let contents = folder.read().unwrap();
        assert_eq!(contents.slots, [SlotContent::Unreadable, SlotContent::Unreadable, SlotContent::Empty]);
        assert!(contents.faults[&0].contains("has lost all its bytes"), "{:?}", contents.faults);
        assert!(contents.faults[&1].contains("and no file"), "{:?}", contents.faults);
        fs::write(folder.file(MAX_SLOTS), "").unwrap();
        assert!(folder.read().unwrap_err().to_string().contains("65536.record"));
    }
}
