//! The two ends of a directed link: numbered parcels, exactly once, with books.
//!
//! The sender numbers its parcels 1, 2, 3, ... and keeps each until the receiver acknowledges it as *applied*. The
//! receiver takes parcel k + 1 only after k, and only if it continues the [chain](crate::Chain) of those before. Both
//! ends keep totals, so that an auditor can compare them.
//!
//! In a durable swarm both ends can be rolled back to a record. An end that is shown a later state of its own than it
//! remembers was rolled back further than the record it confirmed: the link reports it by a [`RolledBack`].

mod inbound;
mod outbound;
#[cfg(test)]
mod tests;

pub use crate::window::{Rejections, WINDOW};
pub(crate) use inbound::{Acceptance, InLink, QueuedParcel};
pub(crate) use outbound::{OutLink, Returned};

/// This end was rolled back: the other end remembers a later state of it, so its present one is from an old record or
/// none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RolledBack;
