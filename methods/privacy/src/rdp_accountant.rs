//! The total cost of Gaussian mechanisms, by Rényi differential privacy (RDP).
//!
//! A mechanism is (alpha, rho)-RDP if the Rényi divergence of order alpha between its outputs on neighbouring inputs is
//! at most rho. Rényi divergences of successive mechanisms add up, order by order, even where each depends on the
//! outputs of those before. The sum is converted to an (epsilon, delta) at the end.
//!
//! - Gaussian mechanism: Mironov, Rényi differential privacy, CSF 2017 (arXiv:1702.07476), corollary 3.
//! - Sampled Gaussian mechanism: Mironov, Talwar and Zhang, arXiv:1908.10530, section 3.3.
//! - Conversion: Balle, Barthe, Gaboardi, Hsu and Sato, AISTATS 2020 (arXiv:1905.09982), theorem 21; in this form Canonne,
//!   Kamath and Steinke, arXiv:2004.00010, proposition 12.
//!
//! Orders and formulas are those of dp-accounting 0.6, whose figures are stored beside the tests.

use std::f64::consts::{LN_2, PI, SQRT_2};

/// The most terms of the series of a fractional order; an order that needs more is left out.
const MOST_TERMS: u32 = 1_000;

/// The orders alpha: 1.1 to 10.9 by tenths, 11 to 63, and four large ones.
fn orders() -> impl Iterator<Item = f64> {
    let tenths = (1..100).map(|tenth| 1.0 + f64::from(tenth) / 10.0);
    tenths.chain((11..64).map(f64::from)).chain([128.0, 256.0, 512.0, 1024.0])
}

/// The Rényi divergences of all releases so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RdpAccountant {
    /// The divergences by order; empty while nothing was released.
    rdp: Vec<f64>,
}

impl RdpAccountant {
    /// Adds `steps` Gaussian mechanisms whose noise has a standard deviation of `noise_multiplier` times the
    /// sensitivity.
    pub fn compose_gaussian(&mut self, noise_multiplier: f64, steps: u64) {
        self.compose(steps, |alpha| alpha / (2.0 * noise_multiplier * noise_multiplier));
    }

    /// Adds `steps` Gaussian mechanisms that each include the protected participation with probability
    /// `sampling_probability`, independently (Poisson sampling), and do not reveal whether they do.
    ///
    /// A peer of Mingle takes part in every round, which is a probability of 1.
    pub fn compose_sampled_gaussian(&mut self, sampling_probability: f64, noise_multiplier: f64, steps: u64) {
        if sampling_probability >= 1.0 {
            return self.compose_gaussian(noise_multiplier, steps);
        }
        if sampling_probability > 0.0 {
            self.compose(steps, |alpha| ln_moment(sampling_probability, noise_multiplier, alpha) / (alpha - 1.0));
        }
    }

    fn compose(&mut self, steps: u64, rdp_of_one: impl Fn(f64) -> f64) {
        if steps == 0 {
            return;
        }
        self.rdp.resize(orders().count(), 0.0);
        for (sum, alpha) in self.rdp.iter_mut().zip(orders()) {
            *sum += to_f64(steps) * rdp_of_one(alpha);
        }
    }

    /// The epsilon for this `delta`: 0 where nothing was released, infinite where the noise was too small to bound it.
    pub fn epsilon(&self, delta: f64) -> f64 {
        if self.rdp.is_empty() {
            return 0.0;
        }
        let epsilons = self.rdp.iter().zip(orders()).map(|(&rdp, alpha)| epsilon_of_order(alpha, rdp, delta));
        // An order whose epsilon is NaN gives no bound.
        epsilons.filter(|epsilon| !epsilon.is_nan()).fold(f64::INFINITY, f64::min).max(0.0)
    }
}

fn epsilon_of_order(alpha: f64, rdp: f64, delta: f64) -> f64 {
    // delta <= sqrt(1 - exp(-KL)), by Bretagnolle and Huber; KL is at most the divergence of any order above 1.
    if delta * delta + (-rdp).exp_m1() > 0.0 {
        return 0.0;
    }
    rdp + (-1.0 / alpha).ln_1p() - (delta * alpha).ln() / (alpha - 1.0)
}

/// ln A_alpha of the sampled Gaussian mechanism, 0 < q < 1.
fn ln_moment(q: f64, sigma: f64, alpha: f64) -> f64 {
    if alpha.fract() == 0.0 { ln_moment_of_whole(q, sigma, alpha) } else { ln_moment_of_fraction(q, sigma, alpha) }
}

/// The sum over k of (alpha over k) (1 - q)^(alpha - k) q^k exp((k^2 - k) / (2 sigma^2)).
fn ln_moment_of_whole(q: f64, sigma: f64, alpha: f64) -> f64 {
    let mut sum = f64::NEG_INFINITY;
    let mut ln_binomial = 0.0;
    let mut k = 0.0;
    while k <= alpha {
        let term = ln_binomial + k * q.ln() + (alpha - k) * (-q).ln_1p() + (k * k - k) / (2.0 * sigma * sigma);
        sum = ln_add(sum, term);
        ln_binomial += (alpha - k).ln() - (k + 1.0).ln();
        k += 1.0;
    }
    sum
}

