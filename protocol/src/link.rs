//! The two ends of a directed link: numbered parcels, exactly once, with books.
//!
//! The sender numbers its parcels 1, 2, 3, ... and keeps each until the receiver says it is *applied*. The receiver takes
//! parcel k + 1 only after k. Both ends keep totals, so that an auditor can compare them.

mod inbound;
mod outbound;

pub(crate) use inbound::{Acceptance, InLink};
pub(crate) use outbound::OutLink;

/// Most parcels a sender may have outstanding on one link, and so the most a receiver ever queues.
pub const WINDOW: usize = 4;
