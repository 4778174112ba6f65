//! Arguments about the samples that peers train on, shared by `run`, `demo` and `simulate`.

use clap::Args;
use mingle_builtin::options::{TrainingOptions, WeightChoice};
use mingle_models::ObjectiveKind;

/// The data, the objective, and how many samples count at a time and in all.
#[derive(Args, Clone, Debug)]
pub(crate) struct SamplesArgs {
    /// digits, idx:DIR (MNIST, Fashion-MNIST), cifar10:DIR, csv:FILE, text or text:FILE
    #[arg(long, default_value = "digits")]
    pub(crate) data: String,
    /// The objective: classification, or regression, where the label of csv:FILE is a number to predict
    #[arg(long, default_value_t = ObjectiveKind::Classification, value_name = "TASK")]
    pub(crate) task: ObjectiveKind,
    /// Weight of a site's changes relative to those of others: equal, samples (in proportion to its training samples),
    /// or samples:N, where a site of N samples counts as with equal; all peers must agree [samples: N is the mean, where the
    /// sites are known]
    #[arg(long, default_value_t = WeightChoice::Equal, value_name = "WEIGHT")]
    pub(crate) weight: WeightChoice,
    /// Samples in a gradient step
    #[arg(long, default_value_t = 32)]
    pub(crate) batch_size: usize,
}

impl SamplesArgs {
    /// The names of these options.
    pub(crate) const NAMES: [&str; 4] = ["data", "task", "weight", "batch_size"];
}

impl From<SamplesArgs> for TrainingOptions {
    fn from(SamplesArgs { data, task, weight, batch_size }: SamplesArgs) -> Self {
        Self { data, task, weight, batch_size, ..Self::default() }
    }
}
