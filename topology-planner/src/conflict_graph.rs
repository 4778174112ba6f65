//! Conflicts: pairs of links that cannot share a broadcast slot (\[NH\] section 2.4).
//!
//! Nodes are half-duplex and transmit to all sides. With `E+` the interference edges plus a self-loop at every node,
//! two links `(i, j)` and `(k, l)` of different transmitters conflict when `(i, l)` or `(k, j)` is in `E+`: one
//! transmitter disturbs the other's receiver. The self-loops cover the rest: a node that both sends and receives
//! (`i = l`), and two transmitters that both reach one receiver. Links of one transmitter never conflict: they carry
//! the same payload in one broadcast.

use crate::{digraph::Link, topology::Topology};

/// Returns `true` if two links cannot be active in the same slot.
///
/// ```
/// use mingle_planner::{Link, Topology, conflict_graph::conflict};
/// let path = Topology::generate("grid:rows=1,cols=4")?;
/// assert!(!conflict(&path, Link::new(1, 0), Link::new(1, 2))); // one broadcast
/// assert!(!conflict(&path, Link::new(1, 0), Link::new(2, 3))); // back to back
/// assert!(conflict(&path, Link::new(0, 1), Link::new(2, 3))); // node 2 drowns out 0 at 1
/// # Ok::<(), mingle_planner::TopologyError>(())
/// ```
#[must_use]
pub fn conflict(topology: &Topology, a: Link, b: Link) -> bool {
    a.from != b.from && (topology.interferes(a.from, b.to) || topology.interferes(b.from, a.to))
}

/// The conflict graph of a set of links: its vertices are the links, its edges the conflicts.
///
/// Neighbours are enumerated from the topology instead of being stored: a dense base graph has millions of conflicts.
#[derive(Debug, Clone)]
pub struct ConflictGraph<'t> {
    topology: &'t Topology,
    links: Vec<Link>,
    by_transmitter: Vec<Vec<usize>>,
    by_receiver: Vec<Vec<usize>>,
}

impl<'t> ConflictGraph<'t> {
    /// The conflict graph of the links, which are numbered in the given order. O(n + links).
    ///
    /// # Panics
    ///
    /// If a link names a node outside the topology.
    #[must_use]
    pub fn new(topology: &'t Topology, links: Vec<Link>) -> Self {
        let mut by_transmitter = vec![Vec::new(); topology.node_count()];
        let mut by_receiver = vec![Vec::new(); topology.node_count()];
        for (index, link) in links.iter().enumerate() {
            by_transmitter[link.from].push(index);
            by_receiver[link.to].push(index);
        }
        Self { topology, links, by_transmitter, by_receiver }
    }

    /// The links, in the order of their numbers.
    #[must_use]
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Calls `visit` with the number of every link that conflicts with link `index`; some may be visited twice.
    /// O(links around the two nodes).
    pub fn for_each_conflict(&self, index: usize, mut visit: impl FnMut(usize)) {
        let Link { from, to } = self.links[index];
        let disturbed = self.topology.interferers(from).iter().chain([&from]);
        for &receiver in disturbed {
            let others = self.by_receiver[receiver].iter().filter(|&&other| self.links[other].from != from);
            others.for_each(|&other| visit(other));
        }
        let disturbing = self.topology.interferers(to).iter().chain([&to]);
        for &transmitter in disturbing.filter(|&&transmitter| transmitter != from) {
            self.by_transmitter[transmitter].iter().for_each(|&other| visit(other));
        }
    }
}
