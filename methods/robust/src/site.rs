//! One site's part: its model, its multipliers, and the subproblem of each iteration.

use crate::cone_program::{Affine, ConeProgram, PreparedProgram};
use crate::epigraph::mean_loss;
use crate::error::RobustError;
use crate::exchange::{SiteIteration, SiteTarget};
use crate::loss::{RobustLoss, dot};
use crate::minorant::Minorant;
use crate::penalty::Steering;
use crate::problem::{SiteSamples, check_radius};
use crate::units::Units;

/// Numbers in a site's row of a check, of [`Site::check_row`].
pub const CHECK_ROW: usize = 4;

/// The least multiplier of a worst loss from which a subgradient is computed.
const LEAST_PRICE: f64 = 1e-6;

/// The worst loss of a model that could not be evaluated: so large that no gap is small.
const UNKNOWN: f64 = 1e100;

/// The state of a site between two iterations.
///
/// Line 11 of Algorithm 1, the update of a client, is, with the squares completed and divided by the penalty `c` of the
/// model, and with the penalty `c'` of the loss,
///
/// ```text
///   min  1/2 || wh - (w + psi / c) ||^2  +  c'/(2 c) (pi - (z - zeta / c'))^2     s.t.  pi >= worst loss of wh
/// ```
///
/// Only the linear costs of this cone program change, so it is laid out once for each penalty. Where `pi` leaves room
/// for the worst loss of `w + psi / c`, that is the solution, and no program is solved.
pub struct Site {
    robust: RobustLoss,
    site: SiteSamples,
    steering: Steering,
    program: SiteProgram,
    model: Vec<f64>,
    /// `psi`.
    multipliers: Vec<f64>,
    worst: f64,
    minorant: Minorant,
    /// The sum of minorants since the last [`Site::begin_window`], each times its multiplier.
    window: Minorant,
    /// The sum of those multipliers.
    window_price: f64,
    window_iterations: u64,
    /// The sum of the models since then, `[columns]`.
    window_model: Vec<f64>,
    failures: u32,
    failures_in_a_row: u32,
    last_failure: Option<RobustError>,
}

impl Site {
    /// A site that begins with a model, `[columns]`, and these penalties.
    ///
    /// # Errors
    /// The samples do not fit the loss, a number is out of its range, or the program cannot be laid out.
    pub fn new(
        robust: &RobustLoss,
        site: SiteSamples,
        steering: Steering,
        model: Vec<f64>,
    ) -> Result<Self, RobustError> {
        robust.check_samples(&site.samples)?;
        check_radius(site.radius)?;
        if let Some(&c) = [steering.model, steering.loss].iter().find(|c| !(**c > 0.0 && c.is_finite())) {
            return Err(RobustError::Penalty(c));
        }
        if !(1.0..2.0).contains(&steering.relaxation) {
            return Err(RobustError::Relaxation(steering.relaxation));
        }
        if model.len() != site.samples.columns() {
            return Err(RobustError::Shape("the model has to have a coefficient for each column"));
        }
        let program = SiteProgram::new(robust, &site, steering.loss / steering.model)?;
        Ok(Self {
            robust: robust.clone(),
            steering,
            program,
            multipliers: vec![0.0; model.len()],
            minorant: Minorant::zero(model.len()),
            window: Minorant::zero(model.len()),
            window_price: 0.0,
            window_iterations: 0,
            window_model: vec![0.0; model.len()],
            model,
            worst: 0.0,
            failures: 0,
            failures_in_a_row: 0,
            last_failure: None,
            site,
        })
    }

    /// The penalties of the present iteration.
    #[must_use]
    pub fn steering(&self) -> Steering {
        self.steering
    }

    /// Takes the penalties of the next iteration.
    ///
    /// # Errors
    /// The solver refuses the program.
    pub fn steer(&mut self, steering: Steering) -> Result<(), RobustError> {
        if steering != self.steering {
            self.program = SiteProgram::new(&self.robust, &self.site, steering.loss / steering.model)?;
            self.steering = steering;
        }
        Ok(())
    }

