//! Noise of which pairs of members add opposite parts (DECOR: Allouah, Koloskova, El Firdoussi, Jaggi and Guerraoui, ICML
//! 2024, arXiv:2405.01031).
//!
//! ```text
//!   y_i = clip(x_i) + C (own u_i + pair sum_j (+-) v_ij),   v_ij = v_ji,   u, v ~ N(0, I)
//! ```
//!
//! A pair adds `v` at one end and subtracts it at the other, so it is gone from the mean of the models once both ends have
//! been mixed. All others see each `y_i`, in which it still is.

use rand::CryptoRng;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::gaussian_mechanism::{clip_and_add, standard_normal};
use crate::noise_design::NoiseDesign;
use crate::noise_graph::NoiseParts;

/// The secret that two members share, and the sign of this member's part.
#[derive(Clone)]
pub struct NoisePair {
    /// `true` at the end that adds, `false` at the one that subtracts.
    pub adds: bool,
    /// Known to these two members alone.
    pub secret: [u8; 32],
}

/// The noise of one member under one plan.
#[derive(Clone)]
pub struct CorrelatedNoise {
    plan: [u8; 32],
    /// A hash of the plan and of all parts and pairs: members that count on other parts draw other noise.
    context: [u8; 32],
    parts: NoiseParts,
    pairs: Vec<NoisePair>,
}

impl CorrelatedNoise {
    /// The noise under the plan with this hash, with the parts of this design and this member's pairs.
    pub fn new(plan: [u8; 32], design: &NoiseDesign, pairs: Vec<NoisePair>) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("mingle 2026 context of correlated noise");
        hasher.update(&plan);
        let NoiseParts { own, pair } = design.parts;
        hasher.update(&own.to_bits().to_le_bytes());
        hasher.update(&pair.to_bits().to_le_bytes());
        for (one, other) in design.graph.pairs() {
            hasher.update(&(one as u64).to_le_bytes());
            hasher.update(&(other as u64).to_le_bytes());
        }
        Self { plan, context: *hasher.finalize().as_bytes(), parts: design.parts, pairs }
    }

    /// The hash of the plan.
    pub fn plan(&self) -> &[u8; 32] {
        &self.plan
    }

    /// The standard deviations of its parts.
    pub fn parts(&self) -> NoiseParts {
        self.parts
    }

    /// Clips a change to the norm `most` and adds this member's noise of a round. `own` gives its secret
    /// part. A pair's part is the same in every call for one round: a second change under it would show the difference of
    /// both.
    ///
    /// Returns the norm of the change before clipping.
    pub fn clip_and_noise(&self, change: &mut [f32], most: f64, round: u64, own: &mut impl CryptoRng) -> f64 {
        let own_part = self.parts.own * most;
        let deviation = |pair: &NoisePair| if pair.adds { self.parts.pair * most } else { -self.parts.pair * most };
        let mut shared: Vec<_> = self.pairs.iter().map(|pair| (deviation(pair), self.generator(pair, round))).collect();
        clip_and_add(change, most, || {
            let of_pairs: f64 = shared.iter_mut().map(|(deviation, rng)| *deviation * standard_normal(rng)).sum();
            own_part * standard_normal(own) + of_pairs
        })
    }

    /// The generator of a pair for a round: the same at both ends.
    fn generator(&self, pair: &NoisePair, round: u64) -> ChaCha20Rng {
        let mut hasher = blake3::Hasher::new_keyed(&pair.secret);
        hasher.update(&self.context);
        hasher.update(&round.to_le_bytes());
        ChaCha20Rng::from_seed(*hasher.finalize().as_bytes())
    }
}

