//! The optimizers, as burn provides them: PyTorch's `SGD` and `AdamW`, by PyTorch's formulas and defaults.
//!
//! Per parameter `x` with gradient `g` of the batch's mean loss, `sgd` does
//!
//! ```text
//! g <- g + weight_decay * x
//! v <- momentum * v + g            (v = g at the first step)
//! x <- x - learning_rate * v
//! ```
//!
//! and `adamw` (Loshchilov and Hutter 2017, arXiv:1711.05101, algorithm 2), in step `t` from 1,
//!
//! ```text
//! x <- x - learning_rate * weight_decay * x
//! m <- 0.9 * m + 0.1 * g           v <- 0.999 * v + 0.001 * g^2           (both 0 before the first step)
//! x <- x - learning_rate * (m / (1 - 0.9^t)) / (sqrt(v / (1 - 0.999^t)) + 1e-8)
//! ```
//!
//! burn's defaults differ: SGD damps new gradients by a tenth, and AdamW has another epsilon and weight decay. They are
//! set explicitly here. Velocities and moments stay on their peer: they are saved with its records, and never mixed.

use std::fmt;
use std::str::FromStr;

use burn::optim::decay::WeightDecayConfig;
use burn::optim::momentum::MomentumConfig;
use burn::optim::{AdamWConfig, ModuleOptimizer, OptimizerRecord, SgdConfig};
use burn::tensor::Bytes;
use serde::{Deserialize, Serialize};

use crate::train_error::TrainError;

/// Decay rate of AdamW's first moment: the first of PyTorch's `betas`.
const BETA1: f32 = 0.9;
/// Added to the root of AdamW's second moment: PyTorch's `eps`.
const EPSILON: f32 = 1e-8;

/// The optimizer that takes the steps, as written by the user: `sgd` or `adamw`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum OptimizerKind {
    /// Stochastic gradient descent, with momentum if `OptimizerOptions::momentum` is above 0.
    #[default]
    Sgd,
    /// Adam with decoupled weight decay.
    AdamW,
}

/// The text names no optimizer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown optimizer {0:?}: write sgd or adamw")]
pub struct UnknownOptimizer(String);

/// The settings of an optimizer.
///
/// ```
/// use mingle_models::{OptimizerKind, OptimizerOptions};
///
/// let adamw = OptimizerOptions { weight_decay: 0.01, ..OptimizerOptions::adamw(0.001) };
/// assert_eq!(adamw.kind, OptimizerKind::AdamW);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OptimizerOptions {
    /// The optimizer.
    pub kind: OptimizerKind,
    /// The step size; positive.
    pub learning_rate: f64,
    /// The share of the last velocity kept by each step of SGD; at least 0, less than 1; 0 is plain SGD. AdamW has none: 0.
    pub momentum: f64,
    /// The share of AdamW's second moment kept by each step, the second of PyTorch's `betas`; at least 0, less than 1. SGD has
    /// none: [`BETA2`](Self::BETA2).
    pub beta2: f64,
    /// The strength of the pull towards zero; at least 0. Part of the gradient with SGD, apart from it with AdamW.
    pub weight_decay: f64,
    /// Gradients whose L2 norm over all parameters is larger are scaled to it before each step; positive.
    pub clip_gradients: Option<f64>,
}

impl Default for OptimizerOptions {
    fn default() -> Self {
        Self::sgd(0.1)
    }
}

impl OptimizerOptions {
    /// PyTorch's decay rate of AdamW's second moment.
    pub const BETA2: f64 = 0.999;

    /// Plain SGD.
    pub const fn sgd(learning_rate: f64) -> Self {
        Self {
            kind: OptimizerKind::Sgd,
            learning_rate,
            momentum: 0.0,
            beta2: Self::BETA2,
            weight_decay: 0.0,
            clip_gradients: None,
        }
    }

    /// AdamW without weight decay.
    pub const fn adamw(learning_rate: f64) -> Self {
        Self { kind: OptimizerKind::AdamW, ..Self::sgd(learning_rate) }
    }

