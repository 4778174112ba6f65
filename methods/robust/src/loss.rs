//! Losses of linear models, and their robust form.

use serde::Serialize;

use crate::error::RobustError;
use crate::samples::{LinearSamples, Support};

/// A convex loss: of labels 1 and -1 with `m = y <w, x>`, or of targets with `r = <w, x> - y`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// `max(0, 1 - m)`: the support vector machine.
    Hinge,
    /// `1/2 - m` below 0, `(1 - m)^2 / 2` up to 1, then 0.
    SmoothHinge,
    /// `log(1 + exp(-m))`.
    Logistic,
    /// `r^2 / 2` up to `epsilon` in magnitude, then `epsilon (|r| - epsilon / 2)`.
    Huber {
        /// Above 0.
        epsilon: f64,
    },
    /// `max(0, |r| - epsilon)`.
    EpsilonInsensitive {
        /// At least 0.
        epsilon: f64,
    },
    /// `max(-epsilon r, (1 - epsilon) r)`: the quantile `epsilon`.
    Pinball {
        /// Within 0 and 1.
        epsilon: f64,
    },
}

/// A linear piece of a loss: `slope <w, x> + target_slope y + constant`. The loss is the largest of its pieces and 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) slope: f64,
    pub(crate) target_slope: f64,
    pub(crate) constant: f64,
    /// `true` if the piece is that of the other label, which costs `kappa`.
    pub(crate) flipped: bool,
}

impl Loss {
    /// Returns `true` if the loss is one of labels.
    #[must_use]
    pub fn is_classification(&self) -> bool {
        matches!(self, Self::Hinge | Self::SmoothHinge | Self::Logistic)
    }

    /// The name of the loss.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Hinge => "hinge",
            Self::SmoothHinge => "smooth hinge",
            Self::Logistic => "logistic",
            Self::Huber { .. } => "Huber",
            Self::EpsilonInsensitive { .. } => "epsilon-insensitive",
            Self::Pinball { .. } => "pinball",
        }
    }

    /// The loss of a prediction `<w, x>` for a label or target.
    #[must_use]
    pub fn value(&self, prediction: f64, target: f64) -> f64 {
        let margin = target * prediction;
        let residual = prediction - target;
        match *self {
            Self::Hinge => (1.0 - margin).max(0.0),
            Self::SmoothHinge if margin <= 0.0 => 0.5 - margin,
            Self::SmoothHinge => 0.5 * (1.0 - margin).max(0.0).powi(2),
            // This form neither overflows nor loses small values.
            Self::Logistic => (-margin).max(0.0) + (-margin.abs()).exp().ln_1p(),
            Self::Huber { epsilon } if residual.abs() <= epsilon => 0.5 * residual * residual,
            Self::Huber { epsilon } => epsilon * (residual.abs() - 0.5 * epsilon),
            Self::EpsilonInsensitive { epsilon } => (residual.abs() - epsilon).max(0.0),
            Self::Pinball { epsilon } => (-epsilon * residual).max((1.0 - epsilon) * residual),
        }
    }

    /// The pieces of a piecewise linear loss for a sample with this label; `None` for a loss with a smooth part.
    pub(crate) fn pieces(&self, target: f64) -> Option<[Piece; 2]> {
        let piece = |slope: f64, constant| Piece { slope, target_slope: -slope, constant, flipped: false };
        let labelled = |slope, flipped| Piece { slope, target_slope: 0.0, constant: 1.0, flipped };
        match *self {
            Self::Hinge => Some([labelled(-target, false), labelled(target, true)]),
            Self::EpsilonInsensitive { epsilon } => Some([piece(-1.0, -epsilon), piece(1.0, -epsilon)]),
            Self::Pinball { epsilon } => Some([piece(-epsilon, 0.0), piece(1.0 - epsilon, 0.0)]),
            Self::SmoothHinge | Self::Logistic | Self::Huber { .. } => None,
        }
    }

    /// The Lipschitz constant of the loss in the prediction.
    pub(crate) fn steepest(&self) -> f64 {
        match *self {
            Self::Huber { epsilon } => epsilon,
            Self::Pinball { epsilon } => epsilon.max(1.0 - epsilon),
            _ => 1.0,
        }
    }

    fn check(&self) -> Result<(), RobustError> {
        let refused = |value, range| Err(RobustError::Epsilon { value, range });
        match *self {
            Self::Huber { epsilon } if !(epsilon > 0.0 && epsilon.is_finite()) => {
                refused(epsilon, "the Huber loss needs a number above 0")
            }
            Self::EpsilonInsensitive { epsilon } if !(epsilon >= 0.0 && epsilon.is_finite()) => {
                refused(epsilon, "the epsilon-insensitive loss needs a number of at least 0")
            }
            Self::Pinball { epsilon } if !(epsilon > 0.0 && epsilon < 1.0) => {
                refused(epsilon, "the pinball loss needs a number between 0 and 1")
            }
            _ => Ok(()),
        }
    }
}

/// A loss with the powers of its adversary.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RobustLoss {
    /// The loss.
    pub loss: Loss,
    /// The region of the samples.
    pub support: Support,
    /// The cost of changing a label, or of moving a target by 1; infinite where neither is allowed. Moving a column by
    /// 1 costs 1.
    pub kappa: f64,
}

impl RobustLoss {
    /// Checks that the loss has a convex form, for samples with so many movable columns.
    ///
    /// # Errors
    /// The first violation found.
    pub fn check(&self, movable: usize) -> Result<(), RobustError> {
        self.loss.check()?;
        if self.kappa.is_nan() || self.kappa <= 0.0 {
            return Err(RobustError::Kappa(self.kappa));
        }
        if self.support != Support::Unbounded && self.loss.pieces(1.0).is_none() {
            return Err(RobustError::Support { loss: self.loss.name() });
        }
        self.support.check(movable)
    }

    /// Checks that the loss fits these samples: labels, columns, support.
    ///
    /// # Errors
    /// The first violation found.
    pub fn check_samples(&self, samples: &LinearSamples) -> Result<(), RobustError> {
        self.check(samples.movable())?;
        if self.loss.is_classification() {
            samples.check_labels()?;
        }
        Ok(samples.check(&self.support)?)
    }

    /// The mean loss of a model over the samples as they are.
    #[must_use]
    pub fn nominal(&self, model: &[f64], samples: &LinearSamples) -> f64 {
        let losses = samples.rows().map(|(sample, target)| self.loss.value(dot(model, sample), target));
        losses.sum::<f64>() / samples.count() as f64
    }
}

/// The inner product.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
