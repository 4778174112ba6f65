//! The options of a client's training.

use serde::{Deserialize, Serialize};

use crate::error::RecommendError;
use crate::similarity::Kernel;

/// The loss that trains the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LossKind {
    /// The bias-aware contrastive loss.
    #[default]
    Contrastive,
    /// Bayesian personalised ranking.
    Bpr,
}

/// The filter of the embeddings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Filtering {
    /// The low frequencies of the graph, with learned kernels.
    #[default]
    LowPass,
    /// No filter.
    None,
}

/// The options of a client's training; all clients have the same.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientOptions {
    /// The length of an embedding.
    pub width: usize,
    /// Hidden units of both networks.
    pub hidden: usize,
    /// Filter layers.
    pub layers: usize,
    /// The number of frequencies that pass, `Phi`.
    pub frequencies: usize,
    /// The step size of RMSProp.
    pub learning_rate: f64,
    /// The number of positives in a step.
    pub batch_size: usize,
    /// The number of negatives for each positive.
    pub negatives: usize,
    /// The temperature `tau` of the contrastive losses.
    pub temperature: f64,
    /// The share of the margin of all in a margin.
    pub omega: f64,
    /// The share of the popularity angle in a margin.
    pub gamma: f64,
    /// `true` if scores enter the loss less their mean over a positive and its negatives. A margin holds back positives
    /// and not negatives; without centring all scores fall together until none of them has a slope.
    pub centred: bool,
    /// The loss.
    pub loss: LossKind,
    /// The filter.
    pub filter: Filtering,
    /// The graph whose frequencies are compared with the reference.
    pub kernel: Kernel,
    /// The most users on which a model is evaluated.
    pub evaluation_users: usize,
    /// The seed of the split, the first shared weights, batches and negatives.
    pub seed: u64,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            width: 64,
            hidden: 64,
            layers: 2,
            frequencies: 128,
            learning_rate: 5e-4,
            batch_size: 4096,
            negatives: 4,
            temperature: 0.1,
            omega: 0.25,
            gamma: 0.1,
            centred: true,
            loss: LossKind::Contrastive,
            filter: Filtering::LowPass,
            kernel: Kernel::Paper,
            evaluation_users: 1000,
            seed: 0,
        }
    }
}

impl ClientOptions {
    pub(super) fn check(&self) -> Result<(), RecommendError> {
        let counts = [
            ("width", self.width, 4096),
            ("hidden", self.hidden, 4096),
            ("layers", self.layers, 16),
            ("frequencies", self.frequencies, 1 << 16),
            ("batch size", self.batch_size, 1 << 20),
            ("negatives", self.negatives, 1 << 10),
            ("evaluation users", self.evaluation_users, usize::MAX),
        ];
        if let Some((option, value, _)) = counts.into_iter().find(|(_, value, most)| *value == 0 || value > most) {
            return Err(RecommendError::Option {
                option,
                value: value as f64,
                bounds: "at least 1, and not absurdly many",
            });
        }
        let positive = [("learning rate", self.learning_rate), ("temperature", self.temperature)];
        if let Some((option, value)) = positive.into_iter().find(|(_, value)| !(*value > 0.0 && value.is_finite())) {
            return Err(RecommendError::Option { option, value, bounds: "larger than 0" });
        }
        let shares = [("omega", self.omega), ("gamma", self.gamma)];
        match shares.into_iter().find(|(_, value)| !(0.0..=1.0).contains(value)) {
            Some((option, value)) => Err(RecommendError::Option { option, value, bounds: "0 to 1" }),
            None => Ok(()),
        }
    }
}
