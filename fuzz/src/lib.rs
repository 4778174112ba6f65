//! What must hold for whatever bytes a peer sends or a file contains.
//!
//! Each function takes one input of the fuzzer and panics when a decoder does what it must not. The targets in
//! `fuzz_targets/` only call them; the tests here call them with the seeds, so that they are known to get past the first
//! check of each decoder.

pub mod collective;
pub mod message_reader;
pub mod payload;
pub mod plan;
pub mod record;
pub mod seeds;
pub mod topology;
