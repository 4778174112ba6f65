//! What this peer trains: data, model and device from the command line.

use mingle_models::{
    Augmentation, DataCard, DataError, DataSource, Device, DeviceName, Evaluator, ModelKind, Objective, ObjectiveKind,
    RawData, SampleShape, Samples, SiteWeight, Split, Task, Trainer, TrainerOptions,
};
use mingle_peer::error::Context;
use mingle_peer::{Error, ErrorKind, Result};

use crate::cli::{TrainingArgs, WeightArg, settled_weight};
use crate::limits;

/// Everything that local training needs.
pub(crate) struct LocalTask {
    /// The model and the shape of its samples.
    pub(crate) task: Task,
    /// Where it is computed.
    pub(crate) device: Device,
    /// The samples that this peer trains on.
    pub(crate) train: Samples,
    /// The samples that no peer trains on.
    pub(crate) test: Samples,
}

impl LocalTask {
    /// Checks that the model fits the data and takes the part of `node`.
    pub(crate) fn new(arguments: &TrainingArgs, parts: &Parts, node: usize, device: Device) -> Result<Self> {
        let task = parts.task(&arguments.model)?;
        Ok(Self { task, device, train: parts.part(node), test: parts.test.clone() })
    }

    /// The trainer of `node`, the evaluator for its models, and the samples to evaluate on.
    pub(crate) fn build(self, arguments: &TrainingArgs, node: usize) -> Result<(Trainer, Evaluator, Samples)> {
        let options = trainer_options(arguments, self.task, &self.device, node)?;
        let trainer = Trainer::new(options, self.train).context(ErrorKind::BadInput, "cannot train")?;
        Ok((trainer, Evaluator::new(self.task, &self.device), self.test))
    }
}

/// All data of a run, and which samples each node trains on.
pub(crate) struct Parts {
    train: Samples,
    /// The held-out samples.
    pub(crate) test: Samples,
    /// Sample indices by node; none: every node trains on all of them.
    parts: Option<Vec<Vec<usize>>>,
}

impl Parts {
    /// Reads `data`, with the columns, classes and scaling that they have by themselves; every node has all of them.
    pub(crate) fn load(data: &str, objective: ObjectiveKind, seed: u64) -> Result<Self> {
        let raw = read(data)?;
        let card = raw.card_for(objective, seed).context(ErrorKind::BadInput, format!("--data {data}"))?;
        Self::held_to(raw, &card, seed).context(ErrorKind::BadInput, format!("--data {data}"))
    }

    /// What was read, in the columns, classes and scaling of `card`; every node has all of it.
    pub(crate) fn held_to(raw: RawData, card: &DataCard, seed: u64) -> Result<Self, DataError> {
        let set = raw.data_set(card, seed)?;
        Ok(Self { train: set.train, test: set.test, parts: None })
    }

    /// Deals the training samples to `nodes` nodes.
    pub(crate) fn deal(&mut self, split: &str, nodes: usize, seed: u64) -> Result {
        let doing = format!("--split {split}");
        let split: Split = split.parse().context(ErrorKind::BadInput, &doing)?;
        let parts = split.share_out(&self.train, nodes, seed).context(ErrorKind::BadInput, doing)?;
        self.parts = Some(parts);
        Ok(())
    }

    /// The model `name` for these data.
    pub(crate) fn task(&self, name: &str) -> Result<Task> {
        let model: ModelKind = name.parse().context(ErrorKind::BadInput, format!("--model {name}"))?;
        Task::new(model, self.train.shape(), self.train.objective())
            .context(ErrorKind::BadInput, format!("--model {name} does not fit the data"))
    }

    /// The samples of one node.
    pub(crate) fn part(&self, node: usize) -> Samples {
        match &self.parts {
            None => self.train.clone(),
            Some(parts) => self.train.select(&parts[node]),
        }
    }

