//! The training of all nodes of a simulated swarm, and the judgement of their models.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mingle_models::{Evaluation, Evaluator, Samples, Split, Task, Trainer};
use mingle_peer::error::Context;
use mingle_peer::{ErrorKind, Result};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::parallel::in_parallel;
use crate::cli::TrainingArgs;
use crate::task::{self, Parts};

/// The local work of one node.
pub(crate) struct Job {
    /// Who.
    pub(crate) node: usize,
    /// From where, `[parameters]`.
    pub(crate) from: Arc<[f32]>,
    /// How many gradient steps.
    pub(crate) steps: u32,
}

/// How good the models of a swarm are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Judgement {
    /// Test accuracy, the mean over nodes.
    pub(crate) mean_accuracy: f64,
    /// That of the worst node.
    pub(crate) worst_accuracy: f64,
    /// Test cross-entropy in nats, the mean over nodes.
    pub(crate) loss: f64,
    /// How far the models are from their mean: root mean square distance, over the norm of the mean.
    pub(crate) disagreement: f64,
}

/// A trainer for each node, and one evaluator.
pub(crate) struct Learners {
    trainers: Vec<Trainer>,
    evaluator: Evaluator,
    test: Samples,
    task: Task,
    train_samples: usize,
    seed: u64,
    threads: usize,
    /// Spent here so far.
    time: Duration,
}

impl Learners {
    /// Deals the data to `nodes` nodes; models are judged on the first `test_samples` of the held-out data. Parts go to nodes in an order drawn from the seed, so that who holds similar data
    /// does not follow from where a node stands in the plan.
    ///
    /// # Errors
    /// Names that mean nothing, data that cannot be read or are too few, a device that is not there.
    pub(crate) fn new(
        training: &TrainingArgs,
        nodes: usize,
        test_samples: Option<usize>,
        threads: usize,
    ) -> Result<Self> {
        task::check_arguments(training)?;
        let device = task::open_device(&training.device)?;
        let mut parts = Parts::load(&training.data, training.seed)?;
        let split = training.split.clone().unwrap_or_else(|| Split::Iid.to_string());
        parts.deal(&split, nodes, training.seed)?;
        let task = parts.task(&training.model)?;
        let mut places: Vec<usize> = (0..nodes).collect();
        places.shuffle(&mut ChaCha8Rng::seed_from_u64(training.seed));
        let trainer = |node: usize| {
            let options = task::trainer_options(training, task, &device, node)?;
            Trainer::new(options, parts.part(places[node])).context(ErrorKind::BadInput, "cannot train")
        };
        Ok(Self {
            trainers: (0..nodes).map(trainer).collect::<Result<_>>()?,
            evaluator: Evaluator::new(task, &device),
            train_samples: parts.all().len(),
            test: first(parts.test, test_samples),
            task,
            seed: training.seed,
            threads: threads.max(1),
            time: Duration::ZERO,
        })
    }

    /// The model that every node begins with.
    pub(crate) fn initial(&self) -> Vec<f32> {
        self.task.initial_parameters(self.seed)
    }

    /// The model and the shape of its data.
    pub(crate) fn task(&self) -> &Task {
        &self.task
    }

    /// Gradient steps taken by all nodes, in passes over all data.
    pub(crate) fn epochs(&self, batch_size: usize) -> f64 {
        let samples = |trainer: &Trainer| trainer.step() * batch_size.min(trainer.sample_count()) as u64;
        self.trainers.iter().map(samples).sum::<u64>() as f64 / self.train_samples as f64
    }

    /// Threads at work at once.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// How long training and evaluating took, of real time.
    pub(crate) fn time_spent(&self) -> Duration {
        self.time
    }

    /// Does the work of some nodes, each named at most once and in ascending order; the changes come in the same order.
    ///
    /// # Errors
    /// The device failed.
    pub(crate) fn train(&mut self, jobs: &[Job]) -> Result<Vec<Vec<f32>>> {
        let began = Instant::now();
        let mut wanted = jobs.iter().peekable();
        let mut work: Vec<(&mut Trainer, &Job)> = Vec::with_capacity(jobs.len());
        for (node, trainer) in self.trainers.iter_mut().enumerate() {
            if let Some(job) = wanted.next_if(|job| job.node == node) {
                work.push((trainer, job));
            }
        }
        let deltas = in_parallel(self.threads, work, |(trainer, job)| {
            let outcome = trainer.train(&job.from, job.steps);
            outcome.map(|outcome| outcome.delta).context(ErrorKind::Training, format!("node {} cannot train", job.node))
        });
        self.time += began.elapsed();
        deltas
    }

    /// Judges the models of all nodes on the data that none of them trains on.
    ///
    /// # Errors
    /// The device failed.
    pub(crate) fn judge(&mut self, models: &[Arc<[f32]>]) -> Result<Judgement> {
        let began = Instant::now();
        let (evaluator, test) = (&self.evaluator, &self.test);
        let judged: Vec<Evaluation> = in_parallel(self.threads, models.iter().collect(), |model| {
            evaluator.evaluate(model, test).context(ErrorKind::Training, "cannot evaluate")
        })?;
        let n = judged.len().max(1) as f64;
        self.time += began.elapsed();
        Ok(Judgement {
            mean_accuracy: judged.iter().map(|judged| judged.accuracy).sum::<f64>() / n,
            worst_accuracy: judged.iter().map(|judged| judged.accuracy).fold(1.0, f64::min),
            loss: judged.iter().map(|judged| judged.loss).sum::<f64>() / n,
            disagreement: disagreement(models),
        })
    }
}

/// As many of the samples as are wanted.
fn first(samples: Samples, wanted: Option<usize>) -> Samples {
    match wanted.filter(|wanted| *wanted < samples.len()) {
        Some(wanted) => samples.select(&(0..wanted).collect::<Vec<_>>()),
        None => samples,
    }
}

/// Root mean square distance of the models from their mean, over the norm of the mean; 0 if all are zero.
fn disagreement(models: &[Arc<[f32]>]) -> f64 {
    let n = models.len() as f64;
    let (mut apart, mut own) = (0.0, 0.0);
    for index in 0..models.first().map_or(0, |model| model.len()) {
        let values = || models.iter().map(|model| f64::from(model[index]));
        let mean = values().sum::<f64>() / n;
        apart += values().map(|value| (value - mean) * (value - mean)).sum::<f64>() / n;
        own += mean * mean;
    }
    if apart == 0.0 { 0.0 } else { (apart / own).sqrt() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn models_disagree_as_far_as_they_are_from_their_mean() {
        let models: [Arc<[f32]>; 2] = [Arc::from([3.0, 5.0]), Arc::from([3.0, 3.0])];
        assert!((disagreement(&models) - (1.0f64 / 25.0).sqrt()).abs() < 1e-12);
        assert_eq!(disagreement(&[Arc::from([1.0, 2.0]), Arc::from([1.0, 2.0])]), 0.0);
        assert_eq!(disagreement(&[]), 0.0);
    }
}
