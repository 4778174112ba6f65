//! The simulated network: delay, loss and duplication of messages.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::schedule::NodeId;
use crate::time::Time;

/// The delays and losses of the network.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkModel {
    /// Probability that a message is lost.
    pub drop: f64,
    /// Probability that a message arrives twice.
    pub duplicate: f64,
    /// Shortest and longest delay; uniform between them.
    pub delay: (Duration, Duration),
    /// `true` if messages of a directed link keep their order and are lost only with the link, as on a stream.
    /// Otherwise they are datagrams: every one takes its own time.
    pub is_stream: bool,
}

impl NetworkModel {
    /// Streams with 1 to 20 ms of delay: nothing is lost while a link is up.
    pub fn streams() -> Self {
        Self {
            drop: 0.0,
            duplicate: 0.0,
            delay: (Duration::from_millis(1), Duration::from_millis(20)),
            is_stream: true,
        }
    }

    /// Datagrams with 1 to 100 ms of delay, so reordered, of which a fraction is lost or duplicated.
    pub fn datagrams(drop: f64, duplicate: f64) -> Self {
        Self { drop, duplicate, delay: (Duration::from_millis(1), Duration::from_millis(100)), is_stream: false }
    }
}

/// Decides the fate of messages. All randomness of a simulation is here.
#[derive(Debug)]
pub(super) struct SimulatedNetwork {
    model: NetworkModel,
    rng: ChaCha8Rng,
    /// Latest arrival so far on each directed link of a stream.
    busy_until: BTreeMap<(NodeId, NodeId), Time>,
    cut: BTreeSet<(NodeId, NodeId)>,
    /// Directions in which nothing arrives.
    muted: BTreeSet<(NodeId, NodeId)>,
    /// Times each pair has been connected: messages under way on an earlier stream are lost.
    connections: BTreeMap<(NodeId, NodeId), u64>,
}

impl SimulatedNetwork {
    pub(super) fn new(model: NetworkModel, seed: u64) -> Self {
        Self {
            model,
            rng: ChaCha8Rng::seed_from_u64(seed),
            busy_until: BTreeMap::new(),
            cut: BTreeSet::new(),
            muted: BTreeSet::new(),
            connections: BTreeMap::new(),
        }
    }

    pub(super) fn is_stream(&self) -> bool {
        self.model.is_stream
    }

    /// The times when the copies of a message sent now arrive: none, one or two.
    pub(super) fn route(&mut self, now: Time, from: NodeId, to: NodeId) -> Vec<Time> {
        if self.is_cut(from, to) || self.muted.contains(&(from, to)) {
            return Vec::new();
        }
        if self.model.is_stream {
            let at = now + self.draw_between(self.model.delay);
            let latest = self.busy_until.entry((from, to)).or_default();
            *latest = at.max(*latest);
            return vec![*latest];
        }
        if self.rng.random_bool(self.model.drop) {
            return Vec::new();
        }
        let copies = 1 + usize::from(self.rng.random_bool(self.model.duplicate));
        (0..copies).map(|_| now + self.draw_between(self.model.delay)).collect()
    }

    /// A duration drawn uniformly from `shortest ..= longest`.
    pub(super) fn draw_between(&mut self, (shortest, longest): (Duration, Duration)) -> Duration {
        let micros = |span: Duration| u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        let longest = micros(longest).max(micros(shortest));
        Duration::from_micros(self.rng.random_range(micros(shortest)..=longest))
    }

    /// The generator, for other random decisions of the simulation.
    pub(super) fn rng(&mut self) -> &mut ChaCha8Rng {
        &mut self.rng
    }

    /// Draws `true` or `false` with equal probability.
    pub(super) fn toss(&mut self) -> bool {
        self.rng.random_bool(0.5)
    }

    pub(super) fn cut(&mut self, a: NodeId, b: NodeId) {
        self.cut.insert(pair(a, b));
        self.reconnect(a, b);
    }

    pub(super) fn mend(&mut self, a: NodeId, b: NodeId) {
        self.cut.remove(&pair(a, b));
    }

    pub(super) fn mute(&mut self, from: NodeId, to: NodeId) {
        self.muted.insert((from, to));
    }

    /// Lets messages arrive in both directions again. Returns whether one was muted.
    pub(super) fn unmute(&mut self, a: NodeId, b: NodeId) -> bool {
        self.muted.remove(&(a, b)) | self.muted.remove(&(b, a))
    }

    pub(super) fn is_cut(&self, a: NodeId, b: NodeId) -> bool {
        self.cut.contains(&pair(a, b))
    }

    /// The present connection of two nodes; over datagrams there is only ever one.
    pub(super) fn connection(&self, a: NodeId, b: NodeId) -> u64 {
        self.connections.get(&pair(a, b)).copied().unwrap_or(0)
    }

    /// Breaks the streams between two nodes: everything under way on them is lost.
    pub(super) fn reconnect(&mut self, a: NodeId, b: NodeId) {
        if self.model.is_stream {
            *self.connections.entry(pair(a, b)).or_default() += 1;
        }
    }
}

fn pair(a: NodeId, b: NodeId) -> (NodeId, NodeId) {
    (a.min(b), a.max(b))
}
