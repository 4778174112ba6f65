//! Helpers that the tests of the `mingle` binary share.
#![allow(dead_code)] // not every suite uses everything

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

pub(crate) mod browser;
pub(crate) mod founded_swarm;
pub(crate) mod liar;
pub(crate) mod lossy_network;
pub(crate) mod namespaces;
pub(crate) mod pair;
pub(crate) mod planned_swarm;
pub(crate) mod played_peers;
pub(crate) mod small_disk;
pub(crate) mod trainer;

/// The binary under test, or the build of it that `MINGLE_UNDER_TEST` names, with nothing of the user's environment
/// that would change what it does.
pub(crate) fn mingle() -> Command {
    let named = std::env::var_os("MINGLE_UNDER_TEST");
    undisturbed(Command::new(named.unwrap_or_else(|| env!("CARGO_BIN_EXE_mingle").into())))
}

/// The binary as its user's terminal starts it, which ends it when it is closed. Tests may run below a program that ignores that
/// signal, such as nohup, and what they start would inherit it.
pub(crate) fn mingle_of_a_terminal() -> Command {
    if cfg!(not(target_os = "linux")) {
        return mingle();
    }
    let mut command = undisturbed(Command::new("env"));
    command.arg("--default-signal=HUP").arg(mingle().get_program());
    command
}

fn undisturbed(mut command: Command) -> Command {
    for (variable, _) in std::env::vars_os().filter(|(name, _)| is_setting(&name.to_string_lossy())) {
        command.env_remove(variable);
    }
    command.env_remove("NOTIFY_SOCKET").env_remove("WATCHDOG_USEC").env("RAYON_NUM_THREADS", "1");
    command
}

