//! Printing of a peer's events on a thread of its own. A reader that stands still, such as a pipe that nobody reads or a
//! terminal after Ctrl-S, holds up no peer.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mingle_peer::error::Context;
use mingle_peer::{Error, ErrorKind, Result};

use crate::out::{self, Stream};

/// Lines that may wait for the reader; those of single rounds are left out beyond half of it.
const MOST_LINES: usize = 16_384;
/// Time at the end of the process in which the reader must take a line, as long as some wait.
const LONGEST_STANDSTILL: Duration = Duration::from_secs(3);

/// A printer of lines to one stream. Clones are the same printer.
#[derive(Clone)]
pub(crate) struct Printer(Arc<Shared>);

struct Shared {
    stream: Stream,
    waiting: Mutex<WaitingLines>,
    changed: Condvar,
}

#[derive(Default)]
struct WaitingLines {
    lines: VecDeque<String>,
    left_out: u64,
    /// Lines that the stream has taken.
    taken: u64,
    is_closing: bool,
    /// Set when the thread has ended: nothing more is printed.
    is_over: bool,
    /// The first failure, unless the reader has gone.
    failure: Option<io::Error>,
}

impl Printer {
    /// Starts a printer to this stream.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start(stream: Stream) -> Result<Self> {
        let printer = Self(Arc::new(Shared { stream, waiting: Mutex::default(), changed: Condvar::new() }));
        let worker = printer.clone();
        // The thread is never joined: one that stands still ends with the process.
        std::thread::Builder::new()
            .name("printer".to_owned())
            .spawn(move || worker.work())
            .context(ErrorKind::Unexpected, "cannot start the thread that prints")?;
        Ok(printer)
    }

    /// Prints a line once the reader takes it, after those before. `of_a_round` says that the line is one of many, and is
    /// the first to be left out where the reader is slow.
    pub(crate) fn print(&self, line: String, of_a_round: bool) {
        let mut waiting = self.lock();
        let most = if of_a_round { MOST_LINES / 2 } else { MOST_LINES };
        if waiting.is_over {
            return;
        }
        if waiting.lines.len() >= most {
            waiting.left_out += 1;
            return;
        }
        waiting.lines.push_back(line);
        self.0.changed.notify_all();
    }

    /// Waits until all lines are printed, as long as the reader takes some. If it stands still, nothing more is written to
    /// this stream.
    ///
    /// # Errors
    /// Lines could not be written or were left out. A reader that has gone is no error.
    pub(crate) fn finish(&self) -> Result {
        let mut waiting = self.lock();
        waiting.is_closing = true;
        self.0.changed.notify_all();
        while !waiting.is_over {
            let before = waiting.taken;
            let woken =
                self.0.changed.wait_timeout(waiting, LONGEST_STANDSTILL).unwrap_or_else(PoisonError::into_inner);
            waiting = woken.0;
            if woken.1.timed_out() && waiting.taken == before && !waiting.is_over {
                waiting.left_out += waiting.lines.len() as u64;
                waiting.lines.clear();
                out::give_up(self.0.stream);
                break;
            }
        }
        match (waiting.failure.take(), waiting.left_out) {
            (Some(error), _) => Err(unwritten(&error.to_string())),
            (None, 0) => Ok(()),
            (None, count) => Err(unwritten(&format!("its reader does not read, and {count} events were left out"))),
        }
    }

    fn work(&self) {
        while let Some(line) = self.next() {
            let written = out::write_line(self.0.stream, &line);
            let mut waiting = self.lock();
            waiting.taken += 1;
            if let Err(error) = written {
                waiting.failure = Some(error).filter(|error| error.kind() != io::ErrorKind::BrokenPipe);
                break;
            }
            self.0.changed.notify_all();
        }
        self.lock().is_over = true;
        self.0.changed.notify_all();
    }

    /// The next line; `None` once there will be no more.
    fn next(&self) -> Option<String> {
        let is_idle = |waiting: &mut WaitingLines| waiting.lines.is_empty() && !waiting.is_closing;
        let waiting = self.0.changed.wait_while(self.lock(), is_idle);
        waiting.unwrap_or_else(PoisonError::into_inner).lines.pop_front()
    }

    fn lock(&self) -> MutexGuard<'_, WaitingLines> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The error of a run whose requested events could not be written, such as to a full disk.
fn unwritten(why: &str) -> Error {
    Error::new(ErrorKind::BadInput, format!("cannot write to standard output: {why}"))
        .hint("the run went on without that: its results and its other events are in the home")
}
