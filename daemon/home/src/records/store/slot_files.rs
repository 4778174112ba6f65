//! The files of slots: made whole or not at all, and lengthened around what they hold.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::StoreError;
use crate::error::is_full_disk;
use crate::owner_only::sync_folder;
use crate::records::folder::RecordFolder;

/// Creates missing slots and lengthens those that are too short.
pub(super) fn fill_slots(folder: &RecordFolder, slots: usize, slot_bytes: u64) -> Result<(), StoreError> {
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
    let synced = synced.and_then(|()| sync_folder(above));
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
pub(super) fn fill(file: &mut impl Write, bytes: u64) -> io::Result<()> {
    let zeros = vec![0; 1 << 20];
    let mut left = bytes;
    while left > 0 {
        let piece = usize::try_from(left).map_or(zeros.len(), |left| left.min(zeros.len()));
        file.write_all(&zeros[..piece])?;
        left -= piece as u64;
    }
    Ok(())
}
