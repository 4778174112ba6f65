//! The model file that a run begins with, in place of the model of the seed.

use std::path::Path;

use mingle_models::Checkpoint;
use mingle_peer::error::Context;
use mingle_peer::training::model_file;
use mingle_peer::{Error, ErrorKind, Result};

use crate::model_files;
use crate::task_card::{Card, short_hash};

/// A model that a run begins with.
pub(crate) struct Beginning {
    /// The flat parameters.
    pub(crate) parameters: Vec<f32>,
    /// BLAKE3 of the parameters as little-endian bytes, by which peers compare beginnings.
    pub(crate) hash: [u8; 32],
}

impl Beginning {
    /// Reads a model of the task of `card` from a safetensors file.
    ///
    /// # Errors
    /// The file cannot be read, is damaged, has numbers that are not finite, or has not exactly the tensors of the
    /// model as 32-bit numbers.
    pub(crate) fn read(path: &Path, card: &Card) -> Result<Self> {
        let file = model_files::read(path)?;
        let task = card.task()?;
        let unfit = |difference: &dyn std::fmt::Display| {
            let message = format!("--begin-with {} is no model of this task: {difference}", path.display());
            Error::new(ErrorKind::BadInput, message)
                .hint("choose the --model and --data of that file; `mingle ckpt inspect FILE` says what is in it")
        };
        if let Some(difference) = file.difference(&task) {
            return Err(unfit(&difference));
        }
        // The number of heads is in no shape.
        if let Some(model) = file.model().filter(|model| *model != card.model) {
            return Err(unfit(&format_args!("it is a {model}, and the task has {}", card.model)));
        }
        let doing = format!("cannot begin with {}", path.display());
        let Checkpoint { parameters, .. } = Checkpoint::load(path, &task).context(ErrorKind::BadInput, doing)?;
        let hash = model_file::hash(&parameters);
        Ok(Self { parameters, hash })
    }

    /// Refuses a file that is not the model with which the task of a swarm begins.
    pub(crate) fn check(&self, path: &Path, card: &Card) -> Result {
        let there = match card.beginning {
            Some(hash) if hash == self.hash => return Ok(()),
            Some(hash) => format!("the model blake3:{}", short_hash(&hash)),
            None => format!("the model of its seed, {}", card.seed),
        };
        let own = short_hash(&self.hash);
        let message =
            format!("--begin-with {} is the model blake3:{own}, and the swarm begins with {there}", path.display());
        Err(Error::new(ErrorKind::Refused, message).hint("leave --begin-with away: the swarm says what all begin with"))
    }
}
