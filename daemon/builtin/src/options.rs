//! What somebody says of a training, by the names and in the units of the command line.

mod gradients;
mod privacy;
mod wait;
mod weight;

use mingle_models::{Augmentation, ObjectiveKind};

pub use gradients::GradientOptions;
pub use privacy::PrivacyOptions;
pub use wait::parse_policy;
pub use weight::{WeightChoice, settled_weight};

/// What to train, and how. The default is what `mingle run` trains without options.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingOptions {
    /// Where the samples are from: digits, idx:DIR, cifar10:DIR, csv:FILE, text or text:FILE.
    pub data: String,
    /// What to learn.
    pub task: ObjectiveKind,
    /// The model, such as mlp:hidden=64.
    pub model: String,
    /// How the data are dealt to the nodes, such as dirichlet:0.3; without, a peer has all of them.
    pub split: Option<String>,
    /// How much the changes of a site count beside those of others.
    pub weight: WeightChoice,
    /// Rounds to train.
    pub rounds: u64,
    /// Samples in a gradient step.
    pub batch_size: usize,
    /// How training images are changed, such as flip,crop:4, or none.
    pub augment: String,
    /// What takes the gradient steps.
    pub optimizer: GradientOptions,
    /// Step size.
    pub learning_rate: f64,
    /// Of the initial model, the split and the minibatches.
    pub seed: u64,
    /// Where to compute: cpu, ndarray or wgpu.
    pub device: String,
    /// Rounds from one evaluation to the next.
    pub evaluate_every: u64,
    /// Whether changes are made private.
    pub privacy: PrivacyOptions,
    /// Names of tensors that stay with each peer.
    pub personal: Vec<String>,
}

impl Default for TrainingOptions {
    fn default() -> Self {
        Self {
            data: "digits".to_owned(),
            task: ObjectiveKind::Classification,
            model: "mlp".to_owned(),
            split: None,
            weight: WeightChoice::Equal,
            rounds: 20_000,
            batch_size: 32,
            augment: Augmentation::NONE.to_string(),
            optimizer: GradientOptions::default(),
            learning_rate: 0.1,
            seed: 0,
            device: "cpu".to_owned(),
            evaluate_every: 200,
            privacy: PrivacyOptions::default(),
            personal: Vec::new(),
        }
    }
}
