//! The masks of one member in one attempt.

use std::fmt;

use aes::Aes256;
use ctr::Ctr64BE;
use ctr::cipher::{KeyIvInit, StreamCipher};
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::error::MaskingError;
use crate::fixed_point::Width;

/// Bytes of a mask that are expanded at a time. A piece of the sum stays in the nearest cache while all masks are added.
const PIECE: usize = 1 << 13;

/// The bytes of one mask.
type MaskStream = Ctr64BE<Aes256>;

/// The seed of the mask between this member and a neighbour, and the sign of this member's side.
pub(crate) struct Pair {
    /// `true` if this member adds the mask and the neighbour subtracts it.
    pub(crate) adds: bool,
    pub(crate) seed: Zeroizing<[u8; 32]>,
}

impl Pair {
    /// The mask of the sum with this number, from its beginning.
    fn stream(&self, number: u64, seen: &[u8; 32]) -> Result<MaskStream, MaskingError> {
        let mut key = Zeroizing::new([0; 32]);
        let hkdf = Hkdf::<Sha256>::from_prk(self.seed.as_ref()).map_err(|_| MaskingError::Expansion)?;
        hkdf.expand_multi_info(&[b"mingle masked sums mask 1", seen], key.as_mut())
            .map_err(|_| MaskingError::Expansion)?;
        let mut first_block = [0; 16];
        first_block[..8].copy_from_slice(&number.to_be_bytes());
        Ok(MaskStream::new(&(*key).into(), &first_block.into()))
    }
}

/// The masks of one member in one attempt, one for each sum: AES-256 in counter mode. Its key is expanded from the seed of a
/// pair, which names the roster and all keys, and from a hash of what this member has seen so far. The first half of a
/// counter block is the number of the sum, the second the place in it. No two sums share a mask.
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

    /// Adds this member's mask for a sum to its encoded vector, modulo 2^64, or 2^32 or 2^128 by the width.
    /// Numbers of sums rise.
    ///
    /// `seen` is a hash of all that members have shared in this attempt: masks of members that were shown different things do
    /// not cancel, so their sum is uniformly random.
    ///
    /// # Errors
    /// A mask of this number, or of a later one, was given out before; half a number.
    pub fn mask(&mut self, number: u64, seen: &[u8; 32], width: Width, words: &mut [u64]) -> Result<(), MaskingError> {
        if let Some(last) = self.last.filter(|last| number <= *last) {
            return Err(MaskingError::Reused { number, last });
        }
        if width == Width::Wide && !words.len().is_multiple_of(2) {
            return Err(MaskingError::Words { words: words.len() });
        }
        self.last = Some(number);
        let streams = self.pairs.iter().map(|pair| Ok((pair.adds, pair.stream(number, seen)?)));
        let mut streams: Vec<(bool, MaskStream)> = streams.collect::<Result<_, MaskingError>>()?;
        let mut mask = Zeroizing::new([0; PIECE]);
        for piece in words.chunks_mut(PIECE / 8) {
            let mask = &mut mask[..8 * piece.len()];
            for (adds, stream) in &mut streams {
                mask.fill(0);
                stream.apply_keystream(mask);
                match width {
                    Width::Half => add_half(piece, mask, *adds),
                    Width::Narrow => add_narrow(piece, mask, *adds),
                    Width::Wide => add_wide(piece, mask, *adds),
                }
            }
        }
        Ok(())
    }
}

fn add_half(words: &mut [u64], mask: &[u8], adds: bool) {
    const LOWER: u64 = 0xffff_ffff;
    for (word, mask) in words.iter_mut().zip(mask.as_chunks().0) {
        let mask = u64::from_le_bytes(*mask);
        let [lower, upper] = [*word & LOWER, *word & !LOWER];
        let [lower_mask, upper_mask] = [mask & LOWER, mask & !LOWER];
        *word = match adds {
            true => upper.wrapping_add(upper_mask) | (lower.wrapping_add(lower_mask) & LOWER),
            false => upper.wrapping_sub(upper_mask) | (lower.wrapping_sub(lower_mask) & LOWER),
        };
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
