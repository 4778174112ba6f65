//! Data, model and device of a training, by the names that users give them.

use std::num::NonZero;

use mingle_models::{
    Augmentation, DataCard, DataError, DataSource, Device, DeviceName, Evaluator, ModelKind, Objective, ObjectiveKind,
    RawData, SampleShape, Samples, SiteWeight, Split, Task, Trainer, TrainerOptions,
};
use mingle_peer::error::Context;
use mingle_peer::{Error, ErrorKind, Result};

use crate::limits;
use crate::options::{TrainingOptions, WeightChoice, settled_weight};

/// The parts of local training.
pub struct LocalTask {
    /// The model and the shape of its samples.
    pub task: Task,
    /// The device.
    pub device: Device,
    /// The training samples of this peer.
    pub train: Samples,
    /// The held-out samples, on which no peer trains, as many as models are judged by.
    pub test: Samples,
}

impl LocalTask {
    /// Checks that the model fits the data and takes the part of `node`.
    pub fn new(options: &TrainingOptions, parts: &TaskSamples, node: usize, device: Device) -> Result<Self> {
        let task = parts.task(&options.model)?;
        let test = first(&parts.test, options.evaluate_samples);
        Ok(Self { task, device, train: parts.part(node), test })
    }

    /// The trainer of `node`, the evaluator for its models, and the samples to evaluate on.
    pub fn build(self, options: &TrainingOptions, node: usize) -> Result<(Trainer, Evaluator, Samples)> {
        let options = trainer_options(options, self.task, &self.device, node)?;
        let trainer = Trainer::new(options, self.train).context(ErrorKind::BadInput, "cannot train")?;
        Ok((trainer, Evaluator::new(self.task, &self.device), self.test))
    }
}

/// All data of a run, with the samples of each node.
pub struct TaskSamples {
    train: Samples,
    /// The held-out samples.
    pub test: Samples,
    /// Sample indices by node; `None` if every node trains on all of them.
    parts: Option<Vec<Vec<usize>>>,
    /// Remarks for people on how the data were read, such as which column is the label.
    remarks: Vec<String>,
}

impl TaskSamples {
    /// Reads `data`, with its own columns, classes and scaling; every node has all of it.
    pub fn load(data: &str, objective: ObjectiveKind, seed: u64) -> Result<Self> {
        let raw = read(data)?;
        let card = raw.card_for(objective, seed).context(ErrorKind::BadInput, format!("--data {data}"))?;
        Self::held_to(raw, &card, seed).context(ErrorKind::BadInput, format!("--data {data}"))
    }

    /// Applies the columns, classes and scaling of `card` to `raw`; every node has all of it.
    pub fn held_to(raw: RawData, card: &DataCard, seed: u64) -> Result<Self, DataError> {
        let remarks = raw.remarks();
        let set = raw.data_set(card, seed)?;
        Ok(Self { train: set.train, test: set.test, parts: None, remarks })
    }

    /// Deals the training samples to `nodes` nodes.
    pub fn deal(&mut self, split: &str, nodes: usize, seed: u64) -> Result {
        let doing = format!("--split {split}");
        let split: Split = split.parse().context(ErrorKind::BadInput, &doing)?;
        let parts = split.share_out(&self.train, nodes, seed).context(ErrorKind::BadInput, doing)?;
        self.parts = Some(parts);
        Ok(())
    }

    /// The model `name` for these data.
    pub fn task(&self, name: &str) -> Result<Task> {
        let model: ModelKind = name.parse().context(ErrorKind::BadInput, format!("--model {name}"))?;
        Task::new(model, self.train.shape(), self.train.objective())
            .context(ErrorKind::BadInput, format!("--model {name} does not fit the data"))
    }

    /// The samples of one node.
    pub fn part(&self, node: usize) -> Samples {
        match &self.parts {
            None => self.train.clone(),
            Some(parts) => self.train.select(&parts[node]),
        }
    }

    /// The weight of each of `nodes` nodes for `wanted`: without a number of its own, a node with the mean number of
    /// samples counts as one.
    pub fn weight(&self, wanted: WeightChoice, nodes: usize) -> Result<WeightChoice> {
        wanted.or_unit(|| Ok(SiteWeight::by_mean_of(self.train.len() as u64, nodes as u64)))
    }

