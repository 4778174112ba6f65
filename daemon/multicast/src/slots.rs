//! Slots on a shared channel: when a node may transmit, so that no two transmissions meet at a receiver.
//!
//! ```text
//!   plan  --->  SlotTable    which slots of a round are this node's
//!                   |
//!   beacons  --->  Rhythm    when they begin, as all neighbours have it  --->  SlotWindow of a payload
//! ```
//!
//! A round is laid out as its slots, one after another, with a pause before each step: the longer one, before the first
//! step, is for training, the others for taking a payload in and making the next one. Both pauses follow what nodes need.
//! Nodes need no common clock: each payload is preceded by a [`SlotBeacon`] with the time since its step began.

mod beacon;
mod layout;
mod length;
mod look;
mod pauses;
mod rhythm;
mod table;

pub use beacon::SlotBeacon;
pub use length::SlotLength;
pub use pauses::Pauses;
pub use rhythm::{BeaconOutcome, Rhythm, SlotWindow};
pub use table::{SlotTable, StepSlots};
