//! Sums of floating-point numbers without rounding: independent of the order of the numbers and of their division among
//! sites.
//!
//! A finite `f64` is `m * 2^e` with a whole `m` of 53 bits at most. Numbers with one `e` are added as whole numbers, so
//! nothing is rounded until a mean or a deviation is computed. Either is then a function of exact numbers:
//!
//! ```text
//!   mean      = S / n                              S   sum of n numbers
//!   deviation = sqrt(n Q - S^2) / n                Q   sum of their squares; n Q - S^2 is exact, so nothing cancels
//! ```

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use num_bigint::{BigInt, BigUint, Sign};
use serde::{Deserialize, Serialize};

/// The bits of a result before its last rounding: somewhat more than the 53 of an `f64`.
const WORKING_BITS: i64 = 66;
/// A sum of the squares of 2^64 numbers is below 2^(2 * 1024 + 64) and a multiple of 2^(-2 * 1074).
const EXPONENT_MAX: i64 = 2 * 1074;
const BITS_MAX: u64 = 2 * (1024 + 1074) + 64;

/// `mantissa * 2^exponent`, exactly; the mantissa is odd, or both are 0. Written as a hexadecimal number, such as
/// `-0x1f3p-12`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Dyadic {
    mantissa: BigInt,
    exponent: i64,
}

/// Text that is no exact sum, or one out of the range of such sums.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no exact sum: it is written as -0x1f3p-12, within what sums of 64-bit numbers can be")]
pub struct NotExact(String);

impl Dyadic {
    fn new(mantissa: BigInt, exponent: i64) -> Self {
        match mantissa.trailing_zeros() {
            None => Self::default(),
            // The number of zero bits of a value in memory fits.
            Some(zeros) => Self { mantissa: mantissa >> zeros, exponent: exponent + zeros as i64 },
        }
    }

    /// The mantissas of two numbers for their smaller exponent.
    fn aligned(&self, other: &Self) -> (BigInt, BigInt, i64) {
        let exponent = self.exponent.min(other.exponent);
        let shifted = |it: &Self| &it.mantissa << (it.exponent - exponent).unsigned_abs();
        (shifted(self), shifted(other), exponent)
    }

    fn plus(&self, other: &Self) -> Self {
        let (a, b, exponent) = self.aligned(other);
        Self::new(a + b, exponent)
    }
}

/// The exact sum of numbers, and that of their squares.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExactMoments {
    sum: Dyadic,
    squares: Dyadic,
}

impl ExactMoments {
    /// The moments of finite numbers, in time O(numbers) and memory O(distinct exponents).
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut bins: BTreeMap<i64, Bin> = BTreeMap::new();
        for value in values {
            let (mantissa, exponent) = parts(value);
            if mantissa != 0 {
                bins.entry(exponent).or_default().add(mantissa);
            }
        }
        let mut moments = Self::default();
        for (exponent, bin) in bins {
            let squares = (BigInt::from(bin.high_squares) << 64u32) + BigInt::from(bin.low_squares);
            moments.sum = moments.sum.plus(&Dyadic::new(bin.sum.into(), exponent));
            moments.squares = moments.squares.plus(&Dyadic::new(squares, 2 * exponent));
        }
        moments
    }

    /// The moments of these numbers and others together.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        Self { sum: self.sum.plus(&other.sum), squares: self.squares.plus(&other.squares) }
    }

    /// Returns `true` if `count` numbers can have these moments: their variance is not negative.
    pub(crate) fn can_be_of(&self, count: u64) -> bool {
        self.squares.mantissa.sign() != Sign::Minus && self.variance_numerator(count).mantissa.sign() != Sign::Minus
    }

    /// The mean of `count` numbers, at least 1, to the nearest `f64`.
    pub(crate) fn mean(&self, count: u64) -> f64 {
        quotient(&self.sum.mantissa, self.sum.exponent, count)
    }

    /// The population standard deviation of `count` numbers, at least 1, to within one unit in the last place; 0 where
    /// all are equal.
    pub(crate) fn deviation(&self, count: u64) -> f64 {
        let Dyadic { mantissa, exponent } = self.variance_numerator(count);
        if mantissa.sign() != Sign::Plus {
            return 0.0;
        }
        // The shift makes the exponent even, and the bits twice as many as the root needs.
        let wanted = (2 * (WORKING_BITS + 1) - mantissa.bits() as i64).max(0);
        let shift = wanted + (exponent - wanted).rem_euclid(2);
        let root = (mantissa << shift.unsigned_abs()).sqrt();
        quotient(&root, (exponent - shift) / 2, count)
    }

    /// n Q - S^2, the variance times n^2.
    fn variance_numerator(&self, count: u64) -> Dyadic {
        let square = Dyadic::new(-self.sum.mantissa.pow(2), 2 * self.sum.exponent);
        Dyadic::new(&self.squares.mantissa * count, self.squares.exponent).plus(&square)
    }
}

