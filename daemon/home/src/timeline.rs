//! What a peer does when: its training, the parcels on their way, its records, and what it waits for.
//!
//! A peer that is asked to keep a timeline writes one line for each of these once it is over. `mingle timeline` reads the
//! files of any number of peers, says how much of the time in which parcels moved was used for training, and draws them
//! under each other.

mod file;
mod measure;
mod picture;

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mingle_net::edge::ParcelObserver;
use mingle_protocol::NodeId;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::home::Home;
use crate::owner_only;
pub use file::{PeerTimeline, read};
pub use measure::{Shares, Window};
pub use picture::{FIRST_ROUND, Picture, draw, rounds_in_the_middle, window};

/// About 20 MB; rounds after that are not in the file.
const MOST_SPANS: u32 = 200_000;

/// What a peer was at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum SpanKind {
    /// One round, from beginning to end.
    Round {
        /// Which, from 1.
        round: u64,
    },
    /// The local steps of a round.
    Train,
    /// Judging its model.
    Evaluate,
    /// Writing a parcel to a stream.
    Send {
        /// To whom.
        node: u32,
    },
    /// Reading a parcel from a stream, from its first byte to its last.
    Receive {
        /// From whom.
        node: u32,
    },
    /// Getting a record onto the disk.
    Record,
    /// Waiting for parcels, or for room to send some.
    Wait,
}

/// A deed and when it was done, in microseconds since the timeline began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// What was done.
    #[serde(flatten)]
    pub deed: SpanKind,
    /// Its beginning.
    pub from_us: u64,
    /// Its end.
    pub to_us: u64,
}

impl Span {
    fn middle_us(&self) -> u64 {
        self.from_us.midpoint(self.to_us)
    }
}

/// The first line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    schema: String,
    node: u32,
    /// When the timeline began, in microseconds since 1970.
    began_unix_us: u64,
}

impl Head {
    const SCHEMA: &'static str = "mingle.timeline/1";
}

/// Where spans are written. Clones write to the same file; one that is off writes nothing.
#[derive(Clone, Debug, Default)]
pub struct Timeline(Option<Arc<Recorder>>);

#[derive(Debug)]
struct Recorder {
    began: Instant,
    pages: Mutex<Pages>,
}

#[derive(Debug)]
struct Pages {
    file: BufWriter<File>,
    left: u32,
}

impl Timeline {
    /// A timeline in the home of a peer; it replaces that of an earlier run.
    pub fn create(home: &Home, node: u32) -> Result<Self> {
        let path = home.timeline();
        let mut options = OpenOptions::new();
        let opened = owner_only::open(&path, options.write(true).create(true).truncate(true));
        let file = opened.map_err(|error| Error::cannot_write(&path, &error))?;
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let head = Head { schema: Head::SCHEMA.to_owned(), node, began_unix_us: micros(since_1970) };
        let mut pages = Pages { file: BufWriter::new(file), left: MOST_SPANS };
        pages.write(&head).map_err(|error| Error::cannot_write(&path, &error))?;
        Ok(Self(Some(Arc::new(Recorder { began: Instant::now(), pages: Mutex::new(pages) }))))
    }

    /// Hands what was noted so far to the operating system. A disk that is full shows elsewhere.
    pub fn flush(&self) {
        if let Some(recorder) = &self.0 {
            let _ = recorder.pages.lock().unwrap_or_else(PoisonError::into_inner).file.flush();
        }
    }

    /// Whether anything is written.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// A deed that is over now.
    pub fn note(&self, deed: SpanKind, from: Instant) {
        let Some(recorder) = &self.0 else { return };
        let since = |at: Instant| micros(at.saturating_duration_since(recorder.began));
        let span = Span { deed, from_us: since(from), to_us: since(Instant::now()) };
        let mut pages = recorder.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(left) = pages.left.checked_sub(1) {
            pages.left = left;
            // A picture for people: a disk that is full shows elsewhere, and must not hold the training up here.
            if pages.write(&span).is_err() {
                pages.left = 0;
            }
        }
    }
}

impl ParcelObserver for Timeline {
    fn sent(&self, node: NodeId, began: Instant) {
        self.note(SpanKind::Send { node: node.0 }, began);
    }

    fn received(&self, node: NodeId, began: Instant) {
        self.note(SpanKind::Receive { node: node.0 }, began);
    }
}

impl Pages {
    fn write(&mut self, line: &impl Serialize) -> std::io::Result<()> {
        serde_json::to_writer(&mut self.file, line)?;
        self.file.write_all(b"\n")
    }
}

/// Notes the times in which a peer waits, from what it is at now and then.
#[derive(Debug, Default)]
pub struct IdleTime {
    since: Option<Instant>,
}

impl IdleTime {
    /// The peer waits, or does not.
    pub fn look(&mut self, is_waiting: bool, timeline: &Timeline) {
        match (is_waiting, self.since) {
            (true, None) if timeline.is_on() => self.since = Some(Instant::now()),
            (false, Some(since)) => {
                timeline.note(SpanKind::Wait, since);
                self.since = None;
            }
            _ => {}
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
