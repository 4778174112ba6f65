//! The interface between codecs and kernels: encoding and decoding of one block.

use super::Dither;
use super::MAX_MAGNITUDE;
use super::magnitude::largest_of_block;

pub(super) use super::BLOCK;

/// Bytes of the longest block.
pub(super) const MOST_BLOCK_BYTES: usize = 4 * BLOCK;

/// Bytes of the scale in front of a block of integers.
pub(super) const SCALE_BYTES: usize = 4;
/// A block with a smaller scale is sent as zeros: the inverse would leave the range of f32.
const SMALLEST_SCALE: f32 = 1e-37;
/// The largest scale whose multiples are all acceptable coordinates.
const LARGEST_SCALE: f32 = MAX_MAGNITUDE / 128.0;
/// 1.5 * 2^23: added to a small number, its sum is rounded to an integer, which is then in the low bits.
pub(super) const ROUND_TO_INTEGER: f32 = 12_582_912.0;

/// The scale of a block, `unit` times its largest magnitude, and the inverse of it; zeros where it is too small.
#[inline(always)]
pub(super) fn scale_of(values: &[f32; BLOCK], unit: f32) -> (f32, f32) {
    let scale = largest_of_block(values) * unit;
    if scale >= SMALLEST_SCALE { (scale, 1.0 / scale) } else { (0.0, 0.0) }
}

/// Returns `true` if a block begins with a scale that a sender may write: false for NaN and for -0.0 as well, since
/// there is one encoding of one value.
#[inline(always)]
pub(super) fn is_scale(bytes: &[u8]) -> bool {
    let scale = bytes.first_chunk().map_or(f32::NAN, |head| f32::from_le_bytes(*head));
    scale.is_sign_positive() && scale <= LARGEST_SCALE
}

/// One codec, block by block. The last block of a vector is padded with zeros, and its encoding cut to length unless
/// the codes of a block are packed.
///
/// The loops are straight and branch-free over whole blocks, so that the compiler turns them into vector instructions,
/// and use nothing whose result depends on the machine.
pub(super) trait Format {
    /// Bytes of a whole block.
    const BLOCK_BYTES: usize;

    /// Writes `values`, which are finite and in range, and replaces them by what [`decode`](Self::decode) will read.
    fn encode(values: &mut [f32; BLOCK], bytes: &mut [u8], dither: &mut Dither);

    /// Decodes bytes that passed [`is_sound`](Self::is_sound).
    fn decode(bytes: &[u8], values: &mut [f32; BLOCK]);

    /// Returns `true` if all values that these bytes hold are finite and not too large. The bytes are whole coordinates
    /// of one block, from its beginning.
    fn is_sound(bytes: &[u8]) -> bool;
}