/// Sums over numbers of one exponent, of 2^40 of them at most: a table has fewer rows than that.
#[derive(Default)]
struct Bin {
    sum: i128,
    /// The sum of the lower 64 bits of each square; squares have up to 106 bits, and `high_squares` takes the others.
    low_squares: u128,
    high_squares: u128,
}

impl Bin {
    fn add(&mut self, mantissa: i64) {
        let square = u128::from(mantissa.unsigned_abs()).pow(2);
        self.sum += i128::from(mantissa);
        self.low_squares += square & u128::from(u64::MAX);
        self.high_squares += square >> 64;
    }
}

/// Mantissa and exponent of a finite number.
fn parts(value: f64) -> (i64, i64) {
    const FRACTION_BITS: u32 = 52;
    let bits = value.to_bits();
    let fraction = bits & ((1 << FRACTION_BITS) - 1);
    let biased = (bits >> FRACTION_BITS) & 0x7ff;
    let (mantissa, exponent) =
        if biased == 0 { (fraction, -1074) } else { (fraction | 1 << FRACTION_BITS, biased as i64 - 1075) };
    (if value.is_sign_negative() { -(mantissa as i64) } else { mantissa as i64 }, exponent)
}

/// `mantissa * 2^exponent / divisor` to the nearest `f64`, ties to even, where that is a normal number.
fn quotient(mantissa: &BigInt, exponent: i64, divisor: u64) -> f64 {
    let divisor = BigUint::from(divisor.max(1));
    let magnitude = mantissa.magnitude();
    let shift = WORKING_BITS + divisor.bits() as i64 - magnitude.bits() as i64;
    let by = shift.unsigned_abs();
    let (numerator, divisor) = if shift > 0 { (magnitude << by, divisor) } else { (magnitude.clone(), divisor << by) };
    let whole = &numerator / &divisor;
    // A last bit marks a remainder, so that a truncated value does not look like a tie.
    let is_cut = &whole * &divisor != numerator;
    let bits = u128::try_from(&whole).unwrap_or_default() | u128::from(is_cut);
    let value = scaled(bits as f64, exponent - shift);
    if mantissa.sign() == Sign::Minus { -value } else { value }
}

/// `value * 2^exponent`, in steps that neither overflow nor underflow before the result does.
fn scaled(mut value: f64, mut exponent: i64) -> f64 {
    const STEP: i64 = 1000;
    while exponent != 0 && value != 0.0 && value.is_finite() {
        let step = exponent.clamp(-STEP, STEP);
        value *= 2f64.powi(step as i32);
        exponent -= step;
    }
    value
}

impl fmt::Display for Dyadic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.mantissa.sign() == Sign::Minus { "-" } else { "" };
        write!(f, "{sign}0x{:x}p{}", self.mantissa.magnitude(), self.exponent)
    }
}

impl FromStr for Dyadic {
    type Err = NotExact;

    fn from_str(text: &str) -> Result<Self, NotExact> {
        let refused = || NotExact(text.chars().take(40).collect());
        let (sign, rest) = text.strip_prefix('-').map_or((Sign::Plus, text), |rest| (Sign::Minus, rest));
        let (digits, exponent) = rest.strip_prefix("0x").and_then(|rest| rest.split_once('p')).ok_or_else(refused)?;
        let is_number = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        if !is_number || digits.len() as u64 > BITS_MAX / 4 {
            return Err(refused());
        }
        let magnitude = BigUint::parse_bytes(digits.as_bytes(), 16).ok_or_else(refused)?;
        let exponent: i64 = exponent.parse().map_err(|_| refused())?;
        let number = if exponent.unsigned_abs() <= EXPONENT_MAX.unsigned_abs() {
            Self::new(BigInt::from_biguint(sign, magnitude), exponent)
        } else {
            return Err(refused());
        };
        let top = number.exponent + number.mantissa.bits() as i64;
        match top.cmp(&(2 * 1024 + 64)) {
            Ordering::Greater => Err(refused()),
            _ => Ok(number),
        }
    }
}

