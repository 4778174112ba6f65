//! Checks of a machine: can a peer run here, and what to do if not.
//!
//! Everything is tried, not guessed: ports are bound, the disk is written to and synced. Nothing outside this machine
//! is contacted. Each finding is a [`Check`].
//!
//! | module | subjects |
//! | --- | --- |
//! | [`identity`] | the key of the peer, and its permissions |
//! | [`network`] | the ports to listen on, and the addresses that others could use |
//! | [`disk`] | room for the records, and the time of a write |
//! | [`machine`] | memory, open files, the clock |
//!
//! A report for other people is an [`Archive`] of texts that went through a [`Redaction`].

mod archive;
mod check;
pub mod disk;
pub mod identity;
mod interfaces;
pub mod machine;
pub mod network;
mod redaction;

pub use archive::{Archive, ArchiveEntry};
pub use check::{Check, CheckVerdict};
pub use redaction::Redaction;