    /// The site's contribution, whose mean over all sites is the consensus model: `wh - psi / c`, `[columns]`.
    #[must_use]
    pub fn message(&self) -> Vec<f64> {
        let c = self.steering.model;
        self.model.iter().zip(&self.multipliers).map(|(model, psi)| model - psi / c).collect()
    }

    /// Steps 4 and 5: takes the consensus model, `[columns]`, and this site's parameters. A subproblem that fails is
    /// counted and leaves the site's model and `pi` as they were.
    pub fn advance(&mut self, model: &[f64], target: SiteTarget) -> SiteIteration {
        let Steering { model: c, loss: c_loss, relaxation } = self.steering;
        let relaxed: Vec<f64> =
            model.iter().zip(&self.model).map(|(all, own)| relaxation * all + (1.0 - relaxation) * own).collect();
        let wanted: Vec<f64> = relaxed.iter().zip(&self.multipliers).map(|(model, psi)| model + psi / c).collect();
        let allowed = target.z - target.zeta / c_loss;
        let mut progress = SiteIteration::default();
        let mut price = None;
        match self.subproblem(wanted, allowed) {
            Ok((model, worst)) => {
                progress.moved = largest(self.model.iter().zip(&model).map(|(old, new)| old - new));
                self.model = model;
                self.worst = worst;
                self.failures_in_a_row = 0;
                price = Some(c_loss * (worst - allowed));
            }
            Err(failure) => {
                self.failures += 1;
                self.failures_in_a_row += 1;
                self.last_failure = Some(failure);
            }
        }
        for ((psi, own), all) in self.multipliers.iter_mut().zip(&self.model).zip(&relaxed) {
            *psi += c * (all - own);
        }
        progress.worst = self.worst;
        progress.apart = largest(self.model.iter().zip(model).map(|(own, all)| all - own));
        progress.size = largest(self.model.iter().chain(model).copied());
        progress.price = largest(self.multipliers.iter().copied());
        if let Some(price) = price {
            self.add_minorant(price);
        }
        progress
    }

    /// Takes the minorant of the worst loss that touches it at the site's model, once a subproblem was solved: `psi` is its
    /// subgradient there, times the multiplier `price` of the bound.
    fn add_minorant(&mut self, price: f64) {
        let constant = price * self.worst - dot(&self.multipliers, &self.model);
        let priced = Minorant { constant, slope: self.multipliers.clone() };
        self.minorant = priced.over(price, LEAST_PRICE);
        self.window_iterations += 1;
        self.window_model.iter_mut().zip(&self.model).for_each(|(sum, value)| *sum += value);
        if price >= LEAST_PRICE {
            self.window_price += price;
            self.window.constant += constant;
            self.window.slope.iter_mut().zip(&self.multipliers).for_each(|(sum, psi)| *sum += psi);
        }
    }

    /// Begins a new window of iterations for the mean minorant.
    pub fn begin_window(&mut self) {
        self.window = Minorant::zero(self.model.len());
        self.window_price = 0.0;
        self.window_iterations = 0;
        self.window_model.fill(0.0);
    }

    /// The mean of the site's models over this window, `[columns]`; before its first iteration the last one.
    #[must_use]
    pub fn mean_model(&self) -> Vec<f64> {
        if self.window_iterations == 0 {
            return self.model.clone();
        }
        self.window_model.iter().map(|sum| sum / self.window_iterations as f64).collect()
    }

    /// This site's row of a check: the worst loss of both models, and the constants of the last and the mean minorant. A
    /// worst loss whose linear program was not solved counts as 1e100, so that no gap is small.
    #[must_use]
    pub fn check_row(&self, models: &[Vec<f64>; 2]) -> [f64; CHECK_ROW] {
        let [last, mean] = models.each_ref().map(|model| self.worst_loss(model).unwrap_or(UNKNOWN));
        [last, mean, self.minorant.constant, self.mean_minorant().constant]
    }

