//! The launcher of a trainer that the peer starts itself: restarted when it fails, given up when it fails too often for
//! what it trains, and ended with the peer.

mod restarts;

use std::io;
use std::num::NonZeroU32;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use mingle_peer::error::Context;
use mingle_peer::events::Event;
use mingle_peer::{Error, ErrorKind, Result};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

use crate::host::TrainerHost;
use crate::output::{OutputEvent, TrainerOutput};
use crate::run_end::RunEnd;
use restarts::{Next, Restarts, WorkSinceStart};

/// Failures in a row after which a program is given up while the peer still waits for a task. A run in which the
/// program attached counts as the first one.
const FRUITLESS_STARTS: u32 = 3;
/// Time for a trainer after the end of the run, to use the final model.
const AFTER_THE_END: Duration = Duration::from_secs(60);
/// Time for a trainer to end after the run has failed.
const AFTER_A_FAILURE: Duration = Duration::from_secs(5);
/// Timeout for reading the last output of a trainer that has ended, enough on a busy machine.
const LAST_OUTPUT: Duration = Duration::from_secs(2);
/// Time between `SIGTERM` and `SIGKILL`, and that of a process to end after it.
const TERMINATION: Duration = Duration::from_secs(5);
/// Environment variables for a trainer that cannot reach the socket: the URL of the peer, and the token to show there.
const URL: &str = "MINGLE_TRAINER_URL";
const TOKEN: &str = "MINGLE_TRAINER_TOKEN";
/// Shell script that runs the command of a trainer as the leader of a process group. A process beside it reads standard
/// input, which the peer holds open. Where that ends without a line, the peer was killed, and the group ends too.
#[cfg(unix)]
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

/// The command that starts a trainer, and the number of crashes at which it is given up.
#[derive(Clone, Debug)]
pub struct Launcher {
    command: String,
    variables: Vec<(&'static str, String)>,
    restarts: Restarts,
}

impl Launcher {
    /// A launcher of `command`, which the shell runs. The trainer is given up at `most_crashes` crashes that its
    /// training has not made good: 100 rounds of training or 12 hours make good for one. Those in earlier processes of
    /// the peer count too. The run of the peer then fails, and its records are kept.
    pub fn new(command: &str, most_crashes: NonZeroU32) -> Self {
        let restarts = Restarts::new(command, most_crashes);
        Self { command: command.to_owned(), variables: Vec::new(), restarts }
    }

    /// Sets another environment variable of the trainer.
    #[must_use]
    pub(crate) fn with_variable(mut self, name: &'static str, value: String) -> Self {
        self.variables.push((name, value));
        self
    }

    /// Starts the command within the present tokio runtime, and supervises it until the run of the peer is over.
    /// `MINGLE_HOME` is set to the home of the peer, and where trainers are served over TCP, `MINGLE_TRAINER_URL` and
    /// `MINGLE_TRAINER_TOKEN` are set too.
    pub fn start(self, host: &TrainerHost) {
        let Self { command, variables, restarts } = self;
        let supervisor = Supervisor {
            command,
            variables,
            restarts,
            host: host.clone(),
            attachments_before: 0,
            last_lines: Vec::new(),
        };
        host.watch_over(tokio::spawn(supervisor.run()));
    }
}

struct Supervisor {
    command: String,
    variables: Vec<(&'static str, String)>,
    restarts: Restarts,
    host: TrainerHost,
    /// Attachments of trainers before the present program started.
    attachments_before: u64,
    last_lines: Vec<String>,
}

/// The end of a trainer's process.
enum ProcessEnd {
    /// It ended by itself.
    Exit(ExitStatus),
    /// The peer ended it with its own run.
    WithThePeer,
}

impl Supervisor {
    async fn run(mut self) {
        self.host.peer_is_up().await;
        self.host.rounds_are_known().await;
        let has_ended_before = self.host.state().rounds.is_none();
        if has_ended_before {
            return;
        }
        if let Err(error) = self.restarts.recall(&self.host.options().home) {
            return self.host.fail(error);
        }
        self.run_until_the_end().await;
    }

