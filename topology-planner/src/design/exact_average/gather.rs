//! Gathering to a root: every other node hands all it holds to one neighbour, once, after it has been handed all it will
//! be.
//!
//! Built backwards in time. The last to transmit does so to the root; in the slot before, whoever transmits does so to
//! one of these two; and so on until all nodes are in the tree. So every schedule that comes out is causal, whatever is
//! chosen. What is chosen decides how many slots it takes: each slot takes as many links as fit, nodes in the order of a
//! rank, and a search over ranks looks for fewer slots.

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::{below, slot_room::SlotRoom};
use crate::{digraph::Link, topology::Topology};

/// The links of each slot, first slot first.
#[derive(Debug, Clone)]
pub(super) struct Gathering {
    pub(super) slots: Vec<Vec<Link>>,
    /// Nodes that are not in the tree yet, added up over the slots as they are built. Among equally many slots less is
    /// better: it leaves less to do for the last ones.
    outside: usize,
}

impl Gathering {
    pub(super) fn cost(&self) -> (usize, usize) {
        (self.slots.len(), self.outside)
    }
}

/// Builds gatherings on one topology.
pub(super) struct Gatherer<'t> {
    topology: &'t Topology,
    room: SlotRoom<'t>,
    in_tree: Vec<bool>,
    is_listed: Vec<bool>,
}

impl<'t> Gatherer<'t> {
    pub(super) fn new(topology: &'t Topology) -> Self {
        let nodes = topology.node_count();
        Self { topology, room: SlotRoom::new(topology), in_tree: vec![false; nodes], is_listed: vec![false; nodes] }
    }

    /// Gathers to `root`, taking nodes in the order of `rank`, lowest first. O(slots (n log n + links)) at worst.
    pub(super) fn gather(&mut self, root: usize, rank: &[u32]) -> Gathering {
        self.in_tree.fill(false);
        self.is_listed.fill(false);
        self.in_tree[root] = true;
        self.is_listed[root] = true;
        // Nodes outside the tree with a neighbour in it.
        let mut frontier = Vec::new();
        self.list_neighbors(root, &mut frontier);
        let (mut slots, mut outside, mut left) = (Vec::new(), 0, self.topology.node_count() - 1);
        while !frontier.is_empty() {
            outside += left;
            frontier.sort_unstable_by_key(|&node: &usize| (rank[node], node));
            let slot = self.fill_slot(&frontier);
            slot.iter().for_each(|link| self.in_tree[link.from] = true);
            frontier.retain(|&node| !self.in_tree[node]);
            slot.iter().for_each(|link| self.list_neighbors(link.from, &mut frontier));
            left -= slot.len();
            slots.push(slot);
        }
        slots.reverse();
        Gathering { slots, outside }
    }

    fn list_neighbors(&mut self, node: usize, frontier: &mut Vec<usize>) {
        for &neighbor in self.topology.neighbors(node) {
            if !std::mem::replace(&mut self.is_listed[neighbor], true) {
                frontier.push(neighbor);
            }
        }
    }

    fn fill_slot(&mut self, frontier: &[usize]) -> Vec<Link> {
        self.room.empty();
        let mut slot = Vec::new();
        for &from in frontier {
            if let Some(to) = self.parent(from) {
                let link = Link::new(from, to);
                self.room.add_link(link);
                slot.push(link);
            }
        }
        slot
    }

    /// The node of the tree that can hear `from` in this slot with the fewest others around it; none if `from` would
    /// disturb another receiver.
    fn parent(&self, from: usize) -> Option<usize> {
        if !self.room.may_transmit(from) {
            return None;
        }
        let neighbors = self.topology.neighbors(from).iter().copied();
        let hearing = neighbors.filter(|&to| self.in_tree[to] && self.room.is_quiet_at(to));
        hearing.min_by_key(|&to| (self.topology.interferers(to).len(), to))
    }

    /// Simulated annealing over ranks: `iterations` gatherings to `root`, of which the best is returned.
    pub(super) fn search(&mut self, root: usize, iterations: usize, rng: &mut ChaCha8Rng) -> Gathering {
        let mut rank: Vec<u32> = (0..self.topology.node_count()).map(|_| rng.next_u32()).collect();
        let mut now = self.gather(root, &rank);
        let mut best = now.clone();
        for iteration in 0..iterations {
            let (a, b) = (below(rng, rank.len()), below(rng, rank.len()));
            let before = (rank[a], rank[b]);
            if rng.next_u32() & 1 == 0 {
                rank.swap(a, b);
            } else {
                rank[a] = rng.next_u32();
            }
            let next = self.gather(root, &rank);
            let heat = HEAT * (1.0 - iteration as f64 / iterations as f64);
            if energy(&next) - energy(&now) <= heat * unit(rng) {
                now = next;
                if now.cost() < best.cost() {
                    best = now.clone();
                }
            } else {
                rank[b] = before.1;
                rank[a] = before.0;
            }
        }
        best
    }
}

/// How much worse a step of the search may be at first: a few nodes that join a slot later.
const HEAT: f64 = 8.0;

/// A slot more is worth ten nodes that join a slot later.
fn energy(gathering: &Gathering) -> f64 {
    let (slots, outside) = gathering.cost();
    10.0 * slots as f64 + outside as f64
}

fn unit(rng: &mut ChaCha8Rng) -> f64 {
    f64::from(rng.next_u32()) / f64::from(u32::MAX)
}
