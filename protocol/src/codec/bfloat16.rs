//! bfloat16, little-endian: the sign, the exponent and the first 7 bits behind the point of a binary32.

use super::Dither;
use super::MAX_MAGNITUDE;
use super::format::{BLOCK, Format};

pub(super) enum Bfloat16 {}

impl Format for Bfloat16 {
    const BLOCK_BYTES: usize = 2 * BLOCK;

    #[inline(always)]
    fn encode(values: &mut [f32; BLOCK], bytes: &mut [u8], _: &mut Dither) {
        for (bytes, value) in bytes.as_chunks_mut().0.iter_mut().zip(values) {
            let rounded = round(value.to_bits());
            *bytes = ((rounded >> 16) as u16).to_le_bytes();
            *value = f32::from_bits(rounded);
        }
    }

    #[inline(always)]
    fn decode(bytes: &[u8], values: &mut [f32; BLOCK]) {
        for (bytes, value) in bytes.as_chunks().0.iter().zip(values) {
            *value = f32::from_bits(u32::from(u16::from_le_bytes(*bytes)) << 16);
        }
    }

    #[inline(always)]
    fn is_sound(bytes: &[u8]) -> bool {
        bytes.as_chunks().0.iter().fold(true, |sound, &bytes| {
            let value = f32::from_bits(u32::from(u16::from_le_bytes(bytes)) << 16);
            sound & (value.abs() <= MAX_MAGNITUDE)
        })
    }
}

/// Rounds a finite binary32 to the nearest whose lower half is zero, ties to even.
#[inline(always)]
fn round(bits: u32) -> u32 {
    let is_odd = (bits >> 16) & 1;
    (bits + 0x7fff + is_odd) & 0xffff_0000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_to_nearest_and_ties_go_to_even() {
        for (value, rounded) in [
            (0x3f80_0000, 0x3f80_0000),
            (0x3f80_7fff, 0x3f80_0000),
            (0x3f80_8000, 0x3f80_0000),
            (0x3f80_8001, 0x3f81_0000),
            (0x3f81_8000, 0x3f82_0000),
            (0xbfff_ffff, 0xc000_0000),
            (0x8000_0000, 0x8000_0000),
            (0x0000_8001, 0x0001_0000),
        ] {
            assert_eq!(round(value), rounded, "{value:#x}");
        }
    }
}