    /// Runs the program again and again until it ends as it should, the peer ends, or it is given up.
    async fn run_until_the_end(&mut self) {
        let mut fruitless = 0;
        loop {
            let began = Instant::now();
            let trained_before = {
                let state = self.host.state();
                self.attachments_before = state.attachments;
                state.trained
            };
            let status = match self.run_once().await {
                Ok(ProcessEnd::WithThePeer) => {
                    let rounds = self.host.state().trained - trained_before;
                    self.restarts.make_good(WorkSinceStart { rounds, ran: began.elapsed() });
                    return self.remember();
                }
                Ok(ProcessEnd::Exit(status)) => status,
                Err(error) => return self.host.fail(error),
            };
            let is_attached = self.host.state().session.is_some();
            if is_attached {
                self.host.detach(format!("the trainer has ended with {status}"));
            }
            let has_attached = self.has_attached();
            if has_attached {
                fruitless = 0;
            }
            fruitless += 1;
            if status.success() {
                return self.on_success(has_attached);
            }
            let rounds = self.host.state().trained - trained_before;
            let next = self.restarts.after(WorkSinceStart { rounds, ran: began.elapsed() });
            self.remember();
            let Next::Restart(pause) = next else {
                return self.host.give_up(self.given_up(next, status));
            };
            if fruitless >= FRUITLESS_STARTS && !self.host.state().is_ready() {
                let message = format!("failed {fruitless} times before it attached, last with {status}");
                return self.host.fail(self.failure(&message));
            }
            let message = format!("the trainer has ended with {status}; it is started again in {} s", pause.as_secs());
            self.host.tell(Event::Warning { message });
            if self.run_ends_within(pause).await {
                return;
            }
        }
    }

    /// Waits for `pause`, and returns `true` as soon as the run of the peer has ended meanwhile.
    async fn run_ends_within(&self, pause: Duration) -> bool {
        let mut changes = self.host.changes();
        let is_over = async {
            while self.host.state().end.is_none() {
                let _ = changes.changed().await;
            }
        };
        tokio::time::timeout(pause, is_over).await.is_ok()
    }

    /// Returns `true` if the present program has attached since it started.
    fn has_attached(&self) -> bool {
        self.host.state().attachments > self.attachments_before
    }

    /// Keeps the count of crashes in the home.
    fn remember(&self) {
        if let Err(error) = self.restarts.remember(&self.host.options().home) {
            let message = format!("the crashes of the trainer are counted anew at the next start: {error:#}");
            self.host.tell(Event::Warning { message });
        }
    }

    /// The error of a peer whose trainer is given up. Where that happened before, it is one after which a supervisor
    /// does not start the peer again.
    fn given_up(&self, next: Next, status: ExitStatus) -> Error {
        let failure = self.failure(&format!("is given up: {}, last with {status}", self.restarts.in_words()));
        if next != Next::GivenUpAgain {
            return failure;
        }
        let hint = failure.next_step().unwrap_or_default().to_owned();
        Error::new(ErrorKind::BadInput, format!("{failure}; it was given up before, and has not been mended"))
            .hint(hint)
    }

    /// Handles a trainer that ended without an error: it is not started again.
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
        Error::new(ErrorKind::Training, format!("the trainer `{}` {what}; {said}", self.command)).hint(format!(
            "all that it wrote is in {}; once it is mended, start this peer again in the same way: its records are kept",
            log.display()
        ))
    }

    /// Starts the program, and publishes its output until it ends by itself or with the peer.
    async fn run_once(&mut self) -> Result<ProcessEnd> {
        let doing = format!("cannot start the trainer `{}`", self.command);
        let home = &self.host.options().home;
        let root = std::path::absolute(home.root()).unwrap_or_else(|_| home.root().to_path_buf());
        let mut child = self.spawn(&root).context(ErrorKind::BadInput, doing)?;
        let process = child.id().unwrap_or_default();
        self.host.change(|state| state.is_watched = true);
        self.host.tell(Event::TrainerStarted { command: self.command.clone(), process });
        let watch = child.stdin.take();
        let mut output = TrainerOutput::read(child.stdout.take(), child.stderr.take(), home.trainer_log()).await;
        let mut changes = self.host.changes();
        let ended = loop {
            if self.host.state().end.is_some() {
                self.end_with_the_peer(&mut child).await;
                break ProcessEnd::WithThePeer;
            }
            tokio::select! {
                status = child.wait() => {
                    break ProcessEnd::Exit(status.context(ErrorKind::Unexpected, "the system does not tell how the trainer ended")?);
                }
                Some(told) = output.next() => self.tell(told),
                _ = changes.changed() => {}
            }
        };
        self.host.change(|state| state.is_watched = false);
        // Outputs that its children still hold open are not waited for any longer.
        let rest = async {
            while let Some(told) = output.next().await {
                self.tell(told);
            }
        };
        let _ = tokio::time::timeout(LAST_OUTPUT, rest).await;
        self.last_lines = output.last_lines();
        if let Some(mut watch) = watch {
            // The write fails where the process that reads it was ended with the group.
            let _ = watch.write_all(b"over\n").await;
        }
        Ok(ended)
    }

