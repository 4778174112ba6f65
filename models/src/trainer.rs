//! Local training: stochastic gradient descent on one peer's samples.

use std::sync::Arc;

use burn::Tensor;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::tensor::{Int, TensorData};

use crate::device::Device;
use crate::flatten::{flatten, flatten_gradients, number_parameters, unflatten, unflatten_shared};
use crate::gradient_clipping;
use crate::memory;
use crate::model::BuiltinNetwork;
use crate::optimizer::OptimizerOptions;
use crate::site_weight::SiteWeight;
use crate::task::{Task, TaskError};
use crate::threads::on_training_thread;
use crate::train_error::TrainError;
use mingle_datasets::{Augmentation, Batches, Samples};

/// The options of a trainer.
#[derive(Clone, Debug)]
pub struct TrainerOptions {
    /// The model and the shape of its samples.
    pub task: Task,
    /// The device that computes.
    pub device: Device,
    /// The optimizer that takes the steps, and its settings.
    pub optimizer: OptimizerOptions,
    /// Samples per step, all samples if there are fewer; of a text windows.
    pub batch_size: usize,
    /// The changes to images, drawn anew at each use; [`Augmentation::NONE`] for none.
    pub augmentation: Augmentation,
    /// The seed of the batches; give each peer its own.
    pub data_seed: u64,
    /// The weight of this peer's changes beside those of the others.
    pub weight: SiteWeight,
}

/// One peer's samples, its optimizer and its place in the sequence of batches.
///
/// The parameters belong to the caller, who mixes them with other peers' between calls; momentum
/// and moments stay here. Equal options, samples and calls give equal bits on the same kind of machine,
/// whatever the number of threads; another processor or device may round differently.
pub struct Trainer {
    task: Task,
    device: Device,
    samples: Samples,
    batches: Batches,
    augmentation: Augmentation,
    data_seed: u64,
    weight: SiteWeight,
    /// Never filled. Its clones are, and they share its parameter identities with the optimizer.
    blank: BuiltinNetwork,
    optimizer: ModuleOptimizer,
    options: OptimizerOptions,
    /// The learning rate of the next step.
    learning_rate: f64,
}

/// The result of some local steps.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainOutcome {
    /// The parameters after the steps minus those before, times the [factor](Trainer::factor) of the peer; add it to
    /// the mixed parameters. Not finite if the training diverged.
    pub delta: Vec<f32>,
    /// The number of steps taken.
    pub steps: u32,
    /// The loss of each batch before its step, averaged over the steps; 0 without steps.
    pub mean_loss: f32,
    /// The number of samples seen, each counted at each use.
    pub samples: u64,
}

impl Trainer {
    /// A trainer for `samples`, the part of the training data that this peer holds.
    ///
    /// # Errors
    ///
    /// [`TrainError::NoSamples`], [`TrainError::TooManySamples`], [`TrainError::ShortText`], [`TrainError::Mismatch`]
    /// when the samples are not the task's, [`TrainError::Memory`] for too many windows in a batch,
    /// [`TrainError::Task`] for an augmentation that the samples do not allow, [`TrainError::Option`] for a setting out
    /// of bounds.
    pub fn new(options: TrainerOptions, samples: Samples) -> Result<Self, TrainError> {
        let TrainerOptions { task, device, optimizer: options, batch_size, augmentation, data_seed, weight } = options;
        options.check()?;
        if batch_size == 0 {
            return Err(TrainError::Option { option: "batch_size", value: 0.0, bounds: "at least 1" });
        }
        check_samples(&task, &samples)?;
        augmentation.check(task.shape()).map_err(TaskError::from)?;
        if samples.is_empty() {
            return Err(TrainError::NoSamples);
        }
        memory::keep_what_is_freed();
        let batches = batches(&task, &samples, batch_size, data_seed)?;
        Ok(Self {
            task,
            device,
            batches,
            augmentation,
            data_seed,
            weight,
            samples,
            blank: number_parameters(task.blank()),
            optimizer: options.optimizer(),
            options,
            learning_rate: options.learning_rate,
        })
    }

    /// The model and the shape of its samples.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// The factor by which each change is multiplied, by [`TrainerOptions::weight`] and the number of samples.
    pub fn factor(&self) -> f32 {
        self.weight.factor(self.samples.len() as u64)
    }

    /// The number of samples that this peer trains on; of a text, of tokens.
    pub fn samples(&self) -> usize {
        self.samples.len()
    }

