//! The distance of a model from the best one, as a certificate.
//!
//! Every subproblem of a site gives a subgradient of its worst loss: `constant_s + <slope_s, w>` is below the worst loss
//! of any model `w`. So for any weights `q` of the set
//!
//! ```text
//!   sum_s q_s constant_s + <e, w>,    e = sum_s q_s slope_s
//! ```
//!
//! is below the objective of any model `w`. At the solution `e = 0`. Before it, the least value of that bound over the
//! models within a distance `reach` of the present one (in the largest difference of a coefficient) is
//! `sum_s q_s constant_s + <e, model> - reach ||e||_1`. The reach is twice the largest coefficient of the model, and at
//! least twice the mean target (1 for labels). Because the objective is convex, a model `k` times
//! as far away is better by at most `k` times the gap.
//!
//! Two such bounds are computed at every check: of the last iteration, and of the mean over a window of iterations. The
//! sum of all `psi` is the penalty times a change of the models, so its mean over a window, and `e` with it, falls faster
//! than its last value. Bounds of earlier checks remain bounds, and the best ones are kept.

use crate::minorant::Minorant;
use crate::penalty::DataScale;
use crate::shared_state::SharedState;
use crate::site::{CHECK_ROW, Site};

/// The reach, as a multiple of the largest coefficient or the size of predictions.
const REACH: f64 = 2.0;
/// The most bounds of earlier checks that are kept.
const MOST_BOUNDS: usize = 16;

/// The objective of a model, and a lower bound of it for every model within reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualityGap {
    /// The objective of the model.
    pub value: f64,
    /// The lower bound.
    pub bound: f64,
}

impl DualityGap {
    /// The largest amount by which a model within reach is better; 0 where rounding says less, and infinite where the
    /// value or the bound is no number.
    #[must_use]
    pub fn gap(&self) -> f64 {
        let gap = self.value - self.bound;
        if gap.is_nan() { f64::INFINITY } else { gap.max(0.0) }
    }
}

/// The checks of a run: the same at all sites.
///
/// A check takes one sum over all sites, of [`check_terms`], and then one row of each, of [`Site::check_row`].
#[derive(Clone, Debug)]
pub struct GapSearch {
    scale: DataScale,
    bounds: Vec<Minorant>,
}

/// A site's part in the sum of a check, `[4 columns]`: its model, the mean of its models over the window, and its last
/// and mean subgradient times its weights.
#[must_use]
pub fn check_terms(state: &SharedState, at: usize, site: &Site) -> Vec<f64> {
    let slopes = [site.minorant().clone(), site.mean_minorant()];
    let slopes = slopes.iter().zip(state.dual_weights()).flat_map(|(minorant, weights)| {
        let weight = weights[at];
        minorant.slope.iter().map(move |slope| weight * slope).collect::<Vec<_>>()
    });
    site.model().iter().copied().chain(site.mean_model()).chain(slopes).collect()
}

/// The two models of a check, `[columns]` each: the means over all sites of their last models, and of those over the
/// window.
#[must_use]
pub fn check_models(sites: usize, sums: &[f64]) -> [Vec<f64>; 2] {
    let columns = sums.len() / 4;
    [0, 1].map(|at| sums[at * columns..][..columns].iter().map(|sum| sum / sites as f64).collect())
}

impl GapSearch {
    /// The search before its first check.
    #[must_use]
    pub fn new(scale: DataScale) -> Self {
        Self { scale, bounds: Vec::new() }
    }

    /// Ends a check with the sums over all sites and their rows, `[sites]`. Returns the better of the two models with its
    /// gap, and `false` if it is the last one, `true` if it is the mean one.
    #[must_use]
    pub fn conclude(&mut self, state: &SharedState, sums: &[f64], rows: &[[f64; CHECK_ROW]]) -> (DualityGap, bool) {
        let columns = sums.len() / 4;
        let models = check_models(rows.len(), sums);
        for (at, weights) in state.dual_weights().iter().enumerate() {
            let constant = weights.iter().zip(rows).map(|(weight, row)| weight * row[2 + at]).sum();
            self.bounds.push(Minorant { constant, slope: sums[(2 + at) * columns..][..columns].to_vec() });
        }
        let value = |at: usize| state.set().worst(&rows.iter().map(|row| row[at]).collect::<Vec<_>>()).1;
        let values = [value(0), value(1)];
        let is_mean = values[1] < values[0];
        let model = &models[usize::from(is_mean)];
        let reach = REACH * model.iter().map(|value| value.abs()).fold(self.scale.prediction, f64::max);
        self.bounds.sort_by(|a, b| b.least_near(model, reach).total_cmp(&a.least_near(model, reach)));
        self.bounds.truncate(MOST_BOUNDS);
        // No loss is negative.
        let bound = self.bounds.first().map_or(0.0, |best| best.least_near(model, reach).max(0.0));
        (DualityGap { value: values[usize::from(is_mean)], bound }, is_mean)
    }
}
