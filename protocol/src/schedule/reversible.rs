//! Flows of weight over the links of a settled swarm, and the test whether they balance.

use std::collections::BTreeMap;

use super::{NodeId, Schedule};

/// Largest difference of two flows, as a fraction of the larger, that counts as rounding.
const TOLERANCE: f64 = 1e-6;

impl Schedule {
    /// The weight that goes over the link `from -> to` in a period of a settled swarm; 0 where the plan has no such
    /// link.
    pub fn flow(&self, from: NodeId, to: NodeId) -> f64 {
        (0..self.period()).map(|step| self.usual_parcel(from, to, step)).sum()
    }

    /// The weight that goes over the link `from -> to` in global step `step` of a settled swarm.
    fn usual_parcel(&self, from: NodeId, to: NodeId, step: u64) -> f64 {
        let links = self.out_links(from, step);
        let share = links.binary_search_by_key(&to, |link| link.to).map_or(0.0, |index| links[index].share.to_f64());
        share * self.stationary_weight(from, step)
    }

    /// Returns `true` if in a period of a settled swarm every link carries as much weight back as there, as in a
    /// reversible Markov chain: the plan is undirected, with Metropolis weights or weights by degree. This also holds
    /// after nodes drop out, if their shares stay with the senders.
    ///
    /// # Complexity
    /// O(links of a period), once.
    pub fn is_reversible(&self) -> bool {
        self.is_reversible.get_or(|| {
            let flows = self.flows();
            let balances = |(&(from, to), there): (&(NodeId, NodeId), &f64)| {
                let back = flows.get(&(to, from)).copied().unwrap_or(0.0);
                (there - back).abs() <= TOLERANCE * there.max(back)
            };
            flows.iter().all(balances)
        })
    }

    /// The flow over each link of the plan.
    fn flows(&self) -> BTreeMap<(NodeId, NodeId), f64> {
        let mut flows = BTreeMap::new();
        for step in 0..self.period() {
            for from in (0..self.nodes as u32).map(NodeId) {
                for link in self.out_links(from, step) {
                    let weight = link.share.to_f64() * self.stationary_weight(from, step);
                    *flows.entry((from, link.to)).or_default() += weight;
                }
            }
        }
        flows
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::schedule::Step;

    fn schedule(links: &[(u32, u32)]) -> Schedule {
        let nodes = links.iter().map(|(from, to)| from.max(to) + 1).max().unwrap();
        let degree = |node: u32| links.iter().filter(|(from, _)| *from == node).count() as f64;
        let share = |node: u32| 1.0 / (degree(node) + 1.0);
        let keep = (0..nodes).map(share).collect();
        let links = links.iter().map(|&(from, to)| (NodeId(from), NodeId(to), share(from))).collect();
        Schedule::new(nodes as usize, &[Step { keep, links }], 1).unwrap()
    }

    #[test]
    fn a_path_with_weights_by_degree_is_reversible_and_a_ring_in_one_direction_is_not() {
        let path = schedule(&[(0, 1), (1, 0), (1, 2), (2, 1)]);
        assert!(path.is_reversible());
        assert!((path.flow(NodeId(0), NodeId(1)) - path.flow(NodeId(1), NodeId(0))).abs() < 1e-9);
        let ring = schedule(&[(0, 1), (1, 2), (2, 0)]);
        assert!(!ring.is_reversible());
        assert_eq!(ring.flow(NodeId(1), NodeId(0)), 0.0);
    }

    #[test]
    fn a_ring_in_both_directions_with_a_chord_in_one_is_not_reversible() {
        let mut links = vec![(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2), (3, 0), (0, 3)];
        assert!(schedule(&links).is_reversible());
        links.push((0, 2));
        assert!(!schedule(&links).is_reversible());
    }
}
