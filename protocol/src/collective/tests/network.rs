//! Collectives behind reliable channels, over a network that loses, repeats and reorders their bytes.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::plans::ids;
use crate::NodeId;
use crate::collective::{Collective, Frame, MessageEncoding, ReliableChannel, SizeLimits};

/// The faults of the network: the probabilities that a frame is lost or doubled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Faults {
    pub(super) loss: f64,
    pub(super) duplication: f64,
}

pub(super) struct Network<C: Collective> {
    pub(super) nodes: Vec<ReliableChannel<C>>,
    limits: SizeLimits,
    under_way: Vec<(NodeId, NodeId, Vec<u8>)>,
    faults: Faults,
    rng: ChaCha8Rng,
}

impl<C: Collective<Message: MessageEncoding>> Network<C> {
    pub(super) fn new(nodes: Vec<C>, dimension: usize, faults: Faults, seed: u64) -> Self {
        let limits = SizeLimits { nodes: nodes.len(), dimension };
        let nodes = nodes.into_iter().map(ReliableChannel::new).collect();
        Self { nodes, limits, under_way: Vec::new(), faults, rng: ChaCha8Rng::seed_from_u64(seed) }
    }

    /// Lets frames arrive in random order until `done`, and looks at the nodes after each.
    pub(super) fn run(&mut self, done: impl Fn(&[ReliableChannel<C>]) -> bool, look: impl Fn(&[ReliableChannel<C>])) {
        for _ in 0..2_000_000 {
            self.send();
            look(&self.nodes);
            if done(&self.nodes) {
                return;
            }
            if self.under_way.is_empty() {
                self.nodes.iter_mut().for_each(ReliableChannel::resend);
                continue;
            }
            let next = self.rng.random_range(0..self.under_way.len());
            let (from, to, bytes) = self.under_way.swap_remove(next);
            if self.rng.random_bool(self.faults.duplication) {
                self.under_way.push((from, to, bytes.clone()));
            }
            if !self.rng.random_bool(self.faults.loss) {
                let frame = Frame::decode(&bytes, &self.limits).unwrap();
                self.nodes[to.index()].handle(from, frame).unwrap();
            }
        }
        panic!("the network never came to rest");
    }

    fn send(&mut self) {
        for id in ids(self.nodes.len()) {
            while let Some((to, frame)) = self.nodes[id.index()].poll() {
                self.under_way.push((id, to, frame.encode()));
            }
        }
    }
}

/// Every node sends all it has, then everything arrives: one exchange. Returns whether anything was sent.
pub(super) fn exchange<C: Collective>(nodes: &mut [C]) -> bool {
    let mut under_way = Vec::new();
    for id in ids(nodes.len()) {
        while let Some((to, message)) = nodes[id.index()].poll() {
            under_way.push((id, to, message));
        }
    }
    let is_sending = !under_way.is_empty();
    for (from, to, message) in under_way {
        nodes[to.index()].handle(from, message).unwrap();
    }
    is_sending
}

/// Exchanges over links without faults until nothing more is sent.
pub(super) fn settle<C: Collective>(nodes: &mut [C]) {
    while exchange(nodes) {}
}
