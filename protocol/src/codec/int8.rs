//! One signed byte per coordinate in units of its block's scale, with stochastic rounding.
//!
//! ```text
//!   scale = (1 + margin) max |u| / 127        q = floor(u / scale + r),  r uniform in [0, 1)        decode = q scale
//! ```
//!
//! Rounding up with the probability of the fraction makes the decoded value right on average (Alistarh, Grubic, Li,
//! Tomioka, Vojnovic, NeurIPS 2017), so that the error of a mean shrinks with the number of parcels in it.

use super::dither::{Dither, advance};
use super::format::{BLOCK, Format, ROUND_TO_INTEGER, SCALE_BYTES, is_scale, scale_of};

/// Units on either side of zero.
const STEPS: f32 = 127.0;
/// Keeps u / scale so far inside of ±127 that rounding, of the quotient or at random, never reaches ±128.
const MARGIN: f32 = 1.0 / 65536.0;

pub(super) enum Int8 {}

impl Format for Int8 {
    const BLOCK_BYTES: usize = SCALE_BYTES + BLOCK;

    #[inline(always)]
    fn encode(values: &mut [f32; BLOCK], bytes: &mut [u8], dither: &mut Dither) {
        let Some((head, codes)) = bytes.split_first_chunk_mut() else {
            return;
        };
        let (scale, inverse) = scale_of(values, (1.0 + MARGIN) / STEPS);
        *head = scale.to_le_bytes();
        for (value, state) in values.iter_mut().zip(dither.places()) {
            *value = (*value * inverse + advance(state)) + ROUND_TO_INTEGER;
        }
        for (code, sum) in codes.iter_mut().zip(&*values) {
            *code = sum.to_bits() as u8;
        }
        for sum in values {
            *sum = (*sum - ROUND_TO_INTEGER) * scale;
        }
    }

    #[inline(always)]
    fn decode(bytes: &[u8], values: &mut [f32; BLOCK]) {
        let Some((head, codes)) = bytes.split_first_chunk() else {
            return;
        };
        let scale = f32::from_le_bytes(*head);
        for (value, code) in values.iter_mut().zip(codes) {
            *value = f32::from(code.cast_signed()) * scale;
        }
    }

    #[inline(always)]
    fn is_sound(bytes: &[u8]) -> bool {
        bytes.len() > SCALE_BYTES && is_scale(bytes)
    }
}
