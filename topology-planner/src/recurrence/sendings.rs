//! The graph of the pairs (step, node) in which a node sends.

use super::greatest_common_divisor;
use crate::step::MixingStep;

/// A graph of sendings. Vertices are the pairs (step, node) with a link from the node, in that order, and after them
/// the nodes that never send. Mass that is at a node when a step begins has an arc to each vertex at which it is next
/// sent on, or stays for ever.
pub(super) struct Sendings {
    period: usize,
    /// The step of each pair; nodes that never send have none.
    step_of: Vec<u32>,
    node_of: Vec<u32>,
    /// Start of the arcs of each vertex, and the end of all.
    first_arc: Vec<u32>,
    arcs: Vec<u32>,
}

impl Sendings {
    /// O(n + links).
    pub(super) fn new(node_count: usize, steps: &[MixingStep]) -> Self {
        const NEVER: u32 = u32::MAX;
        let mut graph = Self {
            period: steps.len(),
            step_of: Vec::new(),
            node_of: Vec::new(),
            first_arc: vec![0],
            arcs: Vec::new(),
        };
        let mut next = vec![NEVER; node_count];
        let mut arcs = 0;
        for (number, step) in steps.iter().enumerate() {
            for column in step.columns() {
                let from = column[0].from;
                if next[from] == NEVER {
                    next[from] = graph.step_of.len() as u32;
                }
                graph.step_of.push(number as u32);
                graph.node_of.push(from as u32);
                arcs += column.len() + usize::from(step.keep_of(from) > 0.0);
                graph.first_arc.push(arcs as u32);
            }
        }
        for node in (0..node_count).filter(|&node| next[node] == NEVER).collect::<Vec<_>>() {
            next[node] = graph.node_of.len() as u32;
            graph.node_of.push(node as u32);
            graph.first_arc.push(arcs as u32);
        }
        graph.arcs = vec![0; arcs];
        graph.fill_arcs(steps, next);
        graph
    }

    /// Fills in the arcs, backwards in time. `next` is the vertex at which the mass of each node is sent next, after
    /// the last step at first.
    fn fill_arcs(&mut self, steps: &[MixingStep], mut next: Vec<u32>) {
        let mut end = self.step_of.len();
        for step in steps.iter().rev() {
            let begin = end - step.columns().count();
            for (pair, column) in (begin..).zip(step.columns()) {
                let kept = (step.keep_of(column[0].from) > 0.0).then_some(column[0].from);
                let targets = kept.into_iter().chain(column.iter().map(|link| link.to));
                for (arc, target) in (self.first_arc[pair] as usize..).zip(targets) {
                    self.arcs[arc] = next[target];
                }
            }
            for pair in begin..end {
                next[self.node_of[pair] as usize] = pair as u32;
            }
            end = begin;
        }
    }

    fn arcs_of(&self, vertex: usize) -> &[u32] {
        &self.arcs[self.first_arc[vertex] as usize..self.first_arc[vertex + 1] as usize]
    }

    /// The strongly connected components that no arc leaves, in the order of the nodes that they hold when a period
    /// begins.
    pub(super) fn closed_classes(&self) -> Vec<Vec<u32>> {
        let component_of = self.components();
        let count = component_of.iter().map(|&component| component as usize + 1).max().unwrap_or(0);
        let mut is_closed = vec![true; count];
        for vertex in 0..self.node_of.len() {
            let own = component_of[vertex];
            if self.arcs_of(vertex).iter().any(|&next| component_of[next as usize] != own) {
                is_closed[own as usize] = false;
            }
        }
        let mut classes = vec![Vec::new(); count];
        for (vertex, &component) in component_of.iter().enumerate() {
            if is_closed[component as usize] {
                classes[component as usize].push(vertex as u32);
            }
        }
        classes.retain(|class| !class.is_empty());
        if classes.len() > 1 {
            classes.sort_by_cached_key(|class| self.held_by(class));
        }
        classes
    }

    /// The nodes at which a closed class has mass when a period begins, ascending: those with an arc across that
    /// beginning.
    pub(super) fn held_by(&self, class: &[u32]) -> Vec<usize> {
        let mut nodes = Vec::new();
        for &vertex in class {
            let vertex = vertex as usize;
            match self.step_of.get(vertex) {
                None => nodes.push(self.node_of[vertex] as usize),
                Some(&step) => {
                    // In a closed class every arc leads to a pair.
                    let held = self.arcs_of(vertex).iter().filter(|&&next| self.step_of[next as usize] <= step);
                    nodes.extend(held.map(|&next| self.node_of[next as usize] as usize));
                }
            }
        }
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// The greatest common divisor of the lengths, in steps, of all cycles in a closed class.
    pub(super) fn cycle_divisor(&self, class: &[u32]) -> usize {
        let Some(&root) = class.first().filter(|&&root| (root as usize) < self.step_of.len()) else {
            return self.period; // a node that keeps all it has
        };
        let mut level = vec![usize::MAX; self.step_of.len()];
        level[root as usize] = 0;
        let mut queue = vec![root];
        let mut divisor = 0;
        let mut at = 0;
        while let Some(&pair) = queue.get(at) {
            at += 1;
            for &next in self.arcs_of(pair as usize) {
                let reached = level[pair as usize] + self.steps_between(pair, next);
                let level = &mut level[next as usize];
                if *level == usize::MAX {
                    *level = reached;
                    queue.push(next);
                }
                divisor = greatest_common_divisor(divisor, reached.abs_diff(*level));
            }
        }
        divisor
    }

    fn steps_between(&self, from: u32, to: u32) -> usize {
        let (from, to) = (self.step_of[from as usize] as usize, self.step_of[to as usize] as usize);
        if to > from { to - from } else { to + self.period - from }
    }

    /// The number of the strongly connected component of each vertex (Tarjan, "Depth-first search and linear graph
    /// algorithms", 1972).
    fn components(&self) -> Vec<u32> {
        const NONE: u32 = u32::MAX;
        let vertices = self.node_of.len();
        let mut low = vec![NONE; vertices];
        let mut component_of = vec![NONE; vertices];
        let mut clock = 0;
        let mut components = 0;
        let mut open: Vec<u32> = Vec::new();
        let mut path: Vec<(u32, u32, u32)> = Vec::new(); // vertex, its place in the order of the search, next arc
        for root in 0..vertices {
            if low[root] != NONE {
                continue;
            }
            path.push((root as u32, clock, self.first_arc[root]));
            while let Some((vertex, place, arc)) = path.last_mut() {
                let at = *vertex as usize;
                let begun = *place;
                if low[at] == NONE {
                    low[at] = begun;
                    clock += 1;
                    open.push(*vertex);
                }
                if *arc < self.first_arc[at + 1] {
                    let next = self.arcs[*arc as usize] as usize;
                    *arc += 1;
                    if low[next] == NONE {
                        path.push((next as u32, clock, self.first_arc[next]));
                    } else if component_of[next] == NONE {
                        low[at] = low[at].min(low[next]);
                    }
                    continue;
                }
                path.pop();
                if low[at] == begun {
                    while let Some(member) = open.pop() {
                        component_of[member as usize] = components;
                        if member as usize == at {
                            break;
                        }
                    }
                    components += 1;
                }
                if let Some(&(parent, ..)) = path.last() {
                    low[parent as usize] = low[parent as usize].min(low[at]);
                }
            }
        }
        component_of
    }
}
