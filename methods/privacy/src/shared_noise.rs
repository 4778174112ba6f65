//! Noise that the members of a sum share: each adds a part of it, and only the sum of all has the whole.
//!
//! Kairouz, Liu and Steinke, The distributed discrete Gaussian mechanism for federated learning with secure aggregation,
//! ICML 2021 (arXiv:2102.06387). For `n` members of which up to `t` collude, with clip `C` and noise multiplier `sigma`:
//!
//! ```text
//!   u = sigma C / (sqrt(n - t) s)                  the unit of the lattice; s = 1024
//!   x  ->  trunc(x min(1, C / |x|) / u) + N_Z(0, s^2)     integers, of which no sum rounds anything
//! ```
//!
//! The noise of the `n - t` others has the deviation `sigma C` in every coordinate of the sum, whatever the colluders
//! subtract of their own. Truncation towards zero makes no vector longer, so the sensitivity is `C`. Sums must be exact, and
//! no part of one may be seen: that is for masks to do.

use std::f64::consts::PI;

use rand::CryptoRng;
use thiserror::Error;

use crate::discrete_gaussian::DiscreteGaussian;

/// The deviation of each member's noise, in units of the lattice.
const DEVIATION: u64 = 1 << 10;
/// Deviations of noise that have room in a contribution; more have a probability below 2^-180 and are cut off.
const ROOM: u64 = 16;
/// The largest magnitude of a coordinate of a contribution: integers up to here are exact in f32.
const LARGEST: u64 = 1 << 23;
/// The fewest units in a clip: with fewer, truncation is most of a change.
const FEWEST_UNITS: f64 = 16.0;

/// A lattice and the noise on it, the same at all members.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SharedNoise {
    gaussian: DiscreteGaussian,
    clip: f64,
    honest: u64,
    unit: f64,
    /// The square of the clip, in units.
    square_clip: u64,
    /// The largest magnitude of a coordinate of a contribution; a power of two.
    limit: i64,
    /// That of a coordinate without its noise.
    most: i64,
}

/// The reason for which members cannot share noise.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum SharedNoiseError {
    /// All but one collude, or more.
    #[error(
        "colluders = {colluders} needs {} members, and there are {members}: at least two others have to be in a sum, so give at most {most}", colluders + 2
    )]
    Colluders { colluders: usize, members: usize, most: usize },
    /// The lattice would be too coarse or too fine.
    #[error("a noise of {noise} times the clip is beyond what {members} members can share exactly")]
    Noise { noise: f64, members: usize },
}

