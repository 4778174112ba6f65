//! Learning in rounds at a peer: its rounds as files, and its local training as the model of federated averaging.
//!
//! Rounds of federated averaging need all members. So a training whose trainer is absent is asked again until it has
//! trained, and one that fails ends its own peer and no other: the others wait until that peer is started again.

mod round_files;
mod several;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mingle_federated::{Beginning, FederatedLearning, FederatedSettings, LocalModel, LocalRound, TRAIN_LOSS};
use mingle_home::{Error, ErrorKind, Result};
use mingle_solving::{LearningError, RoundLearning, RoundRules, RoundTask};
use mingle_training::{Budget, LocalTraining, ModelEncoder, MomentumStep, Patience, TrainingError};
use tokio::sync::mpsc;

pub use round_files::RoundFiles;
pub use several::TrainingsOfNodes;

/// A peer's training, shared by its parts along one plan after the other.
pub struct SharedTraining {
    dimension: usize,
    running: Mutex<Running>,
}

struct Running {
    training: Box<dyn LocalTraining>,
    encoder: ModelEncoder,
    /// The peer's own vector to begin with, once it was asked for.
    initial: Option<Vec<f32>>,
    patience: Patience,
    failures: mpsc::UnboundedSender<Error>,
    /// Open until the peer is done with the training.
    end: Receiver<()>,
    /// The mean loss of the last round's steps, if the training reports one.
    loss: Option<f64>,
    /// The model of which a file was made last.
    last: Option<Arc<[f32]>>,
}

/// The end of a training: those who wait for it are let go once this is dropped.
pub struct TrainingEnd {
    is_over: Arc<AtomicBool>,
    _end: Sender<()>,
}

impl Drop for TrainingEnd {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl SharedTraining {
    /// A training, its failures, and the handle that ends it.
    pub fn new(training: Box<dyn LocalTraining>) -> (Arc<Self>, mpsc::UnboundedReceiver<Error>, TrainingEnd) {
        let is_over = Arc::new(AtomicBool::new(false));
        let patience = Patience::unless(Arc::clone(&is_over));
        let (failures, failed) = mpsc::unbounded_channel();
        let (sender, end) = channel();
        let encoder = training.model_encoder();
        let dimension = training.layout().dimension();
        let running = Running { encoder, training, initial: None, patience, failures, end, loss: None, last: None };
        (Arc::new(Self { dimension, running: Mutex::new(running) }), failed, TrainingEnd { is_over, _end: sender })
    }

    /// The model of which a file was made last, `[dimension]`.
    pub fn last(&self) -> Option<Arc<[f32]>> {
        self.running().last.clone()
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    /// The result of a step. A failure ends this peer, and then this waits for that end.
    fn succeed<T>(
        &self,
        doing: &str,
        result: std::result::Result<T, TrainingError>,
    ) -> std::result::Result<T, LearningError> {
        let failure = match result {
            Ok(found) => return Ok(found),
            Err(failure) => failure,
        };
        let text = format!("{doing}: {failure}");
        let hint = "started again, this peer goes on with the others from the last round that all have kept";
        let error = Error::new(ErrorKind::Training, text.clone()).hint(hint);
        if self.failures.send(error).is_ok() {
            // An error means that the peer is done with this training.
            let _ = self.end.recv();
        }
        Err(LearningError(text))
    }

    fn train(&mut self, round: LocalRound, from: &[f32]) -> std::result::Result<Vec<f32>, LearningError> {
        let LocalRound { round, steps, rounds_left } = round;
        loop {
            let budget = Budget {
                round,
                local_steps: steps,
                rounds_left,
                last_factor: 1.0,
                momentum: MomentumStep::default(),
                noise: None,
                patience: self.patience.clone(),
            };
            let trained = self.training.train(from, &budget);
            let trained = self.succeed("cannot train", trained)?;
            let waits = trained.steps == 0 && self.training.is_absent();
            if !waits || self.patience.is_stopped() {
                self.loss = trained.loss;
                return Ok(trained.change);
            }
        }
    }
}

/// Hexadecimal digits of a model's hash that are compared.
const HASH_SHOWN: usize = 16;

/// The description of a model: the same at all members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelDescription {
    /// A hash of the task's name and of the tensors' names, order and shapes.
    pub hash: [u8; 32],
    /// The same in one line, for people.
    pub text: String,
}

/// The settings and the model that the peers of such a training have to agree on, as JSON.
pub fn shared(settings: &FederatedSettings, model: &ModelDescription) -> serde_json::Value {
    let mut shared = serde_json::to_value(settings).unwrap_or_default();
    shared["kind"] = "training".into();
    shared["model"] = format!("of a script: {}", model.text).into();
    shared["model_hash"] = blake3::Hash::from_bytes(model.hash).to_hex()[..HASH_SHOWN].into();
    shared
}

/// Federated averaging of a peer's training, as a task of learning in rounds.
pub struct FederatedTask {
    settings: FederatedSettings,
    rules: RoundRules,
    model: ModelDescription,
    founder: usize,
    training: Arc<SharedTraining>,
}

impl std::fmt::Debug for FederatedTask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FederatedTask").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl FederatedTask {
    /// The task of members that all begin with the vector of the node `founder`.
    ///
    /// # Errors
    /// The settings have too few or too many rounds.
    pub fn new(
        settings: FederatedSettings,
        model: ModelDescription,
        founder: usize,
        training: Arc<SharedTraining>,
    ) -> Result<Self> {
        let rules = settings.rules().map_err(|error| Error::of(ErrorKind::BadInput, error))?;
        Ok(Self { settings, rules, model, founder, training })
    }
}

