//! Algorithm 1 of \[BWQH\]: the alternating direction linearised proximal method of multipliers (AD-LPMM).
//!
//! ```text
//!   min  <nominal, t> + theta ||t||_(p*) - gam     s.t.  t = z + gam 1 + eta,   w = wh_s,   z_s = pi_s,   eta >= 0
//! ```
//!
//! `w, z, t` are one group of variables and `eta, gam, wh_s, pi_s` the other. Only `wh_s` and its multipliers are as
//! large as a model, and they stay at their site. The rest is one number a site, and [`SharedState`] updates it from
//! one number `pi_s` of each.

use serde::Serialize;

use crate::error::{MOST_FAILURES, RobustError};
use crate::problem::RobustProblem;
use crate::projection::project_on_ball;
use crate::site::Site;
use crate::weights::SiteWeights;

/// The penalty of the constraints, and the linearisation of the coupled ones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Penalty {
    /// `c`, above 0. For losses of the size of a hinge 0.1 is good; 1 is stiff.
    pub c: f64,
    /// The constants of the proximal terms.
    pub linearisation: Linearisation,
}

impl Default for Penalty {
    fn default() -> Self {
        Self { c: 0.1, linearisation: Linearisation::Least }
    }
}

/// The constants `c1` and `c2` of the proximal terms, at least `c` times the largest eigenvalue of `A^T A` for either group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Linearisation {
    /// The least constants allowed: `2 c` and `(S + 1) c`.
    #[default]
    Least,
    /// The constants of the paper: `2 S c` for both, slower with more sites.
    Paper,
}

/// The stopping criteria.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LpmmLimits {
    /// The largest primal and dual residual accepted, and ten times the largest relative change of the value.
    pub tolerance: f64,
    /// The most iterations.
    pub iterations: u64,
}

/// The violation of the constraints, and the changes in the last iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Residuals {
    /// The largest violation of a constraint: `w - wh_s`, `t - z - gam 1 - eta`, `pi - z`.
    pub primal: f64,
    /// The largest change of a variable in the last iteration, times its penalty.
    pub dual: f64,
    /// The change of the value in the last iteration, relative to it where it is larger than 1.
    pub value: f64,
}

impl Residuals {
    /// Returns `true` if all of them are small enough.
    #[must_use]
    pub fn are_within(&self, tolerance: f64) -> bool {
        self.primal <= tolerance && self.dual <= tolerance && self.value <= 0.1 * tolerance
    }
}

/// The state that all sites compute alike, `[sites]` each: a pure function of the previous state and one number of each
/// site. It uses `+ - * / sqrt` and comparisons alone, and sums in ascending order of sites, so it is the same
/// everywhere to the bit.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedState {
    weights: SiteWeights,
    penalty: Penalty,
    z: Vec<f64>,
    t: Vec<f64>,
    eta: Vec<f64>,
    gam: f64,
    /// Multipliers of `t = z + gam 1 + eta`.
    sigma: Vec<f64>,
    /// Multipliers of `pi = z`.
    zeta: Vec<f64>,
    pi: Vec<f64>,
    value: f64,
    residuals: Residuals,
    /// The change of the linearised part in this iteration.
    moved: f64,
}

impl SharedState {
    /// A state with all variables zero.
    #[must_use]
    pub fn new(weights: SiteWeights, penalty: Penalty) -> Self {
        let zeros = vec![0.0; weights.nominal.len()];
        let infinite = Residuals { primal: f64::INFINITY, dual: f64::INFINITY, value: f64::INFINITY };
        Self {
            weights,
            penalty,
            z: zeros.clone(),
            t: zeros.clone(),
            eta: zeros.clone(),
            gam: 0.0,
            sigma: zeros.clone(),
            zeta: zeros.clone(),
            pi: zeros,
            value: 0.0,
            residuals: infinite,
            moved: 0.0,
        }
    }

    fn constants(&self) -> (f64, f64) {
        let c = self.penalty.c;
        let sites = self.z.len() as f64;
        match self.penalty.linearisation {
            Linearisation::Least => (2.0 * c, (sites + 1.0) * c),
            Linearisation::Paper => (2.0 * sites * c, 2.0 * sites * c),
        }
    }

    /// `t - z - gam 1 - eta`.
    fn gap(&self) -> Vec<f64> {
        let terms = self.t.iter().zip(&self.z).zip(&self.eta);
        terms.map(|((t, z), eta)| t - z - self.gam - eta).collect()
    }

