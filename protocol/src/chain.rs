//! A hash chain over all parcels of a link: two ends that agree on a number and on its chain agree on every parcel.
//!
//! A sender that lost its latest state and numbers other parcels with the same numbers is found out by it. It need not
//! look at what is in the parcels: within one process no number of a link is used twice, and processes differ in their
//! nonce.

use serde::{Deserialize, Serialize};

use crate::mass::Mass;

/// Identifies all parcels of a link up to one of them: equal chains mean equal contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chain(pub [u8; 32]);

impl Chain {
    /// The chain with one more parcel, which the process with this nonce splits off.
    #[must_use]
    pub(crate) fn with(self, seq: u64, step: u64, mass: Mass, boot_nonce: u64) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0);
        for number in [seq, step, mass.units(), boot_nonce] {
            hasher.update(&number.to_le_bytes());
        }
        Self(*hasher.finalize().as_bytes())
    }
}
