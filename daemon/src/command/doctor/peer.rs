//! The peer: its settings, its key, its data and its model.

use std::path::Path;

use mingle_models::Task;
use mingle_peer::{Home, Identity};

use super::check::Check;
use crate::cli::TrainingArgs;
use crate::config::ConfigFile;
use crate::task::Parts;

/// A configuration file that can be used, or none.
pub(super) fn config(file: Option<&ConfigFile>) -> Check {
    Check::ok(
        "config",
        match file {
            Some(file) => format!("{} can be used, it sets {} settings", file.path().display(), file.entries().count()),
            None => "no file, so all is as the environment says, or default".to_owned(),
        },
    )
}

/// The key is there, and nobody else can read it.
pub(super) fn identity(home: &Home) -> Check {
    let path = home.identity();
    if !path.exists() {
        let finding = format!("no key yet at {}", path.display());
        return Check::warn("identity", finding, format!("`mingle init --home {}` makes one", show(home.root())));
    }
    match Identity::load(&path) {
        Ok(identity) => {
            Check::ok("identity", format!("{}, readable by its owner only at {}", identity.peer_id(), path.display()))
        }
        Err(failure) => {
            let advice = format!("`chmod 600 {}` if others can read it; else restore it from a backup", path.display());
            Check::fail("identity", format!("{failure:#}"), advice)
        }
    }
}

/// The data can be read and the model fits them.
pub(super) fn data(training: &TrainingArgs) -> (Option<Task>, Check) {
    let loaded = Parts::load(&training.data, training.task, training.seed)
        .and_then(|parts| Ok((parts.task(&training.model)?, parts)));
    match loaded {
        Ok((task, parts)) => {
            let finding = format!(
                "{}: {} training and {} test samples of {} for {}; {} has {} parameters",
                training.data,
                parts.all().len(),
                parts.test.len(),
                task.shape(),
                task.objective(),
                task.model(),
                task.parameter_count()
            );
            (Some(task), Check::ok("data", finding))
        }
        Err(failure) => (None, Check::fail("data", format!("{failure:#}"), "name others with --data and --model")),
    }
}

fn show(path: &Path) -> std::path::Display<'_> {
    path.display()
}
