//! A peer that solves a problem or learns in rounds with the others: what `mingle-solving` says a node does, on real streams and a real clock.

mod attempt;
mod error;
pub(crate) mod host;
mod round_files;

pub use error::Explain;
