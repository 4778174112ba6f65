//! The file that says what recommenders learn from, and how.

use mingle_recommend::{ClientOptions, Filtering, Form, Kernel, LossKind, Personalization};
use serde::{Deserialize, Serialize};

use crate::ProblemFileError;
use crate::file::RoundFile;

/// How far clients go along with the mean of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// As far as their graphs are similar to the reference.
    #[default]
    Lpsfed,
    /// All the way.
    Fedavg,
    /// By the same share everywhere.
    Uniform,
    /// Not at all.
    Alone,
}

/// A recommendation file; what stands in no line has its default.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecommendationFile {
    /// `recommendation`.
    pub kind: String,
    /// The interactions: with `{node}` in it, each node's own file; else one file, or `planted:`..., that is dealt out by co-clustering.
    pub data: String,
    /// How interactions are written down.
    pub form: Form,
    /// Of one file: whether the parts that it is dealt to have to have about as many interactions each.
    pub balanced: bool,
    /// How far clients go along with the mean of all.
    pub method: Method,
    /// Rounds of training and averaging.
    pub rounds: u64,
    /// Local epochs of a round.
    pub epochs: u32,
    /// Rounds at the beginning in which nothing is aggregated.
    pub frozen_rounds: u64,
    /// Rounds in a row without a better model after which all stop.
    pub patience: Option<u64>,
    /// With `uniform`: the share of the mean that every client takes.
    pub share: f64,
    /// With `lpsfed`: the least share that a client takes.
    pub floor: f64,
    /// What training makes small.
    pub loss: LossKind,
    /// What embeddings go through.
    pub filter: Filtering,
    /// What graphs are compared by.
    pub kernel: Kernel,
    /// Eigenvectors of the low-pass filter, phi in the paper.
    pub frequencies: usize,
    /// Of RMSProp.
    pub learning_rate: f64,
    /// Positives in a step.
    pub batch_size: usize,
    /// Items that a user has nothing to do with, for each positive.
    pub negatives: usize,
    /// Of the contrastive loss, tau in the paper.
    pub temperature: f64,
    /// Share of the margin of all in the margin of a positive.
    pub omega: f64,
    /// Largest share of the angle of popularity in the margin.
    pub gamma: f64,
    /// Whether the contrastive loss sees scores less their mean over a positive and its negatives.
    pub centred: bool,
    /// Users that a round is judged on, at most.
    pub evaluation_users: usize,
    /// Of the split, of the models to begin with, and of what is drawn.
    pub seed: u64,
    /// What this peer computes on: `cpu`, or `wgpu`.
    pub device: String,
    /// Where spectra are kept.
    pub cache: Option<String>,
}

impl Default for RecommendationFile {
    fn default() -> Self {
        let client = ClientOptions::default();
        Self {
            kind: Self::KIND.to_owned(),
            data: String::new(),
            form: Form::Auto,
            balanced: false,
            method: Method::default(),
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
    /// What all clients have to agree on: all but where this one's files are and what it computes on.
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

    /// How a client learns.
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
            Method::Lpsfed => Personalization::Similarity { floor: self.floor },
            Method::Fedavg => Personalization::None,
            Method::Uniform => Personalization::Uniform { share: self.share },
            Method::Alone => Personalization::Alone,
        }
    }

    /// In a line.
    pub(super) fn describe(&self) -> String {
        let method = match self.method {
            Method::Lpsfed => "LPSFed, each as far as its graph is similar".to_owned(),
            Method::Fedavg => "FedAvg".to_owned(),
            Method::Uniform => format!("each takes {} of the mean", self.share),
            Method::Alone => "each alone".to_owned(),
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
