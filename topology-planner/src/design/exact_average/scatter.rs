//! Scattering from a root: everyone hears the result once, from somebody who has it.
//!
//! A node that has the result hands each receiver the weight of all whom that one will serve; the payload, the ratio
//! `x / w`, is the same for all, so that one broadcast serves everyone who hears it alone.

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::slot_room::SlotRoom;
use crate::{digraph::Link, topology::Topology};

/// The links of each slot, first slot first; every node but the root receives in exactly one of them.
#[derive(Debug, Clone)]
pub(super) struct Scattering {
    pub(super) slots: Vec<Vec<Link>>,
    waiting: usize,
}

impl Scattering {
    pub(super) fn cost(&self) -> (usize, usize) {
        (self.slots.len(), self.waiting)
    }
}

/// Builds scatterings on one topology.
pub(super) struct Scatterer<'t> {
    topology: &'t Topology,
    room: SlotRoom<'t>,
    is_informed: Vec<bool>,
    /// How many neighbours of each node still wait.
    waiting_around: Vec<u32>,
}

impl<'t> Scatterer<'t> {
    pub(super) fn new(topology: &'t Topology) -> Self {
        let nodes = topology.node_count();
        Self {
            topology,
            room: SlotRoom::new(topology),
            is_informed: vec![false; nodes],
            waiting_around: vec![0; nodes],
        }
    }

    /// Scatters from `root`. In each slot the informed nodes are tried in the order of how many of their neighbours
    /// wait, times a random factor between `1 - noise` and 1, and transmit if more hear it than lose a reception by it.
    /// O(slots (n log n + links)) at worst.
    pub(super) fn scatter(&mut self, root: usize, noise: f64, rng: &mut ChaCha8Rng) -> Scattering {
        self.is_informed.fill(false);
        for (node, waiting) in self.waiting_around.iter_mut().enumerate() {
            *waiting = self.topology.neighbors(node).len() as u32;
        }
        let mut informed = vec![root];
        self.inform(root);
        let mut left = self.topology.node_count() - 1;
        let (mut slots, mut waiting) = (Vec::new(), 0);
        while left > 0 {
            waiting += left;
            let slot = self.fill_slot(&mut informed, noise, rng);
            for link in &slot {
                self.inform(link.to);
                informed.push(link.to);
            }
            left -= slot.len();
            slots.push(slot);
        }
        Scattering { slots, waiting }
    }

    /// The best of `tries` scatterings.
    pub(super) fn search(&mut self, root: usize, tries: usize, rng: &mut ChaCha8Rng) -> Scattering {
        let mut best = self.scatter(root, 0.0, rng);
        for attempt in 1..tries {
            let noise = [0.2, 0.5, 1.0][attempt % 3];
            let next = self.scatter(root, noise, rng);
            if next.cost() < best.cost() {
                best = next;
            }
        }
        best
    }

    fn inform(&mut self, node: usize) {
        self.is_informed[node] = true;
        for &neighbor in self.topology.neighbors(node) {
            self.waiting_around[neighbor] -= 1;
        }
    }

    fn fill_slot(&mut self, informed: &mut Vec<usize>, noise: f64, rng: &mut ChaCha8Rng) -> Vec<Link> {
        informed.retain(|&node| self.waiting_around[node] > 0);
        let mut order: Vec<(u64, usize)> = informed.iter().map(|&node| (self.appeal(node, noise, rng), node)).collect();
        order.sort_unstable_by_key(|&(appeal, node)| (std::cmp::Reverse(appeal), node));
        self.room.empty();
        let mut transmitters: Vec<usize> = Vec::new();
        for (_, node) in order {
            if self.gain(node) > 0 {
                self.room.add_transmitter(node);
                transmitters.push(node);
            }
        }
        let heard_alone = |&to: &usize| !self.is_informed[to] && self.room.heard_at(to) == 1;
        let links = |from: usize| {
            let receivers = self.topology.neighbors(from).iter().copied().filter(heard_alone);
            receivers.map(move |to| Link::new(from, to)).collect::<Vec<_>>()
        };
        transmitters.into_iter().flat_map(links).collect()
    }

    fn appeal(&self, node: usize, noise: f64, rng: &mut ChaCha8Rng) -> u64 {
        let random = if noise > 0.0 { f64::from(rng.next_u32()) / f64::from(u32::MAX) } else { 0.0 };
        (f64::from(self.waiting_around[node]) * 1e6 * (1.0 - noise * random)) as u64
    }

    /// How many more hear the result in this slot if the node transmits too: those who hear it alone, less those who
    /// were to hear another one.
    fn gain(&self, node: usize) -> i64 {
        let change = |&to: &usize| match (self.is_informed[to], self.room.heard_at(to)) {
            (false, 0) => i64::from(self.topology.has_edge(node, to)),
            (false, 1) => -1,
            _ => 0,
        };
        self.topology.interferers(node).iter().map(change).sum()
    }
}
