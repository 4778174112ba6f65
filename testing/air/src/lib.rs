//! An emulated shared half-duplex radio.
//!
//! A base graph says which nodes are in range of each other. A frame occupies the neighbourhood of its sender for its
//! airtime; frames that overlap at a receiver are lost there. [`Air`] is that medium as a function of its inputs: no
//! clock, no socket, no thread. It has two hosts:
//!
//! ```text
//!   round    plays the rounds of a plan on virtual time: in slots, by multicast without slots, by unicast streams
//!   live     carries the frames of network namespaces in real time, each with a TAP interface
//! ```
//!
//! `docs/air.md` says what such a radio cannot show.
//!
//! ```
//! use std::time::Duration;
//! use mingle_air::{Air, AirFrame, AirSettings, FrameOutcome, Recipient};
//! use mingle_planner::Topology;
//!
//! let path = Topology::parse("a b\nb c\n")?;
//! let mut air = Air::new(&path, &AirSettings::default())?;
//! air.send(Duration::ZERO, 0, AirFrame { recipient: Recipient::All, bytes: 1_000, payload: "from a" })?;
//! air.send(Duration::ZERO, 2, AirFrame { recipient: Recipient::All, bytes: 1_000, payload: "from c" })?;
//! let outcomes = air.advance(Duration::from_secs(1));
//! assert!(!outcomes.iter().any(|outcome| matches!(outcome, FrameOutcome::Received { .. })));
//! assert_eq!(air.counts()[1].collided, 2); // a and c are out of each other's range, and both are in range of b
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod air;
mod comparison;
mod comparison_picture;
mod counts;
mod frame;
mod kept_transmission;
pub mod live;
mod rank_correlation;
mod rate;
mod round;
mod settings;
mod unicast_slots;

pub use self::{
    air::Air,
    comparison::{AirtimeComparison, AirtimeError, AirtimeRequest, AirtimeRow},
    comparison_picture::draw_round,
    counts::RadioCounts,
    frame::{AirFrame, FrameOutcome, Recipient, SendError},
    kept_transmission::KeptTransmission,
    rank_correlation::spearman,
    rate::{ParseRateError, parse_rate},
    round::{PlayError, Played, RoundPayload, Slotting, play_multicast, play_slots, play_streams},
    settings::{Acknowledgements, AirLoss, AirSettings, AirSettingsError, CarrierSense},
    unicast_slots::unicast_slots,
};