    /// The number of samples that a step sees; for a text, the tokens in its windows.
    pub fn samples_per_step(&self) -> u64 {
        let tokens = self.task.gpt().map_or(1, |size| size.context());
        self.batches.batch_size() as u64 * tokens as u64
    }

    /// The local steps taken since the start of training, those before [`Trainer::restore`] included.
    pub fn step(&self) -> u64 {
        self.batches.step()
    }

    /// The state from which [`restore`](Self::restore) continues: with the next batch and, where the optimizer keeps
    /// any, with its velocities or moments. It holds the steps taken (u64, little-endian), the kind of optimizer (one
    /// byte), then burn's record of it. With momentum that is a little longer than the parameters, with AdamW twice as
    /// long.
    ///
    /// # Errors
    ///
    /// [`TrainError::Device`] when they cannot be read from the device.
    pub fn state(&self) -> Result<Vec<u8>, TrainError> {
        let mut state = self.step().to_le_bytes().to_vec();
        state.extend(self.options.record(&self.optimizer).map_err(TrainError::Device)?);
        Ok(state)
    }

    /// The most bytes that [`state`](Self::state) returns.
    pub fn largest_state(&self) -> usize {
        /// Room for the head of the optimizer's record, and for names and alignment of its tensors.
        const HEAD: usize = 60 << 10;
        let vectors = self.options.vectors();
        let record = if vectors > 0 { HEAD + vectors * 4 * self.task.parameter_count() } else { 0 };
        size_of::<u64>() + record
    }

    /// Continues from the `state` of another trainer of the same task, options and samples. From there on both take the
    /// same steps, bit for bit on the processor. One with another optimizer continues with the next batch, without
    /// velocities and moments.
    ///
    /// # Errors
    ///
    /// [`TrainError::State`] when the bytes are no state of such a trainer; this one is then unchanged.
    pub fn restore(&mut self, state: &[u8]) -> Result<(), TrainError> {
        let (step, record) =
            state.split_first_chunk().ok_or_else(|| TrainError::State("it is too short".to_owned()))?;
        self.optimizer = self.options.restored(record).map_err(TrainError::State)?;
        self.batches.resume_at(u64::from_le_bytes(*step));
        Ok(())
    }

    /// Sets the step size from the next step on, for a schedule; 0 keeps the parameters as they are.
    ///
    /// # Errors
    ///
    /// [`TrainError::Option`] when it is negative or not finite.
    pub fn set_learning_rate(&mut self, learning_rate: f64) -> Result<(), TrainError> {
        if !(learning_rate >= 0.0 && learning_rate.is_finite()) {
            let bounds = "at least 0";
            return Err(TrainError::Option { option: "learning_rate", value: learning_rate, bounds });
        }
        self.learning_rate = learning_rate;
        Ok(())
    }

    /// Takes `local_steps` steps of the optimizer from the flat parameters `from`.
    ///
    /// # Errors
    ///
    /// [`TrainError::Task`] when `from` has the wrong length, [`TrainError::Device`] when the
    /// device fails. Divergence is no error: look at [`TrainOutcome::delta`].
    pub fn train(&mut self, from: &[f32], local_steps: u32) -> Result<TrainOutcome, TrainError> {
        self.train_while(from, local_steps, || true)
    }

    /// Trains as [`Trainer::train`] does, but stops before a step if `goes_on` returns `false`. The first step is
    /// always taken. A device that computes in the background may still be busy with earlier steps when `goes_on` is
    /// called.
    ///
    /// # Errors
    ///
    /// Those of [`Trainer::train`].
    pub fn train_while(
        &mut self,
        from: &[f32],
        local_steps: u32,
        goes_on: impl FnMut() -> bool,
    ) -> Result<TrainOutcome, TrainError> {
        self.task.check(from)?;
        let network = unflatten(self.blank.clone(), from, &self.device.training());
        self.train_network(network, from, local_steps, goes_on)
    }

    /// Trains as [`Trainer::train_while`] does, to the same bits. On the processor the network lies in `from` until its
    /// first step, so that a large model is in memory once less.
    ///
    /// # Errors
    ///
    /// Those of [`Trainer::train`].
    pub fn train_shared_while(
        &mut self,
        from: &Arc<[f32]>,
        local_steps: u32,
        goes_on: impl FnMut() -> bool,
    ) -> Result<TrainOutcome, TrainError> {
        self.task.check(from)?;
        let network = unflatten_shared(self.blank.clone(), from, &self.device.training());
        self.train_network(network, from, local_steps, goes_on)
    }

