//! Distances in hops: breadth-first search from every node, and the exact update when one link is added.

mod bounded;
mod search;

pub(crate) use self::bounded::{Diameter, diameter_within};
use crate::{
    bit_set::ones,
    digraph::{Digraph, Link},
};

/// The distance between nodes that no path joins; also the bound on the number of nodes.
pub const UNREACHABLE: u16 = u16::MAX;

/// Up to this many nodes a diameter is found by searches from all nodes; above, by searches from those that may decide
/// it.
pub const MAX_SEARCHED_NODES: usize = 4_096;

/// Distances in hops between all ordered pairs of nodes, row by source.
///
/// Memory: 2 n^2 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distances {
    node_count: usize,
    hops: Vec<u16>,
    /// The largest distance from each source.
    eccentricities: Vec<u16>,
}

impl Distances {
    /// Breadth-first search from every node, along the links, 64 at a time. O(n (n + links)), often far less.
    ///
    /// ```
    /// use mingle_planner::{digraph::Digraph, distance::Distances, Link};
    /// let ring = Digraph::new(4, (0..4).map(|i| Link::new(i, (i + 1) % 4)));
    /// assert_eq!(Distances::of(&ring).between(1, 0), 3);
    /// ```
    ///
    /// # Panics
    ///
    /// If the graph has 65,535 nodes or more.
    #[must_use]
    pub fn of(graph: &Digraph) -> Self {
        let node_count = graph.node_count();
        assert!(node_count < usize::from(UNREACHABLE), "distances are kept in 16 bits");
        let mut hops = vec![UNREACHABLE; node_count * node_count];
        search::from_all(graph, |first, searches, node, distance| {
            for lane in ones(searches) {
                hops[(first + lane) * node_count + node] = distance as u16;
            }
        });
        let eccentricities = hops.chunks_exact(node_count.max(1)).map(largest).collect();
        Self { node_count, hops, eccentricities }
    }

    /// The number of nodes.
    #[must_use]
    pub const fn node_count(&self) -> usize {
        self.node_count
    }

    /// The distance from one node to another, [`UNREACHABLE`] if there is no path.
    #[must_use]
    pub fn between(&self, from: usize, to: usize) -> u16 {
        self.hops[from * self.node_count + to]
    }

    /// The distances from `source` to every node.
    #[must_use]
    pub fn row(&self, source: usize) -> &[u16] {
        &self.hops[source * self.node_count..(source + 1) * self.node_count]
    }

    /// The largest distance; [`UNREACHABLE`] unless the graph is strongly connected. O(n).
    #[must_use]
    pub fn diameter(&self) -> u16 {
        largest(&self.eccentricities)
    }

    /// Updates all distances for one more link. Exact: a shortest path that uses the link goes to its transmitter, over
    /// it, and on from its receiver. O(n^2), less the sources that gain nothing.
    ///
    /// Returns the number of sources from which the path to some node got shorter.
    pub fn insert_link(&mut self, link: Link) -> usize {
        let mut gaining = 0;
        let onward = self.row(link.to).to_vec();
        let rows = self.hops.chunks_exact_mut(self.node_count);
        for (row, eccentricity) in rows.zip(&mut self.eccentricities) {
            let reach = row[link.from].saturating_add(1);
            if reach < row[link.to] {
                gaining += 1;
                for (hops, &rest) in row.iter_mut().zip(&onward) {
                    *hops = (*hops).min(reach.saturating_add(rest));
                }
                *eccentricity = largest(row);
            }
        }
        gaining
    }

    /// The diameter with one more link. O(n) for the sources that gain nothing, O(n) more for each that gains something
    /// and reaches farther than those do.
    #[must_use]
    pub fn diameter_with(&self, link: Link) -> u16 {
        let onward = self.row(link.to);
        let reach = |source: usize| self.between(source, link.from).saturating_add(1);
        let gains = |source: &usize| reach(*source) < self.between(*source, link.to);
        let (gaining, others): (Vec<usize>, Vec<usize>) = (0..self.node_count).partition(gains);
        let mut diameter = others.into_iter().map(|source| self.eccentricities[source]).max().unwrap_or(0);
        for source in gaining {
            if self.eccentricities[source] > diameter {
                let row = self.row(source).iter().zip(onward);
                let shortened = row.map(|(&hops, &rest)| hops.min(reach(source).saturating_add(rest)));
                diameter = diameter.max(shortened.max().unwrap_or(0));
            }
        }
        diameter
    }
}

/// The node farthest from another one along the links, the one that a search meets last, and its distance. O(n +
/// links).
pub(crate) fn farthest_from(graph: &Digraph, node: usize) -> (usize, usize) {
    farthest(graph.node_count(), node, |node| graph.successors(node))
}

/// The node from which the path to another one is the longest, and its distance. O(n + links).
pub(crate) fn farthest_to(graph: &Digraph, node: usize) -> (usize, usize) {
    farthest(graph.node_count(), node, |node| graph.predecessors(node))
}

/// The distances from a node to all others.
fn hops_from(graph: &Digraph, node: usize) -> Vec<usize> {
    breadth_first(graph.node_count(), node, |node| graph.successors(node)).0
}

/// The distances of all nodes to one.
fn hops_to(graph: &Digraph, node: usize) -> Vec<usize> {
    breadth_first(graph.node_count(), node, |node| graph.predecessors(node)).0
}

fn farthest<'g>(node_count: usize, start: usize, next: impl Fn(usize) -> &'g [usize]) -> (usize, usize) {
    let (hops, last) = breadth_first(node_count, start, next);
    (hops[last], last)
}

/// The distances in hops, and the node that is met last.
fn breadth_first<'g>(node_count: usize, start: usize, next: impl Fn(usize) -> &'g [usize]) -> (Vec<usize>, usize) {
    let mut hops = vec![usize::MAX; node_count];
    hops[start] = 0;
    let mut order = vec![start];
    let mut at = 0;
    while let Some(&node) = order.get(at) {
        at += 1;
        for &other in next(node) {
            if hops[other] == usize::MAX {
                hops[other] = hops[node] + 1;
                order.push(other);
            }
        }
    }
    let last = order[order.len() - 1];
    (hops, last)
}

fn largest(hops: &[u16]) -> u16 {
    hops.iter().copied().max().unwrap_or(0)
}

/// The diameter of a graph without keeping the distances: O(n) memory, time as of [`Distances::of`], and any number of
/// nodes. `None` unless the graph is strongly connected.
#[must_use]
pub fn diameter(graph: &Digraph) -> Option<usize> {
    let mut diameter = 0;
    let mut arrivals = 0;
    search::from_all(graph, |_, searches, _, hops| {
        arrivals += searches.count_ones() as usize;
        diameter = diameter.max(hops);
    });
    (arrivals == graph.node_count() * graph.node_count()).then_some(diameter)
}
