//! Decimal numbers that are unchanged by writing and reading as text.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The number of significant digits: few enough that a reader that errs in the last bit finds the same number.
const DIGITS: usize = 12;

/// A number of twelve significant decimal digits: the same in every file and on every machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Decimal(f64);

impl Decimal {
    /// The nearest such number to `value`. Values that are not finite stay so.
    pub fn rounded(value: f64) -> Self {
        // Rust reads and writes decimal numbers exactly.
        Self(format!("{value:.*e}", DIGITS - 1).parse().unwrap_or(value))
    }

    /// The number.
    pub fn value(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(Self::rounded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twelve_digits_are_kept_and_the_last_bit_of_a_reader_makes_no_difference() {
        for value in [0.0, 1.0, -0.1, 1.0 / 3.0, 9.999_999_999_995, 1e300 / 7.0, 5e-324, 123_456_789.123_456_78] {
            let decimal = Decimal::rounded(value);
            assert!((decimal.value() - value).abs() <= 1e-11 * value.abs(), "{value}");
            for bits in [decimal.value().to_bits().saturating_sub(2), decimal.value().to_bits() + 2] {
                let misread = f64::from_bits(bits);
                if misread.is_normal() {
                    assert_eq!(Decimal::rounded(misread), decimal, "{value} read as {misread}");
                }
            }
        }
    }
}
