//! The Gaussian mechanism on a vector: clip it to a norm, and add noise to every coordinate.
//!
//! Dwork and Roth, The algorithmic foundations of differential privacy, appendix A; for changes of whole participants
//! McMahan, Ramage, Talwar and Zhang, ICLR 2018 (arXiv:1710.06963).
//!
//! ```text
//!   u  ->  u min(1, C / |u|)  +  N(0, (sigma C)^2 I)
//! ```
//!
//! Everything is computed in f64 and rounded to f32 once, at the end: that drops 29 of the 53 bits in which sums of
//! floating-point noise reveal their terms (Mironov, CCS 2012).

use rand::{CryptoRng, Rng, RngExt};
use rand_distr::StandardNormal;

/// Clips `change` to the norm `most` and adds noise of standard deviation `noise_multiplier * most` to each coordinate.
///
/// A change with a value that is not finite has no direction that could be kept: it counts as zero, and only noise is
/// left. The generator must be unpredictable to others: with its state the noise can be subtracted.
///
/// Returns the norm of the change before clipping. One pass to measure, one to write.
pub fn clip_and_noise(change: &mut [f32], most: f64, noise_multiplier: f64, rng: &mut impl CryptoRng) -> f64 {
    let deviation = noise_multiplier * most;
    clip_and_add(change, most, || deviation * standard_normal(rng))
}

/// Clips `change` to the norm `most` and adds the next of these numbers to each coordinate; returns the norm before.
pub(crate) fn clip_and_add(change: &mut [f32], most: f64, mut noise: impl FnMut() -> f64) -> f64 {
    let norm = norm(change);
    let scale = if norm.is_finite() { (most / norm).min(1.0) } else { 0.0 };
    for value in change {
        // Zero times an infinite value would be NaN.
        let clipped = if scale > 0.0 { f64::from(*value) * scale } else { 0.0 };
        *value = (clipped + noise()) as f32;
    }
    norm
}

/// The L2 norm; infinite or NaN where a coordinate is.
fn norm(change: &[f32]) -> f64 {
    change.iter().map(|value| f64::from(*value) * f64::from(*value)).sum::<f64>().sqrt()
}

/// A number of the standard normal distribution.
pub(crate) fn standard_normal(rng: &mut impl Rng) -> f64 {
    rng.sample(StandardNormal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;

    const DIMENSION: usize = 200_000;

    fn mechanism(change: &[f32], clip: f64, noise: f64, seed: u64) -> Vec<f32> {
        let mut change = change.to_vec();
        clip_and_noise(&mut change, clip, noise, &mut ChaCha20Rng::seed_from_u64(seed));
        change
    }

    fn close(found: f64, expected: f64, by: f64) -> bool {
        (found - expected).abs() <= by
    }

    #[test]
    fn without_noise_nothing_longer_than_the_clip_comes_out_and_directions_stay() {
        for length in [1e-30_f32, 0.1, 0.999, 1.0, 1.001, 7.0, 1e18] {
            let change = [0.6 * length, -0.8 * length, 0.0];
            let out = mechanism(&change, 1.0, 0.0, 1);
            let norm = norm(&out);
            assert!(norm <= 1.0 + 1e-6, "{length} gives {norm}");
            assert!(close(norm, f64::from(length).min(1.0), 1e-6), "{length} gives {norm}");
            assert!(close(f64::from(out[0]) * 0.8, f64::from(-out[1]) * 0.6, 1e-6));
        }
    }

    #[test]
    fn the_noise_has_the_deviation_that_was_asked_for_whatever_the_change_was() {
        for change in [vec![0.0_f32; DIMENSION], vec![1e9; DIMENSION], vec![1e-6; DIMENSION]] {
            let (clip, noise) = (2.0, 3.0);
            let mut clipped = change.clone();
            clip_and_noise(&mut clipped, clip, 0.0, &mut ChaCha20Rng::seed_from_u64(0));
            let out = mechanism(&change, clip, noise, 7);
            let noises: Vec<f64> =
                out.iter().zip(&clipped).map(|(out, own)| f64::from(*out) - f64::from(*own)).collect();
            let count = DIMENSION as f64;
            let mean = noises.iter().sum::<f64>() / count;
            let moment = |power: i32| noises.iter().map(|value| (value / 6.0).powi(power)).sum::<f64>() / count;
            // Five standard errors.
            let errors = 5.0 / count.sqrt();
            assert!(close(mean, 0.0, 6.0 * errors), "mean {mean}");
            assert!(close(moment(2), 1.0, errors * 2.0_f64.sqrt()), "variance {}", moment(2));
            assert!(close(moment(4), 3.0, errors * 96.0_f64.sqrt()), "kurtosis {}", moment(4));
            let neighbours = noises.windows(2).map(|pair| pair[0] * pair[1] / 36.0).sum::<f64>() / count;
            assert!(close(neighbours, 0.0, errors), "correlation {neighbours}");
        }
    }

    #[test]
    fn what_is_not_finite_counts_as_zero() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let out = mechanism(&[1.0, bad, 2.0], 1.0, 2.0, 3);
            assert_eq!(out, mechanism(&[0.0; 3], 1.0, 2.0, 3), "only noise is left");
        }
        let largest = mechanism(&[f32::MAX; 64], 1.0, 0.0, 3);
        assert!(close(norm(&largest), 1.0, 1e-6), "the square of the largest number has room in f64");
    }

    #[test]
    fn the_same_seed_gives_the_same_bits_and_another_seed_other_noise() {
        let change = [0.5_f32; 100];
        assert_eq!(mechanism(&change, 1.0, 1.0, 5), mechanism(&change, 1.0, 1.0, 5));
        assert_ne!(mechanism(&change, 1.0, 1.0, 5), mechanism(&change, 1.0, 1.0, 6));
    }
}
