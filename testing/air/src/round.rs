//! Rounds of a plan on virtual time, as three kinds of senders play them.
//!
//! Each player sends one payload along each link of each step, on an [`Air`] of its own, and measures the time until the
//! last receiver has the last of them. A payload is cut into packets. What the players leave out, they leave out alike:
//! headers of parcels, their acknowledgements, and the training between rounds.

mod multicast;
mod progress;
mod slots;
mod streams;

use std::collections::BTreeSet;
use std::time::Duration;

pub use self::{
    multicast::play_multicast,
    slots::{Slotting, play_slots},
    streams::play_streams,
};
use crate::{
    air::Air,
    counts::RadioCounts,
    frame::{FrameOutcome, SendError},
    kept_transmission::KeptTransmission,
    settings::{AirSettings, AirSettingsError},
};

/// The payload of a parcel, cut into packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundPayload {
    /// Bytes of the payload, above zero.
    pub bytes: usize,
    /// The most payload bytes of a packet, above zero.
    pub packet_bytes: usize,
    /// Bytes of the headers of a packet: Ethernet, IP and UDP have 42.
    pub header_bytes: usize,
}

/// The measured round, or period where a plan has several steps.
#[derive(Debug, Clone, PartialEq)]
pub struct Played {
    /// The time until each link had delivered its payload.
    pub elapsed: Duration,
    /// The time in which at least one node was sending.
    pub busy: Duration,
    /// Payloads that a link of the plan did not deliver: none but in slots, where nothing is sent twice.
    pub undelivered: usize,
    /// The counts of each node.
    pub counts: Vec<RadioCounts>,
    /// All transmissions, where the settings keep them.
    pub transmissions: Vec<KeptTransmission>,
}

/// A round that could not be played.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlayError {
    /// A plan for links that do not share a channel.
    #[error("the plan has no slots: it is for links of their own, make it for a broadcast medium")]
    NoSlots,
    /// A payload or packets of no bytes.
    #[error("a payload and its packets have at least one byte")]
    EmptyPayload,
    /// Settings that make no medium.
    #[error(transparent)]
    Settings(#[from] AirSettingsError),
    /// A frame that the medium does not take.
    #[error(transparent)]
    Send(#[from] SendError),
    /// A round longer than the limit of the player.
    #[error("a round took longer than {limit:?}, and {missing} payloads had not arrived")]
    Endless {
        /// The limit.
        limit: Duration,
        /// Payloads that had not arrived.
        missing: usize,
    },
}

impl Default for RoundPayload {
    /// 100 kB in datagrams of 1,200 bytes.
    fn default() -> Self {
        Self { bytes: 100_000, packet_bytes: 1_200, header_bytes: 42 }
    }
}

impl RoundPayload {
    /// The number of packets.
    #[must_use]
    pub fn packets(&self) -> usize {
        self.bytes.div_ceil(self.packet_bytes.max(1))
    }

    /// The bytes on the air of a packet, by its number.
    #[must_use]
    pub fn packet(&self, number: usize) -> usize {
        let left = self.bytes.saturating_sub(number.saturating_mul(self.packet_bytes));
        self.header_bytes + left.min(self.packet_bytes)
    }

    /// The time that all packets take on the air, one after the other.
    #[must_use]
    pub fn airtime(&self, settings: &AirSettings) -> Duration {
        (0..self.packets()).map(|number| settings.airtime(self.packet(number))).sum()
    }

    fn check(&self) -> Result<(), PlayError> {
        if self.bytes == 0 || self.packet_bytes == 0 { Err(PlayError::EmptyPayload) } else { Ok(()) }
    }
}

/// Senders and receivers of a round, as a function of what happens on the air.
trait Player<P> {
    /// Takes an outcome, and sends what follows from it.
    fn on_outcome(&mut self, air: &mut Air<P>, outcome: FrameOutcome<P>) -> Result<(), SendError>;

    /// Lets a node begin, or go on, at the time of the air.
    fn on_wake(&mut self, air: &mut Air<P>, node: usize) -> Result<(), SendError>;

    /// The next time at which a node that has begun has to go on, and the node.
    fn next_wake(&self) -> Option<(Duration, usize)> {
        None
    }

    /// The number of payloads that have not arrived.
    fn missing(&self) -> usize;
}

/// Plays a round to the arrival of its last payload. `starts` has the time at which each node begins.
fn play<P: Clone>(
    mut air: Air<P>,
    player: &mut impl Player<P>,
    starts: &[Duration],
    limit: Duration,
) -> Result<Played, PlayError> {
    let mut starts: BTreeSet<(Duration, usize)> = starts.iter().copied().zip(0..).collect();
    while player.missing() > 0 {
        let wake = starts.first().copied().into_iter().chain(player.next_wake()).min();
        let Some(next) = wake.map(|(at, _)| at).into_iter().chain(air.next_event()).min() else {
            break;
        };
        if next > limit {
            break;
        }
        for outcome in air.advance(next) {
            player.on_outcome(&mut air, outcome)?;
        }
        if let Some((_, node)) = wake.filter(|&(at, _)| at <= next) {
            starts.retain(|start| Some(*start) != wake);
            player.on_wake(&mut air, node)?;
        }
    }
    match player.missing() {
        0 => Ok(played(&air, 0)),
        missing => Err(PlayError::Endless { limit, missing }),
    }
}

fn played<P: Clone>(air: &Air<P>, undelivered: usize) -> Played {
    Played {
        elapsed: air.now(),
        busy: air.busy(),
        undelivered,
        counts: air.counts(),
        transmissions: air.transmissions().to_vec(),
    }
}
