//! The set of weights that the adversary may give to sites.

use serde::Serialize;

use crate::cone_program::{Affine, ConeProgram};
use crate::error::RobustError;

/// Tolerance of the sum of weights, which is 1.
const ROUNDING: f64 = 1e-9;

/// The norm of the distance between weights and the nominal ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WeightNorm {
    /// The sum of magnitudes.
    One,
    /// The Euclidean norm.
    #[default]
    Two,
    /// The largest magnitude.
    Infinity,
}

/// `Q = { q in the simplex : ||q - nominal||_p <= theta }`.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteWeights {
    pub(crate) nominal: Vec<f64>,
    pub(crate) theta: f64,
    pub(crate) norm: WeightNorm,
}

impl SiteWeights {
    /// The set around the nominal weights, `[sites]`, with the largest distance `theta` from them.
    ///
    /// # Errors
    /// The nominal weights are no distribution, or theta is below 0.
    pub fn new(nominal: Vec<f64>, theta: f64, norm: WeightNorm) -> Result<Self, RobustError> {
        let sum: f64 = nominal.iter().sum();
        let is_distribution = nominal.iter().all(|weight| *weight >= 0.0) && (sum - 1.0).abs() <= ROUNDING;
        if !is_distribution {
            return Err(RobustError::Weights { sum });
        }
        if !(theta >= 0.0 && theta.is_finite()) {
            return Err(RobustError::Theta(theta));
        }
        Ok(Self { nominal, theta, norm })
    }

    /// The nominal weights, `[sites]`.
    #[must_use]
    pub fn nominal(&self) -> &[f64] {
        &self.nominal
    }

    /// The largest distance of the worst weights from the nominal ones.
    #[must_use]
    pub fn theta(&self) -> f64 {
        self.theta
    }

    /// `<nominal, t> + theta ||t||_(p*)`, with the dual norm.
    pub(crate) fn value(&self, t: &[f64]) -> f64 {
        let mean: f64 = self.nominal.iter().zip(t).map(|(weight, t)| weight * t).sum();
        let magnitudes = t.iter().map(|t| t.abs());
        let norm = match self.norm {
            WeightNorm::One => magnitudes.fold(0.0, f64::max),
            WeightNorm::Two => t.iter().map(|t| t * t).sum::<f64>().sqrt(),
            WeightNorm::Infinity => magnitudes.sum(),
        };
        mean + self.theta * norm
    }

    /// `theta ||t||_(p*)` as a term to minimise.
    pub(crate) fn dual_norm_term(&self, program: &mut ConeProgram, t: Vec<Affine>) {
        if self.theta == 0.0 {
            return;
        }
        let bound = program.variable();
        program.cost(bound, 0.0, self.theta);
        bound_norm(program, self.norm.dual(), t, &Affine::of(bound));
    }
}

impl WeightNorm {
    /// `p*` with `1/p + 1/p* = 1`.
    #[must_use]
    pub fn dual(self) -> Self {
        match self {
            Self::One => Self::Infinity,
            Self::Two => Self::Two,
            Self::Infinity => Self::One,
        }
    }
}

/// `||expressions||_p <= bound`.
fn bound_norm(program: &mut ConeProgram, norm: WeightNorm, expressions: Vec<Affine>, bound: &Affine) {
    match norm {
        WeightNorm::Infinity => expressions.iter().for_each(|expression| program.within(bound, expression)),
        WeightNorm::Two => program.second_order(bound.clone(), expressions),
        WeightNorm::One => {
            let mut rest = bound.clone();
            for expression in &expressions {
                let magnitude = program.variable();
                program.within(&Affine::of(magnitude), expression);
                rest = rest.plus(-1.0, magnitude);
            }
            program.nonnegative(rest);
        }
    }
}