    /// Steps 2 and 3, before the sites solve their subproblems.
    pub fn begin_iteration(&mut self) {
        let c = self.penalty.c;
        let (c1, c2) = self.constants();
        let gap = self.gap();
        let theta = self.weights.theta;
        let mut moved = 0.0_f64;
        let mut z = Vec::with_capacity(gap.len());
        let mut u = Vec::with_capacity(gap.len());
        for (site, gap) in gap.iter().enumerate() {
            let pull = self.sigma[site] + c * gap;
            z.push((c * self.pi[site] + c1 * self.z[site] + self.zeta[site] + pull) / (c + c1));
            u.push(self.t[site] - (self.weights.nominal[site] + pull) / c1);
        }
        // Subtracts the projection: the proximal operator of theta / c1 times the dual norm. With theta = 0 the ball is
        // a point, and t = u.
        let near = project_on_ball(self.weights.norm, &u, theta / c1);
        let t: Vec<f64> = u.iter().zip(&near).map(|(u, near)| u - near).collect();
        for (old, new) in self.z.iter().zip(&z).chain(self.t.iter().zip(&t)) {
            moved = moved.max(c1 * (old - new).abs());
        }
        self.z = z;
        self.t = t;
        let gap = self.gap();
        let mut multipliers = 0.0;
        let mut gaps = 0.0;
        for (site, gap) in gap.iter().enumerate() {
            let eta = (self.eta[site] + (self.sigma[site] + c * gap) / c2).max(0.0);
            moved = moved.max(c2 * (eta - self.eta[site]).abs());
            self.eta[site] = eta;
            multipliers += self.sigma[site];
            gaps += gap;
        }
        let change = (1.0 + multipliers + c * gaps) / c2;
        self.gam += change;
        self.moved = moved.max(c2 * change.abs());
    }

    /// The update of the multipliers, lines 13 to 18, from `pi` of all sites, and the largest `apart` and `dual` of any
    /// site.
    pub fn finish_iteration(&mut self, pi: &[f64], apart: f64, dual: f64) {
        let c = self.penalty.c;
        let mut primal = apart;
        let gap = self.gap();
        for (sigma, gap) in self.sigma.iter_mut().zip(&gap) {
            *sigma += c * gap;
            primal = primal.max(gap.abs());
        }
        for ((zeta, pi), z) in self.zeta.iter_mut().zip(pi).zip(&self.z) {
            *zeta += c * (pi - z);
            primal = primal.max((pi - z).abs());
        }
        self.pi.copy_from_slice(pi);
        let value = self.weights.value(&self.t) - self.gam;
        let change = (value - self.value).abs() / value.abs().max(1.0);
        self.value = value;
        self.residuals = Residuals { primal, dual: dual.max(self.moved), value: change };
    }

    /// `z` and `zeta` of a site, the parameters of its subproblem.
    #[must_use]
    pub fn of_site(&self, site: usize) -> (f64, f64) {
        (self.z[site], self.zeta[site])
    }

    /// The objective at the split variables.
    #[must_use]
    pub fn value(&self) -> f64 {
        self.value
    }

    /// The residuals after the last iteration.
    #[must_use]
    pub fn residuals(&self) -> Residuals {
        self.residuals
    }

    /// The worst-case weights, `[sites]`: `zeta` and `-sigma`, which are the same at the solution.
    #[must_use]
    pub fn weights(&self) -> (&[f64], Vec<f64>) {
        (&self.zeta, self.sigma.iter().map(|sigma| -sigma).collect())
    }

    /// The worst loss of each site, `[sites]`, at the split variables.
    #[must_use]
    pub fn worst_losses(&self) -> &[f64] {
        &self.z
    }

    /// Every number of the state, in a fixed order, for a hash.
    pub fn numbers(&self) -> impl Iterator<Item = f64> {
        let vectors = [&self.z, &self.t, &self.eta, &self.sigma, &self.zeta, &self.pi];
        vectors.into_iter().flatten().copied().chain([self.gam, self.value])
    }
}

/// The result of the method.
#[derive(Clone, Debug, PartialEq)]
pub struct LpmmSolution {
    /// The mean model of all sites, `[columns]`.
    pub model: Vec<f64>,
    /// The state that all sites share.
    pub state: SharedState,
    /// The number of iterations.
    pub iterations: u64,
    /// `true` if the residuals are within the tolerance.
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
    let new = |site: &crate::SiteSamples| Site::new(&problem.robust, site.clone(), penalty.c, vec![0.0; columns]);
    let mut sites = problem.sites.iter().map(new).collect::<Result<Vec<Site>, _>>()?;
    let mut state = SharedState::new(problem.weights.clone(), penalty);
    let mut iterations = 0;
    let mut model = vec![0.0; columns];
    while iterations < limits.iterations && !state.residuals.are_within(limits.tolerance) {
        model = mean(&sites.iter().map(Site::message).collect::<Vec<_>>());
        state.begin_iteration();
        let mut pi = Vec::with_capacity(sites.len());
        let mut apart = 0.0_f64;
        let mut dual = 0.0_f64;
        for (at, site) in sites.iter_mut().enumerate() {
            let (z, zeta) = state.of_site(at);
            let progress = site.advance(&model, z, zeta);
            if let (_, MOST_FAILURES.., Some(failure)) = site.failures() {
                return Err(RobustError::Subproblem { site: at, source: Box::new(failure.clone()) });
            }
            pi.push(progress.worst);
            apart = apart.max(progress.apart);
            dual = dual.max(progress.dual);
        }
        state.finish_iteration(&pi, apart, dual);
        iterations += 1;
    }
    let converged = state.residuals.are_within(limits.tolerance);
    let failures = sites.iter().map(|site| site.failures().0).sum();
    Ok(LpmmSolution { model, state, iterations, converged, failures })
}

fn mean(vectors: &[Vec<f64>]) -> Vec<f64> {
    let mut mean = vec![0.0; vectors[0].len()];
    for vector in vectors {
        mean.iter_mut().zip(vector).for_each(|(sum, value)| *sum += value);
    }
    mean.iter_mut().for_each(|sum| *sum /= vectors.len() as f64);
    mean
}
