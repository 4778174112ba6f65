//! The built-in models as the local training of a peer.

use std::sync::Arc;

use mingle_models::{Checkpoint, Evaluator, Samples, Task, Trainer};
use mingle_peer::training::{
    Budget, Evaluation, Facts, Layout, LocalTraining, Metrics, ModelEncoder, Patience, Trained, TrainingError,
};

use crate::meaning;
use crate::task_card::Card;

/// A built-in model on a peer's part of the data.
pub(crate) struct BuiltInTraining {
    card: Card,
    task: Task,
    layout: Layout,
    trainer: Trainer,
    evaluator: Evaluator,
    test: Samples,
    facts: Facts,
}

impl BuiltInTraining {
    /// The training of `card`: `trainer` trains, and `evaluator` measures on `test`.
    pub(crate) fn new(
        card: Card,
        task: Task,
        trainer: Trainer,
        evaluator: Evaluator,
        test: Samples,
        facts: Facts,
    ) -> Self {
        // What stands where in the vector is burn's affair: the names are those of the model file.
        let layout = Layout::flat(task.parameter_count());
        Self { card, task, layout, trainer, evaluator, test, facts }
    }
}

impl LocalTraining for BuiltInTraining {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn initial(&mut self) -> Result<Vec<f32>, TrainingError> {
        Ok(self.task.initial_parameters(self.card.seed))
    }

    fn train(&mut self, from: &[f32], budget: &Budget) -> Result<Trained, TrainingError> {
        let outcome = self.trainer.train_while(from, budget.local_steps, || !budget.patience.is_over())?;
        Ok(Trained { change: outcome.delta, steps: outcome.steps, loss: Some(f64::from(outcome.mean_loss)) })
    }

    fn evaluate(&mut self, parameters: &[f32], patience: &Patience) -> Result<Evaluation, TrainingError> {
        let evaluation = self.evaluator.evaluate_while(parameters, &self.test, || !patience.is_over())?;
        let metrics: Metrics = [("accuracy", evaluation.accuracy), ("loss", evaluation.loss)].into_iter().collect();
        Ok(Evaluation { metrics, samples: evaluation.samples, is_whole: evaluation.samples == self.test.len() })
    }

    fn state(&self) -> Vec<u8> {
        // A device that cannot be read fails the next step too, and says so there.
        self.trainer.state().unwrap_or_default()
    }

    fn largest_state(&self) -> usize {
        self.trainer.largest_state()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), TrainingError> {
        Ok(self.trainer.restore(state)?)
    }

    fn facts(&self) -> Facts {
        self.facts.clone()
    }

    /// In PyTorch's names and shapes, with what the numbers mean.
    fn model_encoder(&self) -> ModelEncoder {
        let (task, metadata) = (self.task, meaning::of(&self.card));
        Arc::new(move |parameters| {
            let checkpoint = Checkpoint { parameters: parameters.to_vec(), metadata: metadata.clone() };
            Ok(checkpoint.to_bytes(&task)?)
        })
    }
}
