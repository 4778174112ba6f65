//! The guards on a local step: it is finite, scaled to the work it stands for, and no larger than usual.
//!
//! ```text
//!   x += min(1, 2 w / w*)  min(1, bound / norm)  min(4, local_steps / steps) delta
//! ```
//!
//! - While w is low because mass is under way, the step is scaled down too: otherwise z would move by delta / w, and
//!   heavy loss would make that diverge. The rest follows when there is more weight (`held_back`).
//! - A step far beyond the usual ones is scaled down to [`NodeConfig::clip`](crate::NodeConfig::clip) times their
//!   median. A mistyped learning rate or a failing device produces such steps; a malicious neighbour is not stopped by
//!   this. A node that trains alone takes shorter and shorter steps as its model settles: once a neighbour is back, it
//!   learns anew what is usual.
//! - A step of fewer local steps than the plan wants, because no more fitted into the time box, counts as if it had
//!   been all of them (normalised averaging: Wang, Liu, Liang, Joshi, Poor, NeurIPS 2020). Otherwise slow nodes would
//!   pull less. It counts at most [`MOST_MADE_UP`] times, unless the host set the time box itself: one step that stands
//!   for forty is a learning rate of forty times.
//!
//! None of this touches mass.

use super::Node;
use super::overlap::ReadyChange;
use crate::codec::{Extent, extent_of};
use crate::effect::{NodeEvent, SkippedDelta};
use crate::latest::Latest;
use crate::payload::MAX_MAGNITUDE;
use crate::record::HostState;

/// Number of steps whose norms are remembered.
const REMEMBERED: usize = 31;
/// Largest factor by which a step counts, where the node itself found that it is slow.
const MOST_MADE_UP: f64 = 4.0;
/// Fewest remembered norms from which the usual one is derived.
const FEWEST: usize = 8;

/// A usable change, measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct MeasuredStep {
    /// The factor by which it counts.
    pub(super) scale: f64,
    /// Its Euclidean norm, without the factor.
    pub(super) norm: f64,
}

impl MeasuredStep {
    /// The change for a round to come.
    pub(super) fn of(self, mut delta: Vec<f32>, state: HostState) -> ReadyChange {
        let Self { scale, norm } = self;
        delta.iter_mut().for_each(|value| *value *= scale as f32);
        ReadyChange { delta, norm: norm * scale, state }
    }
}

/// Norms of this node's latest steps after clipping: a run of huge ones moves the median by no more than the clip
/// allows in each half of the memory.
#[derive(Clone, Debug, Default)]
pub(super) struct UsualSteps {
    /// Oldest first; steps of length zero are left out.
    norms: Latest<f64, REMEMBERED>,
    /// The median when the node began to learn anew what is usual.
    before: Option<f64>,
}

impl UsualSteps {
    /// The largest norm that a step may have, `clip` times the median; `None` while too few are known.
    fn bound(&self, clip: f64) -> Option<f64> {
        if self.norms.len() < FEWEST {
            return None;
        }
        self.median().map(|median| clip * median)
    }

    /// The upper median, or that before [`learn_anew`](Self::learn_anew) while no step was taken since; `None` before the
    /// first step. What relies on it has a limit at all times: a neighbour decides when it goes and comes.
    pub(super) fn median(&self) -> Option<f64> {
        self.norms.median(f64::total_cmp).or(self.before)
    }

    /// Forgets the norms, which say nothing of the steps to come: none of these is cut before enough of them are known.
    pub(super) fn learn_anew(&mut self) {
        *self = Self { norms: Latest::default(), before: self.median() };
    }

    fn remember(&mut self, norm: f64) {
        if norm > 0.0 {
            self.norms.push(norm);
        }
    }
}

