//! The command that a follower runs after new models: one at a time, and for the newest model after a long one.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::{Child, Command};

use crate::following::FollowedModel;

/// The command, and its process.
pub(super) struct Hook {
    command: Option<String>,
    running: Option<(u64, Result<Child, String>)>,
    /// The newest model that came while the command ran.
    next: Option<HookModel>,
}

/// The end of a process of the command.
pub(super) struct HookEnd {
    /// Rounds over at its model.
    pub(super) round: u64,
    /// The reason if it failed.
    pub(super) failure: Option<String>,
}

/// A model for the command.
struct HookModel {
    path: PathBuf,
    round: u64,
    is_final: bool,
}

impl Hook {
    pub(super) fn new(command: Option<String>) -> Self {
        Self { command, running: None, next: None }
    }

    /// Runs the command for this model, now or after the one that runs.
    pub(super) fn start(&mut self, path: &Path, model: &FollowedModel) {
        if self.command.is_some() {
            self.next = Some(HookModel { path: path.to_path_buf(), round: model.round, is_final: model.is_final });
            self.begin();
        }
    }

    pub(super) fn is_at_work(&self) -> bool {
        self.running.is_some()
    }

    /// Waits for the end of the command; for ever if it does not run. The wait can be cancelled.
    pub(super) async fn ends(&mut self) -> HookEnd {
        let failure = match &mut self.running {
            None => return std::future::pending().await,
            Some((_, Ok(child))) => match child.wait().await {
                Ok(status) if status.success() => None,
                Ok(status) => Some(status.to_string()),
                Err(error) => Some(error.to_string()),
            },
            Some((_, Err(failure))) => Some(failure.clone()),
        };
        let round = self.running.take().map_or(0, |(round, _)| round);
        self.begin();
        HookEnd { round, failure }
    }

    fn begin(&mut self) {
        let Some(command) = self.command.as_ref().filter(|_| self.running.is_none()) else { return };
        let Some(model) = self.next.take() else { return };
        let child = shell(command)
            .env("MINGLE_FOLLOWED_FILE", &model.path)
            .env("MINGLE_FOLLOWED_ROUND", model.round.to_string())
            .env("MINGLE_FOLLOWED_FINAL", if model.is_final { "1" } else { "0" })
            .stdin(Stdio::null())
            // Standard output has the lines of the follower.
            .stdout(std::io::stderr())
            .kill_on_drop(true)
            .spawn();
        self.running = Some((model.round, child.map_err(|error| error.to_string())));
    }
}

/// The shell of the system with a command.
#[cfg(unix)]
fn shell(command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]);
    shell
}

/// The shell of the system with a command.
#[cfg(windows)]
fn shell(command: &str) -> Command {
    let mut shell = Command::new("cmd");
    shell.raw_arg("/C").raw_arg(command);
    shell
}
