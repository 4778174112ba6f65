//! The diameter of a large graph, by searches from few nodes.
//!
//! With a node `c` in the middle, no shortest path from `x` to `y` is longer than that through `c`:
//! `d(x, c) + d(c, y)`. So searches begin at the nodes that are farthest from `c`, in both directions in turn, until no
//! pair of nodes that were not searched from can be farther apart than the farthest found (P. Crescenzi et al., "On
//! computing the diameter of real-world directed (weighted) graphs", SEA 2012). That takes few searches where the
//! farthest nodes are on opposite sides, as in trees and grids, and all of them where all nodes are equally far out, as
//! on a ring: there the work is limited. A circulant graph needs one.

use super::{MAX_SEARCHED_NODES, diameter, farthest_from, farthest_to, hops_from, hops_to, search};
use crate::digraph::Digraph;

/// Number of outlying nodes that are searched from to find a central one.
const SWEEPS: usize = 4;

/// The largest distance that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Diameter {
    pub(crate) hops: usize,
    /// `true` if no pair of nodes is farther apart.
    pub(crate) is_exact: bool,
}

impl Diameter {
    const fn exactly(hops: usize) -> Self {
        Self { hops, is_exact: true }
    }
}

/// The diameter of a strongly connected graph, or the largest distance found in about `visits` visits of nodes and
/// links; always exact up to [`MAX_SEARCHED_NODES`] nodes. 0 for a graph of that size that is not strongly connected.
pub(crate) fn diameter_within(graph: &Digraph, visits: usize) -> Diameter {
    if graph.node_count() <= MAX_SEARCHED_NODES {
        return Diameter::exactly(diameter(graph).unwrap_or(0));
    }
    if is_circulant(graph) {
        return Diameter::exactly(farthest_from(graph, 0).0);
    }
    let (to, from) = middle(graph);
    let mut forth = Rim::new(&to);
    let mut back = Rim::new(&from);
    let mut searches = [search::Search::new(graph, false), search::Search::new(graph, true)];
    let mut hops = forth.farthest().max(back.farthest());
    while forth.farthest() + back.farthest() > hops {
        if searches.iter().map(|search| search.visits).sum::<usize>() > visits {
            return Diameter { hops, is_exact: false };
        }
        let [forward, backward] = &mut searches;
        let found = if forth.next_group() <= back.next_group() {
            forward.largest(forth.take())
        } else {
            backward.largest(back.take())
        };
        hops = hops.max(found);
    }
    Diameter::exactly(hops)
}

/// Returns `true` if every node sends to the same offsets from itself, modulo the number of nodes.
fn is_circulant(graph: &Digraph) -> bool {
    let nodes = graph.node_count();
    let offsets = graph.successors(0);
    (0..nodes).all(|node| {
        let successors = graph.successors(node);
        // The successors begin with the first offset that goes round.
        let first = offsets.partition_point(|&offset| offset < nodes - node);
        let places = offsets[first..].iter().map(|offset| offset + node - nodes);
        successors.len() == offsets.len()
            && places.chain(offsets[..first].iter().map(|offset| offset + node)).eq(successors.iter().copied())
    })
}

/// The hops of all nodes to a node in the middle, and from it.
fn middle(graph: &Digraph) -> (Vec<usize>, Vec<usize>) {
    let mut far = vec![0; graph.node_count()];
    let mut nearest = vec![usize::MAX; graph.node_count()];
    let mut rim = farthest_to(graph, farthest_from(graph, 0).1).1;
    for _ in 0..SWEEPS {
        let both = hops_from(graph, rim).into_iter().zip(hops_to(graph, rim)).map(|(from, to)| from.max(to));
        for ((far, nearest), hops) in far.iter_mut().zip(&mut nearest).zip(both) {
            *far = hops.max(*far);
            *nearest = hops.min(*nearest);
        }
        rim = (0..far.len()).max_by_key(|&node| (nearest[node], std::cmp::Reverse(node))).unwrap_or(0);
    }
    let center = (0..far.len()).min_by_key(|&node| far[node]).unwrap_or(0);
    (hops_to(graph, center), hops_from(graph, center))
}

/// The nodes in the order in which they are searched from, farthest from the middle first.
struct Rim<'h> {
    hops: &'h [usize],
    order: Vec<usize>,
    done: usize,
}

impl<'h> Rim<'h> {
    fn new(hops: &'h [usize]) -> Self {
        let mut order: Vec<usize> = (0..hops.len()).collect();
        order.sort_by_key(|&node| std::cmp::Reverse(hops[node]));
        Self { hops, order, done: 0 }
    }

    /// The distance of the farthest node that is left.
    fn farthest(&self) -> usize {
        self.order.get(self.done).map_or(0, |&node| self.hops[node])
    }

    /// The number of nodes left at the distance of the farthest.
    fn next_group(&self) -> usize {
        let left = &self.order[self.done..];
        left.partition_point(|&node| self.hops[node] == self.farthest())
    }

    /// The next nodes to search from, all at the distance of the farthest.
    fn take(&mut self) -> &[usize] {
        let count = self.next_group().min(search::LANES);
        self.done += count;
        &self.order[self.done - count..self.done]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::{Link, Topology};

    fn assert_exact(graph: &Digraph, what: &str) {
        let found = diameter_within(graph, usize::MAX);
        assert_eq!(found, Diameter::exactly(diameter(graph).unwrap()), "{what}");
    }

    #[test]
    fn few_searches_find_what_searches_from_all_nodes_find() {
        let nodes = MAX_SEARCHED_NODES + 100;
        for seed in 0..4 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut any = || (rng.next_u64() % nodes as u64) as usize;
            // A tree, up and down, and links in one direction.
            let mut links: Vec<Link> =
                (1..nodes).map(|node| Link::new(node, any() % node)).flat_map(|link| [link, link.reversed()]).collect();
            for _ in 0..seed * 1_000 {
                let (from, to) = (any(), any());
                links.extend((from != to).then_some(Link::new(from, to)));
            }
            assert_exact(&Digraph::new(nodes, links), &format!("seed {seed}"));
        }
    }

    #[test]
    fn grids_and_circulant_graphs_are_exact_too() {
        for expression in ["grid:rows=50,cols=90", "exponential:n=4500", "rg:n=4500,r=0.045,seed=1"] {
            let topology = Topology::generate(expression).unwrap();
            let both = topology.edges().iter().flat_map(|&(u, v)| [Link::new(u, v), Link::new(v, u)]);
            assert_exact(&Digraph::new(topology.node_count(), both), expression);
        }
        let nodes = MAX_SEARCHED_NODES + 5;
        let circle =
            Digraph::new(nodes, (0..nodes).flat_map(|at| [1, 70, 901].map(|on| Link::new(at, (at + on) % nodes))));
        assert!(is_circulant(&circle));
        assert_exact(&circle, "circulant");
    }

    #[test]
    fn a_limit_leaves_a_bound_from_below() {
        // Two rings that share a node: every node is far from some other.
        let half = MAX_SEARCHED_NODES;
        let ring = |shift: usize| {
            (0..half).map(move |at| {
                Link::new(
                    (at + shift) * usize::from(at > 0),
                    (at + 1) % half + shift * usize::from((at + 1) % half > 0),
                )
            })
        };
        let graph = Digraph::new(2 * half - 1, ring(0).chain(ring(half - 1)));
        let found = diameter_within(&graph, 1);
        assert!(found.hops <= diameter(&graph).unwrap());
        assert!(found.is_exact || found.hops > 0);
    }
}