/// The logarithm of the moment for an alpha that is no whole number: two series, one for each side of the point where
/// sampled and other noise are equally likely. Binomial coefficients beyond alpha alternate in sign; adding their
/// magnitudes makes this an upper bound.
fn ln_moment_of_fraction(q: f64, sigma: f64, alpha: f64) -> f64 {
    let middle = sigma * sigma * (1.0 / q - 1.0).ln() + 0.5;
    let tail = |x: f64| ln_erfc(x / (SQRT_2 * sigma)) - LN_2;
    let growth = |x: f64| (x * x - x) / (2.0 * sigma * sigma);
    let mut below = f64::NEG_INFINITY;
    let mut above = f64::NEG_INFINITY;
    let mut last_below = f64::NEG_INFINITY;
    let mut last_above = f64::NEG_INFINITY;
    let mut ln_binomial = 0.0;
    for term in 0..MOST_TERMS {
        let i = f64::from(term);
        let j = alpha - i;
        let next_below = ln_binomial + i * q.ln() + j * (-q).ln_1p() + growth(i) + tail(i - middle);
        let next_above = ln_binomial + j * q.ln() + i * (-q).ln_1p() + growth(j) + tail(middle - j);
        below = ln_add(below, next_below);
        above = ln_add(above, next_above);
        let total = ln_add(below, above);
        let shrink = next_below < last_below && next_above < last_above;
        if shrink && next_below.max(next_above) < total - 30.0 {
            return total;
        }
        last_below = next_below;
        last_above = next_above;
        ln_binomial += j.abs().ln() - (i + 1.0).ln();
    }
    f64::INFINITY
}

/// ln(exp(a) + exp(b)).
fn ln_add(a: f64, b: f64) -> f64 {
    let (small, large) = if a < b { (a, b) } else { (b, a) };
    if small == f64::NEG_INFINITY { large } else { large + (small - large).exp().ln_1p() }
}

/// ln erfc(x), also where erfc(x) underflows.
fn ln_erfc(x: f64) -> f64 {
    /// The argument from which the series below is exact to 1e-11.
    const FAR: f64 = 20.0;
    if x < FAR {
        return libm::erfc(x).ln();
    }
    let square = x * x;
    let inverse = 1.0 / square;
    // The Laurent series of ln erfc at infinity.
    let series = inverse * (-0.5 + inverse * (0.625 + inverse * (-37.0 / 24.0 + inverse * 353.0 / 64.0)));
    -0.5 * PI.ln() - x.ln() - square + series
}

#[allow(clippy::cast_precision_loss)] // 2^53 steps are never taken
fn to_f64(steps: u64) -> f64 {
    steps as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epsilon(noise: f64, steps: u64, delta: f64) -> f64 {
        let mut accountant = RdpAccountant::default();
        accountant.compose_gaussian(noise, steps);
        accountant.epsilon(delta)
    }

    #[test]
    fn what_releases_nothing_costs_nothing_and_what_hides_nothing_costs_everything() {
        assert_eq!(epsilon(1.0, 0, 1e-5), 0.0);
        assert_eq!(RdpAccountant::default().epsilon(1e-5), 0.0);
        assert_eq!(epsilon(1e-200, 1, 1e-5), f64::INFINITY);
    }

    #[test]
    fn a_hundred_changes_with_ten_times_the_noise_cost_as_much_as_one() {
        let (one, hundred) = (epsilon(1.0, 1, 1e-6), epsilon(10.0, 100, 1e-6));
        assert!((one - hundred).abs() < 1e-9, "{one} {hundred}");
    }

    #[test]
    fn changes_with_different_noise_add_up_in_any_order() {
        let compose = |parts: [(f64, u64); 2]| {
            let mut accountant = RdpAccountant::default();
            parts.into_iter().for_each(|(noise, steps)| accountant.compose_gaussian(noise, steps));
            accountant.epsilon(1e-5)
        };
        let sum = compose([(2.0, 10), (5.0, 40)]);
        assert!((sum - compose([(5.0, 40), (2.0, 10)])).abs() < 1e-12);
        assert!(sum > epsilon(2.0, 10, 1e-5) && sum < epsilon(2.0, 50, 1e-5));
    }

    /// Checks that the bound is above the exact cost: delta(epsilon) of one Gaussian mechanism is known exactly (Balle
    /// and Wang, ICML 2018, theorem 8), and `steps` of them are one with noise / sqrt(steps).
    #[test]
    fn the_bound_is_above_the_exact_cost_and_not_far_above() {
        let normal = |x: f64| 0.5 * libm::erfc(-x / SQRT_2);
        let exact_delta =
            |mu: f64, epsilon: f64| normal(mu / 2.0 - epsilon / mu) - epsilon.exp() * normal(-mu / 2.0 - epsilon / mu);
        for (noise, steps) in [(1.0, 1_u32), (4.0, 30), (20.0, 500), (10.0, 1_000)] {
            let mu = f64::from(steps).sqrt() / noise;
            let bound = epsilon(noise, steps.into(), 1e-5);
            assert!(exact_delta(mu, bound) <= 1e-5, "noise {noise}, {steps} steps: {bound} is too low");
            assert!(exact_delta(mu, 0.8 * bound) > 1e-5, "noise {noise}, {steps} steps: {bound} is too high");
        }
    }

    #[test]
    fn the_logarithm_of_erfc_has_no_step_where_its_series_begins() {
        for x in [19.999_999, 20.0, 20.000_001] {
            let slope = -2.0 * x - 1.0 / x;
            assert!((ln_erfc(x) - (ln_erfc(20.0) + (x - 20.0) * slope)).abs() < 1e-9, "{x}");
        }
        assert!((ln_erfc(0.5) - libm::erfc(0.5).ln()).abs() < 1e-15);
    }
}
