//! The masks of one member in one attempt.

use std::fmt;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use zeroize::Zeroizing;

use crate::error::MaskingError;
use crate::fixed_point::Width;

/// Bytes of a mask that are expanded at a time.
const PIECE: usize = 1 << 13;

/// The seed of the mask between this member and a neighbour, and the sign of this member's side.
pub(crate) struct Pair {
    /// `true` if this member adds the mask and the neighbour subtracts it.
    pub(crate) adds: bool,
    pub(crate) seed: Zeroizing<[u8; 32]>,
}

/// The masks of one member in one attempt, one for each sum. Seeds name the roster and all keys, the nonce of ChaCha20
/// the number of the sum: no two sums share a mask.
pub struct Masks {
    pairs: Vec<Pair>,
    last: Option<u64>,
}

impl Masks {
    pub(crate) fn new(pairs: Vec<Pair>) -> Self {
        Self { pairs, last: None }
    }

    /// The number of neighbours in the graph.
    pub fn neighbours(&self) -> usize {
        self.pairs.len()
    }

    /// Adds this member's mask for a sum to its encoded vector, modulo 2^64, or 2^128 where numbers are wide.
    /// Numbers of sums rise.
    ///
    /// # Errors
    /// A mask of this number, or of a later one, was given out before; half a number.
    pub fn mask(&mut self, number: u64, width: Width, words: &mut [u64]) -> Result<(), MaskingError> {
        if let Some(last) = self.last.filter(|last| number <= *last) {
            return Err(MaskingError::Reused { number, last });
        }
        if width == Width::Wide && !words.len().is_multiple_of(2) {
            return Err(MaskingError::Words { words: words.len() });
        }
        self.last = Some(number);
        let mut bytes = Zeroizing::new([0; PIECE]);
        for pair in &self.pairs {
            let mut stream = ChaCha20Rng::from_seed(*pair.seed);
            stream.set_stream(number);
            for piece in words.chunks_mut(PIECE / 8) {
                let bytes = &mut bytes[..8 * piece.len()];
                stream.fill_bytes(bytes);
                match width {
                    Width::Narrow => add_narrow(piece, bytes, pair.adds),
                    Width::Wide => add_wide(piece, bytes, pair.adds),
                }
            }
        }
        Ok(())
    }
}

fn add_narrow(words: &mut [u64], mask: &[u8], adds: bool) {
    for (word, mask) in words.iter_mut().zip(mask.as_chunks().0) {
        let mask = u64::from_le_bytes(*mask);
        *word = if adds { word.wrapping_add(mask) } else { word.wrapping_sub(mask) };
    }
}

fn add_wide(words: &mut [u64], mask: &[u8], adds: bool) {
    for (number, mask) in words.as_chunks_mut().0.iter_mut().zip(mask.as_chunks().0) {
        let mask = u128::from_le_bytes(*mask);
        let value = Width::join(*number);
        *number = Width::split(if adds { value.wrapping_add(mask) } else { value.wrapping_sub(mask) });
    }
}

impl fmt::Debug for Masks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Masks").field("neighbours", &self.pairs.len()).field("last", &self.last).finish_non_exhaustive()
    }
}
