//! The masks of one node's attempt, shared by its collectives.

use std::sync::{Arc, Mutex, PoisonError};

use mingle_masking::{MaskingError, Masks, Width};

/// The masks that a node has agreed on in its attempt.
#[derive(Clone)]
pub(crate) struct AgreedMasks {
    masks: Arc<Mutex<Masks>>,
    members: [u8; 32],
}

impl AgreedMasks {
    /// Masks agreed with members that have this hash.
    pub(crate) fn new(masks: Masks, members: [u8; 32]) -> Self {
        Self { masks: Arc::new(Mutex::new(masks)), members }
    }

    /// The hash of all members and of what they agreed on.
    pub(crate) fn members(&self) -> [u8; 32] {
        self.members
    }

    /// Masks the words of the sum with this number.
    pub(crate) fn mask(&self, number: u64, width: Width, words: &mut [u64]) -> Result<(), MaskingError> {
        // Nothing that holds the lock panics.
        self.masks.lock().unwrap_or_else(PoisonError::into_inner).mask(number, width, words)
    }
}
