//! The worst expected loss of a site's ball as rows of a cone program: Omega of Proposition 4.2 of \[BWQH\].
//!
//! ```text
//!   worst loss of model w  =  min over lam >= 0   radius lam + mean over samples i of  alpha_i
//!   alpha_i >= sup over (x, y) in the support of  L(<w, x>, y) - lam d((x, y), (x_i, y_i))
//! ```
//!
//! A loss is the largest of its linear pieces `s <w, x> + ...`, and the supremum of a piece over a box separates by
//! column. Moving column `j` gains `(|s w_j| - lam)_+` a unit, as far as the box leaves room from `x_ij`. So two slacks
//! a column, `up_j >= |s| w_j - lam` and `down_j >= -|s| w_j - lam`, serve all samples. The paper has two multipliers
//! for each sample, label and column: here `3 n + N + 2` variables replace `n + 4 n N + N + 2`, with the same optimum.

use crate::cone_program::{Affine, ConeProgram};
use crate::loss::{Loss, Piece, RobustLoss};
use crate::samples::{HalfSpace, LinearSamples, Support};

/// The mean of `alpha` over the samples of a site, with all rows that it needs. Without `lam` samples are not moved:
/// the mean is that of their losses as they are.
pub(crate) fn mean_loss(
    program: &mut ConeProgram,
    model: &[usize],
    lam: Option<usize>,
    robust: &RobustLoss,
    samples: &LinearSamples,
) -> Affine {
    let mut epigraph = Epigraph { program, model, lam, robust, samples, slacks: Vec::new() };
    let share = 1.0 / samples.count() as f64;
    epigraph.bound_the_norm();
    let mut mean = Affine::default();
    for (sample, target) in samples.rows() {
        let loss = epigraph.sample(sample, target);
        mean = mean.add(share, &loss);
    }
    mean
}

struct Epigraph<'a> {
    program: &'a mut ConeProgram,
    model: &'a [usize],
    lam: Option<usize>,
    robust: &'a RobustLoss,
    samples: &'a LinearSamples,
    /// The slacks of each column for moves up and down, by the absolute slope of a piece.
    slacks: Vec<(f64, Vec<[usize; 2]>)>,
}

