//! Algorithm 1 of \[BWQH\]: the alternating direction linearised proximal method of multipliers (AD-LPMM).
//!
//! ```text
//!   min  <nominal, t> + theta ||t||_(p*) - gam     s.t.  t = z + gam 1 + eta,   w = wh_s,   z_s = pi_s,   eta >= 0
//! ```
//!
//! `w, z, t` are one group of variables and `eta, gam, wh_s, pi_s` the other. Only `wh_s` and its multipliers are as
//! large as a model, and they stay at their site. The rest is one number a site, and [`SharedState`] updates it from
//! one number `pi_s` of each.
//!
//! By default the step over `z` is exact instead ([`Linearisation::None`](crate::Linearisation::None)), both groups are
//! over-relaxed, and the penalties balance the residuals ([`Penalty`]). The method ends by its [`DualityGap`].

use crate::duality_gap::{DualityGap, GapSearch, check_models, check_terms};
use crate::error::{MOST_FAILURES, RobustError};
use crate::penalty::Penalty;
use crate::problem::RobustProblem;
use crate::shared_state::SharedState;
use crate::site::Site;

/// Iterations between two computations of the duality gap.
pub const GAP_INTERVAL: u64 = 10;

/// The stopping criteria.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LpmmLimits {
    /// The largest duality gap accepted, as a share of the worst loss of the zero model.
    pub tolerance: f64,
    /// The most iterations.
    pub iterations: u64,
}

/// The result of the method.
#[derive(Clone, Debug, PartialEq)]
pub struct LpmmSolution {
    /// The mean model of all sites, `[columns]`: of the last iteration or of the mean over a window, whichever has the
    /// lower objective.
    pub model: Vec<f64>,
    /// `w` of the last iteration, `[columns]`.
    pub consensus: Vec<f64>,
    /// The state that all sites share.
    pub state: SharedState,
    /// The objective of the model, and its lower bound.
    pub gap: DualityGap,
    /// The number of iterations.
    pub iterations: u64,
    /// `true` if the gap is within the tolerance.
    pub converged: bool,
    /// The number of subproblems that failed.
    pub failures: u32,
}

/// Runs the method with all sites in one place.
///
/// # Errors
/// The problem is not valid, or subproblems of a site failed three times in a row.
pub fn solve_by_lpmm(
    problem: &RobustProblem,
    penalty: Penalty,
    limits: LpmmLimits,
) -> Result<LpmmSolution, RobustError> {
    problem.check()?;
    let columns = problem.sites[0].samples.columns();
    let scale = problem.scale()?;
    let mut state = SharedState::new(problem.weights.clone(), penalty, scale);
    let steering = state.steering();
    let new = |site: &crate::SiteSamples| Site::new(&problem.robust, site.clone(), steering, vec![0.0; columns]);
    let mut sites = problem.sites.iter().map(new).collect::<Result<Vec<Site>, _>>()?;
    let mut iterations = 0;
    let mut gap = DualityGap { value: f64::INFINITY, bound: 0.0 };
    let mut model = vec![0.0; columns];
    let mut consensus = vec![0.0; columns];
    let mut search = GapSearch::new(scale);
    while iterations < limits.iterations && gap.gap() > limits.tolerance * scale.loss {
        sites.iter_mut().try_for_each(|site| site.steer(state.steering()))?;
        consensus = mean(&sites.iter().map(Site::message).collect::<Vec<_>>());
        state.begin_iteration();
        let mut progress = Vec::with_capacity(sites.len());
        for (at, site) in sites.iter_mut().enumerate() {
            progress.push(site.advance(&consensus, state.of_site(at)));
            if let (_, MOST_FAILURES.., Some(failure)) = site.failures() {
                return Err(RobustError::Subproblem { site: at, source: Box::new(failure.clone()) });
            }
        }
        state.finish_iteration(&progress);
        iterations += 1;
        if iterations.is_multiple_of(GAP_INTERVAL) || iterations == limits.iterations {
            (model, gap) = check(&mut search, &state, &sites);
            if state.begins_window() {
                sites.iter_mut().for_each(Site::begin_window);
            }
        }
    }
    let converged = gap.gap() <= limits.tolerance * scale.loss;
    let failures = sites.iter().map(|site| site.failures().0).sum();
    Ok(LpmmSolution { model, consensus, state, gap, iterations, converged, failures })
}

/// A check of the gap with all sites in one place: the better model, and its gap.
fn check(search: &mut GapSearch, state: &SharedState, sites: &[Site]) -> (Vec<f64>, DualityGap) {
    let mut sums = Vec::new();
    for (at, site) in sites.iter().enumerate() {
        let terms = check_terms(state, at, site);
        sums.resize(terms.len(), 0.0);
        sums.iter_mut().zip(&terms).for_each(|(sum, term)| *sum += term);
    }
    let models = check_models(sites.len(), &sums);
    let rows: Vec<_> = sites.iter().map(|site| site.check_row(&models)).collect();
    let (gap, is_mean) = search.conclude(state, &sums, &rows);
    let [last, mean] = models;
    (if is_mean { mean } else { last }, gap)
}

fn mean(vectors: &[Vec<f64>]) -> Vec<f64> {
    let mut mean = vec![0.0; vectors[0].len()];
    for vector in vectors {
        mean.iter_mut().zip(vector).for_each(|(sum, value)| *sum += value);
    }
    mean.iter_mut().for_each(|sum| *sum /= vectors.len() as f64);
    mean
}
