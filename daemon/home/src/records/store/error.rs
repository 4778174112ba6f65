//! Errors of writing and reading records.

use std::io;
use std::path::PathBuf;

use mingle_protocol::record::{RecordError, RecoveryError, SlotError};

use super::super::folder::MAX_SLOTS;
use crate::error::{Error, ErrorKind, is_full_disk};

/// The error of writing or reading a record.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum StoreError {
    /// The folder or a file in it cannot be used.
    #[error("{doing}")]
    Folder {
        doing: String,
        #[source]
        error: io::Error,
    },
    /// More slots than a peer may have.
    #[error("{slots} slots are more than the {MAX_SLOTS} a peer may have")]
    TooManySlots { slots: usize },
    /// More parameters or links than a record can hold.
    #[error("no record holds {dimension} parameters and {links} links")]
    TooLong { dimension: usize, links: usize },
    /// The disk is too full for the slots.
    #[error("the disk is too full for the records in {}: {slots} slots of {slot_bytes} bytes, of which {missing_bytes} bytes are still missing", path.display())]
    NoSpace {
        /// The folder.
        path: PathBuf,
        /// Slots that are needed.
        slots: usize,
        /// Length of each.
        slot_bytes: u64,
        /// Bytes for which there is no room.
        missing_bytes: u64,
    },
    /// Resuming from the contents of the slots could lose or double mass.
    #[error("the records in {} cannot be relied on: {error}{}", folder.display(), listed(faults))]
    Recovery {
        /// The folder.
        folder: PathBuf,
        /// The possible loss or doubling.
        error: RecoveryError,
        /// Faults of the slots that cannot be read.
        faults: Vec<String>,
    },
    /// A slot that was sound when the store was opened no longer is.
    #[error("{} has changed while it was read", path.display())]
    Changed {
        path: PathBuf,
        #[source]
        error: RecordError,
    },
    /// A record that breaks the rules of the format.
    #[error("record {number} would not be readable")]
    Record {
        number: u64,
        #[source]
        error: RecordError,
    },
    /// A record that no slot may take.
    #[error(transparent)]
    Refused(SlotError),
    /// A slot could not be written. The record before is still the durable one.
    #[error("cannot write {}", path.display())]
    Write {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    /// A sync failed: it is unknown whether the slot is on the disk. **The process has to end.**
    #[error("cannot make sure that {} is on the disk", path.display())]
    Sync {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    /// A sync failed before.
    #[error("an earlier record may not be on the disk: start again")]
    Spoiled,
}

/// The faults in parentheses, such as ` (slot 1: it is torn; slot 4: it is empty)`.
fn listed(faults: &[String]) -> String {
    if faults.is_empty() { String::new() } else { format!(" ({})", faults.join("; ")) }
}

impl StoreError {
    /// The same error for a slot that is to hold a record of so many bytes.
    pub(super) fn for_records_of(self, bytes: u64) -> Self {
        match self {
            Self::NoSpace { path, slots, .. } => Self::NoSpace { path, slots, slot_bytes: bytes, missing_bytes: bytes },
            other => other,
        }
    }

    /// Returns `true` if the same write may succeed once other files on the disk are deleted.
    pub fn is_full_disk(&self) -> bool {
        match self {
            Self::Write { error, .. } => is_full_disk(error),
            Self::NoSpace { .. } => true,
            _ => false,
        }
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::NoSpace { .. } | Self::TooLong { .. } | Self::Folder { .. } | Self::TooManySlots { .. } => {
                ErrorKind::BadInput
            }
            Self::Recovery { .. } | Self::Changed { .. } => ErrorKind::Integrity,
            Self::Write { .. } | Self::Sync { .. } | Self::Spoiled | Self::Record { .. } | Self::Refused(_) => {
                ErrorKind::Unexpected
            }
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoSpace { missing_bytes, .. } => {
                format!("free {missing_bytes} bytes there, or give this peer a home on another disk with --home DIR")
            }
            Self::TooLong { .. } => "--durability off trains without records".to_owned(),
            Self::Recovery { folder, .. } => format!(
                "look at them with `mingle audit {}` and keep a copy. --fresh gives up what this peer held: its \
                 neighbours remember that it took part, and it goes on without weight until they send it some",
                folder.display()
            ),
            Self::Write { .. } | Self::Sync { .. } | Self::Spoiled => {
                "look at the disk, then start this peer again: it goes on where it was".to_owned()
            }
            _ => return None,
        })
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let hint = error.hint();
        hint.into_iter().fold(Self::of(error.kind(), error), Self::hint)
    }
}
