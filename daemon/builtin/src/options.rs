//! Options of a training, with the names and units of the command line.

mod gradients;
mod privacy;
mod wait;
mod weight;

use std::num::NonZero;

use mingle_models::{Augmentation, ObjectiveKind};

pub use gradients::GradientOptions;
pub use privacy::PrivacyOptions;
pub use wait::parse_policy;
pub use weight::{WeightChoice, settled_weight};

/// Options of a training. The default is what `mingle run` trains without options.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingOptions {
    /// Source of the samples: digits, idx:DIR, cifar10:DIR, csv:FILE, text or text:FILE.
    pub data: String,
    /// The kind of objective.
    pub task: ObjectiveKind,
    /// The model, such as mlp:hidden=64.
    pub model: String,
    /// The split of the data among the nodes, such as dirichlet:0.3; without one, a peer has all of them.
    pub split: Option<String>,
    /// Weight of a site's changes relative to those of others.
    pub weight: WeightChoice,
    /// Rounds to train.
    pub rounds: u64,
    /// Samples in a gradient step.
    pub batch_size: usize,
    /// Augmentation of training images, such as flip,crop:4, or none.
    pub augment: String,
    /// The optimizer.
    pub optimizer: GradientOptions,
    /// Step size.
    pub learning_rate: f64,
    /// Seed of the initial model, the split and the minibatches.
    pub seed: u64,
    /// The device: cpu, ndarray or wgpu.
    pub device: String,
    /// Rounds from one evaluation to the next.
    pub evaluate_every: u64,
    /// The number of held-out samples by which models are judged, the first of them; all if not given.
    pub evaluate_samples: Option<NonZero<usize>>,
    /// Options of differential privacy.
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
            evaluate_samples: None,
            privacy: PrivacyOptions::default(),
            personal: Vec::new(),
        }
    }
}
