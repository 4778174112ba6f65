//! A hash over all parcels of a link so far: two ends that agree on a number and on its chain agree on every parcel.
//!
//! A sender that lost its latest state and numbers other parcels with the same numbers is found out by it.

use crate::mass::Mass;
use crate::payload::Payload;
use crate::record::Chain;

impl Chain {
    /// The chain with one more parcel.
    #[must_use]
    pub fn with(self, seq: u64, mass: Mass, payload: &Payload) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0).update(&seq.to_le_bytes()).update(&mass.units().to_le_bytes()).update(payload.hash());
        Self(*hasher.finalize().as_bytes())
    }
}
