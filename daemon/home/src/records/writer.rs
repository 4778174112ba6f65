//! The record writer, a thread that brings records to the disk: the event loop never waits for a disk.
//!
//! At most one record waits while another is written. A node hands in a second one only when it begins a new
//! incarnation or a new generation. The waiting record is then obsolete, and the newer one replaces it, however many
//! come.
//!
//! The writer waits for a full disk, since files can be deleted. While there is no room for more slots the node
//! continues with the existing ones. Any other failure to write is final: the state of the disk is unknown after it, so
//! the process has to end, and the next one reads what is really there.

use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mingle_protocol::Record;
use tokio::sync::mpsc;

use super::store::{RecordStore, Room, StoreError};
use crate::error::{Context, Error, ErrorKind, Result, with_causes};
use crate::timeline::{SpanKind, Timeline};

/// Answers that wait for the event loop; the thread blocks when there are more.
const ANSWER_QUEUE: usize = 32;
/// Pause between two attempts to write to a full disk.
const FULL_DISK_PAUSE: Duration = Duration::from_millis(500);

/// The outcome of a write, or of a request for room.
#[derive(Debug)]
pub enum Written {
    /// The record is on the disk.
    Record {
        /// Its number.
        number: u64,
    },
    /// The requested slots exist.
    Reserved {
        /// Number of slots.
        slots: usize,
    },
    /// The disk is full: the write is repeated until there is room.
    DiskFull {
        /// The failed attempt, in words.
        message: String,
    },
    /// There is room again.
    RoomAgain,
    /// The state of the disk is unknown: the process has to end.
    Failed(Error),
}

/// A handle on the thread. Dropping it waits until the records handed in are on the disk, or cannot be.
pub struct RecordWriter {
    mailbox: Arc<Mailbox>,
    thread: Option<JoinHandle<()>>,
}

impl RecordWriter {
    /// Starts the thread.
    pub fn start(store: RecordStore, timeline: Timeline) -> Result<(Self, mpsc::Receiver<Written>)> {
        let mailbox = Arc::new(Mailbox::default());
        let (answers, written) = mpsc::channel(ANSWER_QUEUE);
        let worker =
            RecordWorker { store, mailbox: Arc::clone(&mailbox), answers, timeline, is_full: false, lacking: None };
        let thread = std::thread::Builder::new().name("records".to_owned()).spawn(move || worker.run());
        let thread = thread.context(ErrorKind::Unexpected, "cannot start the thread that writes records")?;
        Ok((Self { mailbox, thread: Some(thread) }, written))
    }

    /// Hands in a record, without blocking.
    ///
    /// # Errors
    /// The new record still needs the waiting one, which is an error in this program.
    pub fn write(&self, record: Arc<Record>) -> Result {
        let mut orders = self.mailbox.lock();
        let needed = orders.record.as_ref().is_some_and(|waiting| {
            let owed = record.books.owed_records();
            owed.contains(&waiting.books.number)
        });
        if needed {
            return Err(Error::new(ErrorKind::Unexpected, "two records wait for the disk, and both are needed"));
        }
        orders.record = Some(record);
        self.mailbox.changed.notify_one();
        Ok(())
    }

    /// Requests room for the records of a node whose links have changed, without blocking.
    pub fn reserve(&self, room: Room) {
        self.mailbox.lock().room = Some(room);
        self.mailbox.changed.notify_one();
    }
}

impl Drop for RecordWriter {
    fn drop(&mut self) {
        self.mailbox.lock().is_closed = true;
        self.mailbox.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // It ends with an error only after a panic, which has been printed.
            let _ = thread.join();
        }
    }
}

/// Pending work of the thread.
#[derive(Default)]
struct Mailbox {
    orders: Mutex<Orders>,
    changed: Condvar,
}

#[derive(Default)]
struct Orders {
    room: Option<Room>,
    record: Option<Arc<Record>>,
    is_closed: bool,
}

