//! Connected components, by breadth-first search.

use std::collections::VecDeque;

/// The connected components of a graph, numbered in the order of their lowest nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Components {
    of: Vec<u32>,
    sizes: Vec<usize>,
}

impl Components {
    /// The components of a graph of `nodes` nodes, given the neighbours of each.
    pub(crate) fn of<N: Iterator<Item = u32>>(nodes: usize, neighbours: impl Fn(usize) -> N) -> Self {
        const NONE: u32 = u32::MAX;
        let mut of = vec![NONE; nodes];
        let mut sizes = Vec::new();
        let mut queue = VecDeque::new();
        for start in 0..nodes {
            if of[start] != NONE {
                continue;
            }
            let component = sizes.len() as u32;
            of[start] = component;
            queue.push_back(start);
            let mut size = 0;
            while let Some(node) = queue.pop_front() {
                size += 1;
                for next in neighbours(node) {
                    let next = next as usize;
                    if of[next] == NONE {
                        of[next] = component;
                        queue.push_back(next);
                    }
                }
            }
            sizes.push(size);
        }
        Self { of, sizes }
    }

    /// The number of components; an isolated node is one.
    pub fn count(&self) -> usize {
        self.sizes.len()
    }

    /// The component of a node.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn of_node(&self, node: usize) -> usize {
        self.of[node] as usize
    }

    /// The number of nodes of each component.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// The first of the components with the most nodes; `None` for a graph without nodes.
    pub fn largest(&self) -> Option<usize> {
        (0..self.count()).rev().max_by_key(|component| self.sizes[*component])
    }
}
