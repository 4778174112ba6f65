//! A peer that solves a problem with the others: what `mingle-solving` says a node does, on real streams and a real clock.

mod attempt;
mod error;
pub(crate) mod host;

pub use error::Explain;