impl SharedNoise {
    /// Noise of deviation `noise * clip` in a sum of `members`, of which up to `colluders` subtract their own.
    ///
    /// # Errors
    /// [`SharedNoiseError`].
    pub fn new(clip: f64, noise: f64, members: usize, colluders: usize) -> Result<Self, SharedNoiseError> {
        let beyond = SharedNoiseError::Noise { noise, members };
        let most = members.saturating_sub(2);
        if members < 2 || colluders > most {
            return Err(SharedNoiseError::Colluders { colluders, members, most });
        }
        let honest = (members - colluders) as u64;
        let units_in_clip = DEVIATION as f64 * (honest as f64).sqrt() / noise;
        let room = (units_in_clip + (ROOM * DEVIATION) as f64).ceil();
        if !(units_in_clip >= FEWEST_UNITS && room <= LARGEST as f64) {
            return Err(beyond);
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // below 2^46
        let square_clip = (units_in_clip * units_in_clip).floor() as u64;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // below 2^23
        let limit = room as u64;
        let gaussian = DiscreteGaussian::new(DEVIATION * DEVIATION).ok_or(beyond)?;
        Ok(Self {
            gaussian,
            clip,
            honest,
            unit: clip / units_in_clip,
            square_clip,
            limit: limit.next_power_of_two().cast_signed(),
            most: i64::MAX,
        })
    }

    /// The same lattice with room for sums of many vectors in a contribution, each of them cut to the clip by itself.
    #[must_use]
    pub fn with_room_for_sums(self) -> Self {
        let limit = LARGEST.cast_signed();
        Self { limit, most: limit - (ROOM * DEVIATION).cast_signed(), ..self }
    }

    /// Adds a vector on the lattice to a sum. A sum that leaves the room is held at its border, in each coordinate by itself,
    /// by [`within_room`](Self::within_room): that makes no two sums more unlike.
    pub fn add(sum: &mut [i64], quantized: &[i64]) {
        sum.iter_mut().zip(quantized).for_each(|(sum, value)| *sum = sum.saturating_add(*value));
    }

    /// The sum, held within the room of a contribution.
    pub fn within_room(&self, sum: &mut [i64]) {
        sum.iter_mut().for_each(|value| *value = (*value).clamp(-self.most, self.most));
    }

    /// The largest magnitude of a coordinate of a contribution: a power of two that depends on no data.
    pub fn limit(&self) -> i64 {
        self.limit
    }

    /// The noise multiplier of a Gaussian mechanism that costs as much, for vectors of this length.
    pub fn multiplier(&self, dimension: usize) -> f64 {
        let square_deviation = (DEVIATION * DEVIATION) as f64;
        let rho = summed_discrete_gaussian(self.honest, square_deviation, self.square_clip as f64, dimension as f64);
        1.0 / (2.0 * rho).sqrt()
    }

    /// The change on the lattice, cut to the clip. One with a value that is not finite counts as zero.
    pub fn quantize(&self, change: &[f32]) -> Vec<i64> {
        let norm = change.iter().map(|value| f64::from(*value) * f64::from(*value)).sum::<f64>().sqrt();
        if !norm.is_finite() {
            return vec![0; change.len()];
        }
        let mut scale = (self.clip / norm).min(1.0) / self.unit;
        loop {
            #[allow(clippy::cast_possible_truncation)] // towards zero
            let cut: Vec<i64> = change.iter().map(|value| (f64::from(*value) * scale) as i64).collect();
            let square: u128 = cut.iter().map(|value| u128::from(value.unsigned_abs()).pow(2)).sum();
            if square <= self.square_clip.into() {
                return cut;
            }
            // Rounding of the norm or the scale.
            scale *= 1.0 - 1e-9;
        }
    }

    /// Adds this member's part of the noise. The generator must be unpredictable to others.
    pub fn add_noise(&self, quantized: &mut [i64], rng: &mut impl CryptoRng) {
        for value in quantized {
            *value = (*value + self.gaussian.sample(rng)).clamp(-self.limit, self.limit);
        }
    }

    /// The values that numbers on the lattice stand for, also of a mean of contributions.
    pub fn values<'a>(&self, units: impl IntoIterator<Item = &'a f32>) -> Vec<f32> {
        units.into_iter().map(|value| (f64::from(*value) * self.unit) as f32).collect()
    }
}

