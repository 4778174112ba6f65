//! The problem file of recommenders: their data, and how they learn.

use mingle_recommend::{ClientOptions, Filtering, Form, Kernel, LossKind, Personalization};
use serde::{Deserialize, Serialize};

use crate::ProblemFileError;
use crate::file::RoundFile;

/// The share of the mean that clients take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum AggregationMethod {
    /// More, the more similar a client's graph is to the reference.
    #[default]
    Lpsfed,
    /// The whole mean.
    Fedavg,
    /// The same share at all clients.
    Uniform,
    /// Nothing.
    Alone,
}

/// A recommendation file; absent keys have their defaults.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RecommendationFile {
    /// `recommendation`.
    pub(super) kind: String,
    /// The interactions: with `{node}` in it, each node's own file; else one file, or `planted:`..., that is dealt out
    /// by co-clustering.
    pub(super) data: String,
    /// The form in which interactions are written.
    pub(super) form: Form,
    /// For one file that is dealt out: `true` if the parts have to have about equally many interactions.
    pub(super) balanced: bool,
    /// The share of the mean that clients take.
    pub(super) method: AggregationMethod,
    /// Rounds of training and averaging.
    pub(super) rounds: u64,
    /// Local epochs in a round.
    pub(super) epochs: u32,
    /// Rounds at the beginning in which nothing is aggregated.
    pub(super) frozen_rounds: u64,
    /// Rounds in a row without a better model after which all stop.
    pub(super) patience: Option<u64>,
    /// With `uniform`: the share of the mean that every client takes.
    pub(super) share: f64,
    /// With `lpsfed`: the least share that a client takes.
    pub(super) floor: f64,
    /// The loss of training.
    pub(super) loss: LossKind,
    /// The filter of embeddings.
    pub(super) filter: Filtering,
    /// The kernel by which graphs are compared with the reference.
    pub(super) kernel: Kernel,
    /// Eigenvectors of the low-pass filter, phi in the paper.
    pub(super) frequencies: usize,
    /// The learning rate of RMSProp.
    pub(super) learning_rate: f64,
    /// Positives in a step.
    pub(super) batch_size: usize,
    /// Negatives for each positive: items without an interaction with its user.
    pub(super) negatives: usize,
    /// The temperature of the contrastive loss, tau in the paper.
    pub(super) temperature: f64,
    /// The share of all clients' mean margin in the margin of a positive.
    pub(super) omega: f64,
    /// The largest share of the popularity angle in the margin.
    pub(super) gamma: f64,
    /// `true` if the contrastive loss takes scores less their mean over a positive and its negatives.
    pub(super) centred: bool,
    /// The most users on which a round is evaluated.
    pub(super) evaluation_users: usize,
    /// The seed of the split, the initial models, batches and negatives.
    pub(super) seed: u64,
    /// The device of this peer: `cpu`, or `wgpu`.
    pub(super) device: String,
    /// The folder in which spectra are cached, relative to that of the file.
    pub(super) cache: Option<String>,
}

impl Default for RecommendationFile {
    fn default() -> Self {
        let client = ClientOptions::default();
        Self {
            kind: Self::KIND.to_owned(),
            data: String::new(),
            form: Form::Auto,
            balanced: false,
            method: AggregationMethod::default(),
            rounds: 40,
            epochs: 5,
            frozen_rounds: 2,
            patience: None,
            share: 0.5,
            floor: 0.0,
            loss: client.loss,
            filter: client.filter,
            kernel: client.kernel,
            frequencies: client.frequencies,
            learning_rate: client.learning_rate,
            batch_size: client.batch_size,
            negatives: client.negatives,
            temperature: client.temperature,
            omega: client.omega,
            gamma: client.gamma,
            centred: client.centred,
            evaluation_users: client.evaluation_users,
            seed: client.seed,
            device: "cpu".to_owned(),
            cache: None,
        }
    }
}

impl RecommendationFile {
    /// The entries that all clients have to agree on: all but the source of this one's data and its device.
    pub(super) fn shared(&self) -> Self {
        Self { data: String::new(), form: Form::Auto, device: String::new(), cache: None, ..self.clone() }
    }

    pub(super) fn check(&self) -> Result<(), ProblemFileError> {
        let wrong = |message: &str| Err(ProblemFileError::Value(message.to_owned()));
        if self.data.is_empty() {
            return wrong(
                "a recommendation needs data: data = \"FILE\", or \"shops/{node}.csv\" with a file for each node",
            );
        }
        if self.epochs == 0 || self.epochs > 10_000 {
            return wrong("epochs: a round has 1 to 10000 of them");
        }
        let shares = [("share", self.share), ("floor", self.floor)];
        match shares.into_iter().find(|(_, value)| !(0.0..=1.0).contains(value)) {
            Some((name, value)) => wrong(&format!("{name} = {value}: 0 to 1")),
            None => Ok(()),
        }
    }

    /// The options by which a client learns.
    pub(super) fn client(&self) -> ClientOptions {
        ClientOptions {
            frequencies: self.frequencies,
            learning_rate: self.learning_rate,
            batch_size: self.batch_size,
            negatives: self.negatives,
            temperature: self.temperature,
            omega: self.omega,
            gamma: self.gamma,
            centred: self.centred,
            loss: self.loss,
            filter: self.filter,
            kernel: self.kernel,
            evaluation_users: self.evaluation_users,
            seed: self.seed,
            ..ClientOptions::default()
        }
    }

    pub(super) fn personalization(&self) -> Personalization {
        match self.method {
            AggregationMethod::Lpsfed => Personalization::Similarity { floor: self.floor },
            AggregationMethod::Fedavg => Personalization::None,
            AggregationMethod::Uniform => Personalization::Uniform { share: self.share },
            AggregationMethod::Alone => Personalization::Alone,
        }
    }

    /// Describes the task in one line.
    pub(super) fn describe(&self) -> String {
        let method = match self.method {
            AggregationMethod::Lpsfed => "LPSFed, each as far as its graph is similar".to_owned(),
            AggregationMethod::Fedavg => "FedAvg".to_owned(),
            AggregationMethod::Uniform => format!("each takes {} of the mean", self.share),
            AggregationMethod::Alone => "each alone".to_owned(),
        };
        let loss = match self.loss {
            LossKind::Contrastive => "bias-aware contrastive loss",
            LossKind::Bpr => "BPR loss",
        };
        format!(
            "recommenders: {method}; {loss}, {} frequencies, {} rounds of {} epochs",
            self.frequencies, self.rounds, self.epochs
        )
    }
}
