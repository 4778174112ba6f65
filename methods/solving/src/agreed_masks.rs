//! The masks of one node's attempt, shared by its collectives, and the hash of what the node has seen.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mingle_masking::{MaskingError, Masks, Width};

/// The masks that a node has agreed on in its attempt.
///
/// Relays can show some nodes other results than the rest: rows of statistics, rounds to go back to, scales. So every result
/// that all nodes are to have alike goes into a hash, on which all later masks depend. From a lie on, the masks of those that
/// were lied to and of the others do not cancel.
#[derive(Clone)]
pub(crate) struct AgreedMasks {
    state: Arc<Mutex<State>>,
    members: [u8; 32],
}

struct State {
    masks: Masks,
    /// All results so far, in order.
    seen: blake3::Hasher,
}

impl AgreedMasks {
    /// Masks agreed with members that have this hash.
    pub(crate) fn new(masks: Masks, members: [u8; 32]) -> Self {
        let seen = blake3::Hasher::new_derive_key("mingle 2026 results that all nodes of a sum have alike");
        Self { state: Arc::new(Mutex::new(State { masks, seen })), members }
    }

    /// The hash of all members and of what they agreed on.
    pub(crate) fn members(&self) -> [u8; 32] {
        self.members
    }

    /// Takes note of a result that all nodes are to have alike.
    pub(crate) fn note(&self, words: impl ExactSizeIterator<Item = u64>) {
        let mut state = self.lock();
        state.seen.update(&(words.len() as u64).to_le_bytes());
        let mut buffer = [0; 1 << 16];
        let mut filled = 0;
        for word in words {
            buffer[filled..filled + 8].copy_from_slice(&word.to_le_bytes());
            filled += 8;
            if filled == buffer.len() {
                state.seen.update(&buffer);
                filled = 0;
            }
        }
        state.seen.update(&buffer[..filled]);
    }

    /// Masks the words of the sum with this number.
    pub(crate) fn mask(&self, number: u64, width: Width, words: &mut [u64]) -> Result<(), MaskingError> {
        let mut state = self.lock();
        let seen = *state.seen.finalize().as_bytes();
        state.masks.mask(number, &seen, width, words)
    }

    /// Nothing that holds the lock panics.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
