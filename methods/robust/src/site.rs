//! One site's part: its model, its multipliers, and the subproblem of each iteration.

use crate::cone_program::{Affine, ConeProgram, PreparedProgram};
use crate::epigraph::mean_loss;
use crate::error::RobustError;
use crate::loss::RobustLoss;
use crate::problem::{SiteSamples, check_radius};

/// The state of a site between two iterations.
///
/// Line 11 of Algorithm 1, the update of a client, is, with the squares completed and divided by `c`,
///
/// ```text
///   min  1/2 || wh - (w + psi / c) ||^2  +  1/2 (pi - (z - zeta / c))^2     s.t.  pi >= worst loss of wh
/// ```
///
/// Only the linear costs of this cone program change, so it is laid out once. Where `pi` leaves room for the worst loss
/// of `w + psi / c`, that is the solution, and no program is solved.
pub struct Site {
    robust: RobustLoss,
    site: SiteSamples,
    penalty: f64,
    program: PreparedProgram,
    /// The variables of the program: those of the model; `bound` is that of `pi`.
    columns: Vec<usize>,
    bound: usize,
    model: Vec<f64>,
    /// `psi`.
    multipliers: Vec<f64>,
    worst: f64,
    failures: u32,
    failures_in_a_row: u32,
    last_failure: Option<RobustError>,
}

/// The result of an iteration at a site.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SiteIteration {
    /// `pi`, at least the worst loss of the site's model.
    pub worst: f64,
    /// The largest difference between a coefficient of the site's model and of the consensus model.
    pub apart: f64,
    /// `c` times the largest change of a coefficient of the site's model or of `pi`.
    pub dual: f64,
}

impl Site {
    /// A site that begins with a model, `[columns]`, and `c = penalty`.
    ///
    /// # Errors
    /// The samples do not fit the loss, a number is out of its range, or the program cannot be laid out.
    pub fn new(robust: &RobustLoss, site: SiteSamples, penalty: f64, model: Vec<f64>) -> Result<Self, RobustError> {
        robust.check_samples(&site.samples)?;
        check_radius(site.radius)?;
        if !(penalty > 0.0 && penalty.is_finite()) {
            return Err(RobustError::Penalty(penalty));
        }
        if model.len() != site.samples.columns() {
            return Err(RobustError::Shape("the model has to have a coefficient for each column"));
        }
        let mut program = ConeProgram::default();
        let columns = program.variables(model.len());
        let bound = program.variable();
        columns.iter().chain([&bound]).for_each(|&variable| program.cost(variable, 1.0, 0.0));
        let lam = (site.radius > 0.0).then(|| program.nonnegative_variable());
        let mean = mean_loss(&mut program, &columns, lam, robust, &site.samples);
        let robust_part = lam.map_or_else(Affine::default, |lam| Affine::default().plus(site.radius, lam));
        program.nonnegative(Affine::of(bound).add(-1.0, &robust_part).add(-1.0, &mean));
        Ok(Self {
            robust: robust.clone(),
            penalty,
            program: program.prepare()?,
            columns,
            bound,
            multipliers: vec![0.0; model.len()],
            model,
            worst: 0.0,
            failures: 0,
            failures_in_a_row: 0,
            last_failure: None,
            site,
        })
    }

    /// The site's contribution, whose mean over all sites is the consensus model: `wh - psi / c`, `[columns]`.
    #[must_use]
    pub fn message(&self) -> Vec<f64> {
        self.model.iter().zip(&self.multipliers).map(|(model, psi)| model - psi / self.penalty).collect()
    }

    /// Steps 4 and 5: takes the consensus model, `[columns]`, and this site's entries of `z` and `zeta`. A subproblem
    /// that fails is counted and leaves the site's model and `pi` as they were.
    pub fn advance(&mut self, model: &[f64], z: f64, zeta: f64) -> SiteIteration {
        let c = self.penalty;
        let wanted: Vec<f64> = model.iter().zip(&self.multipliers).map(|(model, psi)| model + psi / c).collect();
        let allowed = z - zeta / c;
        let mut moved = 0.0_f64;
        match self.subproblem(wanted, allowed) {
            Ok((model, worst)) => {
                moved = self.model.iter().zip(&model).map(|(old, new)| (old - new).abs()).fold(0.0, f64::max);
                moved = moved.max((worst - self.worst).abs());
                self.model = model;
                self.worst = worst;
                self.failures_in_a_row = 0;
            }
            Err(failure) => {
                self.failures += 1;
                self.failures_in_a_row += 1;
                self.last_failure = Some(failure);
            }
        }
        let mut apart = 0.0_f64;
        for ((psi, own), all) in self.multipliers.iter_mut().zip(&self.model).zip(model) {
            *psi += c * (all - own);
            apart = apart.max((all - own).abs());
        }
        SiteIteration { worst: self.worst, apart, dual: c * moved }
    }

    fn subproblem(&mut self, wanted: Vec<f64>, allowed: f64) -> Result<(Vec<f64>, f64), RobustError> {
        if self.robust.is_worst_within(allowed, &wanted, &self.site.samples, self.site.radius) {
            return Ok((wanted, allowed));
        }
        let costs = self.columns.iter().zip(&wanted).map(|(&column, value)| (column, -value));
        let solved = self.program.solve_for(costs.chain([(self.bound, -allowed)]))?;
        Ok((self.columns.iter().map(|&column| solved.x[column]).collect(), solved.x[self.bound]))
    }

    /// Resets model and multipliers to zero.
    pub fn begin_anew(&mut self) {
        self.model.fill(0.0);
        self.multipliers.fill(0.0);
        self.worst = 0.0;
        self.failures_in_a_row = 0;
    }

    /// The largest expected loss of a model, `[columns]`, under any distribution within the site's radius.
    ///
    /// # Errors
    /// The linear program of a polyhedral support was not solved.
    pub fn worst_loss(&self, model: &[f64]) -> Result<f64, RobustError> {
        self.robust.worst_loss(model, &self.site.samples, self.site.radius)
    }

    /// The mean loss of a model, `[columns]`, over the samples as they are.
    #[must_use]
    pub fn nominal_loss(&self, model: &[f64]) -> f64 {
        self.robust.nominal(model, &self.site.samples)
    }

    /// The site's own model, `[columns]`.
    #[must_use]
    pub fn model(&self) -> &[f64] {
        &self.model
    }

    /// The number of subproblems that failed so far, the number of the most recent failures in a row, and the last
    /// error.
    #[must_use]
    pub fn failures(&self) -> (u32, u32, Option<&RobustError>) {
        (self.failures, self.failures_in_a_row, self.last_failure.as_ref())
    }
}
