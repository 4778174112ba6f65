//! A module of burn, its optimizer and its batches as the local training of a peer.

use std::fmt;

use burn::Tensor;
use burn::module::Module;
use burn::optim::{GradientsParams, ModuleOptimizer, OptimizerRecord};
use burn::tensor::Bytes;
use mingle_peer::training::{Budget, Evaluation, Facts, Layout, LocalTraining, Patience, Trained, TrainingError};

use crate::flat::{self, Filter};

/// The record of an optimizer has a head, and names and aligns its tensors.
const RECORD_HEAD: usize = 48 << 10;

/// The loss of a batch, `[1]`.
type Loss<M, B> = Box<dyn FnMut(&M, B) -> Tensor<1> + Send>;

/// Measures a module on samples that nobody trains on.
type Evaluate<M> = Box<dyn FnMut(&M, &Patience) -> Evaluation + Send>;

/// The training of a burn module on one peer's batches.
///
/// In each round the module gets the peer's vector, takes the local steps that the plan wants, one batch each, and the change
/// goes to the swarm. All float tensors of the module are exchanged, running statistics of normalisations among them, in the order
/// of its fields; [`exchanging`](Self::exchanging) leaves some out. Whole numbers and flags stay where they are. All peers begin with
/// the module of the founder, so initial weights may be random.
pub struct BurnTrainer<M, B> {
    module: M,
    layout: Layout,
    filter: Filter,
    optimizer: ModuleOptimizer,
    learning_rate: Box<dyn FnMut(u64) -> f64 + Send>,
    batches: Box<dyn Iterator<Item = B> + Send>,
    loss: Loss<M, B>,
    evaluate: Option<Evaluate<M>>,
    /// Vectors that the optimizer keeps over restarts.
    kept_vectors: usize,
    facts: Facts,
}

impl<M: Module, B> BurnTrainer<M, B> {
    /// The training of `module`, which is on an autodiff device, by `optimizer` with a step size: `loss` is that of a batch, `[1]`,
    /// and `batches` do not end ([`prefetch`](crate::prefetch()) makes such a stream of a loader).
    ///
    /// # Errors
    /// [`BurnError::NoTensor`] for a module without float tensors, [`BurnError::NoGradients`] where it is on a device without
    /// gradients.
    pub fn new(
        module: M,
        optimizer: ModuleOptimizer,
        learning_rate: f64,
        batches: impl Iterator<Item = B> + Send + 'static,
        loss: impl FnMut(&M, B) -> Tensor<1> + Send + 'static,
    ) -> Result<Self, BurnError> {
        if !module.devices().iter().all(burn::tensor::Device::is_autodiff) {
            return Err(BurnError::NoGradients);
        }
        let module = flat::number(module);
        let filter: Filter = Box::new(|_| true);
        let layout = flat::layout_of(&module, &filter);
        if layout.dimension() == 0 {
            return Err(BurnError::NoTensor);
        }
        let device = module.devices().first().map_or_else(String::new, |device| format!("{device:?}"));
        Ok(Self {
            module,
            layout,
            filter,
            optimizer,
            learning_rate: Box::new(move |_| learning_rate),
            batches: Box::new(batches),
            loss: Box::new(loss),
            evaluate: None,
            kept_vectors: 0,
            facts: Facts { device, train_samples: 0, test_samples: 0 },
        })
    }

    /// Measures models by `evaluate`, which gets the module as it is in use, without gradients.
    #[must_use]
    pub fn evaluating(mut self, evaluate: impl FnMut(&M, &Patience) -> Evaluation + Send + 'static) -> Self {
        self.evaluate = Some(Box::new(evaluate));
        self
    }

    /// Exchanges only the tensors whose dotted path, such as `encoder.0.weight`, is one that `wanted` says yes to. The others stay
    /// this peer's own; all peers need the same.
    ///
    /// # Errors
    /// [`BurnError::NoTensor`] where nothing is left.
    pub fn exchanging(mut self, wanted: impl Fn(&str) -> bool + Send + 'static) -> Result<Self, BurnError> {
        self.filter = Box::new(wanted);
        self.layout = flat::layout_of(&self.module, &self.filter);
        if self.layout.dimension() == 0 { Err(BurnError::NoTensor) } else { Ok(self) }
    }

    /// Takes the step size of each round from here, counted from 0.
    #[must_use]
    pub fn learning_rate(mut self, of_round: impl FnMut(u64) -> f64 + Send + 'static) -> Self {
        self.learning_rate = Box::new(of_round);
        self
    }

