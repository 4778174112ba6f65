//! Timelines: the times at which a peer trains, sends and receives parcels, writes records, and waits.
//!
//! If enabled, a peer writes one line for each of these activities once it is over. `mingle timeline` reads the files
//! of any number of peers, computes the share of communication that training hid, and draws them below each other.

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

/// Most spans in a file, about 20 MB; later rounds are not in it.
const MOST_SPANS: u32 = 200_000;

/// An activity of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum SpanKind {
    /// One round, from beginning to end.
    Round {
        /// Its number, from 1.
        round: u64,
    },
    /// The local steps of a round.
    Train,
    /// Evaluating the model.
    Evaluate,
    /// Writing a parcel to a stream.
    Send {
        /// The receiver.
        node: u32,
    },
    /// Reading a parcel from a stream, from its first byte to its last.
    Receive {
        /// The sender.
        node: u32,
    },
    /// Writing a record to the disk.
    Record,
    /// Waiting for parcels, or for room to send some.
    Wait,
}

/// An activity and its time, in microseconds since the timeline began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The activity.
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
struct TimelineHead {
    schema: String,
    node: u32,
    /// Time at which the timeline began, in microseconds since 1970.
    began_unix_us: u64,
}

impl TimelineHead {
    const SCHEMA: &'static str = "mingle.timeline/1";
}

/// The timeline that this process writes. Clones write to the same file; a disabled one writes nothing.
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
    /// Creates a timeline in the home of a peer; it replaces that of an earlier run.
    pub fn create(home: &Home, node: u32) -> Result<Self> {
        let path = home.timeline();
        let mut options = OpenOptions::new();
        let opened = owner_only::open(&path, options.write(true).create(true).truncate(true));
        let file = opened.map_err(|error| Error::cannot_write(&path, &error))?;
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let head = TimelineHead { schema: TimelineHead::SCHEMA.to_owned(), node, began_unix_us: micros(since_1970) };
        let mut pages = Pages { file: BufWriter::new(file), left: MOST_SPANS };
        pages.write(&head).map_err(|error| Error::cannot_write(&path, &error))?;
        Ok(Self(Some(Arc::new(Recorder { began: Instant::now(), pages: Mutex::new(pages) }))))
    }

    /// Flushes the spans noted so far to the operating system. A full disk is reported elsewhere.
    pub fn flush(&self) {
        if let Some(recorder) = &self.0 {
            let _ = recorder.pages.lock().unwrap_or_else(PoisonError::into_inner).file.flush();
        }
    }

    /// Returns `true` if spans are written.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Notes an activity that began at `from` and ends now.
    pub fn note(&self, deed: SpanKind, from: Instant) {
        let Some(recorder) = &self.0 else { return };
        let since = |at: Instant| micros(at.saturating_duration_since(recorder.began));
        let span = Span { deed, from_us: since(from), to_us: since(Instant::now()) };
        let mut pages = recorder.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(left) = pages.left.checked_sub(1) {
            pages.left = left;
            // The timeline only informs people: a full disk is reported elsewhere, and must not delay the training
            // here.
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

/// Notes the times in which a peer waits, from repeated observations.
#[derive(Debug, Default)]
pub struct IdleTime {
    since: Option<Instant>,
}

impl IdleTime {
    /// Observes whether the peer waits.
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
