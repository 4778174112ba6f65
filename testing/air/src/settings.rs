//! Settings of the medium.

use std::time::Duration;

/// The most bytes of a frame.
pub(crate) const MAX_FRAME_BYTES: usize = 65_600;

/// The longest overhead of a frame.
const MAX_FRAME_OVERHEAD: Duration = Duration::from_secs(10);

/// The settings of an air.
#[derive(Debug, Clone, PartialEq)]
pub struct AirSettings {
    /// The rate of all radios, in bits per second.
    pub rate: u64,
    /// Time that each transmission takes beside its bytes: preamble, and gaps of radios without carrier sense.
    pub frame_overhead: Duration,
    /// Carrier sense with random back-off; without it, a radio sends at once.
    pub carrier_sense: Option<CarrierSense>,
    /// Acknowledgements of frames to one node, with retries; without them, no frame is repeated.
    pub acknowledgements: Option<Acknowledgements>,
    /// Losses by chance.
    pub loss: AirLoss,
    /// The most frames in the queue of a radio.
    pub queue_frames: usize,
    /// The seed of all random choices.
    pub seed: u64,
    /// Keep each transmission, for pictures. Their number has no bound: not for an air in real time.
    pub keeps_transmissions: bool,
}

/// Carrier sense as IEEE 802.11 has it (DCF): wait until the channel is free for [`space`](CarrierSense::space), then
/// for a random number of slots, counted while it is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CarrierSense {
    /// The slot of the back-off. A radio notices another one a slot after its start: those that begin within a slot
    /// collide.
    pub slot: Duration,
    /// The time the channel has to be free (DIFS).
    pub space: Duration,
    /// The most slots of a first try (CWmin).
    pub first_window: u32,
    /// The most slots of any try (CWmax). Each retry doubles the window.
    pub last_window: u32,
}

/// Acknowledgements of the link layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acknowledgements {
    /// The time between a frame and its acknowledgement (SIFS).
    pub space: Duration,
    /// Bytes of an acknowledgement.
    pub bytes: usize,
    /// Retries of a frame before it is given up.
    pub retries: u32,
}

/// Losses by chance, at each receiver on its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AirLoss {
    /// The same share of all transmissions on each link.
    Uniform(f64),
    /// This share on the longest link of the base graph, and on others less, by the square of their length. Needs a
    /// base graph with positions.
    AtRange(f64),
}

/// Settings that make no medium.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AirSettingsError {
    /// A rate of zero.
    #[error("the rate of the air is zero: give one such as 10mbit")]
    NoRate,
    /// A loss out of range.
    #[error("a loss of {loss} is out of range: it is a share from 0 to less than 1")]
    Loss {
        /// The share that was given.
        loss: f64,
    },
    /// Loss by distance, without distances.
    #[error(
        "the base graph has no positions, which loss by distance needs: use a uniform loss, or a graph such as rg:n=12,r=0.5"
    )]
    NoPositions,
    /// A back-off without slots.
    #[error("carrier sense needs a slot above zero, and windows of which the first is not above the last")]
    CarrierSense,
    /// Acknowledgements that other radios would not let through.
    #[error(
        "acknowledgements come {acknowledgement:?} after a frame, and others send {sense:?} after it: make that longer"
    )]
    LateAcknowledgements {
        /// The time between a frame and its acknowledgement.
        acknowledgement: Duration,
        /// The time the channel has to be free.
        sense: Duration,
    },
    /// An overhead that no radio has.
    #[error("an overhead of {overhead:?} a frame is more than {MAX_FRAME_OVERHEAD:?}")]
    Overhead {
        /// The time that was given.
        overhead: Duration,
    },
    /// A queue that takes no frame.
    #[error("a queue of no frames lets no node send")]
    NoQueue,
}

impl Default for AirSettings {
    /// 10 Mbit/s, 100 microseconds a frame, no carrier sense, no acknowledgements, no loss.
    fn default() -> Self {
        Self {
            rate: 10_000_000,
            frame_overhead: Duration::from_micros(100),
            carrier_sense: None,
            acknowledgements: None,
            loss: AirLoss::Uniform(0.0),
            queue_frames: 10_000,
            seed: 0,
            keeps_transmissions: false,
        }
    }
}

impl Default for CarrierSense {
    /// The times of IEEE 802.11g: slots of 9 microseconds, 34 of free channel, windows from 15 to 1,023 slots.
    fn default() -> Self {
        Self { slot: Duration::from_micros(9), space: Duration::from_micros(34), first_window: 15, last_window: 1_023 }
    }
}

impl Default for Acknowledgements {
    /// The times of IEEE 802.11g: 14 bytes after 16 microseconds, seven retries.
    fn default() -> Self {
        Self { space: Duration::from_micros(16), bytes: 14, retries: 7 }
    }
}

impl AirSettings {
    /// The time that a transmission of so many bytes takes.
    #[must_use]
    pub fn airtime(&self, bytes: usize) -> Duration {
        let nanoseconds = (bytes as u128 * 8 * 1_000_000_000).div_ceil(u128::from(self.rate.max(1)));
        self.frame_overhead.saturating_add(Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX)))
    }

    pub(crate) fn check(&self) -> Result<(), AirSettingsError> {
        if self.rate == 0 {
            return Err(AirSettingsError::NoRate);
        }
        if self.queue_frames == 0 {
            return Err(AirSettingsError::NoQueue);
        }
        if self.frame_overhead > MAX_FRAME_OVERHEAD {
            return Err(AirSettingsError::Overhead { overhead: self.frame_overhead });
        }
        let (AirLoss::Uniform(loss) | AirLoss::AtRange(loss)) = self.loss;
        if !(0.0..1.0).contains(&loss) {
            return Err(AirSettingsError::Loss { loss });
        }
        let Some(sense) = self.carrier_sense else {
            return Ok(());
        };
        if sense.slot.is_zero() || sense.first_window > sense.last_window || sense.last_window == u32::MAX {
            return Err(AirSettingsError::CarrierSense);
        }
        match self.acknowledgements {
            Some(acknowledgements) if acknowledgements.space >= sense.space => {
                Err(AirSettingsError::LateAcknowledgements {
                    acknowledgement: acknowledgements.space,
                    sense: sense.space,
                })
            }
            _ => Ok(()),
        }
    }
}
