//! The record files of a peer: its durable side of the mass ledger.
//!
//! They lie in `<home>/records/`, one slot per file (`0000.record`, `0001.record`, ...), all of one size and private to
//! their owner. `mingle_protocol::record` defines their contents, and which may be overwritten; this module stores
//! them.
//!
//! ```text
//!   a start    Past::find:    nothing, a run to go on with, or one that is finished
//!              begin_anew:    room for the records of another run, beside those of the one before
//!   a run      RecordWriter:  a thread that brings one record after the other to the disk
//!   the end    Ending:        says that the run needs this peer no more; the records stay, for an audit
//! ```

mod beginning;
mod ending;
mod folder;
mod former_start;
mod listing;
mod recovery;
mod replacement;
mod store;
mod writer;

pub use beginning::{begin_anew, prolong};
pub use ending::Ending;
pub use folder::{Contents, RecordFolder, read_outline};
pub use former_start::counting_file;
pub use listing::{Condition, RecordFile, Sound, list, verify};
pub use recovery::{Found, Past};
pub use replacement::{discard, folder_of};
pub use store::{RecordStore, Room, StoreError};
pub use writer::{RecordWriter, Written};
