//! Local training: the trait that a user's training implements, and the types of its arguments and results.
//!
//! A peer knows a model as a flat vector of `f32`. In each round it passes its present vector to [`LocalTraining`],
//! which takes some steps on local data that never leave the peer, and mixes the change into the swarm. Users find all
//! of this as `mingle_peer::training`.

mod best;
mod criterion;
mod layout;
mod lent_state;
mod metrics;
pub mod model_file;
mod momentum;
mod personal;
pub mod priority;
mod private;
pub mod thread;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mingle_protocol::record::MAX_HOST_BYTES;

pub use best::{Best, BestFile, BestModel};
pub use criterion::{Criterion, MetricDirection};
pub use layout::{Layout, Tensor};
pub use lent_state::LentState;
pub use metrics::Metrics;
pub use mingle_privacy::{
    CorrelatedNoise, DEFAULT_DELTA, NoiseSource, PrivacySettings, PrivacySpending, SettingsError,
};
pub use mingle_protocol::MomentumStep;
pub use momentum::{MomentumOfPeer, MomentumTaken, TrainingWithMomentum};
pub use personal::{PersonalError, PersonalLayers};
pub use private::PrivateTraining;

/// The error that ends local training: any error, or a sentence.
pub type TrainingError = Box<dyn std::error::Error + Send + Sync>;

/// The local training of one peer. Vectors are flat, `[dimension]`, in the order of the layout.
///
/// While the peer runs, all methods are called on one dedicated thread, one at a time. Before that, the thread that
/// runs the peer calls [`layout`](Self::layout), [`facts`](Self::facts), [`initial`](Self::initial),
/// [`largest_state`](Self::largest_state), [`lent_state`](Self::lent_state), [`privacy`](Self::privacy) and, where it
/// resumes from records, [`restore`](Self::restore).
pub trait LocalTraining: Send {
    /// The tensors of the model, in the order in which the flat vector holds them.
    fn layout(&self) -> &Layout;

    /// The initial vector of this peer, `[dimension]`. Peers may begin with different ones, and agree by mixing. Where
    /// all [begin with the founder](Self::begins_with_the_founder), only the founder's is requested.
    ///
    /// # Errors
    /// There is no initial vector.
    fn initial(&mut self) -> Result<Vec<f32>, TrainingError>;

    /// Returns `true` if all peers begin with the vector of one, the founder: the operator of the swarm, where the plan
    /// names it, or else node 0. Networks with random initial weights need that, as the mean of two different ones is
    /// useless. By default each peer begins with its own. The run of such a training ends with the mean of its last models
    /// ([`ends_with_mean`](mingle_protocol::NodeConfig::ends_with_mean)): its learning rate is not known here.
    fn begins_with_the_founder(&self) -> bool {
        false
    }

    /// Returns `true` if the trainer was absent when a round without steps was last trained, and may come back. The
    /// peer then asks again, and its round lasts until it is trained or a neighbour is ahead.
    fn is_absent(&self) -> bool {
        false
    }

    /// Takes the local steps of a round, beginning at `from`, `[dimension]`.
    ///
    /// # Errors
    /// Training cannot go on: the peer ends, and keeps its state.
    fn train(&mut self, from: &[f32], budget: &Budget) -> Result<Trained, TrainingError>;

    /// As [`train`](Self::train), which it is by default: the call that a peer makes. A training that needs a copy of `from`
    /// while it trains can share it instead, and a large model is then in memory once less.
    ///
    /// # Errors
    /// Those of [`train`](Self::train).
    fn train_shared(&mut self, from: &Arc<[f32]>, budget: &Budget) -> Result<Trained, TrainingError> {
        self.train(from, budget)
    }

    /// Evaluates a model, `[dimension]`, on samples that no peer trains on.
    ///
    /// # Errors
    /// The evaluation failed: the peer ends, and keeps its state.
    fn evaluate(&mut self, parameters: &[f32], patience: &Patience) -> Result<Evaluation, TrainingError>;

    /// As [`evaluate`](Self::evaluate), which it is by default: the call that a peer makes, with a model that can be shared.
    ///
    /// # Errors
    /// Those of [`evaluate`](Self::evaluate).
    fn evaluate_shared(&mut self, parameters: &Arc<[f32]>, patience: &Patience) -> Result<Evaluation, TrainingError> {
        self.evaluate(parameters, patience)
    }

