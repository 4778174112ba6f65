//! What the swarm is compared with: every peer alone on its own data, and all data in one place.

use mingle_builtin::alone::train_alone;
use mingle_builtin::task::{self, Parts};
use mingle_models::{Device, Evaluator, Samples, Task, TrainerOptions};
use mingle_peer::error::Context;
use mingle_peer::{ErrorKind, Result};
use serde::Serialize;
use tokio::sync::oneshot;

use super::peer_options::training_arguments;
use crate::cli::DemoArgs;

/// Test accuracies without a swarm; r2 of a regression.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Baselines {
    /// Each peer alone on its own part, as many gradient steps as in the swarm.
    pub(crate) alone: Vec<f64>,
    /// All data in one place, as many gradient steps, each on as many samples as the swarm sees in one.
    pub(crate) central: f64,
}

impl Baselines {
    /// The best peer alone.
    pub(crate) fn best_alone(&self) -> f64 {
        self.alone.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// The worst peer alone.
    pub(crate) fn worst_alone(&self) -> f64 {
        self.alone.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The mean over the peers, each alone.
    #[allow(clippy::cast_precision_loss)] // a handful of peers
    pub(crate) fn mean_alone(&self) -> f64 {
        self.alone.iter().sum::<f64>() / self.alone.len() as f64
    }

    /// Trains them all on a thread of their own, which ends with the process if nobody waits for it any more.
    pub(crate) async fn train_aside(
        arguments: DemoArgs,
        parts: Parts,
        progress: impl Fn(&str) + Send + 'static,
    ) -> Result<Self> {
        let (sender, receiver) = oneshot::channel();
        std::thread::spawn(move || sender.send(Self::train(&arguments, &parts, progress)));
        receiver.await.context(ErrorKind::Training, "the comparison broke off")?
    }

    fn train(arguments: &DemoArgs, parts: &Parts, progress: impl Fn(&str)) -> Result<Self> {
        let task = parts.task(&arguments.model)?;
        let device = task::open_device(&arguments.device)?;
        let bench = Bench { arguments, task, device, test: &parts.test };
        let mut alone = Vec::new();
        for node in 0..arguments.peers {
            progress(&format!("peer {node} of {} alone", arguments.peers));
            let seed = task::data_seed(arguments.seed, node);
            alone.push(bench.score(parts.part(node), arguments.batch_size, seed)?);
        }
        progress("all data in one place");
        let batch_size = arguments.batch_size.saturating_mul(arguments.peers);
        let seed = task::data_seed(arguments.seed, arguments.peers);
        let central = bench.score(parts.all(), batch_size, seed)?;
        Ok(Self { alone, central })
    }
}

/// What all baselines share.
struct Bench<'a> {
    arguments: &'a DemoArgs,
    task: Task,
    device: Device,
    test: &'a Samples,
}

impl Bench<'_> {
    /// Trains from the swarm's own initial model on `train`, and tests.
    fn score(&self, train: Samples, batch_size: usize, data_seed: u64) -> Result<f64> {
        let training = training_arguments(self.arguments);
        let options = task::trainer_options(&training, self.task, &self.device, 0)?;
        let options = TrainerOptions { batch_size, data_seed, ..options };
        let parameters = train_alone(&training, options, train, self.arguments.local_steps)?;
        let evaluation = Evaluator::new(self.task, &self.device)
            .evaluate(&parameters, self.test)
            .context(ErrorKind::Training, "cannot judge the comparison")?;
        Ok(evaluation.score())
    }
}