    fn spawn(&self, root: &std::path::Path) -> io::Result<Child> {
        let mut command = shell(&self.command);
        command
            .env("MINGLE_HOME", root)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        // The values in the environment of the peer itself may be those of another peer.
        let access = self.host.access().map(|access| (access.url.as_str(), access.token.as_str()));
        match access {
            Some((url, token)) => command.env(URL, url).env(TOKEN, token),
            None => command.env_remove(URL).env_remove(TOKEN),
        };
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

    /// Waits for the trainer to end after the run, unless the user stops waiting or the trainer does not even fetch the
    /// end. Then ends its whole process group.
    async fn end_with_the_peer(&self, child: &mut Child) {
        let has_failed = matches!(self.host.state().end, Some(RunEnd::Failure { .. }));
        let patience = match (has_failed, self.has_attached()) {
            (true, true) => AFTER_A_FAILURE,
            // It does not know of the run that has failed.
            (true, false) => Duration::ZERO,
            (false, _) => AFTER_THE_END,
        };
        let mut changes = self.host.changes();
        let hurry = async {
            while !self.host.state().is_hurried {
                let _ = changes.changed().await;
            }
        };
        tokio::select! {
            ended = tokio::time::timeout(patience, child.wait()) => if ended.is_ok() { return },
            () = hurry => {}
            () = self.last_call_is_missed() => {}
        }
        signal(child, &Signal::Terminate);
        if tokio::time::timeout(TERMINATION, child.wait()).await.is_err() {
            signal(child, &Signal::Kill);
            // A process that waits for a device that hangs ends when that answers, perhaps never.
            let _ = tokio::time::timeout(TERMINATION, child.wait()).await;
        }
    }

    /// Resolves once an attached trainer has had its time to fetch the end of the run and has not: it hangs, or takes far
    /// longer for a round than usual.
    async fn last_call_is_missed(&self) {
        let last_call = self.host.state().last_call();
        tokio::time::sleep(last_call).await;
        if self.host.state().is_told_of_the_end(Instant::now()) {
            return std::future::pending().await;
        }
        let seconds = last_call.as_secs();
        let message =
            format!("the trainer has not fetched the end of the run within {seconds} s: its processes are ended");
        self.host.tell(Event::Warning { message });
    }
}

/// The shell with the command of a trainer.
#[cfg(unix)]
fn shell(command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", WATCHED, "mingle", command]).process_group(0);
    shell
}

/// The shell with the command of a trainer, which goes on where the peer is killed.
#[cfg(windows)]
fn shell(command: &str) -> Command {
    let mut shell = Command::new("cmd");
    shell.raw_arg("/C").raw_arg(command);
    shell
}

enum Signal {
    Terminate,
    Kill,
}

/// Sends the signal to the process and all others in its group.
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

/// Ends the process and all that it started. Windows has no request to end for a process without a window, so the first
/// signal is the last one.
#[cfg(windows)]
fn signal(child: &Child, signal: &Signal) {
    let Some(process) = child.id().filter(|_| matches!(signal, Signal::Terminate)) else { return };
    let ended = std::process::Command::new("taskkill")
        .args(["/T", "/F", "/PID", &process.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if let Err(error) = ended {
        tracing::warn!(%error, "cannot end the trainer");
    }
}

#[cfg(test)]
mod tests;
