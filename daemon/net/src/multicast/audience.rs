//! The out-neighbours of a transmitter: those that its packets reach, and those that get streams.
//!
//! A neighbour is reached once it has said on its stream that a probe came. It no longer is when the
//! payloads of two parcels in a row had to go by stream; then only a later probe counts. Probes go out while somebody
//! is not reached, at first every 100 ms, at last every 10 s.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mingle_multicast::Word;
use mingle_protocol::NodeId;
use tokio::sync::mpsc;

use crate::traffic::Counters;

const FIRST_INTERVAL: Duration = Duration::from_millis(100);
const LONGEST_INTERVAL: Duration = Duration::from_secs(10);
/// Time after which a neighbour that is not reached is reported.
const REPORTED_AFTER: Duration = Duration::from_secs(10);
/// Parcels in a row whose payloads had to go by stream.
const MAX_FAILURES: u32 = 2;

/// The out-neighbours with an open stream.
pub(super) struct Audience {
    listeners: BTreeMap<u64, Listener>,
    /// Number of the last probe.
    probe: u32,
    interval: Duration,
    probe_at: Duration,
}

struct Listener {
    node: NodeId,
    words: mpsc::Sender<Word>,
    counters: Arc<Counters>,
    since: Duration,
    hears: bool,
    is_reported: bool,
    failures: u32,
    /// Probes up to this one prove nothing any more.
    refuted: u32,
}

impl Audience {
    pub(super) fn new() -> Self {
        Self { listeners: BTreeMap::new(), probe: 0, interval: FIRST_INTERVAL, probe_at: Duration::ZERO }
    }

    pub(super) fn join(
        &mut self,
        link: u64,
        node: NodeId,
        words: mpsc::Sender<Word>,
        counters: Arc<Counters>,
        now: Duration,
    ) {
        let listener = Listener {
            node,
            words,
            counters,
            since: now,
            hears: false,
            is_reported: false,
            failures: 0,
            refuted: self.probe,
        };
        self.listeners.insert(link, listener);
        self.probe_soon(now);
    }

    pub(super) fn leave(&mut self, link: u64) {
        self.listeners.remove(&link);
    }

    /// Says a word to a neighbour. If its queue is full it is lost, and the neighbour's patience decides.
    pub(super) fn tell(&self, link: u64, word: Word) {
        if let Some(listener) = self.listeners.get(&link) {
            let _ = listener.words.try_send(word);
        }
    }

    /// Says a word to all.
    pub(super) fn tell_all(&self, word: &Word) {
        self.listeners.values().for_each(|listener| drop(listener.words.try_send(word.clone())));
    }

    pub(super) fn hears(&self, link: u64) -> bool {
        self.listeners.get(&link).is_some_and(|listener| listener.hears)
    }

    /// The node at the other end of a link.
    pub(super) fn node(&self, link: u64) -> Option<NodeId> {
        self.listeners.get(&link).map(|listener| listener.node)
    }

    /// The number of neighbours that are reached.
    pub(super) fn hearing(&self) -> usize {
        self.listeners.values().filter(|listener| listener.hears).count()
    }

    /// A neighbour says that a probe came.
    pub(super) fn heard(&mut self, link: u64, probe: u32) {
        let number = self.probe;
        if let Some(listener) = self.listeners.get_mut(&link)
            && probe > listener.refuted
            && probe <= number
        {
            listener.set_hears(true);
            listener.is_reported = false;
        }
    }

    /// A neighbour has a payload from packets.
    pub(super) fn note_got(&mut self, link: u64) {
        self.listeners.entry(link).and_modify(|listener| listener.failures = 0);
    }

    /// A neighbour wants a payload by stream. Returns its node if it is no longer regarded as reached.
    pub(super) fn note_failure(&mut self, link: u64, now: Duration) -> Option<NodeId> {
        let refuted = self.probe;
        let listener = self.listeners.get_mut(&link)?;
        listener.failures += 1;
        if listener.failures < MAX_FAILURES || !listener.hears {
            return None;
        }
        listener.refute(refuted, now);
        let node = listener.node;
        self.probe_soon(now);
        Some(node)
    }

