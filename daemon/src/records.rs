//! The record files of a peer: its durable side of the mass ledger.
//!
//! They lie in `<home>/records/`, one slot a file (`0000.record`, `0001.record`, ...), all of one size and private to
//! their owner. What is in them, and which may be overwritten, is said in `mingle_protocol::record`; here they become
//! files.

mod folder;
// The run loop does not commit its state yet; `expect` makes the compiler say so when it does.
#[cfg_attr(not(test), expect(dead_code, reason = "the run loop does not write records yet"))]
mod store;

pub(crate) use folder::{Contents, RecordFolder};
