//! The norm guard: local steps stay within the largest norm that neighbours accept, and a model that neighbours pulled
//! is distinguished from one that diverged.
//!
//! A member can send parcels whose norm is barely within the bound, in a direction without gradient. Any later step of
//! its neighbours would lift their norm over the bound: all others would refuse their parcels as diverged. So a step
//! that leads out of the ball is followed by a projection onto it, which no average of accepted ratios leaves either.
//! Of two nodes with huge models, the diverged one is the node whose own steps led outwards.

use super::Node;
use crate::codec::extent_of;

/// The part of the bound below which no norm is computed.
const NEAR: f64 = 0.25;
/// The part of the bound by which own steps have to lead outwards for a model to count as diverged.
const OUTWARD: f64 = 0.125;

/// Tolerance for rounding when the norm of a parcel or model is compared with the bound.
pub const NORM_TOLERANCE: f64 = 1.0 + 1.0 / 64.0;

/// The effect of own steps on a large model.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NormGuard {
    /// The sum of all increases of the model's norm by own steps.
    outward: f64,
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
        self.norm_guard.outward += (after - before).max(0.0);
        if after > bound {
            let numerator = self.push_sum.numerator().to_vec();
            self.push_sum.step((bound / after - 1.0) as f32, &numerator);
        }
    }

    /// Returns `true` if a large model is the effect of neighbours, and not of this node's own steps.
    pub fn is_pulled(&mut self) -> bool {
        let Some(bound) = self.config.largest_norm else {
            return false;
        };
        self.norm_guard.outward < OUTWARD * bound && self.norm() > NEAR * bound
    }

    /// The norm of the ratio.
    fn norm(&mut self) -> f64 {
        extent_of(&self.push_sum.ratio()).norm
    }
}
