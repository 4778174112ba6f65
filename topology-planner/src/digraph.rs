//! Directed links and the directed graph of them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A directed link: `from` transmits, `to` receives. Nodes are numbered from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Link {
    /// The transmitter.
    pub from: usize,
    /// The receiver.
    pub to: usize,
}

impl Link {
    /// The link from `from` to `to`.
    #[must_use]
    pub const fn new(from: usize, to: usize) -> Self {
        Self { from, to }
    }

    /// The link between the same nodes in the other direction.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self::new(self.to, self.from)
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.from, self.to)
    }
}

/// A simple directed graph on the nodes `0..n`, as lists of successors and predecessors in ascending order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digraph {
    successors: Vec<Vec<usize>>,
    predecessors: Vec<Vec<usize>>,
    link_count: usize,
}

impl Digraph {
    /// The graph on `node_count` nodes with the given links; a link given twice counts once. O(n + links log links).
    ///
    /// # Panics
    ///
    /// If a link names a node outside `0..node_count`.
    #[must_use]
    pub fn new(node_count: usize, links: impl IntoIterator<Item = Link>) -> Self {
        let mut links: Vec<Link> = links.into_iter().collect();
        // Stable, because it is fast where the links of several steps follow each other, each in order.
        links.sort();
        links.dedup();
        let mut graph = Self {
            successors: vec![Vec::new(); node_count],
            predecessors: vec![Vec::new(); node_count],
            link_count: links.len(),
        };
        for link in links {
            graph.successors[link.from].push(link.to);
            graph.predecessors[link.to].push(link.from);
        }
        graph
    }

    /// Adds a link; returns `true` if it was new.
    ///
    /// # Panics
    ///
    /// If the link names a node outside the graph.
    pub fn insert(&mut self, link: Link) -> bool {
        let Err(place) = self.successors[link.from].binary_search(&link.to) else {
            return false;
        };
        self.successors[link.from].insert(place, link.to);
        if let Err(place) = self.predecessors[link.to].binary_search(&link.from) {
            self.predecessors[link.to].insert(place, link.from);
        }
        self.link_count += 1;
        true
    }

    /// The number of nodes.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.successors.len()
    }

    /// The number of links.
    #[must_use]
    pub const fn link_count(&self) -> usize {
        self.link_count
    }

    /// The nodes that receive from `node`, ascending.
    #[must_use]
    pub fn successors(&self, node: usize) -> &[usize] {
        &self.successors[node]
    }

    /// The nodes that send to `node`, ascending.
    #[must_use]
    pub fn predecessors(&self, node: usize) -> &[usize] {
        &self.predecessors[node]
    }

    /// Returns `true` if the link is in the graph.
    #[must_use]
    pub fn contains(&self, link: Link) -> bool {
        self.successors[link.from].binary_search(&link.to).is_ok()
    }

    /// All links, ordered by transmitter, then receiver.
    pub fn links(&self) -> impl Iterator<Item = Link> + '_ {
        let rows = self.successors.iter().enumerate();
        rows.flat_map(|(from, receivers)| receivers.iter().map(move |&to| Link::new(from, to)))
    }

    /// `D+`: the largest number of out-neighbours of a node, the node itself not counted.
    #[must_use]
    pub fn max_out_degree(&self) -> usize {
        self.successors.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// `D-`: the largest number of in-neighbours of a node, the node itself not counted.
    #[must_use]
    pub fn max_in_degree(&self) -> usize {
        self.predecessors.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// The first node that node 0 cannot reach, or that cannot reach node 0; `None` when the graph is strongly
    /// connected. O(n + links).
    #[must_use]
    pub fn first_cut_off(&self) -> Option<usize> {
        let forth = Self::reachable(&self.successors);
        let back = Self::reachable(&self.predecessors);
        (0..self.node_count()).find(|&node| !(forth[node] && back[node]))
    }

    fn reachable(rows: &[Vec<usize>]) -> Vec<bool> {
        let mut seen = vec![false; rows.len()];
        if rows.is_empty() {
            return seen;
        }
        seen[0] = true;
        let mut open = vec![0];
        while let Some(node) = open.pop() {
            for &next in &rows[node] {
                if !seen[next] {
                    seen[next] = true;
                    open.push(next);
                }
            }
        }
        seen
    }
}
