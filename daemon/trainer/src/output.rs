//! The output of a launched trainer: all of it goes to a log in the home, and a bounded number of lines to the events.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use mingle_peer::owner_only;
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdout};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;

/// Bytes of a line that are kept for its event.
const MAX_LINE: usize = 400;
/// Bytes of a line that wait for its end before they go to the log.
const LONGEST_PART: usize = 16 << 10;
/// Bytes of the log at which nothing more is appended.
const MAX_LOG_BYTES: u64 = 64 << 20;
/// Lines that wait in the queue for events.
const LINE_QUEUE: usize = 64;
/// Lines that become events within one `WINDOW` at most.
const LINES_IN_WINDOW: u64 = 50;
const WINDOW: Duration = Duration::from_secs(10);
/// Number of last lines kept to explain a failure.
const LAST_LINES: usize = 5;

/// An event of the output of a trainer.
#[derive(Debug, PartialEq)]
pub(crate) enum OutputEvent {
    Line(String),
    /// The number of lines left out, because they came too fast.
    LeftOut(u64),
}

/// The output of a trainer while it is read.
pub(crate) struct TrainerOutput {
    lines: mpsc::Receiver<String>,
    reader: JoinHandle<()>,
    digest: Digest,
}

impl TrainerOutput {
    /// Begins to read both outputs and to append them to the log.
    pub(crate) async fn read(out: Option<ChildStdout>, error: Option<ChildStderr>, log: PathBuf) -> Self {
        let log = Mutex::new(Log::open(log).await);
        let (sender, lines) = mpsc::channel(LINE_QUEUE);
        let reader = tokio::spawn(async move {
            tokio::join!(read_lines(out, &log, &sender), read_lines(error, &log, &sender));
        });
        Self { lines, reader, digest: Digest::default() }
    }

    /// The next event; none once both outputs are closed. Cancel-safe: no event is lost where the future is dropped.
    pub(crate) async fn next(&mut self) -> Option<OutputEvent> {
        while self.digest.told.is_empty() {
            match self.lines.recv().await {
                Some(line) => self.digest.add(line, Instant::now()),
                None => {
                    self.digest.finish();
                    break;
                }
            }
        }
        self.digest.told.pop_front()
    }

    /// The last lines, also those left out of the events.
    pub(crate) fn last_lines(&self) -> Vec<String> {
        self.digest.last_lines.iter().cloned().collect()
    }
}

impl Drop for TrainerOutput {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// A rate limit on lines, so that a program that writes a lot does not fill the events of its peer.
#[derive(Default)]
struct Digest {
    told: VecDeque<OutputEvent>,
    /// Start of the present window, and the number of lines that became events in it.
    window: Option<(Instant, u64)>,
    left_out: u64,
    last_lines: VecDeque<String>,
}

impl Digest {
    fn add(&mut self, line: String, now: Instant) {
        if self.last_lines.len() == LAST_LINES {
            self.last_lines.pop_front();
        }
        self.last_lines.push_back(line.clone());
        let is_new = self.window.is_none_or(|(began, _)| now.saturating_duration_since(began) >= WINDOW);
        if is_new {
            self.window = Some((now, 0));
            self.tell_left_out(0);
        }
        match &mut self.window {
            Some((_, told)) if *told < LINES_IN_WINDOW => {
                *told += 1;
                self.told.push_back(OutputEvent::Line(line));
            }
            _ => self.left_out += 1,
        }
    }

    /// Ends the output: the last lines become events even where they were left out.
    fn finish(&mut self) {
        let last = usize::try_from(self.left_out).unwrap_or(usize::MAX).min(self.last_lines.len());
        self.tell_left_out(last);
        let last_lines = self.last_lines.range(self.last_lines.len() - last..);
        self.told.extend(last_lines.cloned().map(OutputEvent::Line));
    }

