//! Exact samples of the discrete Gaussian, in integers alone.
//!
//! ```text
//!   P(X = x)  ~  exp(-x^2 / (2 sigma^2))     for every integer x
//! ```
//!
//! Canonne, Kamath and Steinke, The discrete Gaussian for differential privacy, NeurIPS 2020 (arXiv:2004.00010),
//! algorithms 1 to 3. No step computes with floating-point numbers, whose rounding reveals terms of a sum (Mironov, CCS
//! 2012).

use rand::{CryptoRng, RngExt};

/// The largest variance: all products of the algorithm fit in 128 bits.
const LARGEST_VARIANCE: u64 = 1 << 40;

/// The discrete Gaussian with mean 0 and a whole number as parameter `sigma^2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscreteGaussian {
    variance: u64,
    /// The scale of the discrete Laplace distribution from which candidates are drawn.
    scale: u64,
}

impl DiscreteGaussian {
    /// The distribution with this `sigma^2`, from 1 to 2^40; `None` outside.
    pub fn new(variance: u64) -> Option<Self> {
        (1..=LARGEST_VARIANCE).contains(&variance).then(|| Self { variance, scale: variance.isqrt() + 1 })
    }

    /// A sample. Takes some ten random words on average, and a number of them that depends on the sample.
    pub fn sample(&self, rng: &mut impl CryptoRng) -> i64 {
        let variance = u128::from(self.variance);
        let scale = u128::from(self.scale);
        loop {
            let candidate = laplace(self.scale, rng);
            // exp(-(|y| - sigma^2 / t)^2 / (2 sigma^2)), with numerator and denominator times t^2.
            let distance = (u128::from(candidate.unsigned_abs()) * scale).abs_diff(variance);
            let Some(square) = distance.checked_mul(distance) else { continue };
            if is_heads_exp(square, 2 * variance * scale * scale, rng) {
                return candidate;
            }
        }
    }
}

/// A sample of the discrete Laplace distribution, `P(x) ~ exp(-|x| / scale)`.
fn laplace(scale: u64, rng: &mut impl CryptoRng) -> i64 {
    loop {
        let rest = rng.random_range(0..scale);
        if !is_heads_exp(rest.into(), scale.into(), rng) {
            continue;
        }
        let mut whole = 0_u64;
        while is_heads_exp(1, 1, rng) {
            whole += 1;
        }
        let magnitude = (rest + scale * whole).cast_signed();
        let is_negative = rng.random::<bool>();
        if magnitude > 0 || !is_negative {
            return if is_negative { -magnitude } else { magnitude };
        }
    }
}

/// Returns `true` with probability `exp(-numerator / denominator)`.
fn is_heads_exp(numerator: u128, denominator: u128, rng: &mut impl CryptoRng) -> bool {
    for _ in 0..numerator / denominator {
        if !is_heads_exp_below_one(1, 1, rng) {
            return false;
        }
    }
    is_heads_exp_below_one(numerator % denominator, denominator, rng)
}

/// As [`is_heads_exp`], of a fraction of at most 1: the number of successes in a row of odds `fraction / k` is even.
fn is_heads_exp_below_one(numerator: u128, denominator: u128, rng: &mut impl CryptoRng) -> bool {
    let mut successes = 0;
    while rng.random_range(0..denominator * (successes + 1)) < numerator {
        successes += 1;
    }
    successes % 2 == 0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    const SAMPLES: usize = 200_000;

    fn samples(variance: u64, seed: u64) -> Vec<i64> {
        let gaussian = DiscreteGaussian::new(variance).unwrap();
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        (0..SAMPLES).map(|_| gaussian.sample(&mut rng)).collect()
    }

    /// Pearson's statistic over all values that are expected at least ten times, in units of its standard deviation.
    #[test]
    fn frequencies_are_those_of_the_distribution() {
        for (variance, seed) in [(1, 1), (2, 2), (7, 3), (100, 4)] {
            let mut counts = BTreeMap::<i64, f64>::new();
            samples(variance, seed).into_iter().for_each(|value| *counts.entry(value).or_default() += 1.0);
            let density = |value: i64| (-(value * value) as f64 / (2.0 * variance as f64)).exp();
            let norm: f64 = (-1_000..=1_000).map(density).sum();
            let mut statistic = 0.0;
            let mut cells = -1.0_f64;
            for value in -1_000..=1_000 {
                let expected = SAMPLES as f64 * density(value) / norm;
                if expected >= 10.0 {
                    statistic += (counts.get(&value).copied().unwrap_or(0.0) - expected).powi(2) / expected;
                    cells += 1.0;
                }
            }
            let deviations = (statistic - cells) / (2.0 * cells).sqrt();
            assert!(deviations < 4.5, "variance {variance}, seed {seed}: {deviations} standard deviations off");
        }
    }

    #[test]
    fn large_variances_have_the_moments_of_the_normal_distribution() {
        let variance = 1_u64 << 20;
        let moment = |power: i32| {
            let scaled = |value: i64| (value as f64 / 1024.0).powi(power);
            samples(variance, 9).into_iter().map(scaled).sum::<f64>() / SAMPLES as f64
        };
        let error = 5.0 / (SAMPLES as f64).sqrt();
        assert!(moment(1).abs() < error, "mean {}", moment(1));
        assert!((moment(2) - 1.0).abs() < error * 2.0_f64.sqrt(), "variance {}", moment(2));
        assert!((moment(4) - 3.0).abs() < error * 96.0_f64.sqrt(), "kurtosis {}", moment(4));
    }

    #[test]
    fn odds_are_exponentials() {
        let mut rng = ChaCha20Rng::seed_from_u64(5);
        for (numerator, denominator) in [(0, 1), (1, 3), (1, 1), (5, 2), (7, 1)] {
            let heads = (0..SAMPLES).filter(|_| is_heads_exp(numerator, denominator, &mut rng)).count() as f64;
            let odds = (-(numerator as f64) / denominator as f64).exp();
            let error = 5.0 * (odds * (1.0 - odds) / SAMPLES as f64).sqrt();
            assert!((heads / SAMPLES as f64 - odds).abs() <= error, "exp(-{numerator}/{denominator})");
        }
    }

    #[test]
    fn variances_beyond_what_is_exact_are_refused() {
        assert_eq!(DiscreteGaussian::new(0), None);
        assert_eq!(DiscreteGaussian::new(LARGEST_VARIANCE + 1), None);
        let largest = DiscreteGaussian::new(LARGEST_VARIANCE).unwrap();
        let mut rng = ChaCha20Rng::seed_from_u64(6);
        assert!((0..1_000).all(|_| largest.sample(&mut rng).unsigned_abs() < 1 << 24));
    }
}
