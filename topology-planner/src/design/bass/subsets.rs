//! The collision-free subsets of BASS: nodes that can broadcast at the same time.

use std::cmp::Reverse;

use crate::{design::sampled::Edge, digraph::Link, topology::Topology};

/// A partition of the nodes: all of a subset can broadcast in one slot, and every neighbour of each receives.
pub(super) struct Subsets<'t> {
    topology: &'t Topology,
    /// Each with its nodes ascending; ordered by colour.
    subsets: Vec<Vec<usize>>,
}

impl<'t> Subsets<'t> {
    /// Colours the graph of nodes that cannot broadcast together by saturation (Brélaz 1979), ties to more conflicts,
    /// then to the lower number.
    ///
    /// Two nodes cannot broadcast together when one disturbs a neighbour of the other. Where only neighbours interfere,
    /// that is the square of the topology. O(n^2 + pairs in conflict * subsets).
    pub(super) fn new(topology: &'t Topology) -> Self {
        let nodes = topology.node_count();
        let conflicts = conflicts(topology);
        let mut colors = vec![usize::MAX; nodes];
        let mut around = vec![Vec::new(); nodes];
        let mut subsets: Vec<Vec<usize>> = Vec::new();
        for _ in 0..nodes {
            let open = (0..nodes).filter(|&node| colors[node] == usize::MAX);
            let Some(node) = open.max_by_key(|&node| (around[node].len(), conflicts[node].len(), Reverse(node))) else {
                break;
            };
            let color = (0..).find(|color| around[node].binary_search(color).is_err()).unwrap_or(subsets.len());
            colors[node] = color;
            if color == subsets.len() {
                subsets.push(Vec::new());
            }
            subsets[color].push(node);
            for &other in &conflicts[node] {
                if let Err(place) = around[other].binary_search(&color) {
                    around[other].insert(place, color);
                }
            }
        }
        subsets.iter_mut().for_each(|subset| subset.sort_unstable());
        Self { topology, subsets }
    }

    /// The number of subsets, which is the slots of a step in which all broadcast.
    pub(super) fn len(&self) -> usize {
        self.subsets.len()
    }

    /// The nodes of each subset.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &[usize]> {
        self.subsets.iter().map(Vec::as_slice)
    }

    /// The edges both ends of which broadcast when these subsets do.
    pub(super) fn edges(&self, active: &[usize]) -> Vec<Edge> {
        let is_active = self.active_nodes(active);
        self.topology.edges().iter().copied().filter(|&(u, v)| is_active[u] && is_active[v]).collect()
    }

    /// The slots of these subsets: the links out of each for which `is_used` holds; no slot for a subset without such a
    /// link.
    pub(super) fn slots(&self, active: &[usize], is_used: impl Fn(Link) -> bool) -> Vec<Vec<Link>> {
        let links = |&node: &usize| self.topology.neighbors(node).iter().map(move |&to| Link::new(node, to));
        let slot = |&subset: &usize| {
            let links = self.subsets[subset].iter().flat_map(links);
            links.filter(|&link| is_used(link)).collect::<Vec<Link>>()
        };
        active.iter().map(slot).filter(|slot| !slot.is_empty()).collect()
    }

    /// The number of these subsets that have a link to a node that broadcasts too.
    pub(super) fn cost(&self, active: &[usize]) -> usize {
        let is_active = self.active_nodes(active);
        let reaches = |&&node: &&usize| self.topology.neighbors(node).iter().any(|&to| is_active[to]);
        active.iter().filter(|&&subset| self.subsets[subset].iter().any(|node| reaches(&node))).count()
    }

    fn active_nodes(&self, active: &[usize]) -> Vec<bool> {
        let mut is_active = vec![false; self.topology.node_count()];
        active.iter().flat_map(|&subset| &self.subsets[subset]).for_each(|&node| is_active[node] = true);
        is_active
    }
}

/// For each node, ascending, the others it cannot broadcast together with.
fn conflicts(topology: &Topology) -> Vec<Vec<usize>> {
    let nodes = topology.node_count();
    let mut conflicts = vec![Vec::new(); nodes];
    for node in 0..nodes {
        for &receiver in topology.neighbors(node) {
            // The nodes that disturb a receiver of this node, and the receiver itself.
            let disturbing = topology.interferers(receiver).iter().copied().chain([receiver]);
            for other in disturbing.filter(|&other| other != node) {
                conflicts[node].push(other);
                conflicts[other].push(node);
            }
        }
    }
    for row in &mut conflicts {
        row.sort_unstable();
        row.dedup();
    }
    conflicts
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::conflict_graph::conflict;

    fn generate(expression: &str) -> Topology {
        Topology::generate(expression).unwrap()
    }

    /// Checks the rule as the paper writes it, on all links out of a subset.
    fn assert_collision_free(topology: &Topology, what: &str) {
        let subsets = Subsets::new(topology);
        let mut members: Vec<usize> = subsets.iter().flatten().copied().collect();
        members.sort_unstable();
        assert_eq!(members, (0..topology.node_count()).collect::<Vec<_>>(), "{what}");
        let all: Vec<usize> = (0..subsets.len()).collect();
        for slot in subsets.slots(&all, |_| true) {
            for (at, &a) in slot.iter().enumerate() {
                assert!(slot[..at].iter().all(|&b| !conflict(topology, a, b)), "{what}: {a} in {slot:?}");
            }
        }
        assert_eq!(subsets.edges(&all), topology.edges(), "{what}");
    }

    #[test]
    fn all_links_out_of_a_subset_fit_one_slot() {
        for expression in ["rg:n=33,r=0.4,seed=1", "grid:rows=4,cols=5", "windmill:cliques=3,size=5", "star:n=7"] {
            assert_collision_free(&generate(expression), expression);
        }
        for seed in 0..40 {
            let expression = format!("erdos-renyi:n=15,p=0.2,seed={seed}");
            let topology = generate(&expression);
            assert_collision_free(&topology, &expression);
            // Two edges further, beside the edges themselves.
            let mut wider = topology.edges().to_vec();
            wider.extend([(0, 7), (3, 12), (5, 6)]);
            assert_collision_free(&topology.with_interference(&wider).unwrap(), &expression);
        }
    }

    #[test]
    fn nodes_that_are_three_hops_apart_broadcast_together() {
        let path = generate("grid:rows=1,cols=6");
        let subsets: Vec<Vec<usize>> = Subsets::new(&path).iter().map(<[usize]>::to_vec).collect();
        assert_eq!(subsets.len(), 3);
        assert!(subsets.contains(&vec![0, 3]) && subsets.contains(&vec![1, 4]) && subsets.contains(&vec![2, 5]));
    }

    #[test]
    fn a_subset_that_nobody_can_answer_takes_no_slot() {
        let path = generate("grid:rows=1,cols=6");
        let subsets = Subsets::new(&path);
        let of = |node: usize| subsets.iter().position(|subset| subset.contains(&node)).unwrap();
        let mut active = [of(0), of(1)];
        active.sort_unstable();
        assert_eq!((subsets.cost(&active[..1]), subsets.edges(&active[..1])), (0, vec![]));
        assert_eq!((subsets.cost(&active), subsets.edges(&active)), (2, vec![(0, 1), (3, 4)]));
        let slots = subsets.slots(&active, |link| link.from.max(link.to) == 1);
        let mut links = slots.concat();
        links.sort_unstable();
        assert_eq!((slots.len(), links), (2, vec![Link::new(0, 1), Link::new(1, 0)]));
    }
}
