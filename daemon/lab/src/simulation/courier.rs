//! The loss of messages on the simulated network.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use mingle_protocol::Message;

/// Loses messages at random, and counts parcels.
#[derive(Debug)]
pub(super) struct Courier {
    loss: f64,
    rng: ChaCha8Rng,
    pub(super) link_bytes: u64,
    pub(super) parcels: u64,
    pub(super) lost_parcels: u64,
}

impl Courier {
    /// A courier that loses this share of all messages, each independently.
    pub(super) fn new(loss: f64, seed: u64) -> Self {
        // A stream of its own, apart from those of the split and the batches.
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(1);
        Self { loss, rng, link_bytes: 0, parcels: 0, lost_parcels: 0 }
    }

    /// Returns `true` if this message arrives.
    pub(super) fn carries(&mut self, message: &Message) -> bool {
        let bytes = match message {
            Message::Parcel(parcel) => Some(parcel.payload.bytes().len() as u64),
            _ => None,
        };
        self.carries_parcel(bytes)
    }

    /// Returns `true` if a parcel of so many bytes arrives; `None` stands for any other message.
    pub(super) fn carries_parcel(&mut self, bytes: Option<u64>) -> bool {
        let arrives = self.loss == 0.0 || !self.rng.random_bool(self.loss);
        if let Some(bytes) = bytes {
            self.parcels += 1;
            self.link_bytes += bytes;
            self.lost_parcels += u64::from(!arrives);
        }
        arrives
    }
}
