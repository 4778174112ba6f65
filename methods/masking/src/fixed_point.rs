//! Fixed-point integers of which the sum of all members cannot overflow.
//!
//! All members agree on `e`, the exponent of the largest magnitude of all their values, `|x| < 2^e`. A value becomes the
//! integer `q = round(x 2^(b - e))` with `b = W - 2 - ceil(log2 n)` bits for words of W bits and n members, and is held
//! within `|q| <= 2^b` whatever `e` is. So `|sum q| <= n 2^b <= 2^(W - 2)`, half of what fits.

use crate::error::MaskingError;

/// The least exponent: smaller values are zero beside it.
pub const LEAST_EXPONENT: i32 = -900;
/// The largest exponent, such that sums are finite.
pub const LARGEST_EXPONENT: i32 = 970;

/// The width of the integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 32 bits: a word holds two values, the first in its lower half. With 8 members a rounding error is 2^-28 of the largest
    /// magnitude: for whole numbers.
    Half,
    /// 64 bits: one word a value. With 8 members a rounding error is 2^-60 of the largest magnitude.
    Narrow,
    /// 128 bits: two words a value, low before high. Small values beside large ones keep all bits of an f64 over twenty
    /// decades.
    Wide,
}

impl Width {
    /// Words that so many values take.
    pub fn words(self, values: usize) -> usize {
        match self {
            Self::Half => values.div_ceil(2),
            Self::Narrow => values,
            Self::Wide => 2 * values,
        }
    }

    /// The wide number of two words.
    pub fn join([low, high]: [u64; 2]) -> u128 {
        u128::from(low) | u128::from(high) << 64
    }

    /// The words of a wide number.
    #[allow(clippy::cast_possible_truncation)] // halves
    pub fn split(number: u128) -> [u64; 2] {
        [number as u64, (number >> 64) as u64]
    }
}

/// An encoding of values as fixed-point integers, the same at all members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedPoint {
    width: Width,
    /// Bits of an integer's magnitude.
    bits: i32,
    exponent: i32,
}

impl FixedPoint {
    /// The encoding for sums of so many members whose values are below `2^agreed`, where this member's own are below
    /// `2^own`.
    ///
    /// # Errors
    /// The exponent agreed on is below the own one, or out of range.
    pub fn new(width: Width, members: usize, agreed: i64, own: i32) -> Result<Self, MaskingError> {
        let wrong = MaskingError::Scale { agreed, own };
        let exponent = i32::try_from(agreed).map_err(|_| wrong.clone())?;
        if exponent < own || !(LEAST_EXPONENT..=LARGEST_EXPONENT).contains(&exponent) {
            return Err(wrong);
        }
        let word = match width {
            Width::Half => 32,
            Width::Narrow => 64,
            Width::Wide => 128,
        };
        let spare = members.max(1).next_power_of_two().trailing_zeros().cast_signed();
        Ok(Self { width, bits: word - 2 - spare, exponent })
    }

    /// The least `e` with `|x| < 2^e` for all values, at least [`LEAST_EXPONENT`]. Values are finite.
    pub fn exponent_of(values: &[f64]) -> i32 {
        let largest = values.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
        // At most 11 bits.
        let biased = i32::try_from(largest.to_bits() >> 52).unwrap_or(i32::MAX);
        (biased - 1022).max(LEAST_EXPONENT)
    }

    /// The width of its integers.
    pub fn width(&self) -> Width {
        self.width
    }

    /// The integers of the values, as two's complement words; half a word that is left over is zero.
    pub fn encode(&self, values: &[f64]) -> Vec<u64> {
        let [first, second] = halves(self.bits - self.exponent);
        let most = power_of_two(self.bits);
        let scaled = values.iter().map(|value| (value * first * second).round_ties_even().clamp(-most, most));
        #[allow(clippy::cast_possible_truncation)] // within 2^bits
        match self.width {
            Width::Half => {
                // The last bits of such a sum are those of the rounded value, ties to even.
                let half = |value: &f64| {
                    let scaled = (value * first * second).clamp(-most, most) + UNIT_IS_LAST_BIT;
                    scaled.to_bits() & u64::from(u32::MAX)
                };
                let (pairs, odd) = values.as_chunks();
                let packed = pairs.iter().map(|[lower, upper]| half(lower) | half(upper) << 32);
                packed.chain(odd.iter().map(half)).collect()
            }
            Width::Narrow => scaled.map(|value| (value as i64).cast_unsigned()).collect(),
            Width::Wide => scaled.flat_map(|value| Width::split((value as i128).cast_unsigned())).collect(),
        }
    }

    /// The values of a sum; one more for half a word that was left over.
    pub fn decode(&self, words: &[u64]) -> Vec<f64> {
        let [first, second] = halves(self.exponent - self.bits);
        match self.width {
            Width::Half => {
                #[allow(clippy::cast_possible_truncation)] // halves
                let numbers = words.iter().flat_map(|word| [*word as u32, (*word >> 32) as u32]);
                numbers.map(|half| f64::from(half.cast_signed()) * first * second).collect()
            }
            Width::Narrow => words.iter().map(|word| word.cast_signed() as f64 * first * second).collect(),
            Width::Wide => {
                let numbers = words.as_chunks().0.iter().map(|words| Width::join(*words).cast_signed());
                numbers.map(|number| number as f64 * first * second).collect()
            }
        }
    }
}

