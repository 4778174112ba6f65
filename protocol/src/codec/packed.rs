//! Four or three bits per coordinate in units of its block's scale, rounded to the nearest.
//!
//! ```text
//!   scale = max |u| / S        q = round(u / scale), an integer in -S ..= S        decode = q scale        S = 7 or 3
//! ```
//!
//! For differences to a reference. Rounding to the nearest halves the largest error of stochastic rounding; its bias
//! does not matter, since what is rounded off stays with the sender and goes out later.
//!
//! The codes of a block lie in planes, so that packing and unpacking are shifts of whole vectors: byte i of an
//! [`Int4`] block has coordinate i below and i + 128 above. An [`Int3`] block begins with a plane of the two low bits
//! of coordinates i, i + 64, i + 128 and i + 192 in byte i, and ends with a plane of the high bits of i, i + 32, ...,
//! i + 224. The last block of a vector is not cut.

use super::Dither;
use super::format::{BLOCK, Format, ROUND_TO_INTEGER, SCALE_BYTES, is_scale, scale_of};

/// Four bits per coordinate.
pub(super) enum Int4 {}

/// Three bits per coordinate.
pub(super) enum Int3 {}

/// The code of zero, in four and in three bits.
const ZERO_4: u8 = 8;
const ZERO_3: u8 = 4;
/// Bytes of the planes of a block.
const NIBBLES: usize = BLOCK / 2;
const LOW_PAIRS: usize = BLOCK / 4;
const HIGH_BITS: usize = BLOCK / 8;

impl Format for Int4 {
    const BLOCK_BYTES: usize = SCALE_BYTES + NIBBLES;

    #[inline(always)]
    fn encode(values: &mut [f32; BLOCK], bytes: &mut [u8], _: &mut Dither) {
        let Some((head, codes)) = bytes.split_first_chunk_mut() else {
            return;
        };
        let planes = quantized::<7>(values, ZERO_4, head);
        let (low, high) = planes.split_at(NIBBLES);
        for ((code, low), high) in codes.iter_mut().zip(low).zip(high) {
            *code = (low | (high << 4)) as u8;
        }
    }

    #[inline(always)]
    fn decode(bytes: &[u8], values: &mut [f32; BLOCK]) {
        let Some((head, codes)) = bytes.split_first_chunk() else {
            return;
        };
        let scale = f32::from_le_bytes(*head);
        let (low, high) = values.split_at_mut(NIBBLES);
        for ((code, low), high) in codes.iter().zip(low).zip(high) {
            *low = value_of(code & 15, ZERO_4) * scale;
            *high = value_of(code >> 4, ZERO_4) * scale;
        }
    }

    #[inline(always)]
    fn is_sound(bytes: &[u8]) -> bool {
        bytes.len() == Self::BLOCK_BYTES && is_scale(bytes)
    }
}

impl Format for Int3 {
    const BLOCK_BYTES: usize = SCALE_BYTES + LOW_PAIRS + HIGH_BITS;

    #[inline(always)]
    fn encode(values: &mut [f32; BLOCK], bytes: &mut [u8], _: &mut Dither) {
        let Some((head, codes)) = bytes.split_first_chunk_mut() else {
            return;
        };
        let planes = quantized::<3>(values, ZERO_3, head);
        let (pairs, bits) = codes.split_at_mut(LOW_PAIRS);
        for (i, pair) in pairs.iter_mut().enumerate() {
            let at = |plane: usize| (planes[plane * LOW_PAIRS + i] & 3) << (2 * plane);
            *pair = (at(0) | at(1) | at(2) | at(3)) as u8;
        }
        for (i, bits) in bits.iter_mut().enumerate() {
            let at = |plane: usize| (planes[plane * HIGH_BITS + i] >> 2) << plane;
            *bits = (at(0) | at(1) | at(2) | at(3) | at(4) | at(5) | at(6) | at(7)) as u8;
        }
    }

    #[inline(always)]
    fn decode(bytes: &[u8], values: &mut [f32; BLOCK]) {
        let Some((head, codes)) = bytes.split_first_chunk() else {
            return;
        };
        let Some((pairs, bits)) = codes.split_first_chunk::<LOW_PAIRS>() else {
            return;
        };
        let Some(bits) = bits.first_chunk::<HIGH_BITS>() else {
            return;
        };
        let scale = f32::from_le_bytes(*head);
        let mut planes = [0; BLOCK];
        for plane in 0..4 {
            for i in 0..LOW_PAIRS {
                planes[plane * LOW_PAIRS + i] = (pairs[i] >> (2 * plane)) & 3;
            }
        }
        for plane in 0..8 {
            for i in 0..HIGH_BITS {
                planes[plane * HIGH_BITS + i] |= ((bits[i] >> plane) & 1) << 2;
            }
        }
        for (value, code) in values.iter_mut().zip(planes) {
            *value = value_of(code, ZERO_3) * scale;
        }
    }

    #[inline(always)]
    fn is_sound(bytes: &[u8]) -> bool {
        bytes.len() == Self::BLOCK_BYTES && is_scale(bytes)
    }
}

/// Writes the scale of a block of `STEPS` units on either side of zero to `head`, replaces the values by their multiples
/// of it, and returns the codes, one per value: as wide as values, so that they are narrowed only once they are packed.
#[inline(always)]
fn quantized<const STEPS: u8>(values: &mut [f32; BLOCK], zero: u8, head: &mut [u8; SCALE_BYTES]) -> [u32; BLOCK] {
    let (scale, inverse) = scale_of(values, 1.0 / f32::from(STEPS));
    *head = scale.to_le_bytes();
    let lowest = ROUND_TO_INTEGER.to_bits() - u32::from(zero);
    let mut codes = [0; BLOCK];
    for (code, value) in codes.iter_mut().zip(&mut *values) {
        let sum = *value * inverse + ROUND_TO_INTEGER;
        *code = sum.to_bits().wrapping_sub(lowest);
        *value = (sum - ROUND_TO_INTEGER) * scale;
    }
    codes
}

#[inline(always)]
fn value_of(code: u8, zero: u8) -> f32 {
    f32::from(code) - f32::from(zero)
}
