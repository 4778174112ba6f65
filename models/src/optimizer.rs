//! Stochastic gradient descent with momentum and weight decay, as burn provides it.
//!
//! Per parameter `x` with gradient `g` of the batch's mean loss:
//!
//! ```text
//! g <- g + weight_decay * x
//! v <- momentum * v + g            (v = g at the first step)
//! x <- x - learning_rate * v
//! ```
//!
//! This is PyTorch's `SGD`. burn damps new gradients by a tenth unless told otherwise; here it is
//! told. The velocities `v` stay on their peer: they are saved with its records, and never mixed.

use burn::optim::decay::WeightDecayConfig;
use burn::optim::momentum::MomentumConfig;
use burn::optim::{ModuleOptimizer, SgdConfig};
use serde::{Deserialize, Serialize};

use crate::trainer::TrainError;

/// The settings of stochastic gradient descent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SgdOptions {
    /// The step size; positive.
    pub learning_rate: f64,
    /// The share of the last velocity kept by each step; at least 0, less than 1; 0 is plain SGD.
    pub momentum: f64,
    /// The strength of the pull towards zero; at least 0.
    pub weight_decay: f64,
}

impl Default for SgdOptions {
    fn default() -> Self {
        Self { learning_rate: 0.1, momentum: 0.0, weight_decay: 0.0 }
    }
}

impl SgdOptions {
    /// Whether each value is within the bounds of its field, and the sentence to say if not.
    pub(crate) fn check(&self) -> Result<(), TrainError> {
        let bounded = |option, value: f64, ok: bool, bounds| match ok && value.is_finite() {
            true => Ok(()),
            false => Err(TrainError::Option { option, value, bounds }),
        };
        bounded("learning_rate", self.learning_rate, self.learning_rate > 0.0, "positive")?;
        let momentum_ok = (0.0..1.0).contains(&self.momentum);
        bounded("momentum", self.momentum, momentum_ok, "at least 0 and less than 1")?;
        bounded("weight_decay", self.weight_decay, self.weight_decay >= 0.0, "at least 0")
    }

    /// A fresh optimizer: no velocities yet.
    pub(crate) fn optimizer(&self) -> ModuleOptimizer {
        let momentum =
            (self.momentum > 0.0).then(|| MomentumConfig::new().with_momentum(self.momentum).with_dampening(0.0));
        let decay = (self.weight_decay > 0.0).then(|| WeightDecayConfig::new(self.weight_decay as f32));
        SgdConfig::new().with_momentum(momentum).with_weight_decay(decay).init()
    }
}
