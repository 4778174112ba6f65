//! A peer that solves a problem or learns in rounds with the others: the nodes of `mingle-solving` on real streams and
//! a real clock.

mod attempt;
mod error;
pub(crate) mod host;

pub use error::Explain;
pub use mingle_solving::{LEAST_MEMBERS, SumPolicy};