    /// Keeps the state of the optimizer in the records of the peer, where it has so many vectors beside the parameters: 1 for
    /// the momentum of SGD, 2 for the moments of Adam. Without it a peer that is started again begins with a fresh one.
    #[must_use]
    pub fn keeping_optimizer(mut self, vectors: usize) -> Self {
        self.kept_vectors = vectors;
        self
    }

    /// What people are told of the training when it begins.
    #[must_use]
    pub fn facts(mut self, facts: Facts) -> Self {
        self.facts = facts;
        self
    }

    fn step(&mut self, learning_rate: f64) -> Result<f64, TrainingError> {
        let batch = self.batches.next().ok_or(BurnError::NoBatch)?;
        let loss = (self.loss)(&self.module, batch);
        let value = loss.clone().inner();
        let gradients = GradientsParams::from_grads(loss.backward(), &self.module);
        self.module = self.optimizer.step(learning_rate, self.module.clone(), gradients);
        let value = value.try_into_scalar::<f32>().map_err(|failure| BurnError::Device(failure.to_string()))?;
        Ok(f64::from(value))
    }

    /// The module with these values. A copy of its own: clones of a module share their running statistics, and what these have
    /// seen but not taken in would go into the new ones.
    fn fill(&self, flat: &[f32]) -> M {
        flat::fill(self.module.valid().train(), &self.filter, flat)
    }

    /// The values of the module, its running statistics up to date.
    fn flat(&self) -> Result<Vec<f32>, BurnError> {
        flat::flatten(&self.module.valid(), &self.filter, self.layout.dimension()).map_err(BurnError::Device)
    }
}

impl<M: Module, B> LocalTraining for BurnTrainer<M, B> {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn initial(&mut self) -> Result<Vec<f32>, TrainingError> {
        Ok(self.flat()?)
    }

    fn begins_with_the_founder(&self) -> bool {
        true
    }

    fn train(&mut self, from: &[f32], budget: &Budget) -> Result<Trained, TrainingError> {
        self.module = self.fill(from);
        let learning_rate = (self.learning_rate)(budget.round);
        let mut timer = budget.patience.steps();
        let (mut steps, mut losses) = (0, 0.0);
        while steps < budget.local_steps && (steps == 0 || timer.has_time_for_another()) {
            losses += self.step(learning_rate)?;
            steps += 1;
        }
        let mut change = self.flat()?;
        change.iter_mut().zip(from).for_each(|(after, before)| *after -= before);
        Ok(Trained { change, steps, loss: (steps > 0).then(|| losses / f64::from(steps)) })
    }

    fn evaluate(&mut self, parameters: &[f32], patience: &Patience) -> Result<Evaluation, TrainingError> {
        let module = self.fill(parameters).valid();
        Ok(match &mut self.evaluate {
            Some(evaluate) => evaluate(&module, patience),
            None => Evaluation { is_whole: true, ..Evaluation::default() },
        })
    }

    fn state(&self) -> Vec<u8> {
        if self.kept_vectors == 0 {
            return Vec::new();
        }
        // A device that cannot be read fails the next step too, and says so there.
        self.optimizer.to_record().into_bytes().map(|bytes| bytes.to_vec()).unwrap_or_default()
    }

    fn largest_state(&self) -> usize {
        let vectors = self.kept_vectors.saturating_mul(4 * self.layout.dimension());
        if self.kept_vectors == 0 { 0 } else { RECORD_HEAD.saturating_add(vectors) }
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), TrainingError> {
        let record = OptimizerRecord::from_bytes(Bytes::from_bytes_vec(state.to_vec()));
        let record = record.map_err(|error| BurnError::State(error.to_string()))?;
        self.optimizer = self.optimizer.clone().load_record(record);
        Ok(())
    }

    fn facts(&self) -> Facts {
        self.facts.clone()
    }
}

/// What keeps a module from being trained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BurnError {
    /// It has no float tensor to exchange.
    NoTensor,
    /// It is on a device that computes no gradients.
    NoGradients,
    /// The stream of batches has ended.
    NoBatch,
    /// The device failed.
    Device(String),
    /// The state of the optimizer in the records cannot be read.
    State(String),
}

impl fmt::Display for BurnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTensor => f.write_str("the module has no float tensor to exchange"),
            Self::NoGradients => {
                f.write_str("the module is on a device without gradients: make it on `device.autodiff()`")
            }
            Self::NoBatch => f.write_str("there are no more batches: the stream of batches must not end"),
            Self::Device(why) => write!(f, "the device failed: {why}"),
            Self::State(why) => write!(f, "this is no state of the optimizer: {why}"),
        }
    }
}

impl std::error::Error for BurnError {}
