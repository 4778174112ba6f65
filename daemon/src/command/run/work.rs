//! What a peer is started for.

use std::path::PathBuf;

use mingle_models::Device;

use crate::cli::RunArgs;
use crate::failure::Outcome;
use crate::task::{self, Parts};

/// What a peer is for.
pub(super) enum Work {
    /// Training a model on these data.
    Train { parts: Box<Parts>, device: Device },
    /// Solving a problem.
    Solve(PathBuf),
}

impl Work {
    /// Reads what can be read before anything is started.
    pub(super) fn prepare(arguments: &RunArgs) -> Outcome<Self> {
        if let Some(problem) = &arguments.problem {
            return Ok(Self::Solve(problem.clone()));
        }
        let parts = Parts::load(&arguments.training.data, arguments.training.seed)?;
        parts.task(&arguments.training.model)?;
        let device = task::open_device(&arguments.training.device)?;
        Ok(Self::Train { parts: Box::new(parts), device })
    }
}
