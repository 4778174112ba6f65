//! Records on their way to the disk, in a thread of their own: the event loop never waits for a disk.
//!
//! A full disk is waited for, since files can be deleted. Any other failure is final: after it nobody can say what is on
//! the disk, so the process has to end, and the next one reads what is really there.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mingle_protocol::Record;
use tokio::sync::mpsc;

use super::store::RecordStore;
use crate::failure::{Failure, Kind, OrFail, Outcome};
use crate::timeline::{Deed, Timeline};

/// Records that wait for the thread. A node has one under way, and another when it begins a new life meanwhile.
const RECORD_QUEUE: usize = 8;
/// Each record that waits is answered three times at most, so the thread never waits for room.
const ANSWER_QUEUE: usize = 4 * RECORD_QUEUE;
/// Between two attempts to write to a disk that is full.
const FULL_DISK_PAUSE: Duration = Duration::from_millis(500);

/// What came of a record.
#[derive(Debug)]
pub(crate) enum Written {
    /// It is on the disk.
    Record {
        /// Its number.
        number: u64,
    },
    /// The disk is full: it is tried again until there is room.
    DiskFull {
        /// The failed attempt, in words.
        message: String,
    },
    /// There is room again.
    RoomAgain,
    /// Nobody knows what is on the disk: the process has to end.
    Failed(Failure),
}

/// A handle on the thread. Dropped, it waits until the records that were handed in are on the disk, or cannot be.
pub(crate) struct RecordWriter {
    /// `None` only while it is dropped.
    records: Option<SyncSender<Arc<Record>>>,
    thread: Option<JoinHandle<()>>,
}

impl RecordWriter {
    /// Starts the thread.
    pub(crate) fn start(store: RecordStore, timeline: Timeline) -> Outcome<(Self, mpsc::Receiver<Written>)> {
        let (records, receiver) = sync_channel(RECORD_QUEUE);
        let (answers, written) = mpsc::channel(ANSWER_QUEUE);
        let worker = Worker { store, records: receiver, backlog: VecDeque::new(), answers, timeline };
        let thread = std::thread::Builder::new().name("records".to_owned()).spawn(move || worker.run());
        let thread = thread.or_fail(Kind::Unexpected, "cannot start the thread that writes records")?;
        Ok((Self { records: Some(records), thread: Some(thread) }, written))
    }

    /// Hands in a record; never waits.
    ///
    /// # Errors
    /// So many records wait that something is wrong with this program.
    pub(crate) fn write(&self, record: Arc<Record>) -> Outcome {
        let Some(records) = &self.records else { return Ok(()) };
        match records.try_send(record) {
            // Where the thread has ended, its last answer says why.
            Ok(()) | Err(TrySendError::Disconnected(_)) => Ok(()),
            Err(TrySendError::Full(_)) => Err(Failure::new(Kind::Unexpected, "too many records wait for the disk")),
        }
    }
}

impl Drop for RecordWriter {
    fn drop(&mut self) {
        self.records = None;
        if let Some(thread) = self.thread.take() {
            // Only a panic ends it with an error, and that has been printed.
            let _ = thread.join();
        }
    }
}

struct Worker {
    store: RecordStore,
    records: Receiver<Arc<Record>>,
    /// Came while the disk was full.
    backlog: VecDeque<Arc<Record>>,
    answers: mpsc::Sender<Written>,
    timeline: Timeline,
}

impl Worker {
    fn run(mut self) {
        while let Some(record) = self.next()
            && self.write(&record).is_continue()
        {}
    }

    fn next(&mut self) -> Option<Arc<Record>> {
        self.backlog.pop_front().or_else(|| self.records.recv().ok())
    }

    /// Writes one record, however long the disk is full.
    fn write(&mut self, record: &Record) -> ControlFlow<()> {
        let (began, mut was_full) = (Instant::now(), false);
        loop {
            match self.store.write(record) {
                Ok(()) => break,
                Err(error) if error.is_full_disk() => {
                    if !was_full {
                        self.answer(Written::DiskFull { message: error.to_string() });
                    }
                    was_full = true;
                    self.wait()?;
                }
                Err(error) => {
                    self.answer(Written::Failed(error.into()));
                    return ControlFlow::Break(());
                }
            }
        }
        if was_full {
            self.answer(Written::RoomAgain);
        }
        self.timeline.note(Deed::Record, began);
        self.answer(Written::Record { number: record.books.number });
        ControlFlow::Continue(())
    }

    /// Lets some time pass, unless nobody wants the record any more.
    fn wait(&mut self) -> ControlFlow<()> {
        match self.records.recv_timeout(FULL_DISK_PAUSE) {
            Ok(record) => self.backlog.push_back(record),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }

    fn answer(&self, answer: Written) {
        // At the end of a run nobody listens; what was handed in by then is written all the same.
        let _ = self.answers.blocking_send(answer);
    }
}

#[cfg(test)]
mod tests;
