//! The training of all nodes of a simulated swarm, and the evaluation of their models.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mingle_models::{Device, Evaluator, LearningRateSchedule, ModelEvaluation, Samples, Task, Trainer};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::{NodeTraining, SimulationError, SwarmMeans, Workers};

/// The usual number of rounds from one evaluation to the next.
pub const BETWEEN_EVALUATIONS: u64 = 4;
/// The multiplications of an evaluation of all nodes that takes long, some ten seconds on two cores.
const LONG_EVALUATION: u128 = 1 << 36;
/// Samples that are evaluated in the time in which one is trained on.
const EVALUATED_PER_TRAINED: u64 = 3;

/// The local work of one node.
#[derive(Clone, Debug)]
pub struct NodeWork {
    /// The node.
    pub node: usize,
    /// The round, from 0.
    pub round: u64,
    /// The parameters to start from, `[parameters]`.
    pub from: Arc<[f32]>,
    /// The number of gradient steps.
    pub steps: u32,
    /// Rounds that train from this one on, this one included.
    pub rounds_left: u64,
    /// Factor by which the last change was multiplied when it was added to the model.
    pub last_factor: f64,
}

/// The quality of the models of a swarm.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Judgement {
    /// The metrics on the test samples.
    pub(super) measured: SwarmMeans,
    /// The disagreement: root mean square distance of the models from their mean, over the norm of the mean.
    pub(super) disagreement: f64,
}

/// A trainer for each node, and one evaluator.
pub struct Learners {
    trainers: Vec<Trainer>,
    evaluator: Evaluator,
    test: Samples,
    task: Task,
    train_samples: usize,
    seed: u64,
    rates: LearningRateSchedule,
    workers: Workers,
    /// Real time spent in training and evaluation so far.
    time: Duration,
}

/// The task of all nodes of a swarm, with the samples on which their models are evaluated.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The model and the shape of its data.
    pub task: Task,
    /// The device that computes.
    pub device: Device,
    /// The samples that no node trains on.
    pub test: Samples,
    /// The samples that all nodes together train on.
    pub train_samples: usize,
    /// The seed of the initial model, and of the assignment of shards.
    pub seed: u64,
    /// The learning rate of each round.
    pub rates: LearningRateSchedule,
}

impl Learners {
    /// Learners for `nodes` nodes, trained by `workers`; `trainer` makes that of a node for a shard of the data.
    /// Shards go to nodes in an order drawn from the seed, so that similar data do not follow from places in the plan.
    ///
    /// # Errors
    /// An error of `trainer`.
    pub fn new<E>(
        subject: Subject,
        nodes: usize,
        workers: Workers,
        trainer: impl Fn(usize, usize) -> Result<Trainer, E>,
    ) -> Result<Self, E> {
        let Subject { task, device, test, train_samples, seed, rates } = subject;
        let mut shards: Vec<usize> = (0..nodes).collect();
        shards.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        Ok(Self {
            trainers: (0..nodes).map(|node| trainer(node, shards[node])).collect::<Result<_, E>>()?,
            evaluator: Evaluator::new(task, &device),
            train_samples,
            test,
            task,
            seed,
            rates,
            workers,
            time: Duration::ZERO,
        })
    }

    /// The model that every node begins with.
    pub fn initial(&self) -> Vec<f32> {
        self.task.initial_parameters(self.seed)
    }

    /// The model and the shape of its data.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// Passes over all data: the samples of all nodes' gradient steps, over the training samples.
    pub(super) fn epochs(&self) -> f64 {
        let samples = |trainer: &Trainer| trainer.step() * trainer.samples_per_step();
        self.trainers.iter().map(samples).sum::<u64>() as f64 / self.train_samples as f64
    }

