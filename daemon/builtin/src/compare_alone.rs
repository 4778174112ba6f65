//! Comparison of the swarm's model with one trained on the peer's data alone.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use mingle_models::{Checkpoint, Evaluator};
use mingle_peer::error::Context;
use mingle_peer::results::LocalBaseline;
use mingle_peer::training::Metrics;
use mingle_peer::{Error, ErrorKind, Home, Result, plan};

use crate::alone::train_alone;
use crate::beginning::Beginning;
use crate::options::TrainingOptions;
use crate::task::{self, LocalTask, TaskSamples};
use crate::task_card::overwrite;
use crate::task_file::TaskFile;

/// The node that a peer trained as, and the number of nodes; known once training has begun.
pub type TrainedAs = Arc<OnceLock<(usize, usize)>>;

/// Metrics of both models on the same samples.
#[derive(Clone, Debug)]
pub struct Compared {
    /// The model of the swarm.
    pub swarm: Metrics,
    /// The model of the peer alone.
    pub alone: LocalBaseline,
}

/// After the run in `home`: trains the same model again for `rounds` rounds, on the samples of this peer alone, and
/// evaluates both models on its held-out samples. A run that began with a model file begins with `begin_with` again.
///
/// # Errors
/// The task of the run is not known any more, the data cannot be read, or training fails.
pub fn compare_alone(
    home: &Home,
    mut training: TrainingOptions,
    trained_as: &TrainedAs,
    rounds: u64,
    begin_with: Option<&Path>,
) -> Result<Compared> {
    let missing = |what: &str| Error::new(ErrorKind::Unexpected, format!("there is no {what} to compare by"));
    let card = TaskFile::last(home)?.ok_or_else(|| missing("task in the home"))?;
    let &(node, nodes) = trained_as.get().ok_or_else(|| missing("training"))?;
    overwrite(&mut training, &card);
    training.rounds = rounds;
    let data = format!("--data {}", training.data);
    let raw = task::read(&training.data)?;
    let mut parts = TaskSamples::held_to(raw, &card.data, card.seed).context(ErrorKind::BadInput, data)?;
    if let Some(split) = &training.split {
        parts.deal(split, nodes, training.seed)?;
    }
    let local_steps = plan::read(&home.plan())?.local_steps();
    let LocalTask { task, device, train, test } =
        LocalTask::new(&training, &parts, node, task::open_device(&training.device)?)?;
    drop(parts);
    let options = task::trainer_options(&training, task, &device, node)?;
    let initial = match (card.beginning, begin_with) {
        (None, _) => task.initial_parameters(card.seed),
        (Some(_), Some(path)) => Beginning::read(path, &card)?.parameters,
        (Some(_), None) => {
            let message = "the run began with a model file that this peer lacks: alone it would begin elsewhere";
            return Err(Error::new(ErrorKind::BadInput, message)
                .hint("give --begin-with FILE to each peer that is to be compared, or leave --compare-alone away"));
        }
    };
    let alone = train_alone(&training, options, train, local_steps, initial)?;
    let evaluator = Evaluator::new(task, &device);
    let judge = |parameters: &[f32]| -> Result<Metrics> {
        let judged = evaluator.evaluate(parameters, &test).context(ErrorKind::Training, "cannot compare")?;
        Ok(judged.metrics().into_iter().collect())
    };
    // From the file, which has the personal layers too.
    let swarm = Checkpoint::load(&home.model(), &task).context(ErrorKind::BadInput, "cannot compare")?;
    let swarm = judge(&swarm.parameters)?;
    let metrics = judge(&alone)?;
    Ok(Compared { swarm, alone: LocalBaseline { rounds, local_steps, held_out_samples: test.len(), metrics } })
}
