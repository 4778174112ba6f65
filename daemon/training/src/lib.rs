//! What a peer trains: the trait that a user's own training implements, and what it is told in.
//!
//! A peer knows a model as a flat vector of `f32`. In each round it hands its present vector to [`LocalTraining`], which
//! takes some steps on data that nobody else sees, and mixes the change into the swarm. Users find all of this as
//! `mingle_peer::training`.

mod best;
mod criterion;
mod layout;
mod metrics;
pub mod model_file;
mod personal;
mod private;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mingle_protocol::record::MAX_HOST_BYTES;

pub use best::{Best, BestFile, BestModel};
pub use criterion::{Criterion, Direction};
pub use layout::{Layout, Tensor};
pub use metrics::Metrics;
pub use mingle_privacy::{DEFAULT_DELTA, NoiseSource, PrivacySettings, PrivacySpending, SettingsError};
pub use personal::{PersonalError, PersonalLayers};
pub use private::PrivateTraining;

/// Why local training cannot go on: any error, or a sentence.
pub type TrainingError = Box<dyn std::error::Error + Send + Sync>;

/// One peer's own learning. Vectors are flat, `[dimension]`, in the order of the layout.
///
/// While the peer runs, all methods are called on one thread of their own, one at a time. Before that, the thread that
/// runs the peer calls [`layout`](Self::layout), [`facts`](Self::facts), [`initial`](Self::initial),
/// [`largest_state`](Self::largest_state), [`privacy`](Self::privacy) and, where it goes on from records, [`restore`](Self::restore).
pub trait LocalTraining: Send {
    /// The tensors of the model, in the order in which the flat vector holds them.
    fn layout(&self) -> &Layout;

    /// The vector that this peer begins with, `[dimension]`. Peers may begin with different ones, and agree by mixing. Where all
    /// [begin with the founder](Self::begins_with_the_founder), only the founder's is asked for.
    ///
    /// # Errors
    /// There is none.
    fn initial(&mut self) -> Result<Vec<f32>, TrainingError>;

    /// Whether all peers begin with the vector of one, the founder: the operator of the swarm, where the plan names it, or else
    /// node 0. Networks whose initial weights are random need that: the mean of two different ones is none. By default each
    /// peer begins with its own.
    fn begins_with_the_founder(&self) -> bool {
        false
    }

    /// Whether whoever trains was not there when a round without steps was trained last, and may come back: the peer then asks again,
    /// and its round lasts until it is trained or a neighbour is ahead.
    fn is_absent(&self) -> bool {
        false
    }

    /// Takes the local steps of a round, beginning at `from`, `[dimension]`.
    ///
    /// # Errors
    /// Training cannot go on: the peer ends, and keeps what it holds.
    fn train(&mut self, from: &[f32], budget: &Budget) -> Result<Trained, TrainingError>;

    /// Measures a model, `[dimension]`, on samples that no peer trains on.
    ///
    /// # Errors
    /// It cannot be measured: the peer ends, and keeps what it holds.
    fn evaluate(&mut self, parameters: &[f32], patience: &Patience) -> Result<Evaluation, TrainingError>;

    /// What a restarted peer needs to go on as if it had never stopped, such as the position in the data and the momentum.
    /// It is kept in the record that holds the steps it belongs to, and is no longer than
    /// [`largest_state`](Self::largest_state).
    fn state(&self) -> Vec<u8> {
        Vec::new()
    }

    /// The most bytes that [`state`](Self::state) returns, for which the records on disk have room: at most
    /// [`most_host_bytes`](mingle_protocol::record::most_host_bytes) of the dimension, which is two more vectors.
    fn largest_state(&self) -> usize {
        MAX_HOST_BYTES
    }

    /// Goes on from what [`state`](Self::state) returned before a restart.
    ///
    /// # Errors
    /// It cannot be read.
    fn restore(&mut self, _state: &[u8]) -> Result<(), TrainingError> {
        Ok(())
    }

    /// How changes are made private, and how much of that is spent: see [`PrivateTraining`]. By default they are not.
    fn privacy(&self) -> Option<PrivacySpending> {
        None
    }

    /// What is told of this training when it begins.
    fn facts(&self) -> Facts {
        Facts { device: "processor".to_owned(), train_samples: 0, test_samples: 0 }
    }

    /// What writes the file of a model for other programs: by default each tensor of the layout under its name. It is taken
    /// once, before the training begins, and called on another thread: a trainer that does not answer any more keeps
    /// nobody from writing the model.
    fn model_encoder(&self) -> ModelEncoder {
        self.layout().clone().encoder()
    }
}