    /// The number of rounds from one evaluation to the next with which evaluations take no longer than training with so many
    /// local steps, if they take long at all.
    pub fn rounds_between_evaluations(&self, local_steps: u32) -> u64 {
        let evaluated = self.test.len() as u64;
        let all = evaluated as u128 * (self.trainers.len() * self.task.parameter_count()) as u128;
        if all < LONG_EVALUATION {
            return BETWEEN_EVALUATIONS;
        }
        let in_a_round = self.trainers.first().map_or(1, Trainer::samples_per_step) * u64::from(local_steps.max(1));
        evaluated.div_ceil(EVALUATED_PER_TRAINED * in_a_round.max(1)).max(BETWEEN_EVALUATIONS)
    }

    /// The real time spent in training and evaluation.
    pub fn time_spent(&self) -> Duration {
        self.time
    }

    /// Evaluates the models of all nodes on the data that none of them trains on.
    ///
    /// # Errors
    /// The device failed.
    pub(super) fn judge(&mut self, models: &[Arc<[f32]>]) -> Result<Judgement, SimulationError> {
        let began = Instant::now();
        let evaluator = &self.evaluator;
        let test = &self.test;
        let Different { firsts, places } = Different::of(models);
        let judged: Vec<ModelEvaluation> =
            self.workers.map(firsts, |model| evaluator.evaluate(model, test).map_err(SimulationError::Evaluation))?;
        self.time += began.elapsed();
        let of_all: Vec<ModelEvaluation> = places.into_iter().map(|place| judged[place]).collect();
        Ok(Judgement { measured: SwarmMeans::of(&of_all), disagreement: disagreement(models) })
    }
}

impl NodeTraining for Learners {
    fn train(&mut self, jobs: &[NodeWork]) -> Result<Vec<Vec<f32>>, SimulationError> {
        let began = Instant::now();
        let mut wanted = jobs.iter().peekable();
        let mut work: Vec<(&mut Trainer, &NodeWork)> = Vec::with_capacity(jobs.len());
        for (node, trainer) in self.trainers.iter_mut().enumerate() {
            if let Some(job) = wanted.next_if(|job| job.node == node) {
                work.push((trainer, job));
            }
        }
        let rates = self.rates;
        let deltas = self.workers.map(work, |(trainer, job)| {
            let rate = trainer.set_learning_rate(rates.rate(job.round));
            let outcome = rate.and_then(|()| trainer.train(&job.from, job.steps));
            let failed = |source| SimulationError::Training { node: job.node, source };
            outcome.map(|outcome| outcome.delta).map_err(failed)
        });
        self.time += began.elapsed();
        deltas
    }

    fn workers(&self) -> Option<&Workers> {
        Some(&self.workers)
    }
}

/// Models of which many can be the same, as after an exact average.
struct Different<'a> {
    /// One of each.
    firsts: Vec<&'a Arc<[f32]>>,
    /// The place among them of each model.
    places: Vec<usize>,
}

impl<'a> Different<'a> {
    fn of(models: &'a [Arc<[f32]>]) -> Self {
        let mut firsts: Vec<&Arc<[f32]>> = Vec::new();
        let place = |model: &'a Arc<[f32]>| {
            let known = firsts.iter().position(|first| are_same(first, model));
            known.unwrap_or_else(|| {
                firsts.push(model);
                firsts.len() - 1
            })
        };
        let places = models.iter().map(place).collect();
        Self { firsts, places }
    }
}

/// Returns `true` for the same bits.
fn are_same(one: &[f32], other: &[f32]) -> bool {
    one.iter().map(|value| value.to_bits()).eq(other.iter().map(|value| value.to_bits()))
}

/// Root mean square distance of the models from their mean, over the norm of the mean; 0 if all are zero.
pub fn disagreement(models: &[Arc<[f32]>]) -> f64 {
    let n = models.len() as f64;
    let mut apart = 0.0;
    let mut own = 0.0;
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

    #[test]
    fn models_with_the_same_bits_are_one() {
        let models: [Arc<[f32]>; 5] = [[1.0, 0.0], [1.0, 2.0], [1.0, 0.0], [1.0, -0.0], [1.0, 2.0]].map(Arc::from);
        let Different { firsts, places } = Different::of(&models);
        assert_eq!(places, [0, 1, 0, 2, 1]);
        assert_eq!(firsts, [&models[0], &models[1], &models[3]]);
    }
}