    /// Remarks for people on how the data were read.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Number of training samples of all nodes together.
    pub fn training_samples(&self) -> usize {
        self.train.len()
    }

    /// The training samples of all nodes together.
    pub fn all(&self) -> Samples {
        self.train.clone()
    }
}

/// Reads `data`.
pub fn read(data: &str) -> Result<RawData> {
    let source: DataSource = data.parse().context(ErrorKind::BadInput, format!("--data {data}"))?;
    source.read().context(ErrorKind::BadInput, format!("--data {data}"))
}

/// Refuses a model that takes no samples of this shape, for any number of classes.
pub fn check_model(name: &str, shape: SampleShape, objective: ObjectiveKind) -> Result {
    let objective = match objective {
        ObjectiveKind::Classification => Objective::Classification { classes: 2 },
        ObjectiveKind::Regression => Objective::Regression,
    };
    let model: ModelKind = name.parse().context(ErrorKind::BadInput, format!("--model {name}"))?;
    Task::new(model, shape, objective)
        .context(ErrorKind::BadInput, format!("--model {name} does not fit the data"))
        .map(drop)
}

/// The training settings of `node`.
pub fn trainer_options(options: &TrainingOptions, task: Task, device: &Device, node: usize) -> Result<TrainerOptions> {
    let TrainingOptions { optimizer, learning_rate, batch_size, .. } = *options;
    Ok(TrainerOptions {
        task,
        device: device.clone(),
        optimizer: optimizer.settings(learning_rate)?,
        batch_size,
        augmentation: augmentation(&options.augment)?,
        data_seed: data_seed(options.seed, node),
        weight: settled_weight(options.weight)?,
    })
}

fn augmentation(text: &str) -> Result<Augmentation> {
    text.parse().context(ErrorKind::BadInput, format!("--augment {text}"))
}

/// Opens the device called `name`.
pub fn open_device(name: &str) -> Result<Device> {
    let parsed: DeviceName = name.parse().context(ErrorKind::BadInput, format!("--device {name}"))?;
    parsed.open().context(ErrorKind::BadInput, format!("--device {name}"))
}

/// Seed of the minibatches of a node, which draws from a stream of its own.
pub fn data_seed(seed: u64, node: usize) -> u64 {
    seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(node as u64 + 1)
}

/// Refuses invalid names and numbers before anything is started.
pub fn check_options(options: &TrainingOptions) -> Result {
    check_names(options)?;
    let wrong = |what: &str| Err(Error::new(ErrorKind::BadInput, what));
    limits::check("rounds", options.rounds, 1..=limits::MOST_ROUNDS)?;
    limits::check("batch-size", options.batch_size as u64, 1..=limits::LARGEST_BATCH)?;
    limits::check("evaluate-every", options.evaluate_every, 1..=limits::MOST_ROUNDS)?;
    if !options.learning_rate.is_finite() || options.learning_rate <= 0.0 {
        return wrong("--learning-rate must be a positive number");
    }
    options.optimizer.check()?;
    options.privacy.check()
}

fn check_names(options: &TrainingOptions) -> Result {
    let TrainingOptions { data, model, split, device, .. } = options;
    data.parse::<DataSource>().context(ErrorKind::BadInput, format!("--data {data}"))?;
    model.parse::<ModelKind>().context(ErrorKind::BadInput, format!("--model {model}"))?;
    augmentation(&options.augment)?;
    device.parse::<DeviceName>().context(ErrorKind::BadInput, format!("--device {device}"))?;
    if let Some(split) = split {
        split.parse::<Split>().context(ErrorKind::BadInput, format!("--split {split}"))?;
    }
    Ok(())
}

/// The first `wanted` samples, or all of them.
pub(crate) fn first(samples: &Samples, wanted: Option<NonZero<usize>>) -> Samples {
    match wanted.map(NonZero::get).filter(|wanted| *wanted < samples.len()) {
        Some(wanted) => samples.select(&(0..wanted).collect::<Vec<_>>()),
        None => samples.clone(),
    }
}
