//! The event bus: all events of an event log, for any number of readers, none of which can delay the peer.
//!
//! A slow reader loses the oldest events and learns how many. The bus remembers the last events that are to be kept. So
//! a reader that comes late, or comes back, can have those first, without a gap and without a repetition.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::broadcast;

/// The most events that a reader may be behind before it loses some.
const QUEUE: usize = 1024;
/// The most kept events that are remembered for readers that come late.
const REMEMBERED: usize = 2048;

/// An event with its number on the bus.
#[derive(Debug, PartialEq, Eq)]
pub struct NumberedEvent {
    /// Counts the events of this process, from 1.
    pub number: u64,
    /// The event as one JSON object.
    pub json: String,
}

/// The sending side of the bus; when it is dropped, readers come to an end.
#[derive(Debug)]
pub(crate) struct EventBus {
    sender: broadcast::Sender<Arc<NumberedEvent>>,
    memory: Arc<Mutex<Memory>>,
}

/// A handle from which readers of the bus are made.
#[derive(Clone, Debug)]
pub struct EventFeed {
    sender: broadcast::WeakSender<Arc<NumberedEvent>>,
    memory: Arc<Mutex<Memory>>,
}

/// A reader: first the remembered events that it missed, then new ones.
#[derive(Debug)]
pub struct EventReader {
    missed: VecDeque<Arc<NumberedEvent>>,
    live: Option<broadcast::Receiver<Arc<NumberedEvent>>>,
}

/// An item for a reader.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    /// The next event.
    Event(Arc<NumberedEvent>),
    /// The reader was too slow, and lost so many events.
    Lost(u64),
}

#[derive(Debug, Default)]
struct Memory {
    last_number: u64,
    kept: VecDeque<Arc<NumberedEvent>>,
}

impl EventBus {
    /// A bus without any event.
    pub(crate) fn new() -> Self {
        Self { sender: broadcast::Sender::new(QUEUE), memory: Arc::default() }
    }

    /// A handle from which readers of this bus are made.
    pub(crate) fn feed(&self) -> EventFeed {
        EventFeed { sender: self.sender.downgrade(), memory: Arc::clone(&self.memory) }
    }

    /// Sends an event to all readers, and remembers it for later ones if `is_kept`.
    pub(crate) fn tell(&self, json: String, is_kept: bool) {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.last_number += 1;
        let event = Arc::new(NumberedEvent { number: memory.last_number, json });
        if is_kept {
            if memory.kept.len() == REMEMBERED {
                memory.kept.pop_front();
            }
            memory.kept.push_back(Arc::clone(&event));
        }
        // Under the lock: a new reader gets the event from the memory or from here, not twice. Without readers the send
        // fails, which does not matter.
        let _ = self.sender.send(event);
    }
}

impl EventFeed {
    /// A new reader. With `since`, it first gets the remembered events after that number.
    pub fn read(&self, since: Option<u64>) -> EventReader {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let is_missed = |event: &&Arc<NumberedEvent>| since.is_some_and(|since| event.number > since);
        EventReader {
            missed: memory.kept.iter().filter(is_missed).cloned().collect(),
            live: self.sender.upgrade().map(|sender| sender.subscribe()),
        }
    }
}

impl EventReader {
    /// The next event; `None` when there will be no more.
    pub async fn next(&mut self) -> Option<Read> {
        if let Some(event) = self.missed.pop_front() {
            return Some(Read::Event(event));
        }
        match self.live.as_mut()?.recv().await {
            Ok(event) => Some(Read::Event(event)),
            Err(broadcast::error::RecvError::Lagged(count)) => Some(Read::Lost(count)),
            Err(broadcast::error::RecvError::Closed) => {
                self.live = None;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    async fn drain(reader: &mut EventReader) -> Vec<String> {
        let mut texts = Vec::new();
        while let Some(read) = reader.next().await {
            texts.push(match read {
                Read::Event(event) => format!("{}:{}", event.number, event.json),
                Read::Lost(count) => format!("lost {count}"),
            });
        }
        texts
    }

    #[tokio::test]
    async fn a_reader_that_comes_late_gets_what_was_kept_then_what_happens_and_an_end() {
        let bus = EventBus::new();
        bus.tell("a".to_owned(), true);
        bus.tell("round".to_owned(), false);
        bus.tell("b".to_owned(), true);
        let feed = bus.feed();
        let (mut all, mut from_two, mut live) = (feed.read(Some(0)), feed.read(Some(2)), feed.read(None));
        bus.tell("c".to_owned(), true);
        drop(bus);
        assert_eq!(drain(&mut all).await, ["1:a", "3:b", "4:c"]);
        assert_eq!(drain(&mut from_two).await, ["3:b", "4:c"]);
        assert_eq!(drain(&mut live).await, ["4:c"]);
        assert_eq!(drain(&mut feed.read(Some(3))).await, ["4:c"], "also when the peer is gone");
    }

    #[tokio::test]
    async fn a_slow_reader_loses_the_oldest_and_learns_how_many_while_others_lose_none() {
        let bus = EventBus::new();
        let mut slow = bus.feed().read(None);
        let mut quick = bus.feed().read(None);
        let count = u64::try_from(QUEUE).unwrap() + 7;
        for number in 1..=count {
            bus.tell(number.to_string(), false);
            assert!(matches!(quick.next().await, Some(Read::Event(event)) if event.number == number));
        }
        assert_eq!(slow.next().await, Some(Read::Lost(7)));
        assert!(matches!(slow.next().await, Some(Read::Event(event)) if event.number == 8));
    }

    #[tokio::test]
    async fn no_more_than_a_bounded_number_is_remembered() {
        let bus = EventBus::new();
        for _ in 0..REMEMBERED + 5 {
            bus.tell(String::new(), true);
        }
        let feed = bus.feed();
        drop(bus);
        let mut reader = feed.read(Some(0));
        assert!(matches!(reader.next().await, Some(Read::Event(event)) if event.number == 6));
        assert_eq!(drain(&mut reader).await.len(), REMEMBERED - 1);
    }
}
