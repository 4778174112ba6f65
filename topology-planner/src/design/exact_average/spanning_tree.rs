//! A spanning tree of small depth in which no node has too many neighbours.

use super::{channel::Channel, one_by_one::in_turn, schedule::SlotSchedule, search::central_nodes};
use crate::{digraph::Link, minimum_degree_spanning_tree::minimum_degree_spanning_tree, topology::Topology};

/// Number of central nodes tried as roots.
const ROOTS: usize = 16;

/// The most nodes times roots on large graphs, with at least one root: each root takes five searches and a tree.
const MAX_ROOTED: usize = 16 * 16_384;

/// A rooted spanning tree.
pub(super) struct SpanningTree {
    pub(super) root: usize,
    /// Links from parent to child, the level next to the root first.
    levels: Vec<Vec<Link>>,
}

impl SpanningTree {
    /// A tree in which no node has more than `limit` neighbours.
    ///
    /// It is grown breadth first from central nodes, with as many children as the limit allows. Where that leaves nodes
    /// out, the tree of least degree is taken if its degree, within one of the optimum, is low enough.
    ///
    /// # Errors
    ///
    /// The least limit that is known to be possible.
    pub(super) fn within(topology: &Topology, limit: usize) -> Result<Self, usize> {
        let channel = Channel::new(topology);
        let roots = (MAX_ROOTED / topology.node_count()).clamp(1, ROOTS);
        let grown = central_nodes(&channel, roots).into_iter().filter_map(|root| Self::grow(&channel, root, limit));
        if let Some(tree) = grown.min_by_key(|tree| (tree.levels.len(), tree.root)) {
            return Ok(tree);
        }
        let edges = minimum_degree_spanning_tree(topology);
        let channel = Channel::restricted(topology, &edges);
        let degree = (0..topology.node_count()).map(|node| channel.partners(node).len()).max().unwrap_or(0);
        if degree > limit {
            return Err(degree);
        }
        let grown = central_nodes(&channel, 1).into_iter().find_map(|root| Self::grow(&channel, root, limit));
        grown.ok_or(degree)
    }

    /// The tree from one root; `None` if the limit leaves nodes out.
    fn grow(channel: &Channel<'_>, root: usize, limit: usize) -> Option<Self> {
        let nodes = channel.node_count();
        let mut is_in = vec![false; nodes];
        is_in[root] = true;
        let mut reached = 1;
        let mut levels = Vec::new();
        // Nodes of the tree with room for children, and how many they may still have.
        let mut open = vec![(root, limit)];
        while reached < nodes {
            let mut links = Vec::new();
            for (parent, room) in &mut open {
                for &child in channel.partners(*parent) {
                    if *room > 0 && !is_in[child] {
                        is_in[child] = true;
                        *room -= 1;
                        links.push(Link::new(*parent, child));
                    }
                }
            }
            if links.is_empty() {
                return None;
            }
            reached += links.len();
            open.retain(|&(parent, room)| room > 0 && channel.partners(parent).iter().any(|&child| !is_in[child]));
            // One of the neighbours of every node but the root is its parent.
            open.extend(links.iter().map(|link| (link.to, limit - 1)));
            levels.push(links);
        }
        Some(Self { root, levels })
    }

    pub(super) fn edges(&self) -> Vec<(usize, usize)> {
        self.levels.iter().flatten().map(|link| (link.from, link.to)).collect()
    }

    /// A schedule with each level at once, up and down; not free of collisions.
    pub(super) fn level_by_level(&self) -> SlotSchedule {
        SlotSchedule::there_and_back(self.root, self.levels.clone())
    }

    /// A schedule in which no node sends to two children in one step, up and down; not free of collisions.
    pub(super) fn child_by_child(&self, nodes: usize) -> SlotSchedule {
        SlotSchedule::there_and_back(self.root, in_turn(nodes, self.root, &self.levels))
    }
}
