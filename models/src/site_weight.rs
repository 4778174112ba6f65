//! The weight of one site's changes beside those of the other sites.
//!
//! Push-sum adds up the changes `d_i` of `N` sites and takes their mean. Where all count equally, training goes down the mean of the sites'
//! losses, so that a sample of a small site pulls more than one of a large site. Weighted by samples, as federated averaging does
//! (McMahan et al. 2017, algorithm 1), it goes down the loss over all samples:
//!
//! ```text
//!   (1 / N) sum_i f_i d_i,   f_i = n_i / u       n_i   training samples of site i
//!                                                u     samples of a site that counts as one; their mean keeps the size of the steps
//! ```
//!
//! Each site multiplies its own change. It needs no count of another site, only `u`, which is the same for all.

use std::fmt;
use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

/// The rule for the factor by which a site's changes are multiplied before they are mixed.
///
/// ```
/// use mingle_models::SiteWeight;
///
/// let weight = SiteWeight::by_samples(200).expect("more than none");
/// assert_eq!((weight.factor(200), weight.factor(50)), (1.0, 0.25));
/// assert_eq!(weight.factor(u64::MAX), 32.0);
/// assert_eq!(SiteWeight::Equal.factor(50), 1.0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SiteWeight {
    /// Factor 1: all sites count equally.
    #[default]
    Equal,
    /// A factor in proportion to the number of training samples.
    Samples {
        /// The samples of a site whose factor is 1.
        unit: NonZeroU64,
    },
}

impl SiteWeight {
    /// The largest factor. A site takes its local steps before it mixes: a step much larger than those it was tuned for
    /// would leave the region in which its gradient is a useful approximation.
    pub const FACTOR_MAX: f32 = 32.0;

    /// Weighting by samples in which a site of `unit` samples has the factor 1; `None` for 0.
    pub fn by_samples(unit: u64) -> Option<Self> {
        NonZeroU64::new(unit).map(|unit| Self::Samples { unit })
    }

    /// Weighting by samples in which a site of the mean size has the factor 1. The mean is rounded to a whole number,
    /// at least 1.
    pub fn by_mean_of(samples: u64, sites: u64) -> Self {
        let mean = (samples.saturating_add(sites / 2) / sites.max(1)).max(1);
        Self::by_samples(mean).unwrap_or_default()
    }

    /// The factor of a site with so many training samples, at most [`FACTOR_MAX`](Self::FACTOR_MAX).
    pub fn factor(self, samples: u64) -> f32 {
        let uncapped = match self {
            Self::Equal => 1.0,
            Self::Samples { unit } => samples as f64 / unit.get() as f64,
        };
        (uncapped as f32).min(Self::FACTOR_MAX)
    }

    /// Returns `true` if a site with so many samples counts for less than its share, because its factor would be larger
    /// than [`FACTOR_MAX`](Self::FACTOR_MAX).
    pub fn caps(self, samples: u64) -> bool {
        match self {
            Self::Equal => false,
            Self::Samples { unit } => samples as f64 > f64::from(Self::FACTOR_MAX) * unit.get() as f64,
        }
    }
}

impl fmt::Display for SiteWeight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equal => f.write_str("equal"),
            Self::Samples { unit } => write!(f, "samples:{unit}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_shares_of_all_samples_times_the_number_of_sites() {
        let counts = [3_u64, 17, 40, 180];
        let weight = SiteWeight::by_mean_of(counts.iter().sum(), 4);
        assert_eq!(weight.to_string(), "samples:60");
        let factors = counts.map(|count| f64::from(weight.factor(count)));
        assert!((factors.iter().sum::<f64>() - 4.0).abs() < 1e-6, "the mean step is as large as with equal ones");
        for (factor, count) in factors.iter().zip(counts) {
            assert!((factor / 4.0 - count as f64 / 240.0).abs() < 1e-7, "{count}");
        }
    }

    #[test]
    fn no_count_makes_a_factor_that_is_not_a_small_finite_number() {
        for unit in [1, 7, u64::MAX] {
            let weight = SiteWeight::by_samples(unit).unwrap_or_default();
            for samples in [0, 1, 33, 1_000_000_000_000, u64::MAX] {
                let factor = weight.factor(samples);
                assert!((0.0..=SiteWeight::FACTOR_MAX).contains(&factor), "{samples} of {unit}: {factor}");
                assert!(!weight.caps(samples) || factor == SiteWeight::FACTOR_MAX, "{samples} of {unit}");
            }
        }
        assert_eq!(SiteWeight::by_samples(0), None);
        assert_eq!(SiteWeight::by_mean_of(0, 0), SiteWeight::by_mean_of(1, 1));
    }
}
