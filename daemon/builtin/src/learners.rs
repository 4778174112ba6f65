//! The built-in models as the learners of the lab's simulations.

use std::num::NonZero;

use mingle_lab::simulation::{Learners, Subject, Workers};
use mingle_models::{Split, Trainer};
use mingle_peer::error::Context;
use mingle_peer::{ErrorKind, Result};

use crate::errors;
use crate::options::TrainingOptions;
use crate::task::{self, TaskSamples};

/// Deals the data to `nodes` nodes of a simulated swarm; models are evaluated on the first `test_samples` of the
/// held-out data. `remark` gets the remarks on how the data were read.
///
/// # Errors
/// Names are invalid, the data cannot be read or are too few, or the device is missing.
pub fn learners(
    training: &TrainingOptions,
    nodes: usize,
    test_samples: Option<usize>,
    threads: usize,
    remark: impl FnMut(&String),
) -> Result<Learners> {
    task::check_options(training)?;
    let device = task::open_device(&training.device)?;
    let mut parts = TaskSamples::load(&training.data, training.task, training.seed)?;
    parts.remarks().iter().for_each(remark);
    let split = training.split.clone().unwrap_or_else(|| Split::Iid.to_string());
    parts.deal(&split, nodes, training.seed)?;
    let training = &TrainingOptions { weight: parts.weight(training.weight, nodes)?, ..training.clone() };
    let task = parts.task(&training.model)?;
    let subject = Subject {
        task,
        device: device.clone(),
        test: task::first(&parts.test, test_samples.and_then(NonZero::new)),
        train_samples: parts.all().len(),
        seed: training.seed,
        rates: training.optimizer.rates(training.learning_rate, training.rounds)?,
    };
    let workers = Workers::start(threads, nodes).map_err(errors::simulation_error)?;
    Learners::new(subject, nodes, workers, |node, shard| {
        let options = task::trainer_options(training, task, &device, node)?;
        Trainer::new(options, parts.part(shard)).context(ErrorKind::BadInput, "cannot train")
    })
}
