//! A trainer that the peer starts itself: started again when it fails, and ended with the peer.

use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use mingle_peer::error::Context;
use mingle_peer::events::Event;
use mingle_peer::{Error, ErrorKind, Result};
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use crate::host::TrainerHost;

/// A trainer that failed is started again after this time, and after twice the time before when it fails again.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// But at least so often.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A program that fails so often before it ever attaches is not started again.
const FRUITLESS_STARTS: u32 = 3;
/// A trainer has so long after the end of the run to do what it wants to do with the model.
const AFTER_THE_END: Duration = Duration::from_secs(60);
/// The same where the run has failed.
const AFTER_A_FAILURE: Duration = Duration::from_secs(5);
/// Between being asked to end and being ended.
const TERMINATION: Duration = Duration::from_secs(5);
/// Characters of a line that are told.
const MAX_LINE: usize = 400;
/// Bytes of what it writes that are kept.
const MAX_LOG_BYTES: u64 = 64 << 20;
/// Lines that wait to be told.
const LINE_QUEUE: usize = 64;
/// Lines that are remembered to say why it failed.
const LAST_LINES: usize = 5;

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

    /// Starts it within the present tokio runtime, with `MINGLE_HOME` set to the home of the peer, and looks after it until the
    /// run of the peer is over.
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

/// How a trainer ended.
enum Ended {
    /// By itself.
    Exit(ExitStatus),
    /// With the peer.
    WithThePeer,
}

impl Supervisor {
    async fn run(mut self) {
        let (mut pause, mut fruitless) = (FIRST_PAUSE, 0);
        self.host.peer_is_up().await;
        loop {
            let before = self.host.state().attachments;
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
                (pause, fruitless) = (FIRST_PAUSE, 0);
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
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// It ended without an error, and is not started again.
    fn on_success(&self, has_attached: bool) {
        if has_attached || self.host.state().is_ready() {
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
        self.host.tell(Event::TrainerStarted { command: self.command.clone(), process });
        let (lines, mut told) = mpsc::channel(LINE_QUEUE);
        let log = Log::open(home.trainer_log()).await;
        let outputs = (child.stdout.take().map(Output::Out), child.stderr.take().map(Output::Error));
        let readers = tokio::spawn(read_all(outputs, log, lines));
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
                Some(line) = told.recv() => self.tell(line),
                _ = changes.changed() => {}
            }
        };
        // What its children still hold open is not waited for.
        let rest = async {
            while let Some(line) = told.recv().await {
                self.tell(line);
            }
        };
        let _ = tokio::time::timeout(Duration::from_millis(200), rest).await;
        readers.abort();
        Ok(ended)
    }

    fn spawn(&self, root: &std::path::Path) -> io::Result<Child> {
        let mut command = Command::new("sh");
        command
            .args(["-c", &self.command])
            .env("MINGLE_HOME", root)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        command.spawn()
    }

    fn tell(&mut self, line: String) {
        if self.last_lines.len() == LAST_LINES {
            self.last_lines.remove(0);
        }
        self.last_lines.push(line.clone());
        self.host.tell(Event::TrainerSaid { line });
    }

    /// Lets it finish what it does with the model, then ends it and all that it started.
    async fn end_with_the_peer(&self, child: &mut Child) {
        let has_failed = matches!(self.host.state().end, Some(crate::state::End::Failure { .. }));
        let patience = if has_failed { AFTER_A_FAILURE } else { AFTER_THE_END };
        if tokio::time::timeout(patience, child.wait()).await.is_ok() {
            return;
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

/// What a trainer writes to.
enum Output {
    Out(tokio::process::ChildStdout),
    Error(tokio::process::ChildStderr),
}

/// Reads both outputs to their end.
async fn read_all((out, error): (Option<Output>, Option<Output>), log: Log, lines: mpsc::Sender<String>) {
    let log = tokio::sync::Mutex::new(log);
    let read = async |output: Option<Output>| match output {
        Some(Output::Out(stream)) => read_lines(stream, &log, &lines).await,
        Some(Output::Error(stream)) => read_lines(stream, &log, &lines).await,
        None => {}
    };
    tokio::join!(read(out), read(error));
}

/// Reads lines, each of which is cut for telling and whole in the log.
async fn read_lines(mut stream: impl AsyncRead + Unpin, log: &tokio::sync::Mutex<Log>, lines: &mpsc::Sender<String>) {
    let mut bytes = vec![0; 8192];
    let mut line: Vec<u8> = Vec::new();
    loop {
        let read = match stream.read(&mut bytes).await {
            Ok(0) | Err(_) => break,
            Ok(read) => read,
        };
        log.lock().await.write(&bytes[..read]).await;
        for byte in &bytes[..read] {
            match byte {
                // Progress bars begin their line anew.
                b'\n' | b'\r' => tell_line(&mut line, lines).await,
                _ if line.len() < MAX_LINE => line.push(*byte),
                _ => {}
            }
        }
    }
    tell_line(&mut line, lines).await;
}

async fn tell_line(line: &mut Vec<u8>, lines: &mpsc::Sender<String>) {
    let text = String::from_utf8_lossy(line).trim_end().to_owned();
    line.clear();
    if !text.is_empty() {
        // Nobody listens any more once the trainer has ended.
        let _ = lines.send(text).await;
    }
}

/// The file of what a trainer writes.
struct Log {
    file: Option<File>,
    written: u64,
}

impl Log {
    /// Goes on with the log of the home; a log that cannot be written is left out, with a warning.
    async fn open(path: PathBuf) -> Self {
        let opened = tokio::fs::OpenOptions::new().create(true).append(true).open(&path).await;
        let file =
            opened.inspect_err(|error| tracing::warn!(%error, path = %path.display(), "cannot write the log")).ok();
        let written = match &file {
            Some(file) => file.metadata().await.map_or(0, |metadata| metadata.len()),
            None => 0,
        };
        Self { file, written }
    }

    async fn write(&mut self, bytes: &[u8]) {
        let Some(file) = &mut self.file else { return };
        if self.written >= MAX_LOG_BYTES {
            let _ = file.write_all(b"\n(the log is full: nothing more is kept)\n").await;
            self.file = None;
            return;
        }
        self.written += bytes.len() as u64;
        // A full disk must not end a training.
        let _ = file.write_all(bytes).await;
    }
}