impl Node {
    /// Measures a change of `steps` local steps where `of` were ordered, for a round; reports why it cannot be used.
    pub(super) fn measure_step(&mut self, round: u64, delta: &[f32], (steps, of): (u32, u32)) -> Option<MeasuredStep> {
        let pace = self.pace_of(steps, of);
        match self.norm_of(delta, steps, pace) {
            Ok(norm) => Some(MeasuredStep { scale: pace * self.clipped(round, norm * pace), norm }),
            Err(reason) => {
                self.report(NodeEvent::DeltaSkipped { round, reason });
                None
            }
        }
    }

    /// The norm of a usable change, in one pass over it.
    fn norm_of(&self, delta: &[f32], steps: u32, pace: f64) -> Result<f64, SkippedDelta> {
        let expected = self.dimension();
        if delta.len() != expected {
            return Err(SkippedDelta::WrongDimension { got: delta.len(), expected });
        }
        if steps == 0 {
            return Err(SkippedDelta::NoSteps);
        }
        let Extent { largest, norm } = extent_of(delta);
        // Also for NaN.
        let is_finite = largest <= MAX_MAGNITUDE;
        if !is_finite {
            return Err(SkippedDelta::NotFinite);
        }
        if self.config.largest_norm.is_some_and(|bound| norm * pace > bound) {
            return Err(SkippedDelta::TooLong);
        }
        Ok(norm)
    }

    /// The factor of a change of `steps` local steps where `of` were ordered.
    fn pace_of(&self, steps: u32, of: u32) -> f64 {
        pace_factor(steps, of, self.config.time_box.is_some())
    }

    /// The factor that brings a step of this norm within the bound.
    fn clipped(&mut self, round: u64, norm: f64) -> f64 {
        let bound = self.config.clip.and_then(|clip| self.usual_steps.bound(clip));
        let Some(bound) = bound.filter(|bound| norm > *bound) else {
            self.usual_steps.remember(norm);
            return 1.0;
        };
        self.report(NodeEvent::DeltaClipped { round, norm, bound });
        self.usual_steps.remember(bound);
        bound / norm
    }
}

/// The factor by which a node multiplies a change of `steps` local steps where `of` were ordered: as if it had been all of
/// them, and at most four times as much unless the host set a time box.
pub fn pace_factor(steps: u32, of: u32, has_time_box: bool) -> f64 {
    let whole = f64::from(of) / f64::from(steps.max(1));
    if has_time_box { whole } else { whole.min(MOST_MADE_UP) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn after(norms: impl IntoIterator<Item = f64>) -> UsualSteps {
        let mut usual = UsualSteps::default();
        norms.into_iter().for_each(|norm| usual.remember(norm));
        usual
    }

    #[test]
    fn nothing_is_clipped_before_eight_steps_are_known() {
        assert_eq!(after([1.0; 7]).bound(10.0), None);
        assert_eq!(after([1.0; 8]).bound(10.0), Some(10.0));
    }

    #[test]
    fn the_bound_follows_the_median_of_the_last_thirty_one() {
        let usual = after((1..=100).map(f64::from));
        assert_eq!(usual.norms.len(), REMEMBERED);
        assert_eq!(usual.bound(2.0), Some(2.0 * 85.0));
    }

    #[test]
    fn what_is_learnt_anew_has_no_bound_for_a_while_and_a_median_at_all_times() {
        let mut usual = after([1e-6; 31]);
        usual.learn_anew();
        assert_eq!((usual.bound(10.0), usual.median()), (None, Some(1e-6)));
        usual.learn_anew();
        assert_eq!(usual.median(), Some(1e-6));
        (0..8).for_each(|_| usual.remember(1.0));
        assert_eq!((usual.bound(10.0), usual.median()), (Some(10.0), Some(1.0)));
    }

    #[test]
    fn steps_of_length_zero_do_not_make_every_later_one_too_long() {
        let usual = after([0.0; 100]);
        assert_eq!(usual.bound(10.0), None);
        assert_eq!(after([[0.0, 3.0]; 20].concat()).bound(10.0), Some(30.0));
    }
}
