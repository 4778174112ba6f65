//! What the swarm is compared with: every peer alone on its own data, and all data in one place.

use mingle_models::{Device, Evaluator, Samples, SiteWeight, Task, Trainer, TrainerOptions};
use mingle_peer::error::Context;
use mingle_peer::{ErrorKind, Result};
use serde::Serialize;
use tokio::sync::oneshot;

use super::peer_options::training_arguments;
use crate::cli::DemoArgs;
use crate::task::{self, Parts};

/// Rounds whose steps are taken in one go, where the learning rate is the same in all.
const ROUNDS_PER_TURN: u64 = 16;

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
        let doing = "cannot train the comparison";
        let training = training_arguments(self.arguments);
        let options = task::trainer_options(&training, self.task, &self.device, 0)?;
        let options = TrainerOptions { batch_size, data_seed, weight: SiteWeight::Equal, ..options };
        let rates = training.optimizer.rates(training.learning_rate, training.rounds)?;
        let mut trainer = Trainer::new(options, train).context(ErrorKind::BadInput, doing)?;
        let mut parameters = self.task.initial_parameters(self.arguments.seed);
        let mut round = 0;
        while round < training.rounds {
            let rounds = if rates.is_constant() { ROUNDS_PER_TURN.min(training.rounds - round) } else { 1 };
            trainer.set_learning_rate(rates.rate(round)).context(ErrorKind::Training, doing)?;
            let steps = u32::try_from(rounds * u64::from(self.arguments.local_steps)).unwrap_or(u32::MAX);
            let outcome = trainer.train(&parameters, steps).context(ErrorKind::Training, doing)?;
            for (parameter, change) in parameters.iter_mut().zip(&outcome.delta) {
                *parameter += change;
            }
            round += rounds;
        }
        let evaluation = Evaluator::new(self.task, &self.device)
            .evaluate(&parameters, self.test)
            .context(ErrorKind::Training, doing)?;
        Ok(evaluation.score())
    }
}
