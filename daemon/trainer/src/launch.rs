//! A trainer that the peer starts itself: started again when it fails, and ended with the peer.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use mingle_peer::error::Context;
use mingle_peer::events::Event;
use mingle_peer::{Error, ErrorKind, Result};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

use crate::host::TrainerHost;
use crate::output::{Output, OutputEvent};

/// A trainer that failed is started again after this time, and after twice the time before when it fails again.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// But at least so often.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A program that fails so often before it ever attaches is not started again.
const FRUITLESS_STARTS: u32 = 3;
/// A program that fails so often, never having run for [`STEADY`] in between, is given up.
const MOST_CRASHES: u32 = 10;
/// A program that ran so long before it failed is started again as after its first failure.
const STEADY: Duration = Duration::from_secs(600);
/// A trainer has so long after the end of the run to do what it wants to do with the model.
const AFTER_THE_END: Duration = Duration::from_secs(60);
/// The same where the run has failed.
const AFTER_A_FAILURE: Duration = Duration::from_secs(5);
/// What it wrote is read to the end within this time, on a busy machine too.
const LAST_OUTPUT: Duration = Duration::from_secs(2);
/// Between being asked to end and being ended.
const TERMINATION: Duration = Duration::from_secs(5);
/// Where a trainer that cannot reach the socket reaches the peer, and what it shows there.
const URL: &str = "MINGLE_TRAINER_URL";
const TOKEN: &str = "MINGLE_TRAINER_TOKEN";
/// Runs the command of a trainer, which leads a process group. A process beside it reads standard input, which the peer holds open: where
/// that ends without a line, the peer was killed, and the group ends too.
const WATCHED: &str = r#"
exec 3<&0 </dev/null
( trap '' TERM
  read -r _ <&3 && exit
  kill -TERM -$$
  sleep 5
  kill -KILL -$$ ) >/dev/null 2>&1 &
exec 3<&-
eval "$1"
"#;

/// The command that starts a trainer.
#[derive(Clone, Debug)]
pub struct Launcher {
    command: String,
}

impl Launcher {
    /// Starts `command` by the shell.
    pub fn new(command: &str) -> Self {
        Self { command: command.to_owned() }
    }

    /// Starts it within the present tokio runtime, with `MINGLE_HOME` set to the home of the peer, and `MINGLE_TRAINER_URL` and
    /// `MINGLE_TRAINER_TOKEN` where trainers are served over TCP, and looks after it until the run of the peer is over.
    pub fn start(self, host: &TrainerHost) {
        let supervisor = Supervisor { command: self.command, host: host.clone(), last_lines: Vec::new() };
        host.watch_over(tokio::spawn(supervisor.run()));
    }
}

struct Supervisor {
    command: String,
    host: TrainerHost,
    last_lines: Vec<String>,
}

/// When a trainer that has failed is started again.
#[derive(Debug, Default)]
struct Restarts {
    crashes: u32,
}

impl Restarts {
    /// The pause after a failure of a program that ran so long; none where it is given up.
    fn after(&mut self, ran: Duration) -> Option<Duration> {
        self.crashes = if ran >= STEADY { 1 } else { self.crashes + 1 };
        let doublings = self.crashes - 1;
        (self.crashes < MOST_CRASHES).then(|| FIRST_PAUSE.saturating_mul(1 << doublings).min(LONGEST_PAUSE))
    }
}

/// How a trainer ended.
enum Ended {
    /// By itself.
    Exit(ExitStatus),
    /// With the peer.
    WithThePeer,
}

impl Supervisor {
    async fn run(mut self) {
        let (mut restarts, mut fruitless) = (Restarts::default(), 0);
        self.host.peer_is_up().await;
        loop {
            let (before, began) = (self.host.state().attachments, Instant::now());
            let status = match self.run_once().await {
                Ok(Ended::WithThePeer) => return,
                Ok(Ended::Exit(status)) => status,
                Err(error) => return self.host.fail(error),
            };
            let (is_attached, attachments) = {
                let state = self.host.state();
                (state.session.is_some(), state.attachments)
            };
            if is_attached {
                self.host.detach(format!("the trainer has ended with {status}"));
            }
            let has_attached = attachments > before;
            if has_attached {
                fruitless = 0;
            }
            fruitless += 1;
            if status.success() {
                return self.on_success(has_attached);
            }
            if fruitless >= FRUITLESS_STARTS && !self.host.state().is_ready() {
                return self
                    .host
                    .fail(self.failure(&format!("failed {fruitless} times before it attached, last with {status}")));
            }
            let Some(pause) = restarts.after(began.elapsed()) else {
                let what = format!("has failed {MOST_CRASHES} times, last with {status}, and is not started again");
                return self.host.fail(self.failure(&what));
            };
            let message = format!("the trainer has ended with {status}; it is started again in {} s", pause.as_secs());
            self.host.tell(Event::Warning { message });
            let mut changes = self.host.changes();
            let is_over = async {
                while self.host.state().end.is_none() {
                    let _ = changes.changed().await;
                }
            };
            if tokio::time::timeout(pause, is_over).await.is_ok() {
                return;
            }
        }
    }

    /// It ended without an error, and is not started again.
    fn on_success(&self, has_attached: bool) {
        if has_attached || self.host.state().is_ready() {
            self.host.change(|state| state.is_deserted = true);
            let message =
                "the trainer has ended before the run was over: this peer mixes on without local steps".to_owned();
            return self.host.tell(Event::Warning { message });
        }
        self.host.fail(self.failure("ended without ever attaching to this peer"));
    }

