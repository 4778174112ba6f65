//! Making versions: the file of a model, and the patch to it, on a thread of low priority.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use mingle_home::error::{Context, ErrorKind, Result};
use mingle_patch::ModelBytes;
use mingle_training::priority::{Priority, lower};
use mingle_training::{ModelEncoder, TrainingError, model_file};

use super::Shared;
use super::line::{Version, patch};
use crate::messages::Precision;

/// Shortest pause between two versions.
const SHORTEST_REST: Duration = Duration::from_millis(500);
/// A version that took some time to make is followed by so many times as long without one: a hundredth of a core.
const REST_PER_WORK: u32 = 100;

/// A model at the end of a round.
#[derive(Debug)]
pub struct RoundModel {
    /// Rounds over.
    pub round: u64,
    /// Rounds over when training is done.
    pub last_round: u64,
    /// `[dimension]`.
    pub model: Arc<[f32]>,
    /// Metadata for the header of the file.
    pub metadata: BTreeMap<String, String>,
}

/// The file of a model, with its metadata and the checksum of its numbers.
///
/// # Errors
/// The encoder fails, or its file is no model file.
pub(super) fn file(
    encoder: &ModelEncoder,
    model: &RoundModel,
    precision: Precision,
) -> Result<ModelBytes, TrainingError> {
    let mut file = encoder(&model.model)?;
    model_file::describe(&mut file, &model.metadata)?;
    if precision == Precision::Bf16 {
        file = model_file::rounded_to_bf16(&file)?;
    }
    Ok(ModelBytes::parse(file)?)
}

/// Starts the thread. It ends with the peer.
///
/// # Errors
/// The system starts no thread.
pub(super) fn start(shared: Weak<Shared>, encoder: ModelEncoder) -> Result<SyncSender<RoundModel>> {
    // One model waits at most: none is given while one is made.
    let (sender, receiver) = sync_channel(1);
    std::thread::Builder::new()
        .name("followers".to_owned())
        .spawn(move || work(&shared, &encoder, &receiver))
        .context(ErrorKind::Unexpected, "cannot start the thread that serves followers")?;
    Ok(sender)
}

fn work(shared: &Weak<Shared>, encoder: &ModelEncoder, models: &Receiver<RoundModel>) {
    lower(Priority::Low);
    while let Ok(model) = models.recv()
        && let Some(shared) = shared.upgrade()
    {
        let began = Instant::now();
        // Not in the head of the loop, which would hold the lock.
        let followed = shared.state().followed();
        for precision in followed {
            make(&shared, encoder, &model, precision, false);
        }
        let rest = SHORTEST_REST.max(began.elapsed() * REST_PER_WORK);
        let mut state = shared.state();
        state.is_busy = false;
        state.rests_until = Some(Instant::now() + rest);
        drop(state);
        shared.tell_news();
    }
}

/// Makes a version of a model, and offers it to followers. Its file is lost, never the training, if that fails.
pub(super) fn make(shared: &Shared, encoder: &ModelEncoder, model: &RoundModel, precision: Precision, is_final: bool) {
    let file = match file(encoder, model, precision) {
        Ok(file) => file,
        Err(error) => {
            tracing::warn!(%error, round = model.round, "followers get no model of this round");
            return;
        }
    };
    let before = shared.state().lines.get(&precision).and_then(|line| line.newest().cloned());
    let patch = before.and_then(|before| patch(&before, &file));
    let RoundModel { round, last_round, .. } = *model;
    let version = Version { round, last_round, is_final, file, made_at: Instant::now() };
    let mut state = shared.state();
    // All its followers may have gone meanwhile.
    if state.followed().contains(&precision) {
        state.lines.entry(precision).or_default().push(version, patch);
    }
}
