//! The replacement of a home's records by those of another run. The records of the run before count until the first one
//! of the new run is on the disk, and a process that ends in between leaves the ones or the others whole.
//!
//! ```text
//!                                            records.next/     records/     records.discarded/
//!   begin           slots are made           empty slots       old
//!                   (and the former start)
//!   complete        first record is written  new               old
//!                   `records` is renamed     new                            old
//!                   the other is renamed                       new          old
//!                   the old one is removed                     new
//! ```
//!
//! Task, options and best model of the run before are kept in `records.next/` meanwhile (see `former_start`).
//!
//! In the middle line no records are in their place. Nothing of the new run has left the process there, so a start goes
//! back to the old ones.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::former_start;
use crate::error::{Context, ErrorKind, Result};
use crate::home::Home;
use crate::owner_only::sync_folder;
use crate::small_file::or_missing;

/// The folders of a replacement.
#[derive(Clone, Debug)]
pub(super) struct Replacement {
    root: PathBuf,
    records: PathBuf,
    next: PathBuf,
    discarded: PathBuf,
}

/// The parts of a replacement once the first record is on the disk. A process can end between any two, and within the
/// last one.
pub(super) const STEPS: [fn(&Replacement) -> io::Result<()>; 6] = [
    Replacement::set_aside,
    Replacement::sync,
    Replacement::put_in_place,
    Replacement::sync,
    Replacement::remove_former_start,
    Replacement::remove_discarded,
];

impl Replacement {
    pub(super) fn of(home: &Home) -> Self {
        Self {
            root: home.root().to_path_buf(),
            records: home.records(),
            next: home.next_records(),
            discarded: home.discarded_records(),
        }
    }

    /// The folder in which the new records begin.
    pub(super) fn next(&self) -> &Path {
        &self.next
    }

    /// The folder that the new records come to.
    pub(super) fn records(&self) -> &Path {
        &self.records
    }

    /// Puts the new records in the place of the old ones, of which there may be none.
    pub(super) fn complete(&self) -> io::Result<()> {
        STEPS.iter().try_for_each(|step| step(self))
    }

    /// Removes slots of a process that ended before its first record.
    pub(super) fn remove_next(&self) -> io::Result<()> {
        or_missing(fs::remove_dir_all(&self.next))
    }

    fn set_aside(&self) -> io::Result<()> {
        self.remove_discarded()?;
        or_missing(fs::rename(&self.records, &self.discarded))
    }

    fn put_in_place(&self) -> io::Result<()> {
        fs::rename(&self.next, &self.records)
    }

    fn remove_discarded(&self) -> io::Result<()> {
        or_missing(fs::remove_dir_all(&self.discarded))
    }

    fn remove_former_start(&self) -> io::Result<()> {
        former_start::remove(&self.records)
    }

    fn sync(&self) -> io::Result<()> {
        sync_folder(&self.root)
    }

    /// Puts records back that were set aside, where none are in their place.
    fn go_back(&self) -> io::Result<()> {
        if self.records.exists() || !self.discarded.exists() {
            return Ok(());
        }
        or_missing(fs::rename(&self.discarded, &self.records))?;
        self.sync()
    }
}

/// Puts the records of a home back that a process had set aside when it ended, before those of its own run were in
/// their place, and the files that belong to them.
///
/// # Errors
/// A folder or a file cannot be renamed.
pub(super) fn put_back(home: &Home) -> Result {
    former_start::put_back(home)?;
    let replacement = Replacement::of(home);
    let doing = format!("cannot put the records back that are in {}", replacement.discarded.display());
    replacement.go_back().context(ErrorKind::BadInput, doing)
}

/// The folder of the records that count: that of records which a process had set aside when it ended, until a start puts
/// them back.
pub fn folder_of(home: &Home) -> PathBuf {
    let Replacement { records, discarded, .. } = Replacement::of(home);
    if !records.exists() && discarded.exists() { discarded } else { records }
}

/// Discards all records in a home, and with them the weight they hold. A crash leaves all of them or none.
///
/// # Errors
/// A folder cannot be renamed or removed.
pub fn discard(home: &Home) -> Result {
    put_back(home)?;
    let replacement = Replacement::of(home);
    let doing = format!("cannot give up the records in {}", replacement.records.display());
    // Another name than that of records that a start puts back.
    let removed = home.removed_records();
    let gone = or_missing(fs::remove_dir_all(&removed))
        .and_then(|()| or_missing(fs::rename(&replacement.records, &removed)))
        .and_then(|()| replacement.sync())
        .and_then(|()| or_missing(fs::remove_dir_all(&removed)));
    gone.context(ErrorKind::BadInput, doing)
}
