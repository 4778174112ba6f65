//! The built-in models as the local training of a peer.

use std::sync::Arc;

use mingle_models::{Checkpoint, Evaluator, LearningRateSchedule, Samples, Task, Trainer, meaning};
use mingle_peer::training::{
    Budget, Evaluation, Facts, Layout, LocalTraining, Metrics, ModelEncoder, Patience, Trained, TrainingError,
};

use crate::task_card::{Card, layout_of};

/// A built-in model on a peer's part of the data.
pub(crate) struct BuiltInTraining {
    card: Card,
    task: Task,
    layout: Layout,
    learner: BuiltinLearner,
    facts: Facts,
    first: FirstModel,
}

/// The model that a peer begins a run with.
pub(crate) enum FirstModel {
    /// The one of the seed, the same on all peers.
    OfTheSeed,
    /// The one of a file, `[dimension]`. Only the founder's is used, since all others begin with it.
    File(Vec<f32>),
    /// The one of the founder's file, which this peer lacks.
    Elsewhere,
}

/// Trainer and evaluator of a model.
pub(crate) struct BuiltinLearner {
    pub(crate) trainer: Trainer,
    /// The learning rate of each round of the run.
    pub(crate) rates: LearningRateSchedule,
    pub(crate) evaluator: Evaluator,
    /// Held-out samples for the evaluation.
    pub(crate) test: Samples,
}

impl BuiltInTraining {
    /// The training of `card`.
    pub(crate) fn new(card: Card, task: Task, learner: BuiltinLearner, facts: Facts, first: FirstModel) -> Self {
        let layout = layout_of(&task);
        Self { card, task, layout, learner, facts, first }
    }
}

impl LocalTraining for BuiltInTraining {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn initial(&mut self) -> Result<Vec<f32>, TrainingError> {
        match &self.first {
            FirstModel::OfTheSeed => Ok(self.task.initial_parameters(self.card.seed)),
            FirstModel::File(parameters) => Ok(parameters.clone()),
            FirstModel::Elsewhere => Err(
                "all begin with the model file of the founder, which is this peer: give it that file with --begin-with"
                    .into(),
            ),
        }
    }

    fn begins_with_the_founder(&self) -> bool {
        self.card.beginning.is_some()
    }

    fn train(&mut self, from: &[f32], budget: &Budget) -> Result<Trained, TrainingError> {
        self.train_shared(&Arc::from(from), budget)
    }

    fn train_shared(&mut self, from: &Arc<[f32]>, budget: &Budget) -> Result<Trained, TrainingError> {
        let BuiltinLearner { trainer, rates, .. } = &mut self.learner;
        trainer.set_learning_rate(rates.rate(budget.round))?;
        let mut timer = budget.patience.steps();
        let outcome = trainer.train_shared_while(from, budget.local_steps, || timer.has_time_for_another())?;
        Ok(Trained { change: outcome.delta, steps: outcome.steps, loss: Some(f64::from(outcome.mean_loss)) })
    }

    fn evaluate(&mut self, parameters: &[f32], patience: &Patience) -> Result<Evaluation, TrainingError> {
        self.evaluate_shared(&Arc::from(parameters), patience)
    }

    fn evaluate_shared(&mut self, parameters: &Arc<[f32]>, patience: &Patience) -> Result<Evaluation, TrainingError> {
        let BuiltinLearner { evaluator, test, .. } = &self.learner;
        let evaluation = evaluator.evaluate_shared_while(parameters, test, || !patience.is_over())?;
        let metrics: Metrics = evaluation.metrics().into_iter().collect();
        Ok(Evaluation { metrics, samples: evaluation.samples, is_whole: evaluation.samples == test.predictable() })
    }

    fn state(&self) -> Vec<u8> {
        // A device that cannot be read fails in the next step too, with an error.
        self.learner.trainer.state().unwrap_or_default()
    }

    fn largest_state(&self) -> usize {
        self.learner.trainer.largest_state()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), TrainingError> {
        Ok(self.learner.trainer.restore(state)?)
    }

    fn facts(&self) -> Facts {
        self.facts.clone()
    }

    /// In PyTorch's names and shapes, with the meaning of inputs and outputs as metadata.
    fn model_encoder(&self) -> ModelEncoder {
        let task = self.task;
        let metadata = meaning::metadata(&self.card.data, self.card.model);
        Arc::new(move |parameters| Ok(Checkpoint::encoded(parameters, &metadata, &task)?))
    }
}
