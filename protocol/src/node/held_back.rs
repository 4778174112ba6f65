//! The part of local changes that waits for weight: no learnt change is dropped because a node was short of weight when
//! it came.
//!
//! A node that holds less than half of its usual weight w* adds a share min(1, 2 w / w*) of each change to its
//! numerator; otherwise its ratio would move by several times the change. The rest waits here and follows at the start
//! of later rounds, at most [`MOST_USUAL_STEPS`] usual changes at a time, since it was learnt on an older model. So the
//! sum of all changes is conserved as the weights are: it is in numerators, in parcels, or here. Records keep it; a
//! node that leaves gives it away with its weight, and reports it where it has none; a new plan begins with it.

use std::sync::Arc;

use super::Node;
use crate::codec::extent_of;
use crate::effect::{NodeEvent, SkippedDelta};
use crate::injected_bug::InjectedBug;

/// Largest part that is taken up at once, in usual changes.
const MOST_USUAL_STEPS: f64 = 4.0;
/// The part of the usual weight with which a node applies whole changes.
const ENOUGH: f64 = 0.5;

/// A sum of changes that are not part of the numerator yet; most of the time there is none.
#[derive(Clone, Debug, Default)]
pub(super) struct HeldBack {
    /// `[dimension]`.
    sum: Option<Vec<f32>>,
}

impl HeldBack {
    /// The sum in a record.
    pub(super) fn restored(sum: Option<&Arc<[f32]>>) -> Self {
        Self { sum: sum.map(|sum| sum.to_vec()) }
    }

    /// A copy for a record.
    pub(super) fn snapshot(&self) -> Option<Arc<[f32]>> {
        self.sum.as_deref().map(Arc::from)
    }

    /// Adds `scale` times a change.
    fn add(&mut self, scale: f64, delta: &[f32]) {
        if scale > 0.0 {
            let sum = self.sum.get_or_insert_with(|| vec![0.0; delta.len()]);
            sum.iter_mut().zip(delta).for_each(|(sum, change)| *sum += scale as f32 * change);
        }
    }

    /// Discards the sum, which belongs to a life that is over.
    pub(super) fn clear(&mut self) {
        self.sum = None;
    }
}

impl Node {
    /// The part of this node's changes that is not in its numerator yet, `[dimension]`; `None` while there is none. The
    /// sum of this and all numerators and parcels over the swarm is the initial sum plus all changes.
    pub fn held_back(&self) -> Option<&[f32]> {
        self.held_back.sum.as_deref()
    }

    /// The part of a change that the present weight can carry.
    fn carried(&self) -> f64 {
        let usual = self.config.schedule.stationary_weight(self.config.id, self.step);
        (self.mass().to_f64() / (ENOUGH * usual)).min(1.0)
    }

    /// Adds `scale` times a change to the sum that waits for the start of the next round.
    pub(super) fn hold_back(&mut self, scale: f64, delta: &[f32]) {
        self.held_back.add(scale, delta);
        self.commits.soil();
    }

    /// Adds `scale` times a change of this norm to the numerator, as far as the weight can carry it, and holds back the
    /// rest.
    pub(super) fn add_change(&mut self, scale: f64, delta: &[f32], norm: f64) {
        let carried = self.carried();
        self.step_within_bound(scale * carried, delta, norm);
        if !self.has(InjectedBug::DropsUncarried) {
            self.held_back.add(scale * (1.0 - carried), delta);
        }
    }

    /// Adds to the numerator, at the start of a round, as much of the held-back sum as the present weight can carry.
    pub(super) fn take_up_held_back(&mut self) {
        let Some(sum) = self.held_back.sum.as_deref() else {
            return;
        };
        if !self.push_sum.has_working_mass() {
            return;
        }
        let norm = extent_of(sum).norm;
        let most = self.usual_steps.median().map_or(f64::INFINITY, |usual| MOST_USUAL_STEPS * usual);
        self.take_up((self.carried() * most.min(norm) / norm.max(f64::MIN_POSITIVE)).min(1.0));
    }

    /// Adds all of the held-back sum to the numerator, however little weight there is: the node gives both away.
    pub(super) fn take_up_all_held_back(&mut self) {
        self.take_up(1.0);
    }

    /// Reports a held-back sum that a node cannot hand over, since it leaves without weight, and discards it.
    pub(super) fn give_up_held_back(&mut self) {
        if self.has(InjectedBug::LeavesWithLearning) || self.held_back.sum.take().is_none() {
            return;
        }
        self.report(NodeEvent::DeltaSkipped { round: self.round(), reason: SkippedDelta::LeftWithoutWeight });
    }

    fn take_up(&mut self, part: f64) {
        let Some(mut sum) = self.held_back.sum.take() else {
            return;
        };
        let norm = extent_of(&sum).norm;
        self.step_within_bound(part, &sum, norm);
        self.commits.soil();
        if part < 1.0 {
            let rest = 1.0 - part as f32;
            sum.iter_mut().for_each(|value| *value *= rest);
            self.held_back.sum = Some(sum);
        }
    }
}