impl RoundTask for FederatedTask {
    /// A hash of the settings alone: models are compared later, with words for each difference.
    fn hash(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("mingle 2026 federated averaging of a training");
        // Settings always have an encoding.
        hasher.update(&serde_json::to_vec(&self.settings).unwrap_or_default());
        *hasher.finalize().as_bytes()
    }

    fn shared(&self) -> serde_json::Value {
        shared(&self.settings, &self.model)
    }

    fn describe(&self) -> String {
        self.settings.describe(&self.model.text)
    }

    fn title(&self) -> String {
        "Training".to_owned()
    }

    fn rules(&self) -> &RoundRules {
        &self.rules
    }

    fn needs_masked_sums(&self) -> bool {
        self.settings.shared_privacy().is_some()
    }

    /// A trainer has a place in its data of its own, and goes on from it.
    fn has_tokens(&self) -> bool {
        self.needs_masked_sums()
    }

    fn founder(&self) -> Option<usize> {
        Some(self.founder)
    }

    fn has_common_model(&self) -> bool {
        self.settings.has_common_model()
    }

    fn least_nodes(&self) -> usize {
        self.settings.least_members()
    }

    fn open(&self, node: usize, names: &[String]) -> std::result::Result<Box<dyn RoundLearning>, LearningError> {
        let model = SharedModel {
            description: self.model.clone(),
            metrics: self.settings.metrics.clone(),
            is_founder: node == self.founder,
            training: Arc::clone(&self.training),
        };
        Ok(Box::new(FederatedLearning::new(
            self.settings.clone(),
            (node, names),
            Beginning::OfFounder,
            Box::new(model),
        )?))
    }
}

/// The training of a peer along one plan.
struct SharedModel {
    description: ModelDescription,
    metrics: Vec<String>,
    is_founder: bool,
    training: Arc<SharedTraining>,
}

impl LocalModel for SharedModel {
    fn dimension(&self) -> usize {
        self.training.dimension
    }

    /// The data of another program are not known.
    fn identity(&self) -> [u8; 32] {
        self.description.hash
    }

    fn meaning(&self) -> [u8; 32] {
        self.description.hash
    }

    fn unlike(&self, other: &str) -> String {
        format!(
            "the model here is not that of {other}: here {}; all need one name, and tensors of the same names, order and shapes",
            self.description.text
        )
    }

    fn beginning(&mut self) -> std::result::Result<Vec<f32>, LearningError> {
        if !self.is_founder {
            return Ok(vec![0.0; self.training.dimension]);
        }
        let mut running = self.training.running();
        if let Some(initial) = running.initial.clone() {
            return Ok(initial);
        }
        let initial = running.training.initial();
        let initial = running.succeed("there is no model to begin with", initial)?;
        running.initial = Some(initial.clone());
        Ok(initial)
    }

    fn train(&mut self, round: LocalRound, from: &[f32]) -> std::result::Result<Vec<f32>, LearningError> {
        self.training.running().train(round, from)
    }

    fn evaluate(&mut self, parameters: &[f32]) -> std::result::Result<Vec<Option<f64>>, LearningError> {
        let mut running = self.training.running();
        let patience = running.patience.clone();
        let found = running.training.evaluate(parameters, &patience);
        let found = running.succeed("cannot evaluate", found)?;
        let value = |name: &String| match name.as_str() {
            TRAIN_LOSS => running.loss,
            name => found.metrics.get(name),
        };
        Ok(self.metrics.iter().map(|name| value(name).filter(|value| value.is_finite())).collect())
    }

    /// Empty while the training is busy with a round along the plan before.
    fn state(&self) -> Vec<u8> {
        self.training.running.try_lock().map(|running| running.training.state()).unwrap_or_default()
    }

    fn restore(&mut self, state: &[u8]) -> std::result::Result<(), LearningError> {
        if state.is_empty() {
            return Ok(());
        }
        let mut running = self.training.running();
        let restored = running.training.restore(state);
        running.succeed("the training cannot go on from the state that was kept", restored)
    }

    /// Empty: what the trainer has is in the description of the task.
    fn found(&self) -> String {
        String::new()
    }

    fn encode(&self, parameters: &[f32]) -> std::result::Result<Vec<u8>, LearningError> {
        let mut running = self.training.running();
        running.last = Some(parameters.into());
        (running.encoder)(parameters).map_err(|error| LearningError(format!("cannot encode the model: {error}")))
    }
}
