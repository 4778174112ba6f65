//! A trainer of burn modules: module, optimizer and batches as the local training of a peer.

use std::fmt;

use burn::Tensor;
use burn::module::Module;
use burn::optim::{GradientsParams, ModuleOptimizer, OptimizerRecord};
use burn::tensor::Bytes;
use mingle_peer::training::{Budget, Evaluation, Facts, Layout, LocalTraining, Patience, Trained, TrainingError};

use crate::flat::{self, Filter};

/// Room for the head of the optimizer's record, and for names and alignment of its tensors.
const RECORD_HEAD: usize = 48 << 10;

/// The loss of a batch, `[1]`.
type BatchLoss<M, B> = Box<dyn FnMut(&M, B) -> Tensor<1> + Send>;

/// An evaluation of a module on held-out samples.
type Evaluate<M> = Box<dyn FnMut(&M, &Patience) -> Evaluation + Send>;

/// The training of a burn module on one peer's batches.
///
/// In each round the module takes the peer's vector and the local steps that the plan asks for, one batch each, and the
/// change goes to the swarm. All float tensors of the module are exchanged, running statistics of normalisations among
/// them, in the order of its fields; [`exchanging`](Self::exchanging) leaves some out. Integer and boolean tensors are
/// not exchanged. All peers begin with the module of the founder, so initial weights may be random.
pub struct BurnTrainer<M, B> {
    module: M,
    layout: Layout,
    filter: Filter,
    optimizer: ModuleOptimizer,
    learning_rate: Box<dyn FnMut(u64) -> f64 + Send>,
    batches: Box<dyn Iterator<Item = B> + Send>,
    loss: BatchLoss<M, B>,
    evaluate: Option<Evaluate<M>>,
    /// The number of vectors in the optimizer's state, which is kept over restarts; 0 to keep none.
    kept_vectors: usize,
    facts: Facts,
}

impl<M: Module, B> BurnTrainer<M, B> {
    /// A trainer of `module`, which is on an autodiff device, by `optimizer` with a constant step size. `loss` returns
    /// the loss of a batch, `[1]`, and `batches` do not end ([`prefetch`](crate::prefetch()) makes such a stream of a
    /// loader).
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

    /// Evaluates models by `evaluate`, which receives the module in inference mode, without gradients.
    #[must_use]
    pub fn evaluating(mut self, evaluate: impl FnMut(&M, &Patience) -> Evaluation + Send + 'static) -> Self {
        self.evaluate = Some(Box::new(evaluate));
        self
    }

    /// Exchanges only the tensors for whose dotted path, such as `encoder.0.weight`, `wanted` returns `true`. The
    /// others stay local to this peer. All peers must exchange the same.
    ///
    /// # Errors
    /// [`BurnError::NoTensor`] where no tensor is selected.
    pub fn exchanging(mut self, wanted: impl Fn(&str) -> bool + Send + 'static) -> Result<Self, BurnError> {
        self.filter = Box::new(wanted);
        self.layout = flat::layout_of(&self.module, &self.filter);
        if self.layout.dimension() == 0 { Err(BurnError::NoTensor) } else { Ok(self) }
    }

    /// Sets the step size of each round, counted from 0.
    #[must_use]
    pub fn learning_rate(mut self, of_round: impl FnMut(u64) -> f64 + Send + 'static) -> Self {
        self.learning_rate = Box::new(of_round);
        self
    }

    /// Keeps the state of the optimizer in the records of the peer, where it has so many vectors beside the parameters:
    /// 1 for the momentum of SGD, 2 for the moments of Adam. Without it a restarted peer begins with a fresh optimizer.
    #[must_use]
    pub fn keeping_optimizer(mut self, vectors: usize) -> Self {
        self.kept_vectors = vectors;
        self
    }

    /// Sets the facts that the user sees when training begins.
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

    /// The module with these values, as an independent copy. Clones of a module share their running statistics, whose
    /// pending updates would go into the new ones.
    fn fill(&self, flat: &[f32]) -> M {
        flat::fill(self.module.valid().train(), &self.filter, flat)
    }

    /// The values of the module, with its running statistics up to date.
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
        let mut steps = 0;
        let mut losses = 0.0;
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
        // A device that cannot be read fails in the next step too, which reports it.
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

/// Errors of training a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BurnError {
    /// The module has no float tensor to exchange.
    NoTensor,
    /// The module is on a device that computes no gradients.
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