/// The `rho` of zero-concentrated differential privacy of a sum of `members` discrete Gaussians with this parameter
/// `sigma^2` each (theorem 1 of the paper): half of the square of
///
/// ```text
///   min( sqrt(D^2 / (n sigma^2) + tau d / 2),  D / (sqrt(n) sigma) + tau sqrt(d) )
///   tau = 10 sum_{k = 1}^{n - 1} exp(-2 pi^2 sigma^2 k / (k + 1))
/// ```
///
/// `tau` bounds how far such a sum is from a discrete Gaussian: 1e-42 for a variance of 10, and no positive f64 from 80 on.
fn summed_discrete_gaussian(members: u64, variance: f64, square_sensitivity: f64, dimension: f64) -> f64 {
    let terms = (1..members).map(|k| (-2.0 * PI * PI * variance * k as f64 / (k + 1) as f64).exp());
    let tau = 10.0 * terms.sum::<f64>();
    let ratio = square_sensitivity / (members as f64 * variance);
    let first = ratio + tau * dimension / 2.0;
    let second = (ratio.sqrt() + tau * dimension.sqrt()).powi(2);
    first.min(second) / 2.0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    #[test]
    fn the_noise_of_those_who_do_not_collude_is_what_was_asked_for() {
        const CLIP: f64 = 0.3;
        const NOISE: f64 = 4.0;
        for (members, colluders) in [(3, 1), (8, 2), (32, 2)] {
            let shared = SharedNoise::new(CLIP, NOISE, members, colluders).unwrap();
            let dimension = 20_000;
            let mut sum = vec![0_i64; dimension];
            for member in 0..members - colluders {
                let mut part = vec![0; dimension];
                shared.add_noise(&mut part, &mut ChaCha20Rng::seed_from_u64(member as u64));
                sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
            }
            let square = |value: &i64| (*value as f64 * shared.unit).powi(2);
            let deviation = (sum.iter().map(square).sum::<f64>() / dimension as f64).sqrt();
            assert!((deviation / (NOISE * CLIP) - 1.0).abs() < 0.025, "{members} members: {deviation}");
            let multiplier = shared.multiplier(dimension);
            assert!((NOISE..NOISE * 1.001).contains(&multiplier), "{members} members: {multiplier}");
        }
    }

    #[test]
    fn members_that_would_hide_nothing_and_noise_that_is_not_exact_are_refused() {
        let refused = |noise, members, colluders| SharedNoise::new(1.0, noise, members, colluders).unwrap_err();
        assert_eq!(refused(1.0, 3, 2), SharedNoiseError::Colluders { colluders: 2, members: 3, most: 1 });
        assert!(matches!(refused(1.0, 1, 0), SharedNoiseError::Colluders { .. }));
        assert!(matches!(refused(1e4, 8, 1), SharedNoiseError::Noise { .. }));
        assert!(matches!(refused(1e-6, 8, 1), SharedNoiseError::Noise { .. }));
        assert!(matches!(refused(f64::NAN, 8, 1), SharedNoiseError::Noise { .. }));
    }

    #[test]
    fn a_sum_of_coarse_noise_costs_more_than_a_gaussian_and_one_of_fine_noise_as_much() {
        let cost = |members, variance, dimension| summed_discrete_gaussian(members, variance, 1.0, dimension);
        // One member: the discrete Gaussian itself.
        assert_eq!(cost(1, 4.0, 1e6), 1.0 / 8.0);
        // tau = 10 (exp(-pi^2 / 4) + exp(-pi^2 / 3)), by hand.
        let tau = 10.0 * ((-PI * PI / 4.0).exp() + (-PI * PI / 3.0).exp());
        let expected = 0.5 * (1.0 / 0.75 + tau / 2.0).min((1.0 / 0.75_f64.sqrt() + tau).powi(2));
        assert!((cost(3, 0.25, 1.0) - expected).abs() < 1e-12);
        assert_eq!(cost(8, (DEVIATION * DEVIATION) as f64, 1e9), 1.0 / (2.0 * 8.0 * (1 << 20) as f64));
    }

    #[test]
    fn what_is_not_finite_counts_as_zero() {
        let shared = SharedNoise::new(1.0, 1.0, 3, 1).unwrap();
        assert_eq!(shared.quantize(&[1.0, f32::NAN]), [0, 0]);
        assert_eq!(shared.quantize(&[f32::INFINITY, 1.0]), [0, 0]);
        assert_eq!(
            shared.quantize(&[f32::MAX; 2]),
            [1024, 1024],
            "the length of the clip, which is 1024 sqrt(2) units"
        );
    }

    proptest! {
        #[test]
        fn nothing_longer_than_the_clip_is_on_the_lattice_and_short_changes_lose_less_than_a_unit(
            change in prop::collection::vec(-3.0_f32..3.0, 1..40), clip in 0.01_f64..5.0, noise in 0.3_f64..20.0,
        ) {
            let shared = SharedNoise::new(clip, noise, 8, 2).unwrap();
            let cut = shared.quantize(&change);
            let square: u128 = cut.iter().map(|value| u128::from(value.unsigned_abs()).pow(2)).sum();
            prop_assert!(square <= u128::from(shared.square_clip));
            prop_assert!((square as f64).sqrt() * shared.unit <= clip * (1.0 + 1e-12));
            let norm = change.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
            let scale = (clip / norm).min(1.0);
            for (value, cut) in change.iter().zip(cut) {
                let error = f64::from(*value) * scale - cut as f64 * shared.unit;
                prop_assert!(error.abs() <= shared.unit * (1.0 + 1e-6) && cut.unsigned_abs() <= shared.limit.unsigned_abs());
            }
        }
    }
}
