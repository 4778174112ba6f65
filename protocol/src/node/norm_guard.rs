//! The norm guard: local steps stay within the largest norm that neighbours accept, and a model that neighbours pulled
//! is distinguished from one that diverged.
//!
//! A member can send parcels whose norm is barely within the bound, in a direction without gradient. Any later step of
//! its neighbours would lift their norm over the bound: all others would refuse their parcels as diverged. So a step
//! that leads out of the ball is followed by a projection onto it, which no average of accepted ratios leaves either.
//! Of two nodes with huge models, the diverged one is the node whose own steps led outwards.
//!
//! Rounding of parcels takes models at the bound a little beyond it, to one node what it takes from another. The ball
//! of a node that is there is [`ROUNDING`] larger: if each step took the excess away, what all have learnt would shrink.

use super::Node;
use crate::codec::extent_of;

/// The part of the bound below which no norm is computed.
const NEAR: f64 = 0.25;
/// The part of the bound by which models may exceed it where rounding led them there: half of what receivers tolerate.
const ROUNDING: f64 = 1.0 / 128.0;
/// The part of the bound by which own steps have to lead outwards for a model to count as diverged.
const OUTWARD: f64 = 0.125;

/// Own steps that are remembered, by an exponentially weighted sum.
const REMEMBERED_STEPS: f64 = 256.0;

/// The effect of own steps on a large model.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NormGuard {
    /// The growth of the model's norm by the newest own steps, less what they took from it.
    outward: f64,
}

impl NormGuard {
    /// Notes a step by which the norm grew so much, or shrank. Steps at right angles to a large model lift its norm a
    /// little each: without forgetting, they would add up to a divergence in every long run.
    fn note(&mut self, growth: f64) {
        self.outward = (self.outward * (1.0 - 1.0 / REMEMBERED_STEPS) + growth).max(0.0);
    }
}

impl Node {
    /// Adds `scale` times a change of this norm to the numerator, and projects the ratio onto the ball of the largest
    /// norm.
    pub(super) fn step_within_bound(&mut self, scale: f64, delta: &[f32], norm: f64) {
        let reach = self.push_sum.largest_norm() + scale * norm / self.w().max(f64::MIN_POSITIVE);
        let Some(bound) = self.config.largest_norm.filter(|bound| reach > NEAR * bound) else {
            self.push_sum.step(scale as f32, delta);
            return;
        };
        let before = self.norm();
        self.push_sum.step(scale as f32, delta);
        let after = self.norm();
        self.norm_guard.note(after - before);
        let radius = bound.max(before.min(bound * (1.0 + ROUNDING)));
        if after > radius {
            let numerator = self.push_sum.numerator().to_vec();
            self.push_sum.step((radius / after - 1.0) as f32, &numerator);
        }
    }

    /// Returns `true` if a large model is the effect of neighbours, and not of this node's own steps.
    pub fn is_pulled(&mut self) -> bool {
        let Some(bound) = self.config.largest_norm else {
            return false;
        };
        self.norm_guard.outward < OUTWARD * bound && self.norm() > NEAR * bound
    }

    /// The ratio to begin a generation with. Where it exceeds the largest norm it is scaled down to that, since neighbours would
    /// refuse it: what rounding leaves of a small weight leads there.
    pub(super) fn ratio_within_bound(&mut self) -> Vec<f32> {
        let mut ratio = self.push_sum.ratio().to_vec();
        let norm = extent_of(&ratio).norm;
        if let Some(bound) = self.config.largest_norm.filter(|bound| norm > *bound) {
            let part = (bound / norm) as f32;
            ratio.iter_mut().for_each(|value| *value *= part);
        }
        ratio
    }

    /// The norm of the ratio.
    fn norm(&mut self) -> f64 {
        extent_of(&self.push_sum.ratio()).norm
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: f64 = 1_000.0;

    #[test]
    fn steps_at_right_angles_to_a_model_at_the_bound_never_count_as_divergence() {
        let mut guard = NormGuard::default();
        for _ in 0..1_000_000 {
            // A step of a hundredth of the norm.
            guard.note(BOUND.hypot(0.01 * BOUND) - BOUND);
            assert!(guard.outward < OUTWARD * BOUND, "{guard:?}");
        }
    }

    #[test]
    fn a_model_that_grows_by_a_hundredth_with_each_step_has_diverged_when_it_reaches_the_bound() {
        let (mut guard, mut norm) = (NormGuard::default(), NEAR * BOUND);
        while norm < BOUND {
            guard.note(0.01 * norm);
            norm *= 1.01;
        }
        assert!(guard.outward > OUTWARD * BOUND, "{guard:?}");
    }

    #[test]
    fn steps_that_lead_back_as_far_as_others_led_out_count_for_nothing() {
        let mut guard = NormGuard::default();
        for _ in 0..1_000 {
            guard.note(0.1 * BOUND);
            guard.note(-0.1 * BOUND);
        }
        assert!(guard.outward < 0.01 * BOUND, "{guard:?}");
    }
}
