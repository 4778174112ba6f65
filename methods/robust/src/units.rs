//! The units of targets: cone programs are laid out with targets near 1, since the solver's tolerances and tests of
//! infeasibility are not free of scale.

use crate::loss::{Loss, RobustLoss};
use crate::samples::{HalfSpace, LinearSamples, Support};

/// The units of a program of some samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Units {
    /// That of targets, predictions and models: the mean magnitude of the targets; 1 for labels.
    pub(crate) prediction: f64,
    /// That of losses.
    pub(crate) loss: f64,
}

impl Units {
    pub(crate) fn of(loss: &Loss, samples: &LinearSamples) -> Self {
        let mean = samples.mean_target();
        let has_unit = !loss.is_classification() && mean > 0.0 && mean.is_finite();
        let prediction = if has_unit { mean } else { 1.0 };
        let is_quadratic = matches!(loss, Loss::Huber { .. });
        Self { prediction, loss: if is_quadratic { prediction * prediction } else { prediction } }
    }

    /// The loss for a model and targets in these units. Its worst value, times the unit of losses, is that of the model
    /// in the user's units.
    pub(crate) fn scale_loss(self, robust: &RobustLoss) -> RobustLoss {
        let unit = self.prediction;
        let loss = match robust.loss {
            Loss::Huber { epsilon } => Loss::Huber { epsilon: epsilon / unit },
            Loss::EpsilonInsensitive { epsilon } => Loss::EpsilonInsensitive { epsilon: epsilon / unit },
            loss @ (Loss::Hinge | Loss::SmoothHinge | Loss::Logistic | Loss::Pinball { .. }) => loss,
        };
        let support = match &robust.support {
            Support::Polyhedron(spaces) => {
                let scaled = spaces.iter().map(|space| HalfSpace { target: unit * space.target, ..space.clone() });
                Support::Polyhedron(scaled.collect())
            }
            bounded => bounded.clone(),
        };
        // Moving a target by 1 in these units is moving it by `unit`.
        let kappa = if loss.is_classification() { robust.kappa } else { robust.kappa * unit };
        RobustLoss { loss, support, kappa }
    }

    /// The samples with their targets in these units.
    pub(crate) fn scale_samples(self, samples: &LinearSamples) -> LinearSamples {
        samples.with_targets(|target| target / self.prediction)
    }
}
