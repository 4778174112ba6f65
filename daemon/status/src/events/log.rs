//! The event log: distributes a peer's events to a file in its home, the peer's host, the service manager, and readers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

use mingle_net::printable::printable;
use mingle_net::token_bucket::TokenBucket;

use super::bus::{EventBus, EventFeed};
use super::file::{EventFile, MOST_BYTES};
use super::service_manager::ServiceManager;
use super::{Event, EventLine};
use mingle_home::error::{Context, Error, ErrorKind, Result};
use mingle_home::home::Home;

/// The burst of events caused by neighbours that is kept and passed to the host, and their rate per second after that:
/// some megabytes a day. Readers of the bus receive all of them.
const BROUGHT_ABOUT_AT_ONCE: f64 = 1_000.0;
const BROUGHT_ABOUT_PER_SECOND: f64 = 0.1;

/// Receives each event, and its line of JSON.
pub type EventSink = Box<dyn FnMut(&Event, &str) + Send>;

/// The event log of a peer: each event goes to all receivers before the next. Clones are handles on the same log.
#[derive(Clone)]
pub struct EventLog(Arc<Mutex<Listeners>>);

struct Listeners {
    started: Instant,
    file: EventFile,
    sink: EventSink,
    service_manager: ServiceManager,
    bus: EventBus,
    brought_about: TokenBucket,
}

impl EventLog {
    /// Opens the event file of a home for appending, and notes the start there; `sink` also receives each event.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn open(home: &Home, sink: EventSink, started: Instant) -> Result<Self> {
        let path = home.events();
        let mut file = EventFile::open(&path, &home.older_events(), MOST_BYTES)
            .context(ErrorKind::BadInput, format!("cannot write {}", path.display()))?;
        note_start(&mut file);
        let service_manager = ServiceManager::of_environment();
        let listeners = Listeners {
            started,
            file,
            sink,
            service_manager,
            bus: EventBus::new(),
            brought_about: TokenBucket::new(BROUGHT_ABOUT_AT_ONCE, BROUGHT_ABOUT_PER_SECOND),
        };
        Ok(Self(Arc::new(Mutex::new(listeners))))
    }

    /// A handle from which readers of these events are made.
    pub fn feed(&self) -> EventFeed {
        self.listeners().bus.feed()
    }

    /// Records an event.
    pub fn tell(&self, event: Event) {
        self.listeners().tell(event);
    }

    /// Records that the peer ends with an error.
    pub fn tell_failure(&self, failure: &Error) {
        self.tell(Event::Failed {
            code: failure.kind().code(),
            kind: failure.kind().name().to_owned(),
            message: format!("{failure:#}"),
        });
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listeners {
    fn tell(&mut self, event: Event) {
        self.service_manager.tell(&event);
        let line = EventLine::now(u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX), event);
        let Ok(text) = serde_json::to_string(&line) else { return };
        let text = printable(&text).into_owned();
        if !line.event.is_brought_about() || self.brought_about.take(Instant::now()) {
            if line.event.is_kept() {
                self.keep(&text);
            }
            (self.sink)(&line.event, &text);
        }
        self.bus.tell(text, line.event.is_kept());
    }

    /// A full disk must not stop training: the file is a record for people, not state.
    fn keep(&mut self, text: &str) {
        if let Err(error) = self.file.push(text) {
            tracing::warn!(%error, "cannot write the event file");
        }
    }
}

/// Notes a start in the file. It separates the lines of one process from those of the one before, whose times have
/// another origin.
fn note_start(file: &mut EventFile) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let line = EventLine::now(0, Event::Started { unix_s: now.as_secs(), version });
    // As for all other lines: a full disk must not keep a peer from training.
    if let Ok(text) = serde_json::to_string(&line)
        && let Err(error) = file.push(&text)
    {
        tracing::warn!(%error, "cannot write the event file");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_start_goes_on_with_the_file_of_the_last() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        for node in 0..3 {
            let log = EventLog::open(&home, Box::new(|_, _| {}), Instant::now()).unwrap();
            log.tell(Event::Resumed { node });
        }
        let text = std::fs::read_to_string(home.events()).unwrap();
        let events = text.lines().map(|line| serde_json::from_str::<EventLine>(line).unwrap().event);
        let (starts, others): (Vec<Event>, Vec<Event>) =
            events.partition(|event| matches!(event, Event::Started { .. }));
        assert_eq!(starts.len(), 3);
        assert_eq!(others, [0, 1, 2].map(|node| Event::Resumed { node }));
    }

    #[test]
    fn neighbours_do_not_fill_the_disk_with_what_they_bring_about() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        let said = Arc::new(Mutex::new(0));
        let count = Arc::clone(&said);
        let sink = Box::new(move |_: &Event, _: &str| *count.lock().unwrap() += 1);
        let log = EventLog::open(&home, sink, Instant::now()).unwrap();
        for _ in 0..20_000 {
            log.tell(Event::Resumed { node: 3 });
        }
        log.tell(Event::Warning { message: "still heard".to_owned() });
        let lines = std::fs::read_to_string(home.events()).unwrap().lines().count();
        assert!((1_002..1_101).contains(&lines), "{lines} lines");
        assert_eq!(*said.lock().unwrap() + 1, lines, "all but the start is said too");
    }
}
