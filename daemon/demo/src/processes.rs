//! The demo's peers: real processes of one program, each with its own home and port, and none left behind.
//!
//! A peer ends when the demo does, however it ends: a dropped handle kills its process, and a peer whose standard
//! input closes, because the demo was killed outright, stops by itself.

use std::collections::{BTreeSet, VecDeque};
use std::fs::OpenOptions;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use mingle_peer::error::Context;
use mingle_peer::events::{Event, EventLine};
use mingle_peer::{Error, ErrorKind, Result};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;

use crate::options::PeerProgram;

/// The longest queue of events for the demo.
const EVENT_QUEUE: usize = 1024;

/// The most processes that start at the same time, for each core. Reading data and looking for the plan is work; all at
/// once would slow each other down until none of them answers in time.
const STARTING_PER_CORE: usize = 1;

/// The time to stop after a demo is interrupted; peers that still run are then killed. The results that they would
/// still evaluate and write are not needed, and the state for a later start is on disk at any moment.
pub(crate) const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// An event of a peer process.
#[derive(Debug)]
pub(crate) enum PeerEvent {
    /// It reported an event.
    Said(Event),
    /// It failed, with this kind and message.
    Failed(ErrorKind, String),
    /// Its output ended: the process is gone, or about to be.
    Ended,
}

/// The running peer processes, by node.
pub(crate) struct PeerProcesses {
    program: PeerProgram,
    peers: Vec<PeerProcess>,
    /// The arguments and logs of peers that wait for their turn, in the order of the nodes.
    waiting: VecDeque<(Vec<String>, PathBuf)>,
    /// The peers that are starting and keep others waiting.
    starting: BTreeSet<usize>,
    most_starting: usize,
    events: mpsc::Sender<(usize, PeerEvent)>,
}

struct PeerProcess {
    child: Child,
    /// Held open for as long as the peer should run.
    stdin: Option<ChildStdin>,
    killed: bool,
}

impl PeerProcesses {
    /// Processes without any peer, and the receiver of the events of those that are started, with their node.
    pub(crate) fn new(program: PeerProgram) -> (Self, mpsc::Receiver<(usize, PeerEvent)>) {
        let (events, receiver) = mpsc::channel(EVENT_QUEUE);
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let processes = Self {
            program,
            peers: Vec::new(),
            waiting: VecDeque::new(),
            starting: BTreeSet::new(),
            most_starting: STARTING_PER_CORE * cores,
            events,
        };
        (processes, receiver)
    }

    /// Starts the next node's process with these arguments, as soon as few enough others are starting; its log goes to
    /// `log`.
    pub(crate) fn start(&mut self, arguments: Vec<String>, log: PathBuf) -> Result {
        self.waiting.push_back((arguments, log));
        self.start_waiting()
    }

    /// Notes that the slow part of this node's start is over, or that its process is gone: the next one may start.
    pub(crate) fn note_started(&mut self, node: usize) -> Result {
        self.starting.remove(&node);
        self.start_waiting()
    }

    fn start_waiting(&mut self) -> Result {
        while self.starting.len() < self.most_starting
            && let Some((arguments, log)) = self.waiting.pop_front()
        {
            let node = self.peers.len();
            let process = self.spawn(node, &arguments, &log)?;
            self.peers.push(process);
            self.starting.insert(node);
        }
        Ok(())
    }

    /// Starts a process of a node that was killed; waits until the killed one is gone.
    pub(crate) async fn restart(&mut self, node: usize, arguments: &[String], log: &Path) -> Result {
        self.peers[node].child.wait().await.context(ErrorKind::Unexpected, format!("cannot wait for peer {node}"))?;
        self.peers[node] = self.spawn(node, arguments, log)?;
        Ok(())
    }

    fn spawn(&self, node: usize, arguments: &[String], log: &Path) -> Result<PeerProcess> {
        let doing = format!("cannot start peer {node}");
        let log = OpenOptions::new().create(true).append(true).open(log);
        let log = log.context(ErrorKind::BadInput, format!("{doing}: its log"))?;
        let mut command = Command::new(&self.program.file);
        // The demo passes all settings; those for this user's own peer must not apply.
        for variable in &self.program.hidden_variables {
            command.env_remove(variable);
        }
        let mut child = command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .context(ErrorKind::Unexpected, &doing)?;
        let stdout = child.stdout.take().ok_or_else(|| Error::new(ErrorKind::Unexpected, &doing))?;
        tokio::spawn(listen(node, BufReader::new(stdout), self.events.clone()));
        let stdin = child.stdin.take();
        Ok(PeerProcess { child, stdin, killed: false })
    }

    /// Kills a peer as a power cut would: SIGKILL, no goodbye.
    pub(crate) fn kill(&mut self, node: usize) -> Result {
        let peer = &mut self.peers[node];
        peer.killed = true;
        peer.child.start_kill().context(ErrorKind::Unexpected, format!("cannot kill peer {node}"))
    }

    /// Returns `true` if [`kill`](Self::kill) was called for this peer, and it was not started again.
    pub(crate) fn was_killed(&self, node: usize) -> bool {
        self.peers[node].killed
    }

    /// Closes every peer's standard input, which makes it stop; peers that wait for their turn do not start.
    pub(crate) fn ask_to_stop(&mut self) {
        self.waiting.clear();
        for peer in &mut self.peers {
            peer.stdin = None;
        }
    }

    /// Kills the remaining processes, and waits until they are gone.
    pub(crate) async fn kill_all(&mut self) {
        for peer in &mut self.peers {
            // An error means that it has ended already.
            let _ = peer.child.start_kill();
        }
        for peer in &mut self.peers {
            let _ = peer.child.wait().await;
        }
    }

    /// Waits for the end of every process.
    pub(crate) async fn wait(&mut self) -> Result<Vec<ExitStatus>> {
        let mut statuses = Vec::new();
        for (node, peer) in self.peers.iter_mut().enumerate() {
            let status = peer.child.wait().await;
            statuses.push(status.context(ErrorKind::Unexpected, format!("cannot wait for peer {node}"))?);
        }
        Ok(statuses)
    }
}

/// Passes on the events that one peer writes to its standard output.
async fn listen(node: usize, stdout: BufReader<tokio::process::ChildStdout>, events: mpsc::Sender<(usize, PeerEvent)>) {
    let mut lines = stdout.lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let event = match serde_json::from_str::<EventLine>(&line) {
            Ok(line) => PeerEvent::Said(line.event),
            Err(_) => PeerEvent::Failed(failure_kind(&line), failure_message(&line)),
        };
        if events.send((node, event)).await.is_err() {
            return;
        }
    }
    // The receiver may be gone when the demo ends early.
    let _ = events.send((node, PeerEvent::Ended)).await;
}

/// The kind of a failure object.
fn failure_kind(line: &str) -> ErrorKind {
    let object: Option<serde_json::Value> = serde_json::from_str(line).ok();
    let code = object.and_then(|object| object["error"]["code"].as_u64());
    code.and_then(ErrorKind::of_code).unwrap_or(ErrorKind::Unexpected)
}

/// The message in a failure object, with its hint, or the line itself.
fn failure_message(line: &str) -> String {
    let object = serde_json::from_str::<serde_json::Value>(line).unwrap_or_default();
    let text = |key: &str| object["error"][key].as_str().map(str::to_owned);
    match (text("message"), text("hint")) {
        (Some(message), Some(hint)) => format!("{message} ({hint})"),
        (Some(message), None) => message,
        (None, _) => line.to_owned(),
    }
}
