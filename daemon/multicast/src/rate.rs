//! Rates on the air, as people write them.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A rate in bits a second, between 10 kbit and 100 gbit.
///
/// ```
/// use mingle_multicast::AirRate;
/// let rate: AirRate = "20mbit".parse().unwrap();
/// assert_eq!((rate.bits_per_second(), rate.to_string().as_str()), (20_000_000, "20mbit"));
/// assert!("20".parse::<AirRate>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AirRate(u64);

/// A text is no rate.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is no rate: write a number and kbit, mbit or gbit, from 10kbit to 100gbit, such as 20mbit")]
pub struct AirRateError(String);

const UNITS: [(&str, u64); 3] = [("gbit", 1_000_000_000), ("mbit", 1_000_000), ("kbit", 1_000)];

impl AirRate {
    /// A rate, moved into its bounds.
    pub fn of_bits_per_second(bits: u64) -> Self {
        Self(bits.clamp(10_000, 100_000_000_000))
    }

    /// Bits in a second.
    pub fn bits_per_second(self) -> u64 {
        self.0
    }

    /// Bytes in a second.
    pub fn bytes_per_second(self) -> f64 {
        self.0 as f64 / 8.0
    }
}

impl FromStr for AirRate {
    type Err = AirRateError;

    fn from_str(text: &str) -> Result<Self, AirRateError> {
        let wrong = || AirRateError(text.to_owned());
        let strip = |(unit, factor): &(&str, u64)| Some((text.strip_suffix(unit)?, *factor));
        let (number, factor) = UNITS.iter().find_map(strip).ok_or_else(wrong)?;
        let bits = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor)).ok_or_else(wrong)?;
        if Self::of_bits_per_second(bits).0 == bits { Ok(Self(bits)) } else { Err(wrong()) }
    }
}

impl fmt::Display for AirRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = UNITS.iter().find(|(_, factor)| self.0.is_multiple_of(*factor));
        match whole {
            Some((unit, factor)) => write!(f, "{}{unit}", self.0 / factor),
            None => write!(f, "{:.1}kbit", self.0 as f64 / 1e3),
        }
    }
}