    fn train_network(
        &mut self,
        mut network: BuiltinNetwork,
        from: &[f32],
        local_steps: u32,
        mut goes_on: impl FnMut() -> bool,
    ) -> Result<TrainOutcome, TrainError> {
        // Summed on the device: reading each loss would make a graphics card wait at every step.
        let mut losses = Tensor::<1>::zeros([1], &self.device.inference());
        let mut steps = 0;
        let device = self.device.clone();
        let multiplications = self.samples_per_step() * from.len() as u64;
        while steps < local_steps && (steps == 0 || goes_on()) {
            let loss;
            (network, loss) = on_training_thread(&device, multiplications, || self.step_from(network));
            losses = losses + loss;
            steps += 1;
        }
        let losses = losses.try_into_scalar::<f32>().map_err(|error| TrainError::Device(error.to_string()))?;
        let mut delta = Vec::with_capacity(from.len());
        flatten(network, &mut delta).map_err(TrainError::Device)?;
        for (change, before) in delta.iter_mut().zip(from) {
            *change -= before;
        }
        if self.weight != SiteWeight::Equal {
            let factor = self.factor();
            delta.iter_mut().for_each(|change| *change *= factor);
        }
        Ok(TrainOutcome {
            delta,
            steps,
            mean_loss: losses / steps.max(1) as f32,
            samples: u64::from(steps) * self.samples_per_step(),
        })
    }

    /// One step on the next batch; the loss `[1]` is the one before the step.
    fn step_from(&mut self, network: BuiltinNetwork) -> (BuiltinNetwork, Tensor<1>) {
        let (features, wanted) = self.next_batch();
        let loss = self.loss(network.forward(features), wanted);
        let mut gradients = GradientsParams::from_grads(loss.backward(), &network);
        if let Some(norm) = self.options.clip_gradients {
            gradient_clipping::clip(&mut gradients, &network, norm);
        }
        let network = self.optimizer.step(self.learning_rate, network, gradients);
        (network, loss.inner())
    }

    /// The mean loss of a batch, `[1]`.
    fn loss(&self, outputs: Tensor<2>, wanted: WantedOutputs) -> Tensor<1> {
        match wanted {
            WantedOutputs::Classes(labels) => {
                CrossEntropyLossConfig::new().init(&self.device.training()).forward(outputs, labels)
            }
            WantedOutputs::Quantities(targets) => (outputs - targets).square().mean(),
        }
    }

    /// Passes the gradient of the loss of each single sample at the flat parameters `at` to `take`, one after the other,
    /// `[parameters]`. Neither batches and augmentation nor the optimizer have a part in it.
    ///
    /// # Errors
    ///
    /// [`TrainError::Task`] when `at` has the wrong length, [`TrainError::NoSingleSamples`] for a text,
    /// [`TrainError::Device`] when the device fails.
    pub fn sample_gradients(&self, at: &[f32], mut take: impl FnMut(&[f32])) -> Result<(), TrainError> {
        self.task.check(at)?;
        if self.task.gpt().is_some() {
            return Err(TrainError::NoSingleSamples);
        }
        let network = unflatten(self.blank.clone(), at, &self.device.training());
        let mut flat = Vec::with_capacity(at.len());
        for index in 0..self.samples.len() {
            let (features, wanted) = self.rows(&[index], self.samples.gather([index].into_iter()));
            let loss = self.loss(network.forward(features), wanted);
            let gradients = GradientsParams::from_grads(loss.backward(), &network);
            flat.clear();
            flatten_gradients(&gradients, &network, &mut flat).map_err(TrainError::Device)?;
            take(&flat);
        }
        Ok(())
    }

    /// The next batch: feature rows `[batch, features]` and the wanted outputs.
    fn next_batch(&mut self) -> (Tensor<2>, WantedOutputs) {
        let device = self.device.training();
        let step = self.batches.step();
        let batch = self.batches.next_batch();
        if let Some(size) = self.task.gpt() {
            let starts = batch.iter().map(|&start| start as usize);
            let (seen, following) = self.samples.windows(starts, size.context());
            let seen = TensorData::new(seen, [batch.len(), size.context()]);
            return (Tensor::from_data(seen, &device), labels(&following, &device));
        }
        let mut features = self.samples.gather(batch.iter().map(|&index| index as usize));
        self.augmentation.apply(&mut features, self.task.shape(), (self.data_seed, step));
        let batch: Vec<usize> = batch.iter().map(|&index| index as usize).collect();
        self.rows(&batch, features)
    }

