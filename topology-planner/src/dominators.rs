//! Dominators: the nodes that lie on all paths from a root to another node.
//!
//! T. Lengauer and R. Tarjan, "A fast algorithm for finding dominators in a flowgraph", ACM TOPLAS 1(1), 1979, with
//! simple linking. petgraph's `simple_fast` walks up paths of the tree again and again, which on a ring of `n` nodes,
//! both ways, takes time that grows with `n^3`.

use crate::digraph::{Digraph, Link};

/// The direction in which links are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From transmitters to receivers.
    Forth,
    /// From receivers to transmitters.
    Back,
}

/// The dominator tree of the nodes that the root reaches. Nodes are numbered in the order of a depth-first search, in
/// which a dominator comes before the nodes it dominates.
pub(crate) struct Dominators<'g> {
    graph: &'g Digraph,
    direction: Direction,
    /// The node of each number; `numbers` holds the number of each node.
    nodes: Vec<u32>,
    numbers: Vec<u32>,
    /// For each number, that of its immediate dominator; the root's is its own.
    above: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl<'g> Dominators<'g> {
    /// O((n + links) log n), and memory of 32 bytes for each node.
    pub(crate) fn of(graph: &'g Digraph, root: usize, direction: Direction) -> Self {
        let count = graph.node_count();
        let mut tree = Self { graph, direction, nodes: Vec::new(), numbers: vec![NONE; count], above: Vec::new() };
        let parents = tree.search_from(root);
        tree.above = tree.immediate(&parents);
        tree
    }

    fn next(&self, node: usize) -> &'g [usize] {
        match self.direction {
            Direction::Forth => self.graph.successors(node),
            Direction::Back => self.graph.predecessors(node),
        }
    }

    fn before(&self, node: usize) -> &'g [usize] {
        match self.direction {
            Direction::Forth => self.graph.predecessors(node),
            Direction::Back => self.graph.successors(node),
        }
    }

    /// Numbers the nodes; returns the number of each one's parent in the search.
    fn search_from(&mut self, root: usize) -> Vec<u32> {
        let mut parents = vec![0];
        self.numbers[root] = 0;
        self.nodes.push(root as u32);
        let mut path = vec![(root, 0)]; // node, next neighbour to look at
        while let Some((node, at)) = path.last_mut() {
            let Some(&next) = self.next(*node).get(*at) else {
                path.pop();
                continue;
            };
            *at += 1;
            if self.numbers[next] == NONE {
                parents.push(self.numbers[*node]);
                self.numbers[next] = self.nodes.len() as u32;
                self.nodes.push(next as u32);
                path.push((next, 0));
            }
        }
        parents
    }

    fn immediate(&self, parents: &[u32]) -> Vec<u32> {
        let count = parents.len();
        let mut semi: Vec<u32> = (0..count as u32).collect();
        let mut above = vec![0; count];
        let mut forest = Forest { ancestor: vec![NONE; count], label: semi.clone(), path: Vec::new() };
        // The nodes of each semidominator, as a list: its first node, and the next one after each.
        let mut first = vec![NONE; count];
        let mut after = vec![NONE; count];
        for at in (1..count).rev() {
            for &other in self.before(self.nodes[at] as usize) {
                let number = self.numbers[other];
                if number != NONE {
                    semi[at] = semi[at].min(semi[forest.least(number, &semi) as usize]);
                }
            }
            after[at] = std::mem::replace(&mut first[semi[at] as usize], at as u32);
            let parent = parents[at];
            forest.ancestor[at] = parent;
            let mut waiting = std::mem::replace(&mut first[parent as usize], NONE);
            while waiting != NONE {
                let least = forest.least(waiting, &semi);
                above[waiting as usize] = if semi[least as usize] < semi[waiting as usize] { least } else { parent };
                waiting = after[waiting as usize];
            }
        }
        for at in 1..count {
            if above[at] != semi[at] {
                above[at] = above[above[at] as usize];
            }
        }
        above
    }

    /// The nodes but the root that lie on all paths from the root to some other node, ascending.
    pub(crate) fn inner(&self) -> Vec<usize> {
        let mut is_inner = vec![false; self.numbers.len()];
        let above = self.above.iter().skip(1).filter(|&&above| above != 0);
        above.for_each(|&above| is_inner[self.nodes[above as usize] as usize] = true);
        (0..is_inner.len()).filter(|&node| is_inner[node]).collect()
    }

    /// The links that lie on all paths from the root to some node: from a dominator to a node whose other incoming
    /// links all come from nodes that it dominates itself.
    pub(crate) fn bridges(&self) -> Vec<Link> {
        let count = self.nodes.len();
        let mut size = vec![1_u32; count];
        for at in (1..count).rev() {
            size[self.above[at] as usize] += size[at];
        }
        // The nodes that a node dominates are entered after it, and before `size` more are.
        let mut entered = vec![0_u32; count];
        let mut free = vec![1_u32; count];
        for at in 1..count {
            let above = self.above[at] as usize;
            entered[at] = free[above];
            free[above] += size[at];
            free[at] = entered[at] + 1;
        }
        let dominates = |at: usize, other: usize| (entered[at]..entered[at] + size[at]).contains(&entered[other]);
        let mut bridges = Vec::new();
        for at in 1..count {
            let node = self.nodes[at] as usize;
            let above = self.nodes[self.above[at] as usize] as usize;
            let is_link = self.before(node).binary_search(&above).is_ok();
            let number = |other: usize| self.numbers[other];
            let mut others = self.before(node).iter().filter(|&&other| other != above && number(other) != NONE);
            if is_link && others.all(|&other| dominates(at, number(other) as usize)) {
                bridges.push(match self.direction {
                    Direction::Forth => Link::new(above, node),
                    Direction::Back => Link::new(node, above),
                });
            }
        }
        bridges
    }
}

/// The part of the search tree that has been linked so far.
struct Forest {
    ancestor: Vec<u32>,
    /// Of the nodes between a node and its ancestor, the one with the least semidominator.
    label: Vec<u32>,
    path: Vec<u32>,
}

impl Forest {
    /// Of the nodes on the path up from a node, without the root of its tree, the one with the least semidominator.
    /// Compresses the path.
    fn least(&mut self, node: u32, semi: &[u32]) -> u32 {
        if self.ancestor[node as usize] == NONE {
            return node;
        }
        let mut at = node;
        while self.ancestor[self.ancestor[at as usize] as usize] != NONE {
            self.path.push(at);
            at = self.ancestor[at as usize];
        }
        while let Some(at) = self.path.pop() {
            let up = self.ancestor[at as usize] as usize;
            if semi[self.label[up] as usize] < semi[self.label[at as usize] as usize] {
                self.label[at as usize] = self.label[up];
            }
            self.ancestor[at as usize] = self.ancestor[up];
        }
        self.label[node as usize]
    }
}