impl Epigraph<'_> {
    /// Bounds the slopes by the cost of moves. Where the support is unbounded, no piece may be steeper than moving a
    /// sample costs. Targets have no bounds unless in a polyhedron.
    fn bound_the_norm(&mut self) {
        let Some(lam) = self.lam else { return };
        let steepest = self.robust.loss.steepest();
        if self.robust.support == Support::Unbounded {
            for &column in &self.model[..self.samples.movable()] {
                self.program.within(&Affine::of(lam), &Affine::default().plus(steepest, column));
            }
        }
        let is_bounded = matches!(self.robust.support, Support::Polyhedron(_));
        if !self.robust.loss.is_classification() && !is_bounded && self.robust.kappa.is_finite() {
            self.program.nonnegative(Affine::constant(-steepest).plus(self.robust.kappa, lam));
        }
    }

    /// `alpha_i`, or an upper bound of it.
    fn sample(&mut self, sample: &[f64], target: f64) -> Affine {
        match self.robust.loss {
            Loss::Huber { epsilon } => self.huber(sample, target, epsilon),
            Loss::SmoothHinge => self.smooth_hinge(sample, target),
            Loss::Logistic => self.logistic(sample, target),
            Loss::Hinge | Loss::EpsilonInsensitive { .. } | Loss::Pinball { .. } => self.pieces(sample, target),
        }
    }

    fn prediction(&self, factor: f64, sample: &[f64]) -> Affine {
        Affine::default().plus_all(sample.iter().map(|value| factor * value).zip(self.model.iter().copied()))
    }

    /// The cost of changing a label; `None` where it cannot be changed.
    fn flip_cost(&self) -> Option<Affine> {
        let lam = self.lam.filter(|_| self.robust.kappa.is_finite())?;
        Some(Affine::default().plus(self.robust.kappa, lam))
    }

    fn pieces(&mut self, sample: &[f64], target: f64) -> Affine {
        let alpha = self.program.nonnegative_variable();
        for piece in self.robust.loss.pieces(target).into_iter().flatten() {
            let mut room = Affine::of(alpha).add(-1.0, &self.prediction(piece.slope, sample));
            room = room.add(-1.0, &Affine::constant(piece.target_slope * target + piece.constant));
            if piece.flipped {
                let Some(cost) = self.flip_cost() else { continue };
                room = room.add(1.0, &cost);
            }
            if let Some(lam) = self.lam {
                room = room.add(-1.0, &self.gain(lam, &piece, sample, target));
            }
            self.program.nonnegative(room);
        }
        Affine::of(alpha)
    }

    /// The adversary's gain on a piece by moving the sample within the support.
    fn gain(&mut self, lam: usize, piece: &Piece, sample: &[f64], target: f64) -> Affine {
        let robust = self.robust;
        match &robust.support {
            Support::Unbounded => Affine::default(),
            Support::Box { lower, upper } => {
                let slacks = self.slacks(lam, piece.slope.abs());
                let rises = piece.slope > 0.0;
                let columns = sample.iter().zip(slacks);
                Affine::default().plus_all(columns.flat_map(|(value, &[up, down])| {
                    let above = (upper - value).max(0.0);
                    let below = (value - lower).max(0.0);
                    let (at_up, at_down) = if rises { (above, below) } else { (below, above) };
                    [(at_up, up), (at_down, down)]
                }))
            }
            Support::Polyhedron(spaces) => self.multipliers(lam, piece, spaces, sample, target),
        }
    }

    fn slacks(&mut self, lam: usize, steepness: f64) -> &[[usize; 2]] {
        let known = self.slacks.iter().position(|(other, _)| other.to_bits() == steepness.to_bits());
        let place = known.unwrap_or_else(|| {
            let columns = &self.model[..self.samples.movable()];
            let program = &mut *self.program;
            let slacks = columns.iter().map(|&column| {
                [1.0, -1.0].map(|sign| {
                    let slack = program.nonnegative_variable();
                    program.nonnegative(Affine::of(slack).plus(1.0, lam).plus(-sign * steepness, column));
                    slack
                })
            });
            let slacks = slacks.collect();
            self.slacks.push((steepness, slacks));
            self.slacks.len() - 1
        });
        &self.slacks[place].1
    }

    /// The paper's multipliers: a `phi` for each half-space, with gain `<phi, d - C x_i>` and
    /// `||C^T phi - s w||_* <= lam`.
    fn multipliers(&mut self, lam: usize, piece: &Piece, spaces: &[HalfSpace], sample: &[f64], target: f64) -> Affine {
        let phi: Vec<usize> = spaces.iter().map(|_| self.program.nonnegative_variable()).collect();
        for (at, &column) in self.model[..self.samples.movable()].iter().enumerate() {
            let across = spaces.iter().map(|space| space.coefficients[at]).zip(phi.iter().copied());
            let difference = Affine::default().plus_all(across).plus(-piece.slope, column);
            self.program.within(&Affine::of(lam), &difference);
        }
        if !self.robust.loss.is_classification() && self.robust.kappa.is_finite() {
            let across = spaces.iter().map(|space| space.target).zip(phi.iter().copied());
            let difference = Affine::constant(-piece.target_slope).plus_all(across);
            self.program.within(&Affine::default().plus(self.robust.kappa, lam), &difference);
        }
        let slack = |space: &HalfSpace| space.slack(sample, target).max(0.0);
        Affine::default().plus_all(spaces.iter().map(slack).zip(phi))
    }

    /// `min over mu of  mu^2 / 2 + epsilon |r - mu|`.
    fn huber(&mut self, sample: &[f64], target: f64, epsilon: f64) -> Affine {
        let program = &mut *self.program;
        let mu = program.variable();
        let square = program.variable();
        let rest = program.variable();
        program.half_square(square, &Affine::of(mu));
        let residual = self.prediction(1.0, sample).add(1.0, &Affine::constant(-target)).plus(-1.0, mu);
        self.program.within(&Affine::of(rest), &residual);
        Affine::of(square).plus(epsilon, rest)
    }

    /// For both labels: `min over phi of  (phi - m)^2 / 2 + (1 - phi)_+`.
    fn smooth_hinge(&mut self, sample: &[f64], target: f64) -> Affine {
        let alpha = self.program.variable();
        let of_label = [(target, Some(Affine::default())), (-target, self.flip_cost())];
        for (label, cost) in of_label {
            let Some(cost) = cost else { continue };
            let program = &mut *self.program;
            let phi = program.variable();
            let square = program.variable();
            let rest = program.nonnegative_variable();
            program.nonnegative(Affine::constant(-1.0).plus(1.0, phi).plus(1.0, rest));
            let difference = Affine::of(phi).add(-1.0, &self.prediction(label, sample));
            self.program.half_square(square, &difference);
            self.program.nonnegative(Affine::of(alpha).plus(-1.0, square).plus(-1.0, rest).add(1.0, &cost));
        }
        Affine::of(alpha)
    }

    /// `ell >= log(1 + exp(-m))` as `exp(-ell) + exp(-m - ell) <= 1`. The loss of the other label is `ell + m`.
    fn logistic(&mut self, sample: &[f64], target: f64) -> Affine {
        let ell = self.program.variable();
        let margin = self.prediction(target, sample);
        let parts = self.program.variables(2);
        let one = Affine::constant(1.0);
        self.program.nonnegative(one.clone().plus(-1.0, parts[0]).plus(-1.0, parts[1]));
        self.program.exponential(Affine::default().plus(-1.0, ell), one.clone(), Affine::of(parts[0]));
        let both = Affine::default().plus(-1.0, ell).add(-1.0, &margin);
        self.program.exponential(both, one, Affine::of(parts[1]));
        let Some(cost) = self.flip_cost() else { return Affine::of(ell) };
        let alpha = self.program.variable();
        self.program.nonnegative(Affine::of(alpha).plus(-1.0, ell));
        self.program.nonnegative(Affine::of(alpha).plus(-1.0, ell).add(-1.0, &margin).add(1.0, &cost));
        Affine::of(alpha)
    }
}
