//! Where a peer's events go: a file in its home, whoever started it, the service manager, and readers.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use mingle_net::printable::printable;
use mingle_net::token_bucket::TokenBucket;

use super::bus::{EventBus, EventFeed};
use super::service_manager::ServiceManager;
use super::{Event, EventLine};
use mingle_home::error::{Context, Error, ErrorKind, Result};

/// So many events that neighbours bring about are kept and said, and then so many a second: some megabytes a day. Programs that
/// follow along hear of all.
const BROUGHT_ABOUT_AT_ONCE: f64 = 1_000.0;
const BROUGHT_ABOUT_PER_SECOND: f64 = 0.1;

/// Is told of each event, and of its line of JSON.
pub type EventSink = Box<dyn FnMut(&Event, &str) + Send>;

/// Where a peer's events go: each is told to all of them before the next. Clones tell the same peer's events.
#[derive(Clone)]
pub struct EventLog(Arc<Mutex<Listeners>>);

struct Listeners {
    started: Instant,
    file: BufWriter<File>,
    sink: EventSink,
    service_manager: ServiceManager,
    bus: EventBus,
    brought_about: TokenBucket,
}

impl EventLog {
    /// Starts a new event file at `path`; `sink` is told of each event too.
    pub fn create(path: &Path, sink: EventSink, started: Instant) -> Result<Self> {
        let file = File::create(path).context(ErrorKind::BadInput, format!("cannot write {}", path.display()))?;
        let service_manager = ServiceManager::of_environment();
        let listeners = Listeners {
            started,
            file: BufWriter::new(file),
            sink,
            service_manager,
            bus: EventBus::new(),
            brought_about: TokenBucket::new(BROUGHT_ABOUT_AT_ONCE, BROUGHT_ABOUT_PER_SECOND),
        };
        Ok(Self(Arc::new(Mutex::new(listeners))))
    }

    /// Where readers of these events come from.
    pub fn feed(&self) -> EventFeed {
        self.listeners().bus.feed()
    }

    /// Tells what happened.
    pub fn tell(&self, event: Event) {
        self.listeners().tell(event);
    }

    /// Tells that the peer ends with an error.
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
        let written = self.file.write_all(format!("{text}\n").as_bytes()).and_then(|()| self.file.flush());
        if let Err(error) = written {
            tracing::warn!(%error, "cannot write the event file");
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn neighbours_do_not_fill_the_disk_with_what_they_bring_about() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let said = Arc::new(Mutex::new(0));
        let count = Arc::clone(&said);
        let sink = Box::new(move |_: &Event, _: &str| *count.lock().unwrap() += 1);
        let log = EventLog::create(&path, sink, Instant::now()).unwrap();
        for _ in 0..20_000 {
            log.tell(Event::Resumed { node: 3 });
        }
        log.tell(Event::Warning { message: "still heard".to_owned() });
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        assert!((1_001..1_100).contains(&lines), "{lines} lines");
        assert_eq!(*said.lock().unwrap(), lines);
    }
}