    /// The state that a restarted peer needs to resume as if it had never stopped, such as the position in the data and
    /// the momentum. The record that holds its steps stores it. It is no longer than
    /// [`largest_state`](Self::largest_state).
    fn state(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Most bytes that [`state`](Self::state) returns, for which the records on disk have room: at most
    /// [`most_training_bytes`](mingle_protocol::record::most_training_bytes) of the dimension, which is two more vectors.
    fn largest_state(&self) -> usize {
        MAX_HOST_BYTES
    }

    /// Resumes from the [`state`](Self::state) returned before a restart.
    ///
    /// # Errors
    /// The state is not valid.
    fn restore(&mut self, _state: &[u8]) -> Result<(), TrainingError> {
        Ok(())
    }

    /// The state that members give to one that joins, in place of a beginning without any: by default none. Taken before
    /// the training begins.
    fn lent_state(&self) -> Option<Arc<dyn LentState>> {
        None
    }

    /// The settings by which changes are made private, and the privacy spent: see [`PrivateTraining`]. By default none.
    fn privacy(&self) -> Option<PrivacySpending> {
        None
    }

    /// Facts about this training, reported when it begins.
    fn facts(&self) -> Facts {
        Facts { device: "processor".to_owned(), train_samples: 0, test_samples: 0 }
    }

    /// The encoder of model files for other programs: by default each tensor of the layout under its name. It is taken
    /// once, before the training begins, and called on another thread, so that a trainer that hangs does not keep the
    /// model from being written.
    fn model_encoder(&self) -> ModelEncoder {
        self.layout().clone().encoder()
    }

    /// The encoder of model files for others, such as followers of the swarm: the same, without what stays with this peer.
    fn shared_model_encoder(&self) -> ModelEncoder {
        self.model_encoder()
    }
}

/// Encodes a model, `[dimension]`, as the bytes of a [safetensors] file. The peer adds metadata to its header: the
/// plan, the task, the metrics, and a checksum.
///
/// [safetensors]: https://github.com/huggingface/safetensors
pub type ModelEncoder = Arc<dyn Fn(&[f32]) -> Result<Vec<u8>, TrainingError> + Send + Sync>;

/// The amount of training for a round.
#[derive(Clone, Debug)]
pub struct Budget {
    /// The round of the whole run, from 0; it continues under a later plan.
    pub round: u64,
    /// Local steps of a round in the plan.
    pub local_steps: u32,
    /// Rounds that train from this one on, this one included, by the present plan: the last rounds of a run only mix.
    pub rounds_left: u64,
    /// Factor by which the last change was multiplied when it was added to the model. It is less than 1 if this peer
    /// held less weight than in a settled swarm or the change was clipped, more if a time box cut its steps short, and
    /// 0 if it was not used. A trainer that carries state over, such as momentum, can account for it.
    pub last_factor: f64,
    /// Momentum across rounds, which [`TrainingWithMomentum`] adds to the change.
    pub momentum: MomentumStep,
    /// Noise that members of the plan share, which [`PrivateTraining`] adds to the change.
    pub noise: Option<NoiseOfRound>,
    /// Time limit and stop flag: no step begins once it is over.
    pub patience: Patience,
}

/// Correlated noise in a round of a plan.
#[derive(Clone, Debug)]
pub struct NoiseOfRound {
    /// The round, from 0 in each plan of the swarm's operator: all members count it alike.
    pub round: u64,
    /// The noise of this peer under the plan.
    pub noise: Arc<CorrelatedNoise>,
}

/// The result of a round's training.
#[derive(Clone, Debug, PartialEq)]
pub struct Trained {
    /// The change of the parameters, `[dimension]`.
    pub change: Vec<f32>,
    /// Number of steps taken: 0 if there was nothing to train with.
    pub steps: u32,
    /// Mean loss over these steps, if it is known.
    pub loss: Option<f64>,
}

/// The result of an evaluation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluation {
    /// Means over the samples for which there was time.
    pub metrics: Metrics,
    /// Number of these samples.
    pub samples: usize,
    /// `true` if they are all samples.
    pub is_whole: bool,
}

/// Facts about a training, reported when it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The device that it runs on, as it names itself.
    pub device: String,
    /// Samples that this peer trains on; 0: unknown.
    pub train_samples: usize,
    /// Samples held out to evaluate on; 0: unknown.
    pub test_samples: usize,
}

/// A time limit with a stop flag, for training and evaluation.
#[derive(Clone, Debug, Default)]
pub struct Patience {
    is_interrupted: Arc<AtomicBool>,
    /// The time limit.
    until: Option<Instant>,
    /// Time before which the stop flag does not count.
    at_least_until: Option<Instant>,
}

impl Patience {
    /// Lasts until this flag is set.
    pub fn unless(is_interrupted: Arc<AtomicBool>) -> Self {
        Self { is_interrupted, until: None, at_least_until: None }
    }

    /// Adds a time limit.
    #[must_use]
    pub fn until(self, until: Option<Instant>) -> Self {
        Self { until, ..self }
    }

    /// Adds a time before which the flag does not count.
    #[must_use]
    pub fn at_least_until(self, at_least_until: Option<Instant>) -> Self {
        Self { at_least_until, ..self }
    }

    /// Time left until the limit; `None` if there is no limit.
    pub fn time_left(&self) -> Option<Duration> {
        self.until.map(|until| until.saturating_duration_since(Instant::now()))
    }

    /// Returns `true` once the time is up, or the peer is to stop: then the partial result is wanted.
    pub fn is_over(&self) -> bool {
        self.is_stopped() || self.time_left().is_some_and(|left| left.is_zero())
    }

    /// Returns `true` for the evaluation of the final model: no training follows, and its stop flag has a moment.
    pub fn is_of_the_last_evaluation(&self) -> bool {
        self.at_least_until.is_some()
    }

    /// Returns `true` once the peer is to stop, and no longer waits for an answer that takes time.
    pub fn is_stopped(&self) -> bool {
        let is_before = |instant: Option<Instant>| instant.is_some_and(|instant| Instant::now() < instant);
        self.is_interrupted.load(Ordering::Relaxed) && !is_before(self.at_least_until)
    }

    /// A timer of the local steps of a round, which begins now.
    pub fn steps(&self) -> StepTimer<'_> {
        StepTimer { patience: self, began: Instant::now(), steps: 0 }
    }
}

/// A timer that decides after each local step whether there is time for another one, by the mean time of those before.
#[derive(Debug)]
pub struct StepTimer<'a> {
    patience: &'a Patience,
    began: Instant,
    steps: u32,
}

impl StepTimer<'_> {
    /// Counts a completed step, and returns `true` if another one fits into the time box. The first step is always
    /// taken.
    pub fn has_time_for_another(&mut self) -> bool {
        self.steps = self.steps.saturating_add(1);
        let mean = self.began.elapsed() / self.steps;
        !self.patience.is_over() && self.patience.time_left().is_none_or(|left| left >= mean)
    }
}
