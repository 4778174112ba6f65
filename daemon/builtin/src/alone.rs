//! Training without a swarm, for comparison: as many gradient steps from the same initial model, on some samples.

use mingle_models::{Samples, SiteWeight, Trainer, TrainerOptions};
use mingle_peer::error::Context;
use mingle_peer::{ErrorKind, Result};

use crate::options::TrainingOptions;

/// Rounds whose steps are taken in one call, if the learning rate is the same in all.
const ROUNDS_PER_TURN: u64 = 16;

/// The parameters after `local_steps` local steps a round on `samples`, from `initial`, `[dimension]`, in the rounds and
/// at the rates of `training`.
///
/// # Errors
/// The options or samples cannot be used, or the device failed.
pub fn train_alone(
    training: &TrainingOptions,
    options: TrainerOptions,
    samples: Samples,
    local_steps: u32,
    initial: Vec<f32>,
) -> Result<Vec<f32>> {
    let doing = "cannot train the comparison";
    let rates = training.optimizer.rates(training.learning_rate, training.rounds)?;
    let mut parameters = initial;
    let options = TrainerOptions { weight: SiteWeight::Equal, ..options };
    let mut trainer = Trainer::new(options, samples).context(ErrorKind::BadInput, doing)?;
    let mut round = 0;
    while round < training.rounds {
        let rounds = if rates.is_constant() { ROUNDS_PER_TURN.min(training.rounds - round) } else { 1 };
        trainer.set_learning_rate(rates.rate(round)).context(ErrorKind::Training, doing)?;
        let steps = u32::try_from(rounds * u64::from(local_steps)).unwrap_or(u32::MAX);
        let outcome = trainer.train(&parameters, steps).context(ErrorKind::Training, doing)?;
        parameters.iter_mut().zip(&outcome.delta).for_each(|(parameter, change)| *parameter += change);
        round += rounds;
    }
    Ok(parameters)
}