text_form!(Dyadic, NotExact);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn finite() -> impl Strategy<Value = f64> {
        prop_oneof![
            any::<f64>().prop_filter("finite", |value| value.is_finite()),
            (-1e6..1e6).prop_map(|value: f64| value.round() / 8.0),
            Just(0.0),
            Just(-0.0),
            Just(f64::MAX),
            Just(5e-324)
        ]
    }

    proptest! {
        #[test]
        fn moments_depend_neither_on_the_order_nor_on_who_holds_which_number(
            values in prop::collection::vec(finite(), 1..40), cut in 0usize..40, turn in 0usize..40
        ) {
            let (count, cut) = (values.len() as u64, cut.min(values.len()));
            let whole = ExactMoments::of(values.iter().copied());
            let parts = ExactMoments::of(values[cut..].iter().copied()).plus(&ExactMoments::of(values[..cut].iter().copied()));
            let mut turned = values.clone();
            turned.rotate_left(turn % values.len());
            prop_assert_eq!(&parts, &whole);
            prop_assert_eq!(&ExactMoments::of(turned), &whole);
            prop_assert!(whole.can_be_of(count));
            let is_constant = values.iter().all(|value| *value == values[0]);
            prop_assert!(!is_constant || whole.deviation(count) == 0.0);
            let written: Dyadic = whole.squares.to_string().parse().unwrap();
            prop_assert_eq!(written, whole.squares);
        }

        #[test]
        fn means_of_whole_numbers_are_the_nearest_to_the_truth(values in prop::collection::vec(-1_000_000_000i64..1_000_000_000, 1..60)) {
            let count = values.len() as i64;
            let (sum, squares) = (values.iter().sum::<i64>(), values.iter().map(|v| i128::from(*v).pow(2)).sum::<i128>());
            let moments = ExactMoments::of(values.iter().map(|value| *value as f64));
            // Both are below 2^53: IEEE division rounds the true quotient to the nearest.
            prop_assert_eq!(moments.mean(count as u64), sum as f64 / count as f64);
            let variance = (squares * i128::from(count) - i128::from(sum).pow(2)) as f64;
            let naive = variance.sqrt() / count as f64;
            prop_assert!((moments.deviation(count as u64) - naive).abs() <= 4.0 * f64::EPSILON * naive);
        }
    }

    #[test]
    fn nothing_cancels_overflows_or_vanishes() {
        let far = ExactMoments::of([1e15 + 1.0, 1e15 + 2.0, 1e15 + 3.0]);
        assert_eq!((far.mean(3), far.deviation(3)), (1e15 + 2.0, (2.0f64 / 3.0).sqrt()));
        let sums = ExactMoments::of([1e308, 1e308, -1e308, 1.0, -1e308]);
        assert_eq!(sums.mean(5), 0.2, "the large ones are gone without a trace");
        let large = ExactMoments::of([f64::MAX, -f64::MAX]);
        assert_eq!((large.mean(2), large.deviation(2)), (0.0, f64::MAX));
        let small = ExactMoments::of([5e-324, 15e-324]);
        assert_eq!((small.mean(2), small.deviation(2)), (10e-324, 5e-324));
        assert_eq!(ExactMoments::of([0.1; 7]).deviation(7), 0.0);
        assert_eq!(ExactMoments::of([0.1; 7]).mean(7), 0.1);
    }

    #[test]
    fn what_no_numbers_can_have_is_told_from_what_they_can() {
        let moments =
            |sum: &str, squares: &str| ExactMoments { sum: sum.parse().unwrap(), squares: squares.parse().unwrap() };
        assert!(moments("0x3p0", "0x5p0").can_be_of(2), "1 and 2");
        assert!(!moments("0x3p0", "0x5p0").can_be_of(1));
        assert!(!moments("0x0p0", "-0x1p0").can_be_of(9));
        for text in
            ["", "1", "0x", "0xp1", "0x1", "0x1p", "0xgp1", "0x1p9999999", "0x1p-2149", "--0x1p1", "0x+1p1", "0x1p2148"]
        {
            assert!(text.parse::<Dyadic>().is_err(), "{text}");
        }
        assert!(format!("0x{}p0", "f".repeat(2000)).parse::<Dyadic>().is_err());
        assert_eq!("-0xf8p2".parse::<Dyadic>().unwrap().to_string(), "-0x1fp5");
    }
}