    /// No neighbour is regarded as reached until a new probe came.
    pub(super) fn refute_all(&mut self, now: Duration) {
        let refuted = self.probe;
        self.listeners.values_mut().for_each(|listener| listener.refute(refuted, now));
    }

    /// The number of a probe to be sent now, if one is due.
    pub(super) fn next_probe(&mut self, now: Duration) -> Option<u32> {
        if now < self.probe_at || self.listeners.values().all(|listener| listener.hears) {
            return None;
        }
        self.probe_at = now + self.interval;
        self.interval = (self.interval * 2).min(LONGEST_INTERVAL);
        self.probe = self.probe.checked_add(1)?;
        Some(self.probe)
    }

    /// Neighbours that were not reached for long, each reported once.
    pub(super) fn take_unreported(&mut self, now: Duration) -> Vec<NodeId> {
        let is_new = |listener: &&mut Listener| {
            !listener.hears && !listener.is_reported && now.saturating_sub(listener.since) >= REPORTED_AFTER
        };
        let fresh = self.listeners.values_mut().filter(is_new);
        fresh
            .map(|listener| {
                listener.is_reported = true;
                listener.node
            })
            .collect()
    }

    fn probe_soon(&mut self, now: Duration) {
        self.interval = FIRST_INTERVAL;
        // The neighbour needs the key first.
        self.probe_at = now + FIRST_INTERVAL;
    }
}

impl Listener {
    fn set_hears(&mut self, hears: bool) {
        self.hears = hears;
        self.counters.set_heard(hears);
    }

    fn refute(&mut self, probe: u32, now: Duration) {
        self.set_hears(false);
        self.failures = 0;
        self.refuted = probe;
        self.since = now;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn audience() -> Audience {
        let mut audience = Audience::new();
        let (words, _) = mpsc::channel(1);
        audience.join(1, NodeId(4), words, Arc::default(), Duration::ZERO);
        audience
    }

    #[test]
    fn only_a_probe_that_was_sent_since_proves_that_a_neighbour_hears() {
        let mut audience = audience();
        audience.heard(1, 1);
        assert!(!audience.hears(1), "no probe was sent");
        let probe = audience.next_probe(SECOND).unwrap();
        audience.heard(1, probe);
        assert!(audience.hears(1));
        assert_eq!(audience.next_probe(100 * SECOND), None, "everybody hears");
        assert_eq!(audience.note_failure(1, SECOND), None);
        assert_eq!(audience.note_failure(1, SECOND), Some(NodeId(4)));
        audience.heard(1, probe);
        assert!(!audience.hears(1), "that probe is refuted");
        let probe = audience.next_probe(2 * SECOND).unwrap();
        audience.heard(1, probe);
        assert_eq!(audience.hearing(), 1);
    }

    #[test]
    fn a_payload_that_came_makes_good_for_one_that_did_not() {
        let mut audience = audience();
        let probe = audience.next_probe(SECOND).unwrap();
        audience.heard(1, probe);
        for _ in 0..5 {
            assert_eq!(audience.note_failure(1, SECOND), None);
            audience.note_got(1);
        }
        assert!(audience.hears(1));
    }

    #[test]
    fn probes_become_rare_and_a_neighbour_that_hears_none_is_reported_once() {
        let mut audience = audience();
        let probes = (0..600_000).filter(|ms| audience.next_probe(Duration::from_millis(*ms)).is_some()).count();
        assert!((60..80).contains(&probes), "{probes} probes in ten minutes");
        assert_eq!(audience.take_unreported(9 * SECOND), []);
        assert_eq!(audience.take_unreported(600 * SECOND), [NodeId(4)]);
        assert_eq!(audience.take_unreported(700 * SECOND), []);
    }
}
