//! The common scale and the precision of a masked sum.

use crate::error::SolveError;

/// The common scale of a sum: that of the largest magnitude of all nodes' values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Any that is at least this node's own.
    OfLargest,
    /// This node's own, which all have. A member that asks for a larger one would have the integers of all others rounded,
    /// each by itself: what noise hides in the sum of whole numbers, the sum of rounded ones may show.
    Own,
}

/// The precision of the values of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precision {
    /// All bits of f64 are to be kept.
    Double,
    /// The values are whole numbers that f32 holds, at their own scale.
    Whole,
}

impl Scale {
    /// Refuses an exponent that this scale does not allow.
    pub(crate) fn check(self, agreed: f64, own: i32) -> Result<(), SolveError> {
        match self {
            Self::Own if agreed.total_cmp(&f64::from(own)).is_ne() => Err(SolveError::OtherScale),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_that_all_have_is_neither_larger_nor_smaller() {
        assert_eq!(Scale::Own.check(16.0, 16), Ok(()));
        for other in [15.0, 17.0, 40.0, f64::NAN] {
            assert_eq!(Scale::Own.check(other, 16), Err(SolveError::OtherScale), "{other}");
        }
        assert_eq!(Scale::OfLargest.check(40.0, 16), Ok(()));
    }
}