    fn failure(&self, what: &str) -> Error {
        let said = if self.last_lines.is_empty() {
            "it wrote nothing".to_owned()
        } else {
            format!("it wrote last:\n  {}", self.last_lines.join("\n  "))
        };
        let log = self.host.options().home.trainer_log();
        Error::new(ErrorKind::Training, format!("the trainer `{}` {what}; {said}", self.command))
            .hint(format!("all that it wrote is in {}", log.display()))
    }

    /// Starts it, and tells what it writes until it ends, or is ended with the peer.
    async fn run_once(&mut self) -> Result<Ended> {
        let doing = format!("cannot start the trainer `{}`", self.command);
        let home = &self.host.options().home;
        let root = std::path::absolute(home.root()).unwrap_or_else(|_| home.root().to_path_buf());
        let mut child = self.spawn(&root).context(ErrorKind::BadInput, doing)?;
        let process = child.id().unwrap_or_default();
        self.host.change(|state| state.is_watched = true);
        self.host.tell(Event::TrainerStarted { command: self.command.clone(), process });
        let watch = child.stdin.take();
        let mut output = Output::read(child.stdout.take(), child.stderr.take(), home.trainer_log()).await;
        let mut changes = self.host.changes();
        let ended = loop {
            if self.host.state().end.is_some() {
                self.end_with_the_peer(&mut child).await;
                break Ended::WithThePeer;
            }
            tokio::select! {
                status = child.wait() => {
                    break Ended::Exit(status.context(ErrorKind::Unexpected, "the system does not tell how the trainer ended")?);
                }
                Some(told) = output.next() => self.tell(told),
                _ = changes.changed() => {}
            }
        };
        self.host.change(|state| state.is_watched = false);
        // What its children still hold open is not waited for.
        let rest = async {
            while let Some(told) = output.next().await {
                self.tell(told);
            }
        };
        let _ = tokio::time::timeout(LAST_OUTPUT, rest).await;
        self.last_lines = output.last_lines();
        if let Some(mut watch) = watch {
            // Nobody watches it any more where the whole group was ended.
            let _ = watch.write_all(b"over\n").await;
        }
        Ok(ended)
    }

    fn spawn(&self, root: &std::path::Path) -> io::Result<Child> {
        let mut command = Command::new("sh");
        command
            .args(["-c", WATCHED, "mingle", &self.command])
            .env("MINGLE_HOME", root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        // Those that the peer itself was started with may be of another one.
        let access = self.host.access().map(|access| (access.url.as_str(), access.token.as_str()));
        match access {
            Some((url, token)) => command.env(URL, url).env(TOKEN, token),
            None => command.env_remove(URL).env_remove(TOKEN),
        };
        #[cfg(unix)]
        command.process_group(0);
        command.spawn()
    }

    fn tell(&self, event: OutputEvent) {
        let line = match event {
            OutputEvent::Line(line) => line,
            OutputEvent::LeftOut(1) => "(one more line is in trainer.log)".to_owned(),
            OutputEvent::LeftOut(lines) => format!("({lines} more lines are in trainer.log)"),
        };
        self.host.tell(Event::TrainerSaid { line });
    }

    /// Lets it finish what it does with the model, unless who runs the peer is in a hurry; then ends it and all that it started.
    async fn end_with_the_peer(&self, child: &mut Child) {
        let has_failed = matches!(self.host.state().end, Some(crate::state::End::Failure { .. }));
        let patience = if has_failed { AFTER_A_FAILURE } else { AFTER_THE_END };
        let mut changes = self.host.changes();
        let hurry = async {
            while !self.host.state().is_hurried {
                let _ = changes.changed().await;
            }
        };
        tokio::select! {
            ended = tokio::time::timeout(patience, child.wait()) => if ended.is_ok() { return },
            () = hurry => {}
        }
        signal(child, &Signal::Terminate);
        if tokio::time::timeout(TERMINATION, child.wait()).await.is_err() {
            signal(child, &Signal::Kill);
            // Nothing can refuse that.
            let _ = child.wait().await;
        }
    }
}

enum Signal {
    Terminate,
    Kill,
}

/// Signals the process and all in its group.
#[cfg(unix)]
fn signal(child: &Child, signal: &Signal) {
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
    let signal = match signal {
        Signal::Terminate => rustix::process::Signal::TERM,
        Signal::Kill => rustix::process::Signal::KILL,
    };
    if let Some(group) = group
        && let Err(error) = rustix::process::kill_process_group(group, signal)
    {
        tracing::warn!(%error, "cannot end the trainer");
    }
}

#[cfg(not(unix))]
fn signal(child: &mut Child, _signal: &Signal) {
    let _ = child.start_kill();
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_trainer_that_fails_again_and_again_is_started_after_growing_pauses_and_then_given_up() {
        let mut restarts = Restarts::default();
        let pauses: Vec<u64> =
            std::iter::from_fn(|| restarts.after(Duration::from_secs(3))).map(|pause| pause.as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }

    #[test]
    fn a_trainer_that_ran_long_before_it_failed_is_started_again_soon() {
        let mut restarts = Restarts::default();
        for _ in 0..100 {
            assert_eq!(restarts.after(STEADY), Some(FIRST_PAUSE));
        }
    }
}