/// Added to a number below 2^51, it leaves the whole part of that number in the last bits.
const UNIT_IS_LAST_BIT: f64 = 1.5 * (1_u64 << 52) as f64;

/// Two powers of two whose product is `2^exponent`, where that itself may be beyond what an f64 holds.
fn halves(exponent: i32) -> [f64; 2] {
    let first = exponent / 2;
    [power_of_two(first), power_of_two(exponent - first)]
}

/// `2^exponent`, of a normal number.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(u64::from((exponent.clamp(-1022, 1023) + 1023).cast_unsigned()) << 52)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn sum(width: Width, words: &[Vec<u64>]) -> Vec<u64> {
        let mut total = vec![0_u64; words[0].len()];
        for words in words {
            match width {
                Width::Half => {
                    for (total, other) in total.iter_mut().zip(words) {
                        let lower = (*total as u32).wrapping_add(*other as u32);
                        let upper = ((*total >> 32) as u32).wrapping_add((*other >> 32) as u32);
                        *total = u64::from(lower) | u64::from(upper) << 32;
                    }
                }
                Width::Narrow => {
                    total.iter_mut().zip(words).for_each(|(total, word)| *total = total.wrapping_add(*word));
                }
                Width::Wide => {
                    for (total, other) in total.as_chunks_mut().0.iter_mut().zip(words.as_chunks().0) {
                        *total = Width::split(Width::join(*total).wrapping_add(Width::join(*other)));
                    }
                }
            }
        }
        total
    }

    /// Sums of all members at the largest values that the agreed exponent allows, for any number of them.
    #[test]
    fn the_sum_of_all_members_at_the_limit_of_the_scale_does_not_overflow() {
        for width in [Width::Half, Width::Narrow, Width::Wide] {
            for members in [1, 2, 3, 7, 8, 9, 64, 65, 1_000, 1_024] {
                for exponent in [LEAST_EXPONENT, -3, 0, 40, 960] {
                    let limit = power_of_two(exponent) * (1.0 - f64::EPSILON);
                    let fixed = FixedPoint::new(width, members, exponent.into(), exponent).unwrap();
                    for value in [limit, -limit] {
                        let words = vec![fixed.encode(&[value]); members];
                        let total = fixed.decode(&sum(width, &words))[0];
                        let expected = value * members as f64;
                        assert!((total - expected).abs() <= 1e-15 * expected.abs(), "{width:?} {members} {exponent}");
                    }
                    // Values beyond the scale, which its constructor rules out, would be clipped.
                    let words = vec![fixed.encode(&[f64::MAX]); members];
                    let total = fixed.decode(&sum(width, &words))[0];
                    assert!(total > 0.0 && total <= power_of_two(exponent) * members as f64);
                }
            }
        }
    }

    #[test]
    fn a_scale_below_the_own_values_or_out_of_range_is_refused() {
        let new = |agreed, own| FixedPoint::new(Width::Narrow, 3, agreed, own);
        assert!(new(5, 5).is_ok() && new(6, 5).is_ok());
        assert_eq!(new(4, 5).unwrap_err(), MaskingError::Scale { agreed: 4, own: 5 });
        assert!(new(i64::from(LARGEST_EXPONENT) + 1, 5).is_err() && new(i64::MIN, LEAST_EXPONENT).is_err());
    }

    #[test]
    fn whole_numbers_add_up_to_the_last_bit() {
        let rows = [[3.0, 1e15 + 1.0, -7.0], [40.0, 2.0, 7.0], [0.0, -1e15, 1.0]];
        let exponent = rows.iter().map(|row| FixedPoint::exponent_of(row)).max().unwrap();
        let fixed = FixedPoint::new(Width::Wide, 3, exponent.into(), exponent).unwrap();
        let words = rows.map(|row| fixed.encode(&row));
        assert_eq!(fixed.decode(&sum(Width::Wide, &words)), [43.0, 3.0, 1.0]);
    }

    proptest! {
        #[test]
        fn exponents_bound_their_values_and_errors_are_those_of_rounding(
            values in prop::collection::vec(-1e12_f64..1e12, 1..20), scale in -80_i32..80,
        ) {
            let values: Vec<f64> = values.iter().map(|value| value * power_of_two(scale)).collect();
            let exponent = FixedPoint::exponent_of(&values);
            let largest = values.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
            prop_assert!(largest < power_of_two(exponent));
            prop_assert!(largest == 0.0 || largest >= power_of_two(exponent - 1));
            for (width, bits) in [(Width::Half, 27), (Width::Narrow, 59), (Width::Wide, 123)] {
                let fixed = FixedPoint::new(width, 8, exponent.into(), exponent).unwrap();
                prop_assert_eq!(fixed.bits, bits);
                for (value, back) in values.iter().zip(fixed.decode(&fixed.encode(&values))) {
                    prop_assert!((value - back).abs() <= power_of_two(exponent - bits - 1) + value.abs() * 1.2e-16);
                    if width == Width::Wide && value.abs() > power_of_two(exponent - 70) {
                        prop_assert_eq!(*value, back);
                    }
                }
            }
        }
    }
}
