//! Baselines of the swarm: every peer alone on its own data, and all data in one place.

use std::sync::Arc;

use mingle_builtin::alone::train_alone;
use mingle_builtin::task::{self, TaskSamples};
use mingle_models::{Device, Evaluator, Samples, Task, TrainerOptions};
use mingle_peer::error::Context;
use mingle_peer::{ErrorKind, Result};
use serde::Serialize;
use tokio::sync::oneshot;

use crate::options::DemoOptions;
use crate::watcher::{DemoEvent, Unaided, Watcher};

/// Test accuracies without a swarm; r2 for a regression.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Baselines {
    /// Each peer alone on its own part, as many gradient steps as in the swarm.
    pub alone: Vec<f64>,
    /// All data in one place, as many gradient steps, each on as many samples as the swarm sees in one.
    pub central: f64,
}

impl Baselines {
    /// The score of the best peer alone.
    pub fn best_alone(&self) -> f64 {
        self.alone.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// The score of the worst peer alone.
    pub fn worst_alone(&self) -> f64 {
        self.alone.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The mean over the peers, each alone.
    #[allow(clippy::cast_precision_loss)] // a handful of peers
    pub fn mean_alone(&self) -> f64 {
        self.alone.iter().sum::<f64>() / self.alone.len() as f64
    }

    /// Trains all baselines on a thread of their own, which ends with the process if its result is no longer awaited.
    pub(crate) async fn train_aside(
        options: DemoOptions,
        parts: TaskSamples,
        watcher: Arc<dyn Watcher>,
    ) -> Result<Self> {
        let (sender, receiver) = oneshot::channel();
        std::thread::spawn(move || sender.send(Self::train(&options, &parts, &*watcher)));
        receiver.await.context(ErrorKind::Training, "the comparison broke off")?
    }

    fn train(options: &DemoOptions, parts: &TaskSamples, watcher: &dyn Watcher) -> Result<Self> {
        let training = &options.training;
        let task = parts.task(&training.model)?;
        let device = task::open_device(&training.device)?;
        let bench = BaselineSetup { options, task, device, test: &parts.test };
        let mut alone = Vec::new();
        for node in 0..options.peers {
            watcher.see(&DemoEvent::Trains(Unaided::Peer { node, peers: options.peers }));
            let seed = task::data_seed(training.seed, node);
            alone.push(bench.score(parts.part(node), training.batch_size, seed)?);
        }
        watcher.see(&DemoEvent::Trains(Unaided::AllData));
        let batch_size = training.batch_size.saturating_mul(options.peers);
        let seed = task::data_seed(training.seed, options.peers);
        let central = bench.score(parts.all(), batch_size, seed)?;
        Ok(Self { alone, central })
    }
}

/// The options, task, device and test samples that all baselines share.
struct BaselineSetup<'a> {
    options: &'a DemoOptions,
    task: Task,
    device: Device,
    test: &'a Samples,
}

impl BaselineSetup<'_> {
    /// Trains from the swarm's initial model on `train`, and returns the test score.
    fn score(&self, train: Samples, batch_size: usize, data_seed: u64) -> Result<f64> {
        let training = &self.options.training;
        let options = task::trainer_options(training, self.task, &self.device, 0)?;
        let options = TrainerOptions { batch_size, data_seed, ..options };
        let initial = options.task.initial_parameters(training.seed);
        let parameters = train_alone(training, options, train, self.options.local_steps, initial)?;
        let evaluation = Evaluator::new(self.task, &self.device)
            .evaluate(&parameters, self.test)
            .context(ErrorKind::Training, "cannot judge the comparison")?;
        Ok(evaluation.score())
    }
}