    /// Checks each value against the bounds of its field; the error names the first that is outside.
    pub(crate) fn check(&self) -> Result<(), TrainError> {
        let bounded = |option, value: f64, ok: bool, bounds| match ok && value.is_finite() {
            true => Ok(()),
            false => Err(TrainError::Option { option, value, bounds }),
        };
        bounded("learning_rate", self.learning_rate, self.learning_rate > 0.0, "positive")?;
        let momentum_ok = (0.0..1.0).contains(&self.momentum);
        bounded("momentum", self.momentum, momentum_ok, "at least 0 and less than 1")?;
        let momentum_ok = self.kind == OptimizerKind::Sgd || self.momentum == 0.0;
        bounded("momentum", self.momentum, momentum_ok, "0: AdamW has moments of its own")?;
        bounded("beta2", self.beta2, (0.0..1.0).contains(&self.beta2), "at least 0 and less than 1")?;
        bounded("weight_decay", self.weight_decay, self.weight_decay >= 0.0, "at least 0")?;
        let norm = self.clip_gradients.unwrap_or(1.0);
        bounded("clip_gradients", norm, norm > 0.0, "positive")
    }

    /// A fresh optimizer: no velocities and no moments yet.
    pub(crate) fn optimizer(&self) -> ModuleOptimizer {
        match self.kind {
            OptimizerKind::Sgd => {
                let momentum = (self.momentum > 0.0)
                    .then(|| MomentumConfig::new().with_momentum(self.momentum).with_dampening(0.0));
                let decay = (self.weight_decay > 0.0).then(|| WeightDecayConfig::new(self.weight_decay as f32));
                SgdConfig::new().with_momentum(momentum).with_weight_decay(decay).init()
            }
            OptimizerKind::AdamW => AdamWConfig::new()
                .with_beta_1(BETA1)
                .with_beta_2(self.beta2 as f32)
                .with_epsilon(EPSILON)
                .with_weight_decay(self.weight_decay as f32)
                .init(),
        }
    }

    /// The number of vectors, each as long as the parameters, that the optimizer carries from step to step.
    pub(crate) fn vectors(&self) -> usize {
        match self.kind {
            OptimizerKind::Sgd => usize::from(self.momentum > 0.0),
            OptimizerKind::AdamW => 2,
        }
    }

    /// The state from which [`restored`](Self::restored) makes the optimizer again: a byte that names the kind, then
    /// burn's record. Empty where the optimizer carries nothing.
    pub(crate) fn record(&self, optimizer: &ModuleOptimizer) -> Result<Vec<u8>, String> {
        if self.vectors() == 0 {
            return Ok(Vec::new());
        }
        let record = optimizer.to_record().into_bytes().map_err(|error| error.to_string())?;
        Ok([&[self.tag()], &record[..]].concat())
    }

    /// The optimizer of a record. It begins without velocities and moments if the record has none, or only those of
    /// another optimizer: a peer may go on with another one.
    pub(crate) fn restored(&self, record: &[u8]) -> Result<ModuleOptimizer, String> {
        let optimizer = self.optimizer();
        let Some((tag, record)) = record.split_first() else { return Ok(optimizer) };
        if ![Self::sgd(1.0).tag(), Self::adamw(1.0).tag()].contains(tag) {
            return Err("it is of an optimizer that is not known".to_owned());
        }
        if *tag != self.tag() || self.vectors() == 0 {
            return Ok(optimizer);
        }
        let record = OptimizerRecord::from_bytes(Bytes::from_bytes_vec(record.to_vec()));
        Ok(optimizer.load_record(record.map_err(|error| error.to_string())?))
    }

    fn tag(&self) -> u8 {
        match self.kind {
            OptimizerKind::Sgd => 1,
            OptimizerKind::AdamW => 2,
        }
    }
}

impl OptimizerKind {
    /// The name as the user writes it.
    const fn name(self) -> &'static str {
        match self {
            Self::Sgd => "sgd",
            Self::AdamW => "adamw",
        }
    }
}

impl FromStr for OptimizerKind {
    type Err = UnknownOptimizer;

    fn from_str(text: &str) -> Result<Self, UnknownOptimizer> {
        let kinds = [Self::Sgd, Self::AdamW];
        kinds.into_iter().find(|kind| kind.name() == text).ok_or_else(|| UnknownOptimizer(text.to_owned()))
    }
}

mingle_datasets::text_form!(OptimizerKind, UnknownOptimizer);

impl fmt::Display for OptimizerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
