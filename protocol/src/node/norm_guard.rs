//! The norm guard: local steps stay within the largest norm that neighbours take, and a model that neighbours pulled is told
//! from one that diverged.
//!
//! A member can send parcels whose norm is just within the bound, in a direction without gradient. Whatever its neighbours
//! learn then would lift their norm over the bound: all would refuse their parcels, and take them for diverged. So a step that
//! leads out of the ball is followed by a projection on it, which no average of accepted ratios leaves either. Of two nodes
//! with huge models the one has diverged whose own steps led outwards.

use super::Node;
use crate::codec::extent_of;

/// The part of the bound below which no norm is looked at.
const NEAR: f64 = 0.25;
/// The part of the bound that own steps have to lead outwards for a model to count as diverged.
const OUTWARD: f64 = 0.125;

/// Rounding that is forgiven when the norm of a parcel or model is compared with the bound.
pub const NORM_TOLERANCE: f64 = 1.0 + 1.0 / 64.0;

/// What own steps have done to a large model.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NormGuard {
    /// The sum of all increases of its norm.
    outward: f64,
}

impl Node {
    /// Adds `scale` times a change of this norm to the numerator, and projects the ratio on the ball of the largest norm.
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

    /// Returns `true` if neighbours, and not this node's own steps, made its model as large as it is.
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
