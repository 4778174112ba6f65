//! Slots filled with all links that fit.

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::{
    bit_set::BitSet,
    coloring::SlotOccupancy,
    digraph::{Digraph, Link},
    topology::Topology,
};

/// A filler of slots on one topology, within a limit on receivers per node.
pub(super) struct SlotFiller<'t> {
    topology: &'t Topology,
    /// `N+[node]`: the nodes whose transmissions reach the node, itself included.
    hears: Vec<BitSet>,
    all_links: Vec<Link>,
    max_out_degree: usize,
    least_degree_seen: usize,
}

impl<'t> SlotFiller<'t> {
    pub(super) fn new(topology: &'t Topology, max_out_degree: usize) -> Self {
        let both_ways = topology.edges().iter().flat_map(|&(u, v)| [Link::new(u, v), Link::new(v, u)]);
        let mut all_links: Vec<Link> = both_ways.collect();
        all_links.sort_unstable();
        Self {
            hears: (0..topology.node_count()).map(|node| closed_neighborhood(topology, node)).collect(),
            topology,
            all_links,
            max_out_degree,
            least_degree_seen: usize::MAX,
        }
    }

    pub(super) const fn max_out_degree(&self) -> usize {
        self.max_out_degree
    }

    /// The least degree limit that any of the given links would have met.
    pub(super) const fn least_degree_seen(&self) -> usize {
        self.least_degree_seen
    }

    /// The slots with every other link that fits, in random order, each in a random slot it fits into. `None` if the
    /// given links exceed the degree limit. O(links * slots * n / 64).
    pub(super) fn fill(&mut self, mut slots: Vec<Vec<Link>>, rng: &mut ChaCha8Rng) -> Option<Vec<Vec<Link>>> {
        let nodes = self.topology.node_count();
        let mut graph = Digraph::new(nodes, slots.iter().flatten().copied());
        self.check_degree(&graph)?;
        let mut occupancy: Vec<_> = slots.iter().map(|slot| SlotOccupancy::new(nodes, slot)).collect();
        for link in self.shuffled_links(rng) {
            if graph.contains(link) || graph.successors(link.from).len() >= self.max_out_degree {
                continue;
            }
            let first = (rng.next_u64() % slots.len().max(1) as u64) as usize;
            let mut order = (first..slots.len()).chain(0..first);
            if let Some(slot) = order.find(|&slot| occupancy[slot].fits(link, &self.hears)) {
                occupancy[slot].insert(link);
                slots[slot].push(link);
                graph.insert(link);
            }
        }
        slots.iter_mut().for_each(|slot| slot.sort_unstable());
        Some(slots)
    }

    /// The given links and all others, up to the degree limit, in random order. `None` if the given ones exceed it.
    pub(super) fn add_any(&mut self, links: Vec<Link>, rng: &mut ChaCha8Rng) -> Option<Vec<Link>> {
        let mut graph = Digraph::new(self.topology.node_count(), links);
        self.check_degree(&graph)?;
        for link in self.shuffled_links(rng) {
            if graph.successors(link.from).len() < self.max_out_degree {
                graph.insert(link);
            }
        }
        Some(graph.links().collect())
    }

    fn check_degree(&mut self, graph: &Digraph) -> Option<()> {
        let degree = graph.max_out_degree();
        self.least_degree_seen = self.least_degree_seen.min(degree);
        (degree <= self.max_out_degree).then_some(())
    }

    fn shuffled_links(&self, rng: &mut ChaCha8Rng) -> Vec<Link> {
        let mut links = self.all_links.clone();
        for last in (1..links.len()).rev() {
            links.swap(last, (rng.next_u64() % (last as u64 + 1)) as usize);
        }
        links
    }
}

fn closed_neighborhood(topology: &Topology, node: usize) -> BitSet {
    let mut set = BitSet::new(topology.node_count());
    set.insert(node);
    topology.interferers(node).iter().for_each(|&neighbor| set.insert(neighbor));
    set
}
