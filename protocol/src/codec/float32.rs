//! IEEE 754 binary32, little-endian: nothing is lost.

use super::Dither;
use super::MAX_MAGNITUDE;
use super::format::{BLOCK, Format};

pub(super) enum Float32 {}

impl Format for Float32 {
    const BLOCK_BYTES: usize = 4 * BLOCK;

    #[inline(always)]
    fn encode(values: &mut [f32; BLOCK], bytes: &mut [u8], _: &mut Dither) {
        for (bytes, value) in bytes.as_chunks_mut().0.iter_mut().zip(values) {
            *bytes = value.to_le_bytes();
        }
    }

    #[inline(always)]
    fn decode(bytes: &[u8], values: &mut [f32; BLOCK]) {
        for (bytes, value) in bytes.as_chunks().0.iter().zip(values) {
            *value = f32::from_le_bytes(*bytes);
        }
    }

    #[inline(always)]
    fn is_sound(bytes: &[u8]) -> bool {
        // False for NaN as well.
        bytes
            .as_chunks()
            .0
            .iter()
            .fold(true, |sound, &bytes| sound & (f32::from_le_bytes(bytes).abs() <= MAX_MAGNITUDE))
    }
}
