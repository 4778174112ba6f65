//! What a slot that fills up leaves room for, in constant time per question.

use crate::{digraph::Link, topology::Topology};

/// A slot while links are put into it: who hears how many of its transmitters, who would disturb its receivers.
///
/// Emptied in constant time. Memory: 24 bytes per node.
pub(super) struct SlotRoom<'t> {
    topology: &'t Topology,
    heard: Counters,
    disturbs: Counters,
}

impl<'t> SlotRoom<'t> {
    pub(super) fn new(topology: &'t Topology) -> Self {
        let nodes = topology.node_count();
        Self { topology, heard: Counters::new(nodes), disturbs: Counters::new(nodes) }
    }

    pub(super) fn empty(&mut self) {
        self.heard.clear();
        self.disturbs.clear();
    }

    /// Whether the node may transmit without disturbing a receiver of the slot.
    pub(super) fn may_transmit(&self, node: usize) -> bool {
        self.disturbs.get(node) == 0
    }

    /// Whether nobody who transmits in the slot reaches the node; it does not transmit itself.
    pub(super) fn is_quiet_at(&self, node: usize) -> bool {
        self.heard.get(node) == 0
    }

    /// How many transmitters of the slot reach the node, itself included.
    pub(super) fn heard_at(&self, node: usize) -> u32 {
        self.heard.get(node)
    }

    pub(super) fn add_link(&mut self, link: Link) {
        self.add_transmitter(link.from);
        self.disturbs.add_around(self.topology, link.to);
    }

    pub(super) fn add_transmitter(&mut self, node: usize) {
        self.heard.add_around(self.topology, node);
    }
}

/// Counters that are all set to zero at once: a count is valid only under the present stamp.
struct Counters {
    stamp: u32,
    counts: Vec<(u32, u32)>,
}

impl Counters {
    fn new(nodes: usize) -> Self {
        Self { stamp: 1, counts: vec![(0, 0); nodes] }
    }

    fn clear(&mut self) {
        self.stamp = self.stamp.wrapping_add(1);
        if self.stamp == 0 {
            self.counts.fill((0, 0));
            self.stamp = 1;
        }
    }

    fn get(&self, node: usize) -> u32 {
        let (stamp, count) = self.counts[node];
        if stamp == self.stamp { count } else { 0 }
    }

    fn add(&mut self, node: usize) {
        self.counts[node] = (self.stamp, self.get(node) + 1);
    }

    /// Counts for a node and everyone its transmissions reach.
    fn add_around(&mut self, topology: &Topology, node: usize) {
        self.add(node);
        topology.interferers(node).iter().for_each(|&neighbor| self.add(neighbor));
    }
}