/// Encodes a model, `[dimension]`, as the bytes of a [safetensors] file. The peer adds metadata to its header: the plan, the
/// task, what was measured, and a checksum.
///
/// [safetensors]: https://github.com/huggingface/safetensors
pub type ModelEncoder = Arc<dyn Fn(&[f32]) -> Result<Vec<u8>, TrainingError> + Send + Sync>;

/// How much training a round is given.
#[derive(Clone, Debug)]
pub struct Budget {
    /// The round of the whole run, from 0: it goes on where another plan takes over.
    pub round: u64,
    /// Local steps that the plan wants.
    pub local_steps: u32,
    /// Rounds that train from this one on, this one included, by the present plan: the last rounds of a run only mix.
    pub rounds_left: u64,
    /// By what the last change was multiplied when it was added to the model: less than 1 where this peer held less weight
    /// than it does in a settled swarm or the change was clipped, more where a time box cut its steps short, 0 where it was
    /// not used. A trainer that carries something over, such as momentum, can account for it.
    pub last_factor: f64,
    /// No step begins once it is over.
    pub patience: Patience,
}

/// What came of a round's training.
#[derive(Clone, Debug, PartialEq)]
pub struct Trained {
    /// How the parameters changed, `[dimension]`.
    pub change: Vec<f32>,
    /// Steps that were taken: 0 where there was nothing to train with.
    pub steps: u32,
    /// Mean loss over these steps, where it is known.
    pub loss: Option<f64>,
}

/// What came of an evaluation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluation {
    /// The means over all samples that there was time for.
    pub metrics: Metrics,
    /// How many they are.
    pub samples: usize,
    /// Whether they are all.
    pub is_whole: bool,
}

/// What is told of a training when it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The device that it runs on, as it names itself.
    pub device: String,
    /// Samples that this peer trains on; 0: unknown.
    pub train_samples: usize,
    /// Samples held out to evaluate on; 0: unknown.
    pub test_samples: usize,
}

/// Whether there is time for more.
#[derive(Clone, Debug, Default)]
pub struct Patience {
    is_interrupted: Arc<AtomicBool>,
    /// There is none from here on.
    until: Option<Instant>,
    /// There is some until here, even if the peer is to stop.
    at_least_until: Option<Instant>,
}

impl Patience {
    /// Patience until somebody raises this flag.
    pub fn unless(is_interrupted: Arc<AtomicBool>) -> Self {
        Self { is_interrupted, until: None, at_least_until: None }
    }

    /// But no longer than until then.
    #[must_use]
    pub fn until(self, until: Option<Instant>) -> Self {
        Self { until, ..self }
    }

    /// And until then at least, whatever the flag says.
    #[must_use]
    pub fn at_least_until(self, at_least_until: Option<Instant>) -> Self {
        Self { at_least_until, ..self }
    }

    /// How much is left of the time box; none where there is no time box.
    pub fn time_left(&self) -> Option<Duration> {
        self.until.map(|until| until.saturating_duration_since(Instant::now()))
    }

    /// Whether to end with what there is: time is up, or the peer is to stop.
    pub fn is_over(&self) -> bool {
        self.is_stopped() || self.time_left().is_some_and(|left| left.is_zero())
    }

    /// Whether the peer is to stop, and wants no answer that takes time.
    pub fn is_stopped(&self) -> bool {
        let is_before = |instant: Option<Instant>| instant.is_some_and(|instant| Instant::now() < instant);
        self.is_interrupted.load(Ordering::Relaxed) && !is_before(self.at_least_until)
    }

    /// A timer of the local steps of a round, which begins now.
    pub fn steps(&self) -> StepTimer<'_> {
        StepTimer { patience: self, began: Instant::now(), steps: 0 }
    }
}

/// Says after each local step whether there is time for another one, by how long those before took.
#[derive(Debug)]
pub struct StepTimer<'a> {
    patience: &'a Patience,
    began: Instant,
    steps: u32,
}

impl StepTimer<'_> {
    /// Whether another step fits into the time box, after one more was made. A first step is always made.
    pub fn has_time_for_another(&mut self) -> bool {
        self.steps = self.steps.saturating_add(1);
        let mean = self.began.elapsed() / self.steps;
        !self.patience.is_over() && self.patience.time_left().is_none_or(|left| left >= mean)
    }
}
