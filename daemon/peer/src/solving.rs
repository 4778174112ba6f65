//! A peer that solves a problem with the others: what `mingle-solving` says a node does, on real streams and a real clock.

mod attempt;
pub(crate) mod host;