    /// The mean of the minorants of this window, by their multipliers: a minorant too. The sum of `psi` over all sites is
    /// a change of their models, so its mean over a window falls faster than its last value.
    #[must_use]
    pub fn mean_minorant(&self) -> Minorant {
        self.window.over(self.window_price, LEAST_PRICE * self.window_iterations as f64)
    }

    fn subproblem(&mut self, wanted: Vec<f64>, allowed: f64) -> Result<(Vec<f64>, f64), RobustError> {
        if self.robust.is_worst_within(allowed, &wanted, &self.site.samples, self.site.radius) {
            return Ok((wanted, allowed));
        }
        if let Ok(solved) = self.program.solve(&wanted, allowed) {
            return Ok(solved);
        }
        // The solver can stall on a program that it has solved with other costs, and not on a new one.
        let weight = self.steering.loss / self.steering.model;
        self.program = SiteProgram::new(&self.robust, &self.site, weight)?;
        self.program.solve(&wanted, allowed)
    }

    /// The lower bound of the worst loss of any model that the last subproblem gave.
    #[must_use]
    pub fn minorant(&self) -> &Minorant {
        &self.minorant
    }

    /// Resets model and multipliers to zero.
    pub fn begin_anew(&mut self) {
        self.model.fill(0.0);
        self.multipliers.fill(0.0);
        self.worst = 0.0;
        self.minorant = Minorant::zero(self.model.len());
        self.begin_window();
        self.failures_in_a_row = 0;
    }

    /// The largest expected loss of a model, `[columns]`, under any distribution within the site's radius.
    ///
    /// # Errors
    /// The linear program of a polyhedral support was not solved.
    pub fn worst_loss(&self, model: &[f64]) -> Result<f64, RobustError> {
        self.robust.worst_loss(model, &self.site.samples, self.site.radius)
    }

    /// The mean magnitude of the targets; 1 for labels.
    #[must_use]
    pub fn mean_target(&self) -> f64 {
        self.site.samples.mean_target()
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

/// The cone program of a site's subproblem, in the units of the site's targets.
struct SiteProgram {
    program: PreparedProgram,
    units: Units,
    /// The weight of the loss.
    weight: f64,
    /// The variables of the model.
    columns: Vec<usize>,
    /// The variable of `pi`.
    bound: usize,
}

impl SiteProgram {
    /// The program where `c' / c` is this.
    fn new(robust: &RobustLoss, site: &SiteSamples, weight: f64) -> Result<Self, RobustError> {
        let units = Units::of(&robust.loss, &site.samples);
        let weight = weight * (units.loss / units.prediction).powi(2);
        let mut program = ConeProgram::default();
        let columns = program.variables(site.samples.columns());
        let bound = program.variable();
        columns.iter().for_each(|&variable| program.cost(variable, 1.0, 0.0));
        program.cost(bound, weight, 0.0);
        let lam = (site.radius > 0.0).then(|| program.nonnegative_variable());
        let robust = units.scale_loss(robust);
        let mean = mean_loss(&mut program, &columns, lam, &robust, &units.scale_samples(&site.samples));
        let robust_part = lam.map_or_else(Affine::default, |lam| Affine::default().plus(site.radius, lam));
        program.nonnegative(Affine::of(bound).add(-1.0, &robust_part).add(-1.0, &mean));
        Ok(Self { program: program.prepare()?, units, weight, columns, bound })
    }

    /// The model, `[columns]`, and `pi`, for the wanted model and the allowed loss.
    fn solve(&mut self, wanted: &[f64], allowed: f64) -> Result<(Vec<f64>, f64), RobustError> {
        let Units { prediction, loss } = self.units;
        let costs = self.columns.iter().zip(wanted).map(|(&column, value)| (column, -value / prediction));
        let solved = self.program.solve_for(costs.chain([(self.bound, -self.weight * allowed / loss)]))?;
        let model = self.columns.iter().map(|&column| prediction * solved.x[column]).collect();
        Ok((model, loss * solved.x[self.bound]))
    }
}

/// The largest magnitude.
fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.map(f64::abs).fold(0.0, f64::max)
}
