//! The total cost of Gaussian mechanisms, by Rényi differential privacy (RDP).
//!
//! A mechanism is (alpha, rho)-RDP if the Rényi divergence of order alpha between its outputs on neighbouring inputs is
//! at most rho. Rényi divergences of successive mechanisms add up, order by order, even where each depends on the
//! outputs of those before. The sum is converted to an (epsilon, delta) at the end.
//!
//! - Gaussian mechanism: Mironov, Rényi differential privacy, CSF 2017 (arXiv:1702.07476), corollary 3.
//! - Conversion: Balle, Barthe, Gaboardi, Hsu and Sato, AISTATS 2020 (arXiv:1905.09982), theorem 21; in this form Canonne,
//!   Kamath and Steinke, arXiv:2004.00010, proposition 12.
//!
//! Orders and formulas are those of dp-accounting 0.6, whose figures are stored beside the tests.

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
        if steps == 0 {
            return;
        }
        self.rdp.resize(orders().count(), 0.0);
        for (sum, alpha) in self.rdp.iter_mut().zip(orders()) {
            *sum += to_f64(steps) * (alpha / (2.0 * noise_multiplier * noise_multiplier));
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
        let normal = |x: f64| 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
        let exact_delta =
            |mu: f64, epsilon: f64| normal(mu / 2.0 - epsilon / mu) - epsilon.exp() * normal(-mu / 2.0 - epsilon / mu);
        for (noise, steps) in [(1.0, 1_u32), (4.0, 30), (20.0, 500), (10.0, 1_000)] {
            let mu = f64::from(steps).sqrt() / noise;
            let bound = epsilon(noise, steps.into(), 1e-5);
            assert!(exact_delta(mu, bound) <= 1e-5, "noise {noise}, {steps} steps: {bound} is too low");
            assert!(exact_delta(mu, 0.8 * bound) > 1e-5, "noise {noise}, {steps} steps: {bound} is too high");
        }
    }
}