    /// The weight of each of `nodes` nodes where `wanted` is asked for: without a number of its own, a node with the mean number of samples
    /// counts as one.
    pub(crate) fn weight(&self, wanted: WeightArg, nodes: usize) -> Result<WeightArg> {
        wanted.or_unit(|| Ok(SiteWeight::by_mean_of(self.train.len() as u64, nodes as u64)))
    }

    /// How many samples all nodes train on together.
    pub(crate) fn training_samples(&self) -> usize {
        self.train.len()
    }

    /// The samples of all nodes in one place.
    pub(crate) fn all(&self) -> Samples {
        self.train.clone()
    }
}

/// Reads `data`.
pub(crate) fn read(data: &str) -> Result<RawData> {
    let source: DataSource = data.parse().context(ErrorKind::BadInput, format!("--data {data}"))?;
    source.read().context(ErrorKind::BadInput, format!("--data {data}"))
}

/// Refuses a model that takes no samples of this shape, however many classes there are.
pub(crate) fn check_model(name: &str, shape: SampleShape, objective: ObjectiveKind) -> Result {
    let objective = match objective {
        ObjectiveKind::Classification => Objective::Classification { classes: 2 },
        ObjectiveKind::Regression => Objective::Regression,
    };
    let model: ModelKind = name.parse().context(ErrorKind::BadInput, format!("--model {name}"))?;
    Task::new(model, shape, objective)
        .context(ErrorKind::BadInput, format!("--model {name} does not fit the data"))
        .map(drop)
}

/// How `node` trains.
pub(crate) fn trainer_options(
    arguments: &TrainingArgs,
    task: Task,
    device: &Device,
    node: usize,
) -> Result<TrainerOptions> {
    let TrainingArgs { optimizer, learning_rate, batch_size, .. } = *arguments;
    Ok(TrainerOptions {
        task,
        device: device.clone(),
        optimizer: optimizer.settings(learning_rate)?,
        batch_size,
        augmentation: augmentation(&arguments.augment)?,
        data_seed: data_seed(arguments.seed, node),
        weight: settled_weight(arguments.weight)?,
    })
}

fn augmentation(text: &str) -> Result<Augmentation> {
    text.parse().context(ErrorKind::BadInput, format!("--augment {text}"))
}

/// Opens the device called `name`.
pub(crate) fn open_device(name: &str) -> Result<Device> {
    let parsed: DeviceName = name.parse().context(ErrorKind::BadInput, format!("--device {name}"))?;
    parsed.open().context(ErrorKind::BadInput, format!("--device {name}"))
}

/// Each node draws its minibatches from a stream of its own.
pub(crate) fn data_seed(seed: u64, node: usize) -> u64 {
    seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(node as u64 + 1)
}

/// Refuses names that mean nothing and numbers that no training can use, before anything is started.
pub(crate) fn check_arguments(arguments: &TrainingArgs) -> Result {
    check_names(arguments)?;
    let wrong = |what: &str| Err(Error::new(ErrorKind::BadInput, what));
    limits::check("rounds", arguments.rounds, 1..=limits::MOST_ROUNDS)?;
    limits::check("batch-size", arguments.batch_size as u64, 1..=limits::LARGEST_BATCH)?;
    limits::check("evaluate-every", arguments.evaluate_every, 1..=limits::MOST_ROUNDS)?;
    if !arguments.learning_rate.is_finite() || arguments.learning_rate <= 0.0 {
        return wrong("--learning-rate must be a positive number");
    }
    arguments.optimizer.check()?;
    arguments.privacy.check()
}

fn check_names(arguments: &TrainingArgs) -> Result {
    let TrainingArgs { data, model, split, device, .. } = arguments;
    data.parse::<DataSource>().context(ErrorKind::BadInput, format!("--data {data}"))?;
    model.parse::<ModelKind>().context(ErrorKind::BadInput, format!("--model {model}"))?;
    augmentation(&arguments.augment)?;
    device.parse::<DeviceName>().context(ErrorKind::BadInput, format!("--device {device}"))?;
    if let Some(split) = split {
        split.parse::<Split>().context(ErrorKind::BadInput, format!("--split {split}"))?;
    }
    Ok(())
}