    /// Adds an event with the number of lines left out, less the `but` of them that follow.
    fn tell_left_out(&mut self, but: usize) {
        let left_out = std::mem::take(&mut self.left_out).saturating_sub(but as u64);
        if left_out > 0 {
            self.told.push_back(OutputEvent::LeftOut(left_out));
        }
    }
}

/// Reads an output: each line goes whole to the log, and cut to `MAX_LINE` to the events.
async fn read_lines(stream: Option<impl AsyncRead + Unpin>, log: &Mutex<Log>, lines: &mpsc::Sender<String>) {
    let Some(mut stream) = stream else { return };
    let mut bytes = vec![0; 8192];
    let mut cutter = Cutter::default();
    let mut unlogged = Vec::new();
    loop {
        let read = match stream.read(&mut bytes).await {
            Ok(0) | Err(_) => break,
            Ok(read) => read,
        };
        unlogged.extend_from_slice(&bytes[..read]);
        // Whole lines only: the other output goes to the same file.
        let whole = unlogged.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let ready = if unlogged.len() > LONGEST_PART { unlogged.len() } else { whole };
        log.lock().await.write(&unlogged[..ready]).await;
        unlogged.drain(..ready);
        for byte in &bytes[..read] {
            if let Some(line) = cutter.push(*byte) {
                // The receiver is dropped once the trainer has ended.
                let _ = lines.send(line).await;
            }
        }
    }
    log.lock().await.write(&unlogged).await;
    if let Some(line) = cutter.line() {
        let _ = lines.send(line).await;
    }
}

/// Splits bytes into lines.
#[derive(Default)]
struct Cutter {
    line: Vec<u8>,
    /// Set after a carriage return: the next byte starts the line anew, unless it ends it. So only the last state of a
    /// progress bar becomes an event.
    returns: bool,
}

impl Cutter {
    fn push(&mut self, byte: u8) -> Option<String> {
        match byte {
            b'\n' => return self.line(),
            b'\r' => self.returns = true,
            _ => {
                if std::mem::take(&mut self.returns) {
                    self.line.clear();
                }
                if self.line.len() < MAX_LINE {
                    self.line.push(byte);
                }
            }
        }
        None
    }

    /// Takes the present line, unless it is blank.
    fn line(&mut self) -> Option<String> {
        self.returns = false;
        let text = String::from_utf8_lossy(&std::mem::take(&mut self.line)).trim_end().to_owned();
        (!text.is_empty()).then_some(text)
    }
}

/// The log file of a trainer's output.
struct Log {
    file: Option<File>,
    written: u64,
}

impl Log {
    /// Opens the log at `path` to append to it; a log that cannot be opened is left out, with a warning.
    async fn open(path: PathBuf) -> Self {
        let opened = owner_only::open(&path, OpenOptions::new().create(true).append(true));
        let file =
            opened.inspect_err(|error| tracing::warn!(%error, path = %path.display(), "cannot write the log")).ok();
        let file = file.map(File::from_std);
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
        // Without this, the last bytes may be lost.
        let _ = file.flush().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        let mut cutter = Cutter::default();
        let mut lines: Vec<String> = text.bytes().filter_map(|byte| cutter.push(byte)).collect();
        lines.extend(cutter.line());
        lines
    }

    #[test]
    fn lines_end_as_on_either_system_and_of_a_progress_bar_only_the_last_state_is_told() {
        assert_eq!(lines("one\r\n\ntwo\nthree"), ["one", "two", "three"]);
        assert_eq!(lines("10 %\r20 %\r100 %\ndone\r"), ["100 %", "done"]);
        assert_eq!(lines(&"x".repeat(1000)), ["x".repeat(MAX_LINE)]);
    }

    #[test]
    fn of_many_lines_the_first_and_the_last_are_told_and_how_many_were_between() {
        let (mut digest, now) = (Digest::default(), Instant::now());
        (0..100).for_each(|line| digest.add(line.to_string(), now));
        assert_eq!(digest.told.len(), 50);
        assert_eq!(digest.told.back(), Some(&OutputEvent::Line("49".to_owned())));
        digest.told.clear();
        digest.add("later".to_owned(), now + WINDOW);
        assert_eq!(digest.told, [OutputEvent::LeftOut(50), OutputEvent::Line("later".to_owned())]);
        (0..60).for_each(|line| digest.add(line.to_string(), now + WINDOW));
        digest.told.clear();
        digest.finish();
        let last = (55..60).map(|line| OutputEvent::Line(line.to_string()));
        assert_eq!(digest.told, std::iter::once(OutputEvent::LeftOut(6)).chain(last).collect::<Vec<_>>());
        digest.told.clear();
        digest.finish();
        assert_eq!(digest.told, [], "nothing is told twice");
    }
}
