//! Listing of the record files of a folder for people: their contents, and whether they are sound.

use std::fs;
use std::path::{Path, PathBuf};

use mingle_protocol::record::{Outline, SlotContent, survey};

use super::folder::RecordFolder;
use super::store::RecordStore;
use crate::error::{Context, Error, ErrorKind, Result};

/// A file of records.
#[derive(Debug)]
pub struct RecordFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Its length; `None` if the file is missing.
    pub bytes: Option<u64>,
    /// State of the file.
    pub condition: Condition,
    /// Its contents without the vectors, if it holds a record.
    pub outline: Option<Box<Outline>>,
}

/// The state of a record file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// A sound record, from which its peer would resume.
    Newest,
    /// A sound record.
    Whole,
    /// An empty slot.
    Empty,
    /// A write cut off by a crash; its contents were never sent to another peer.
    Torn,
    /// Not usable, for this reason.
    Damaged(String),
}

impl Condition {
    /// The state in a word.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::Whole => "whole",
            Self::Empty => "empty",
            Self::Torn => "torn",
            Self::Damaged(_) => "damaged",
        }
    }

    /// The fault of a damaged file.
    pub fn fault(&self) -> Option<&str> {
        match self {
            Self::Damaged(fault) => Some(fault),
            _ => None,
        }
    }
}

/// The record files of a folder, slot by slot.
///
/// # Errors
/// The folder cannot be read.
pub fn list(records: &Path) -> Result<Vec<RecordFile>> {
    let doing = format!("cannot read the records in {}", records.display());
    let folder = RecordFolder::at(records);
    let contents = folder.read().context(ErrorKind::BadInput, doing)?;
    let found = survey(&contents.slots).ok().flatten();
    let newest = found.as_ref().map(|found| found.newest);
    let torn = found.as_ref().and_then(|found| found.torn);
    let listed = |(slot, content): (usize, SlotContent)| {
        let path = folder.file(slot);
        let condition = match content {
            SlotContent::Holds(_) if newest == Some(slot) => Condition::Newest,
            SlotContent::Holds(_) => Condition::Whole,
            SlotContent::Empty => Condition::Empty,
            SlotContent::Unreadable if torn == Some(slot) => Condition::Torn,
            SlotContent::Unreadable => Condition::Damaged(contents.faults.get(&slot).cloned().unwrap_or_default()),
        };
        let outline = if let SlotContent::Holds(outline) = content { Some(outline) } else { None };
        RecordFile { bytes: fs::metadata(&path).ok().map(|file| file.len()), path, condition, outline }
    };
    Ok(contents.slots.into_iter().enumerate().map(listed).collect())
}

/// Sound records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sound {
    /// Number of the newest record.
    pub newest: u64,
    /// Payloads that it owes; all are there.
    pub owed_payloads: usize,
}

/// Checks that the records of a folder are sound: every slot can be read, and the newest record and all payloads that
/// it owes are undamaged. `None` if no record was ever written.
///
/// # Errors
/// [`ErrorKind::Integrity`] if they are not sound, others if they cannot be read.
pub fn verify(records: &Path) -> Result<Option<Sound>> {
    let Some(recovered) = RecordStore::look(records)?.load()? else { return Ok(None) };
    let number = recovered.record.books.number;
    let owed = recovered.payloads.len();
    match recovered.torn {
        None => Ok(Some(Sound { newest: number, owed_payloads: owed })),
        Some(slot) => Err(Error::new(
            ErrorKind::Integrity,
            format!(
                "slot {slot} cannot be read. The newest good record is {number}, with all {owed} payloads that it owes: if \
                 the peer was killed or lost its power while it wrote, nothing is missing and it goes on from there"
            ),
        )),
    }
}
