//! IEEE 754 binary16, little-endian: a sign, 5 bits of exponent, 10 bits behind the point.
//!
//! The conversions are written out so that they run several lanes at a time on any machine and give the same bits on
//! each; the tests hold them to the reference implementation for every binary16 and every case of rounding.

use super::Dither;
use super::format::{BLOCK, Format};

/// The largest binary16.
pub(super) const LARGEST: f32 = 65504.0;

/// Bits behind the point that a binary32 has more than a binary16: 23 - 10.
const SHIFT: u32 = 13;
/// The difference of the two formats' exponent biases, in the place of a binary32's exponent.
const REBIAS: u32 = (127 - 15) << 23;
/// The smallest normal binary16, 2^-14, as binary32.
const SMALLEST_NORMAL: u32 = REBIAS + (1 << 23);
const SIGN: u32 = 1 << 31;

pub(super) enum Float16 {}

impl Format for Float16 {
    const BLOCK_BYTES: usize = 2 * BLOCK;

    #[inline(always)]
    fn encode(values: &mut [f32; BLOCK], bytes: &mut [u8], _: &mut Dither) {
        for (bytes, value) in bytes.as_chunks_mut().0.iter_mut().zip(values) {
            let (code, rounded) = narrow(*value);
            *bytes = code.to_le_bytes();
            *value = rounded;
        }
    }

    #[inline(always)]
    fn decode(bytes: &[u8], values: &mut [f32; BLOCK]) {
        for (bytes, value) in bytes.as_chunks().0.iter().zip(values) {
            *value = widen(u16::from_le_bytes(*bytes));
        }
    }

    #[inline(always)]
    fn is_sound(bytes: &[u8]) -> bool {
        const EXPONENT: u16 = 0x7c00;
        bytes
            .as_chunks()
            .0
            .iter()
            .fold(true, |sound, &bytes| sound & (u16::from_le_bytes(bytes) & EXPONENT != EXPONENT))
    }
}

/// The nearest binary16 to a number within its range, ties to even, and the number that it is.
#[inline(always)]
fn narrow(value: f32) -> (u16, f32) {
    let sign = value.to_bits() & SIGN;
    let magnitude = value.to_bits() & !SIGN;
    // Normal numbers: round the bits that do not fit. A carry into the exponent is what rounding up means there.
    let is_odd = (magnitude >> SHIFT) & 1;
    let normal = (magnitude + 0xfff + is_odd) & !0x1fff;
    let normal_code = normal.wrapping_sub(REBIAS) >> SHIFT;
    // Smaller ones are multiples of 2^-24, which is the last bit of a sum with 1/2.
    let sum = f32::from_bits(magnitude) + 0.5;
    let small = (sum - 0.5).to_bits();
    let small_code = sum.to_bits().wrapping_sub(0.5_f32.to_bits());
    let is_small = magnitude < SMALLEST_NORMAL;
    let code = if is_small { small_code } else { normal_code };
    let rounded = if is_small { small } else { normal };
    ((code | (sign >> 16)) as u16, f32::from_bits(rounded | sign))
}

/// The value of a finite binary16.
#[inline(always)]
fn widen(code: u16) -> f32 {
    let sign = (u32::from(code) << 16) & SIGN;
    let shifted = (u32::from(code) & 0x7fff) << SHIFT;
    let normal = shifted + REBIAS;
    // Without the leading one that an exponent of zero does not imply.
    let small = (f32::from_bits(shifted + SMALLEST_NORMAL) - f32::from_bits(SMALLEST_NORMAL)).to_bits();
    let magnitude = if shifted < (1 << 23) { small } else { normal };
    f32::from_bits(magnitude | sign)
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;

    fn finite_codes() -> impl Iterator<Item = u16> {
        (0..=u16::MAX).filter(|code| f16::from_bits(*code).is_finite())
    }

    #[test]
    fn every_binary16_widens_to_what_it_is_and_narrows_back() {
        for code in finite_codes() {
            let value = f16::from_bits(code).to_f32();
            assert_eq!(widen(code).to_bits(), value.to_bits(), "{code:#x}");
            assert_eq!((narrow(value).0, narrow(value).1.to_bits()), (code, value.to_bits()), "{code:#x}");
        }
    }

    #[test]
    fn everything_between_two_neighbours_rounds_as_the_reference_does() {
        for code in finite_codes().filter(|code| f16::from_bits(code + 1).is_finite()) {
            let (low, high) = (f16::from_bits(code).to_f32(), f16::from_bits(code + 1).to_f32());
            let middle = f32::midpoint(low, high);
            let quarter = f32::midpoint(low, middle);
            for value in [middle, middle.next_up(), middle.next_down(), quarter, low.next_up(), high.next_down()] {
                let expected = f16::from_f32(value);
                let (narrowed, rounded) = narrow(value);
                assert_eq!(narrowed, expected.to_bits(), "{value:e}");
                assert_eq!(rounded.to_bits(), expected.to_f32().to_bits(), "{value:e}");
            }
        }
    }
}
