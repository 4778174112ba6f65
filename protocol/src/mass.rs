//! Push-sum weight as an integer, so that conservation can be tested with `==`.
//!
//! The weights of a swarm of n nodes and its parcels under way add up to exactly n. In floating point that is true up
//! to rounding, which hides a lost message; in units of 2^-40 it is an identity of integers that holds at every
//! instant.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Units in one whole weight: 2^40.
pub const UNITS_PER_ONE: u64 = 1 << 40;

/// A push-sum weight in units of 2^-40. Every founder of a swarm starts with [`Mass::ONE`].
///
/// Addition and subtraction are checked: mass never wraps and never goes below zero.
///
/// ```
/// use mingle_protocol::{Mass, Share};
/// let half = Mass::ONE.portion(Share::from_units(1 << 39).unwrap());
/// assert_eq!(half.checked_add(half), Some(Mass::ONE));
/// assert_eq!(half.to_string(), "0.500000");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Mass(u64);

impl Mass {
    /// No mass at all.
    pub const ZERO: Self = Self(0);
    /// The weight every founder starts with.
    pub const ONE: Self = Self(UNITS_PER_ONE);

    /// A mass of `units` times 2^-40.
    pub const fn from_units(units: u64) -> Self {
        Self(units)
    }

    /// This mass in units of 2^-40.
    pub const fn units(self) -> u64 {
        self.0
    }

    /// Returns `true` if there is no mass.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// This mass as a weight (1.0 = one whole).
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / UNITS_PER_ONE as f64
    }

    /// The sum, or `None` beyond 2^64 units.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// The difference, or `None` when `other` is larger.
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    /// `share` of this mass, rounded down to whole units.
    pub fn portion(self, share: Share) -> Self {
        let product = u128::from(self.0) * u128::from(share.0);
        Self((product >> 40) as u64)
    }
}

impl fmt::Display for Mass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}", self.to_f64())
    }
}

/// A fraction of a node's mass, in 2^-40: an entry of a column-stochastic matrix as an integer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Share(u64);

impl Share {
    /// The whole.
    pub const WHOLE: Self = Self(UNITS_PER_ONE);

    /// The nearest share to a weight; weights outside 0 ..= 1 become the nearer of the two.
    pub(crate) fn nearest(weight: f64) -> Self {
        Self((weight.clamp(0.0, 1.0) * UNITS_PER_ONE as f64).round() as u64)
    }

    /// Takes up to `wanted` out of this share.
    pub(crate) fn take(&mut self, wanted: Self) -> Self {
        let taken = self.0.min(wanted.0);
        self.0 -= taken;
        Self(taken)
    }

    /// Two shares of one whole, put together.
    pub(crate) fn join(self, other: Self) -> Self {
        Self((self.0 + other.0).min(UNITS_PER_ONE))
    }

    /// The share as a fraction of the whole.
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / UNITS_PER_ONE as f64
    }

    /// A share of `units` times 2^-40, or `None` beyond the whole.
    pub fn from_units(units: u64) -> Option<Self> {
        (units <= UNITS_PER_ONE).then_some(Self(units))
    }

    /// This share in units of 2^-40.
    pub const fn units(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn shares_outside_zero_to_one_do_not_exist() {
        assert_eq!(
            [-1e-9, f64::NAN, 1.0 + 1e-9].map(Share::nearest),
            [Share::default(), Share::default(), Share::WHOLE]
        );
        assert_eq!(Share::from_units(UNITS_PER_ONE), Some(Share::WHOLE));
        assert_eq!(Share::from_units(UNITS_PER_ONE + 1), None);
    }

    #[test]
    fn mass_never_wraps() {
        assert_eq!(Mass::from_units(u64::MAX).checked_add(Mass::from_units(1)), None);
        assert_eq!(Mass::ZERO.checked_sub(Mass::from_units(1)), None);
        assert_eq!(Mass::from_units(u64::MAX).portion(Share::WHOLE), Mass::from_units(u64::MAX));
    }

    proptest! {
        #[test]
        fn portions_never_exceed_the_mass_they_are_cut_from(units: u64, cuts in prop::collection::vec(0.0f64..1.0, 1..9)) {
            let mass = Mass::from_units(units);
            let total: f64 = cuts.iter().sum();
            let parts: u128 = cuts.iter()
                .map(|cut| u128::from((cut / total.max(1.0) * UNITS_PER_ONE as f64).floor() as u64))
                .map(|share| u128::from(mass.portion(Share::from_units(share as u64).unwrap()).units()))
                .sum();
            prop_assert!(parts <= u128::from(units));
        }
    }
}
