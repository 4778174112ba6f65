//! Distances in hops: breadth-first search from every node, and the exact update when one link is added.

use crate::digraph::{Digraph, Link};

/// The distance between nodes that no path joins; also the bound on the number of nodes.
pub const UNREACHABLE: u16 = u16::MAX;

/// Distances in hops between all ordered pairs of nodes, row by source.
///
/// Memory: 2 n^2 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distances {
    node_count: usize,
    hops: Vec<u16>,
}

impl Distances {
    /// Breadth-first search from every node, along the links. O(n (n + links)).
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
        let mut queue = Vec::with_capacity(node_count);
        for (source, row) in hops.chunks_exact_mut(node_count.max(1)).enumerate() {
            fill_row(graph, source, row, &mut queue);
        }
        Self { node_count, hops }
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

    /// The largest distance; [`UNREACHABLE`] unless the graph is strongly connected. O(n^2).
    #[must_use]
    pub fn diameter(&self) -> u16 {
        self.hops.iter().copied().max().unwrap_or(0)
    }

    /// Updates all distances for one more link: a shortest path that uses it goes to its transmitter, over it, and on
    /// from its receiver. Exact. O(n^2), less the sources that gain nothing.
    pub fn insert_link(&mut self, link: Link) {
        let onward = self.row(link.to).to_vec();
        for row in self.hops.chunks_exact_mut(self.node_count) {
            let reach = row[link.from].saturating_add(1);
            if reach < row[link.to] {
                for (hops, &rest) in row.iter_mut().zip(&onward) {
                    *hops = (*hops).min(reach.saturating_add(rest));
                }
            }
        }
    }

    /// The diameter there would be with one more link. O(n^2).
    #[must_use]
    pub fn diameter_with(&self, link: Link) -> u16 {
        let onward = self.row(link.to);
        let rows = self.hops.chunks_exact(self.node_count);
        rows.map(|row| {
            let reach = row[link.from].saturating_add(1);
            let shortened = row.iter().zip(onward).map(|(&hops, &rest)| hops.min(reach.saturating_add(rest)));
            shortened.max().unwrap_or(0)
        })
        .max()
        .unwrap_or(0)
    }
}

/// The diameter of a graph without keeping the distances: O(n) memory, O(n (n + links)) time, and any number of nodes.
/// `None` unless the graph is strongly connected.
#[must_use]
pub fn diameter(graph: &Digraph) -> Option<usize> {
    let node_count = graph.node_count();
    let mut hops = vec![usize::MAX; node_count];
    let mut queue = Vec::with_capacity(node_count);
    let mut diameter = 0;
    for source in 0..node_count {
        hops.fill(usize::MAX);
        hops[source] = 0;
        queue.clear();
        queue.push(source);
        let mut at = 0;
        while let Some(&node) = queue.get(at) {
            at += 1;
            for &next in graph.successors(node) {
                if hops[next] == usize::MAX {
                    hops[next] = hops[node] + 1;
                    queue.push(next);
                }
            }
        }
        if queue.len() < node_count {
            return None;
        }
        // The queue is in order of distance.
        diameter = diameter.max(queue.last().map_or(0, |&last| hops[last]));
    }
    Some(diameter)
}

fn fill_row(graph: &Digraph, source: usize, row: &mut [u16], queue: &mut Vec<usize>) {
    row[source] = 0;
    queue.clear();
    queue.push(source);
    let mut at = 0;
    while let Some(&node) = queue.get(at) {
        at += 1;
        for &next in graph.successors(node) {
            if row[next] == UNREACHABLE {
                row[next] = row[node] + 1;
                queue.push(next);
            }
        }
    }
}