impl std::fmt::Debug for CorrelatedNoise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CorrelatedNoise").field("parts", &self.parts).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise_graph::NoiseGraph;

    const DIMENSION: usize = 20_000;
    const PARTS: NoiseParts = NoiseParts { own: 0.5, pair: 2.0 };

    /// A ring of members that all share noise with two others.
    fn ring(members: usize) -> Vec<CorrelatedNoise> {
        let secret = |from: usize| [from as u8; 32];
        let pairs = |me: usize| {
            let before = NoisePair { adds: false, secret: secret((me + members - 1) % members) };
            vec![NoisePair { adds: true, secret: secret(me) }, before]
        };
        (0..members).map(|me| CorrelatedNoise::new([7; 32], &design(PARTS), pairs(me))).collect()
    }

    fn design(parts: NoiseParts) -> NoiseDesign {
        NoiseDesign { graph: NoiseGraph::new(2, [(0, 1)]), parts }
    }

    fn released(noise: &CorrelatedNoise, round: u64, own: u64) -> Vec<f32> {
        let mut change = vec![0.0; DIMENSION];
        noise.clip_and_noise(&mut change, 3.0, round, &mut ChaCha20Rng::seed_from_u64(own));
        change
    }

    fn deviation(values: &[f32]) -> f64 {
        (values.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>() / values.len() as f64).sqrt()
    }

    #[test]
    fn each_change_has_all_the_noise_and_the_sum_has_the_own_parts_alone() {
        let members = ring(5);
        let changes: Vec<_> = members.iter().zip(0..).map(|(noise, own)| released(noise, 4, own)).collect();
        let mut sum = vec![0.0; DIMENSION];
        for change in &changes {
            let expected = 3.0 * (0.5_f64.powi(2) + 2.0 * 2.0_f64.powi(2)).sqrt();
            assert!((deviation(change) / expected - 1.0).abs() < 0.03, "{}", deviation(change));
            sum.iter_mut().zip(change).for_each(|(sum, value)| *sum += value);
        }
        let expected = 3.0 * 0.5 * 5.0_f64.sqrt();
        assert!((deviation(&sum) / expected - 1.0).abs() < 0.03, "{}", deviation(&sum));
    }

    #[test]
    fn noise_of_pairs_is_another_in_each_round_plan_and_design_and_the_same_again_in_one() {
        let noise = &ring(3)[0];
        let here = released(noise, 1, 0);
        assert_eq!(here, released(noise, 1, 0));
        let under = |plan, parts| CorrelatedNoise::new(plan, &design(parts), noise.pairs.clone());
        let elsewhere = under([8; 32], PARTS);
        // A billionth more is other noise, which does not cancel, and is no less.
        let otherwise = under([7; 32], NoiseParts { pair: PARTS.pair * (1.0 + 1e-9), ..PARTS });
        for other in [released(noise, 2, 0), released(&elsewhere, 1, 0), released(&otherwise, 1, 0)] {
            let product: f64 = here.iter().zip(&other).map(|(one, other)| f64::from(*one) * f64::from(*other)).sum();
            // The own parts are equal in this test, and a thirty-third of the variance.
            let correlation = product / DIMENSION as f64 / (deviation(&here) * deviation(&other));
            assert!((correlation - 0.25 / 8.25).abs() < 0.04, "{correlation}");
        }
    }

    #[test]
    fn changes_are_clipped_and_those_that_are_not_finite_leave_noise_alone() {
        let silent = CorrelatedNoise::new([0; 32], &design(NoiseParts { own: 0.0, pair: 0.0 }), Vec::new());
        let mut change = [3.0_f32, 4.0];
        let norm = silent.clip_and_noise(&mut change, 1.0, 0, &mut ChaCha20Rng::seed_from_u64(0));
        assert!((norm - 5.0).abs() < 1e-12 && (change[0] - 0.6).abs() < 1e-6 && (change[1] - 0.8).abs() < 1e-6);
        let mut bad = [1.0, f32::NAN];
        silent.clip_and_noise(&mut bad, 1.0, 0, &mut ChaCha20Rng::seed_from_u64(0));
        assert_eq!(bad, [0.0, 0.0]);
    }
}
