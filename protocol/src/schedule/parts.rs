//! The parts that a plan falls into without one of its nodes.

use std::collections::BTreeSet;

use super::{NodeId, Schedule};

impl Schedule {
    /// The connected parts of the plan without `node`, in the order of its neighbours; directions do not count. Nodes that
    /// have no way to `node` are in none.
    ///
    /// # Complexity
    /// O(links of a period x log n).
    pub(crate) fn parts_beside(&self, node: NodeId) -> Vec<BTreeSet<NodeId>> {
        let mut seen = BTreeSet::from([node]);
        let mut parts = Vec::new();
        for first in self.neighbours(node) {
            let mut part = BTreeSet::new();
            let mut open = vec![first];
            while let Some(next) = open.pop() {
                if seen.insert(next) {
                    part.insert(next);
                    open.extend(self.neighbours(next));
                }
            }
            if !part.is_empty() {
                parts.push(part);
            }
        }
        parts
    }

    /// Returns `true` if `node` hands ratios down to `neighbour` in some step, and `neighbour` never does so to `node`.
    pub(crate) fn is_below(&self, node: NodeId, neighbour: NodeId) -> bool {
        let hands_down = |from: NodeId, to: NodeId| {
            (0..self.period()).any(|step| self.has_link(from, to, step) && self.hands_down(from, step))
        };
        self.hands_ratios_down() && hands_down(node, neighbour) && !hands_down(neighbour, node)
    }

    /// The nodes that a node sends to or gets from.
    fn neighbours(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        self.all_out_neighbours(node).iter().chain(self.all_in_neighbours(node)).copied()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::schedule::Step;

    /// A plan of one step in which every node gives the same share to all its receivers, and keeps as much.
    fn plan(nodes: u32, links: &[(u32, u32)]) -> Schedule {
        let degree = |node: u32| links.iter().filter(|(from, _)| *from == node).count() as f64;
        let share = |node: u32| 1.0 / (degree(node) + 1.0);
        let keep = (0..nodes).map(share).collect();
        let links = links.iter().map(|&(from, to)| (NodeId(from), NodeId(to), share(from))).collect();
        Schedule::new(nodes as usize, &[Step { keep, links }], 1).unwrap()
    }

    fn parts(plan: &Schedule, node: u32) -> Vec<Vec<u32>> {
        plan.parts_beside(NodeId(node)).iter().map(|part| part.iter().map(|id| id.0).collect()).collect()
    }

    #[test]
    fn a_tree_falls_into_a_part_for_each_neighbour_and_a_ring_into_one() {
        let tree = plan(5, &[(0, 1), (1, 0), (0, 2), (2, 0), (2, 3), (3, 2), (2, 4), (4, 2)]);
        assert_eq!(parts(&tree, 2), [vec![0, 1], vec![3], vec![4]]);
        assert_eq!(parts(&tree, 1), [vec![0, 2, 3, 4]]);
        let ring = plan(4, &[(0, 1), (1, 2), (2, 3), (3, 0)]);
        assert_eq!(parts(&ring, 1), [vec![0, 2, 3]]);
    }

    #[test]
    fn the_root_of_an_exact_average_hands_down_to_its_children_and_nobody_in_a_ring_does() {
        let up = Step { keep: vec![1.0, 0.0], links: vec![(NodeId(1), NodeId(0), 1.0)] };
        let down = Step { keep: vec![0.5, 1.0], links: vec![(NodeId(0), NodeId(1), 0.5)] };
        let tree = Schedule::new(2, &[up, down], 1).unwrap();
        assert!(tree.is_below(NodeId(0), NodeId(1)) && !tree.is_below(NodeId(1), NodeId(0)));
        let ring = plan(3, &[(0, 1), (1, 2), (2, 0)]);
        assert!(!ring.is_below(NodeId(0), NodeId(1)));
    }
}
