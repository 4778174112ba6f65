//! The masks of one node's attempt, shared by its collectives.

use std::sync::{Arc, Mutex, PoisonError};

use mingle_masking::{MaskingError, Masks, Width};

/// The masks that a node has agreed on in its attempt.
#[derive(Clone)]
pub(crate) struct AgreedMasks(Arc<Mutex<Masks>>);

impl AgreedMasks {
    pub(crate) fn new(masks: Masks) -> Self {
        Self(Arc::new(Mutex::new(masks)))
    }

    /// Masks the words of the sum with this number.
    pub(crate) fn mask(&self, number: u64, width: Width, words: &mut [u64]) -> Result<(), MaskingError> {
        // Nothing that holds the lock panics.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).mask(number, width, words)
    }
}