/// Runs the binary to its end.
pub(crate) fn run(arguments: &[&str]) -> Output {
    mingle().args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// Standard output as text.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Standard error as text.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Asserts that a command failed with this exit code and that its error contains every one of these words.
#[track_caller]
pub(crate) fn assert_fails(output: &Output, code: i32, words: &[&str]) {
    let error = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{error}");
    assert!(!error.contains("panicked"), "{error}");
    for word in words {
        assert!(error.contains(word), "`{word}` is missing in: {error}");
    }
}

/// A file of JSON.
pub(crate) fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// The output of `mingle status` for the peer in this home.
pub(crate) fn status(home: &Path) -> Value {
    let output = run(&["status", "--home", text(home), "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap()
}

/// The report of `mingle audit` on these homes, which must find no contradiction.
pub(crate) fn audit(homes: &[PathBuf]) -> Value {
    let homes: Vec<&str> = homes.iter().map(|home| text(home)).collect();
    let output = run(&[&["audit", "--json"], &homes[..]].concat());
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap()
}

/// A path as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The longest wait for an event, which is far more than any takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// The longest wait for an event that comes after any number of rounds.
const PATIENCE_THROUGH_ROUNDS: Duration = Duration::from_secs(600);

/// The longest time from a peer's last event to the end of its process: everything that it waits for then has a limit.
const TO_THE_END: Duration = Duration::from_secs(15);

/// A peer that runs in the background; it ends with the test.
pub(crate) struct RunningPeer {
    child: Child,
    /// The time at which its last event was read: its result, or the failure that it ends with.
    concluded: Option<Instant>,
    /// Its output lines, read by a thread: a full pipe would hold it up.
    lines: Receiver<String>,
    /// The last of its output, for the failure of a test.
    said: VecDeque<String>,
}

/// Returns `true` if a variable of the environment would change what a peer does. What it logs does not.
fn is_setting(variable: &str) -> bool {
    variable.starts_with("MINGLE_") && variable != "MINGLE_LOG"
}

/// The output for a peer's log: a file of its own below `$MINGLE_TEST_LOGS`, or none. `MINGLE_LOG` sets what is logged.
fn diagnostics() -> Stdio {
    static STARTED: AtomicUsize = AtomicUsize::new(0);
    let Some(folder) = std::env::var_os("MINGLE_TEST_LOGS") else { return Stdio::null() };
    let number = STARTED.fetch_add(1, Ordering::Relaxed);
    let name = format!("{}-{number}.log", std::process::id());
    std::fs::File::create(Path::new(&folder).join(name)).unwrap().into()
}

impl RunningPeer {
    /// Starts `mingle run --json` with these arguments, on loopback.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_as(mingle(), arguments)
    }

    /// Like [`start`](Self::start), with a command that runs the binary in some way of its own.
    pub(crate) fn start_as(command: Command, arguments: &[&str]) -> Self {
        let run = ["run", "--listen", "/ip4/127.0.0.1/udp/0/quic-v1", "--listen", "/ip4/127.0.0.1/tcp/0"];
        Self::spawn_as(command, &[&run, arguments].concat())
    }

    /// Starts `mingle join TICKET --json` with these arguments, on loopback.
    pub(crate) fn join(ticket: &str, arguments: &[&str]) -> Self {
        let loopback = ["--listen", "/ip4/127.0.0.1/udp/0/quic-v1", "--listen", "/ip4/127.0.0.1/tcp/0"];
        Self::spawn(&[&["join", ticket], &loopback[..], arguments].concat())
    }

    /// Starts `mingle run --json` with these arguments, which include its listen addresses.
    pub(crate) fn start_listening(arguments: &[&str]) -> Self {
        Self::spawn(&[&["run"], arguments].concat())
    }

    /// Starts `mingle leave --json` with these arguments, on loopback.
    pub(crate) fn leave(arguments: &[&str]) -> Self {
        let loopback = ["--listen", "/ip4/127.0.0.1/udp/0/quic-v1", "--listen", "/ip4/127.0.0.1/tcp/0"];
        Self::spawn(&[&["leave"], &loopback[..], arguments].concat())
    }

    fn spawn(arguments: &[&str]) -> Self {
        Self::spawn_as(mingle(), arguments)
    }

    /// Starts a command of this binary that runs until it is stopped.
    pub(crate) fn spawn_as(mut command: Command, arguments: &[&str]) -> Self {
        let mut child = command
            .args(arguments)
            .args(["--json", "--stop-with-stdin"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(diagnostics())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { child, concluded: None, lines, said: VecDeque::new() }
    }

    /// The next event of this kind, or the failure that came instead. Panics when the peer ends or does not report it
    /// in time.
    pub(crate) fn wait_for(&mut self, kind: &str) -> Value {
        self.wait_until_any(&[kind], Instant::now() + PATIENCE)
    }

    /// Like `wait_for`, but also takes an event that came while another one was waited for.
    pub(crate) fn recall_or_wait_for(&mut self, kind: &str) -> Value {
        let mut said = self.said.iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let recalled = said.find(|event| event["event"] == kind);
        recalled.unwrap_or_else(|| self.wait_for(kind))
    }

    /// Like `wait_for`, but waits as long as the peer goes on with its rounds.
    pub(crate) fn wait_through_rounds_for(&mut self, kind: &str) -> Value {
        self.look_at_rounds_until(kind, |_| {})
    }

    /// Like `wait_through_rounds_for`, and looks at the events of rounds on the way.
    pub(crate) fn look_at_rounds_until(&mut self, kind: &str, mut look: impl FnMut(&Value)) -> Value {
        let deadline = Instant::now() + PATIENCE_THROUGH_ROUNDS;
        while Instant::now() < deadline {
            let event = self.wait_until_any(&[kind, "round"], Instant::now() + PATIENCE);
            if event["event"] != "round" {
                return event;
            }
            look(&event);
        }
        panic!("rounds go on, and the peer did not say {kind:?}; {}", self.last_words());
    }

    /// The next warning that contains these words, waited for as long as the peer goes on with its rounds.
    pub(crate) fn wait_for_warning(&mut self, words: &str) -> String {
        loop {
            let warning = self.wait_through_rounds_for("warning");
            let message = warning["message"].as_str().unwrap_or_else(|| panic!("it ended: {warning}"));
            if message.contains(words) {
                return message.to_owned();
            }
        }
    }

    /// The first warning with these words that any of these peers reports.
    pub(crate) fn wait_for_warning_of_any(peers: &mut [&mut Self], words: &str) -> String {
        Self::warning_of_any(peers, words)["message"].as_str().unwrap().to_owned()
    }

    /// The warning with these words that this peer reports, within 10 s of an event that came before it.
    pub(crate) fn wait_for_warning_soon_after(&mut self, kind: &str, words: &str) -> String {
        let event = self.recall_or_wait_for(kind);
        let warning = Self::warning_of_any(&mut [self], words);
        let waited_ms = warning["at_ms"].as_u64().unwrap().saturating_sub(event["at_ms"].as_u64().unwrap());
        println!("{waited_ms} ms after {kind}: {words}");
        assert!(waited_ms < 10_000, "{waited_ms} ms after {event}: {warning}");
        warning["message"].as_str().unwrap().to_owned()
    }

    fn warning_of_any(peers: &mut [&mut Self], words: &str) -> Value {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            for peer in peers.iter_mut() {
                let line = match peer.lines.recv_timeout(Duration::from_millis(1)) {
                    Ok(line) => line,
                    Err(RecvTimeoutError::Timeout) => continue,
                    Err(RecvTimeoutError::Disconnected) => panic!("it ended: {}", peer.last_words()),
                };
                let event: Value = serde_json::from_str(&line).unwrap();
                assert!(event.get("error").is_none(), "it ended: {event}");
                peer.remember(line);
                let is_warning = event["event"] == "warning";
                if is_warning && event["message"].as_str().is_some_and(|message| message.contains(words)) {
                    return event;
                }
            }
        }
        let last_words = peers.iter().map(|peer| peer.last_words()).collect::<Vec<_>>();
        panic!("no peer warned of {words:?}: {}", last_words.join("\n"));
    }

    fn wait_until_any(&mut self, kinds: &[&str], deadline: Instant) -> Value {
        loop {
            let line = self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now()));
            let line =
                line.unwrap_or_else(|error| panic!("the peer did not say {kinds:?}: {error}; {}", self.last_words()));
            let object: Value = serde_json::from_str(&line).unwrap();
            self.remember(line);
            if kinds.iter().any(|kind| object["event"] == *kind) || object.get("error").is_some() {
                return object;
            }
            assert!(Instant::now() < deadline, "the peer says other things than {kinds:?}; {}", self.last_words());
        }
    }

    fn remember(&mut self, line: String) {
        if self.concluded.is_none() && is_conclusion(&line) {
            self.concluded = Some(Instant::now());
        }
        self.said.push_back(line);
        if self.said.len() > 20 {
            self.said.pop_front();
        }
    }

    /// Drops the output so far: only events from here on count.
    pub(crate) fn forget_what_it_said(&mut self) {
        self.lines.try_iter().for_each(drop);
    }

    fn last_words(&self) -> String {
        let said = self.said.iter().map(|line| format!("\n  {line}")).collect::<String>();
        format!("process {} said at last:{said}", self.child.id())
    }

    /// The address it listens on.
    pub(crate) fn address(&mut self) -> String {
        self.wait_for("listening")["addresses"][0].as_str().unwrap().to_owned()
    }

    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal, such as `STOP`.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.id().to_string()]).status().unwrap();
        assert!(sent.success(), "kill -s {name}");
    }

    /// Kills it as a power cut would, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }

    /// Waits for its end and returns the exit code. Panics if its process goes on after its last event.
    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            match self.lines.recv_timeout(Duration::from_millis(5)) {
                Ok(line) => self.remember(line),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => std::thread::yield_now(),
            }
            let concluded = self.concluded.map(|at| at.elapsed());
            assert!(
                concluded.is_none_or(|elapsed| elapsed < TO_THE_END),
                "its last event was {concluded:?} ago, and its process has not ended; {}",
                self.last_words()
            );
            assert!(begun.elapsed() < PATIENCE_THROUGH_ROUNDS, "its process does not end; {}", self.last_words());
        }
    }

    /// Waits until its output is closed, and returns `false` if it is not within this time. Its standard input stays open:
    /// the end of that would be a further request to stop.
    pub(crate) fn closes_its_output_within(&mut self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.remember(line),
                Err(RecvTimeoutError::Disconnected) => return true,
                Err(RecvTimeoutError::Timeout) => return false,
            }
        }
    }
}

/// Returns `true` for the last event of a peer: its result, or the failure that it ends with.
fn is_conclusion(line: &str) -> bool {
    let Ok(object) = serde_json::from_str::<Value>(line) else { return false };
    let last = ["done", "solved", "learned", "left"];
    object.get("error").is_some() || last.iter().any(|event| object["event"] == **event)
}

impl Drop for RunningPeer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