impl Mailbox {
    /// Locks the orders. A poisoned lock is usable: no holder can panic halfway through a change.
    fn lock(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for work, but not beyond `until`.
    fn next(&self, until: Option<Instant>) -> NextRecord {
        let idle = |orders: &mut Orders| orders.room.is_none() && orders.record.is_none() && !orders.is_closed;
        let orders = self.lock();
        let mut orders = if let Some(until) = until {
            let pause = until.saturating_duration_since(Instant::now());
            self.changed.wait_timeout_while(orders, pause, idle).unwrap_or_else(PoisonError::into_inner).0
        } else {
            self.changed.wait_while(orders, idle).unwrap_or_else(PoisonError::into_inner)
        };
        let room = orders.room.take();
        let record = orders.record.take();
        NextRecord { is_over: orders.is_closed && record.is_none(), room, record }
    }

    /// Waits for `FULL_DISK_PAUSE`, or until the handle is dropped: then returns `Break`.
    fn pause(&self) -> ControlFlow<()> {
        let orders = self.lock();
        let open = |orders: &mut Orders| !orders.is_closed;
        let waited = self.changed.wait_timeout_while(orders, FULL_DISK_PAUSE, open);
        let (orders, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if orders.is_closed { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

struct NextRecord {
    room: Option<Room>,
    record: Option<Arc<Record>>,
    is_over: bool,
}

struct RecordWorker {
    store: RecordStore,
    mailbox: Arc<Mailbox>,
    answers: mpsc::Sender<Written>,
    timeline: Timeline,
    /// Set when the last attempt found no room on the disk, which has been reported.
    is_full: bool,
    /// Room that could not be made, and the time of the next attempt.
    lacking: Option<(Room, Instant)>,
}

impl RecordWorker {
    fn run(mut self) {
        loop {
            let NextRecord { room, record, is_over } = self.mailbox.next(self.lacking.map(|(_, at)| at));
            if is_over {
                return;
            }
            let made = match room.or(self.lacking.filter(|(_, at)| *at <= Instant::now()).map(|(room, _)| room)) {
                Some(room) => self.make(room),
                None => Ok(()),
            };
            let write = |()| record.map_or(Ok(ControlFlow::Continue(())), |record| self.write(&record));
            match made.and_then(write) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => return,
                Err(failure) => return self.answer(Written::Failed(failure)),
            }
        }
    }

    /// Makes room for more or longer records, now or as soon as the disk has it.
    fn make(&mut self, room: Room) -> Result {
        match self.store.reserve(room) {
            Ok(()) => {
                self.lacking = None;
                self.note_room();
            }
            Err(error @ (StoreError::NoSpace { .. } | StoreError::Folder { .. })) => {
                self.lacking = Some((room, Instant::now() + FULL_DISK_PAUSE));
                self.note_full(&error);
            }
            Err(error) => return Err(error.into()),
        }
        self.answer(Written::Reserved { slots: self.store.slots() });
        Ok(())
    }

    /// Writes one record, repeating while the disk is full.
    fn write(&mut self, record: &Record) -> Result<ControlFlow<()>> {
        let began = Instant::now();
        loop {
            match self.store.write(record) {
                Ok(()) => break,
                Err(error) if error.is_full_disk() => {
                    self.note_full(&error);
                    if self.mailbox.pause().is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.note_room();
        self.timeline.note(SpanKind::Record, began);
        self.answer(Written::Record { number: record.books.number });
        Ok(ControlFlow::Continue(()))
    }

    fn note_full(&mut self, error: &StoreError) {
        if !std::mem::replace(&mut self.is_full, true) {
            self.answer(Written::DiskFull { message: with_causes(error) });
        }
    }

    fn note_room(&mut self) {
        if std::mem::take(&mut self.is_full) {
            self.answer(Written::RoomAgain);
        }
    }

    fn answer(&self, answer: Written) {
        // At the end of a run there is no receiver; records handed in by then are written all the same.
        let _ = self.answers.blocking_send(answer);
    }
}

#[cfg(test)]
mod tests;
