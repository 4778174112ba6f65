//! Properties that must hold for any bytes from a peer or a file.
//!
//! Each function takes one input of the fuzzer and panics when a decoder violates a property. The targets in
//! `fuzz_targets/` only call them; the tests here call them with the seeds, which shows that these get past the first
//! check of each decoder.

pub mod collective;
pub mod message_reader;
pub mod multicast;
pub mod patch;
pub mod payload;
pub mod plan;
pub mod record;
pub mod seeds;
pub mod topology;
