//! Options of the optimizer, for `run`, `join`, `demo` and `simulate`.

use clap::Args;
use mingle_builtin::options::GradientOptions;
use mingle_models::{Decay, OptimizerKind, OptimizerOptions};

/// Default learning rate of AdamW: that of PyTorch.
pub(crate) const ADAMW_LEARNING_RATE: &str = "0.001";

/// The optimizer of the gradient steps, with its settings.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct OptimizerArgs {
    /// The optimizer of the gradient steps: sgd or adamw
    #[arg(long, default_value_t = OptimizerKind::Sgd, value_name = "OPTIMIZER")]
    pub(crate) optimizer: OptimizerKind,
    /// Momentum of SGD; it stays on the peer
    #[arg(long, default_value_t = 0.0)]
    pub(crate) momentum: f64,
    /// Decay rate of the second moment of AdamW [default: 0.999]
    #[arg(long, default_value_t = OptimizerOptions::BETA2, hide_default_value = true)]
    pub(crate) beta2: f64,
    /// Weight decay: L2 regularisation with sgd, decoupled with adamw
    #[arg(long, default_value_t = 0.0)]
    pub(crate) weight_decay: f64,
    /// Decay of the learning rate from round to round: constant, cosine, cosine:FLOOR or step:EVERY,FACTOR
    #[arg(long, default_value_t = Decay::Constant, value_name = "SCHEDULE")]
    pub(crate) schedule: Decay,
    /// Rounds at the beginning in which the learning rate rises linearly
    #[arg(long, default_value_t = 0, value_name = "ROUNDS")]
    pub(crate) warmup: u64,
    /// Scale larger gradients to this L2 norm over all parameters before each step
    #[arg(long, value_name = "NORM")]
    pub(crate) clip_gradients: Option<f64>,
}

impl OptimizerArgs {
    /// The names of these options.
    pub(crate) const NAMES: [&str; 7] =
        ["optimizer", "momentum", "beta2", "weight_decay", "schedule", "warmup", "clip_gradients"];
}

impl From<OptimizerArgs> for GradientOptions {
    fn from(arguments: OptimizerArgs) -> Self {
        let OptimizerArgs { optimizer, momentum, beta2, weight_decay, schedule, warmup, clip_gradients } = arguments;
        Self { optimizer, momentum, beta2, weight_decay, schedule, warmup, clip_gradients }
    }
}
