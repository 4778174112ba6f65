//! Whether a peer could run on this machine, and what to do where it could not.
//!
//! Everything is tried, not guessed: ports are bound, the disk is written to and synced. Nothing outside this machine is
//! asked. What was found is a [`Check`] each.
//!
//! | module | what is looked at |
//! | --- | --- |
//! | [`identity`] | the key of the peer, and who can read it |
//! | [`network`] | the ports to listen on, and the addresses that others could use |
//! | [`disk`] | room for the records, and how long a write takes |
//! | [`machine`] | memory, open files, the clock |
//!
//! What others need to help is an [`Archive`] of texts that went through a [`Redaction`].

mod archive;
mod check;
pub mod disk;
pub mod identity;
mod interfaces;
pub mod machine;
pub mod network;
mod redaction;

pub use archive::{Archive, Entry};
pub use check::{Check, Verdict};
pub use redaction::Redaction;