    /// The rows of these samples, which have these features: `[rows, features]`, and the wanted outputs.
    fn rows(&self, of: &[usize], features: Vec<f32>) -> (Tensor<2>, WantedOutputs) {
        let device = self.device.training();
        let rows = [of.len(), self.task.shape().features()];
        let features = Tensor::from_data(TensorData::new(features, rows), &device);
        if let Some((targets, _)) = self.samples.targets() {
            let targets: Vec<f32> = of.iter().map(|&index| targets[index]).collect();
            let targets = TensorData::new(targets, [of.len(), 1]);
            return (features, WantedOutputs::Quantities(Tensor::from_data(targets, &device)));
        }
        let of_rows: Vec<u16> = of.iter().map(|&index| self.samples.labels()[index]).collect();
        (features, labels(&of_rows, &device))
    }
}

fn labels(labels: &[u16], device: &burn::tensor::Device) -> WantedOutputs {
    let numbers: Vec<i32> = labels.iter().copied().map(i32::from).collect();
    WantedOutputs::Classes(Tensor::from_data(TensorData::new(numbers, [labels.len()]), device))
}

/// The sequence of batches for the samples of a task.
fn batches(task: &Task, samples: &Samples, batch_size: usize, seed: u64) -> Result<Batches, TrainError> {
    let counted = |count: usize| u32::try_from(count).map_err(|_| TrainError::TooManySamples(count));
    let Some(size) = task.gpt() else { return Ok(Batches::new(counted(samples.len())?, batch_size, seed)) };
    if task.activations(batch_size) > Task::ACTIVATIONS_MAX {
        return Err(TrainError::Memory {
            batch_size,
            context: size.context(),
            activations: task.activations(batch_size),
        });
    }
    // The last token that a window predicts is the one after it.
    match samples.len().saturating_sub(size.context()) {
        0 => Err(TrainError::ShortText { tokens: samples.len(), context: size.context() }),
        places => Ok(Batches::of_windows(counted(places)?, batch_size, seed)),
    }
}

/// The wanted outputs of a batch.
enum WantedOutputs {
    /// Classes, `[batch]`; for a text `[batch * context]`.
    Classes(Tensor<1, Int>),
    /// Standardised quantities, `[batch, 1]`.
    Quantities(Tensor<2>),
}

/// Checks that `samples` have the shape and objective of `task`.
pub(crate) fn check_samples(task: &Task, samples: &Samples) -> Result<(), TrainError> {
    if (samples.shape(), samples.objective()) == (task.shape(), task.objective()) {
        return Ok(());
    }
    Err(TrainError::Mismatch {
        expected: task.shape(),
        expected_objective: task.objective(),
        found: samples.shape(),
        found_objective: samples.objective(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{DeviceName, OptimizerOptions};
    use mingle_datasets::DataSource;

    #[test]
    fn the_mean_of_the_gradients_of_single_samples_is_the_gradient_of_all() {
        let data = "digits".parse::<DataSource>().unwrap().load(1).unwrap();
        let samples = data.train.select(&(0..40).collect::<Vec<usize>>());
        for model in ["softmax", "mlp:hidden=7", "cnn"] {
            let task = Task::new(model.parse().unwrap(), samples.shape(), samples.classes()).unwrap();
            let options = TrainerOptions {
                task,
                device: "cpu".parse::<DeviceName>().unwrap().open().unwrap(),
                optimizer: OptimizerOptions { learning_rate: 1.0, ..OptimizerOptions::default() },
                batch_size: 40,
                augmentation: Augmentation::NONE,
                data_seed: 1,
                weight: SiteWeight::Equal,
            };
            let mut trainer = Trainer::new(options, samples.clone()).unwrap();
            let at = task.initial_parameters(3);
            let mut mean = vec![0.0; at.len()];
            let mut passed = 0;
            let add = |gradient: &[f32]| {
                passed += 1;
                mean.iter_mut().zip(gradient).for_each(|(mean, value)| *mean += f64::from(*value) / 40.0);
            };
            trainer.sample_gradients(&at, add).unwrap();
            let step = trainer.train(&at, 1).unwrap().delta;
            let off = mean.iter().zip(&step).map(|(mean, step)| (mean + f64::from(*step)).abs()).fold(0.0, f64::max);
            assert!(passed == 40 && off < 1e-5, "{model}: {off}");
            assert!(step.iter().any(|step| step.abs() > 1e-3), "{model}");
        }
    }
}
