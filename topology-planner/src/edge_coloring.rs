//! Edge colouring: the edges of a graph as few matchings (Misra and Gries, "A constructive proof of Vizing's theorem",
//! Information Processing Letters 41, 1992).

use crate::topology::Topology;

/// The edges of a topology in at most `Delta + 1` matchings, `Delta` the largest degree: within one of the fewest there
/// can be. Edges ascending within each matching, no matching empty.
///
/// O(edges * n) time, O(n Delta) memory.
///
/// ```
/// use mingle_planner::{Topology, edge_coloring::matchings};
/// let ring = Topology::generate("ring:n=5")?;
/// assert_eq!(matchings(&ring).len(), 3);
/// # Ok::<(), mingle_planner::TopologyError>(())
/// ```
#[must_use]
pub fn matchings(topology: &Topology) -> Vec<Vec<(usize, usize)>> {
    let nodes = topology.node_count();
    let colors = 1 + (0..nodes).map(|node| topology.neighbors(node).len()).max().unwrap_or(0);
    let mut coloring = EdgeColoring { colors, partner: vec![NOBODY; nodes * colors] };
    for &(u, v) in topology.edges() {
        coloring.add(topology, u, v);
    }
    let mut matchings = vec![Vec::new(); colors];
    for &(u, v) in topology.edges() {
        if let Some(color) = coloring.color_of(u, v) {
            matchings[color].push((u, v));
        }
    }
    matchings.retain(|matching| !matching.is_empty());
    matchings
}

const NOBODY: usize = usize::MAX;

struct EdgeColoring {
    colors: usize,
    /// `partner[node * colors + color]`: the other end of the node's edge of that colour.
    partner: Vec<usize>,
}

impl EdgeColoring {
    fn partner(&self, node: usize, color: usize) -> usize {
        self.partner[node * self.colors + color]
    }

    fn free(&self, node: usize) -> usize {
        // One colour more than the largest degree: there is a free one.
        (0..self.colors).find(|&color| self.partner(node, color) == NOBODY).unwrap_or(0)
    }

    fn is_free(&self, node: usize, color: usize) -> bool {
        self.partner(node, color) == NOBODY
    }

    fn color_of(&self, u: usize, v: usize) -> Option<usize> {
        (0..self.colors).find(|&color| self.partner(u, color) == v)
    }

    fn set(&mut self, u: usize, v: usize, color: usize) {
        self.partner[u * self.colors + color] = v;
        self.partner[v * self.colors + color] = u;
    }

    fn unset(&mut self, u: usize, v: usize, color: usize) {
        self.partner[u * self.colors + color] = NOBODY;
        self.partner[v * self.colors + color] = NOBODY;
    }

    /// Colours the edge `u v`: a fan of `u` that begins with `v`, a path of two colours turned over, the fan rotated.
    fn add(&mut self, topology: &Topology, u: usize, v: usize) {
        let fan = self.maximal_fan(topology, u, v);
        let (c, d) = (self.free(u), self.free(fan[fan.len() - 1]));
        self.invert_path(u, c, d);
        // After the inversion d is free at u; the fan is usable up to the first node at which d is free too.
        let usable = self.usable_prefix(u, &fan, d);
        self.rotate(u, &fan[..usable], d);
    }

    /// `v`, then neighbours of `u` whose edge to `u` has a colour that is free at the node before.
    fn maximal_fan(&self, topology: &Topology, u: usize, v: usize) -> Vec<usize> {
        let mut fan = vec![v];
        loop {
            let last = fan[fan.len() - 1];
            let fits = |&&next: &&usize| {
                !fan.contains(&next) && self.color_of(u, next).is_some_and(|color| self.is_free(last, color))
            };
            match topology.neighbors(u).iter().find(fits) {
                Some(&next) => fan.push(next),
                None => return fan,
            }
        }
    }

    /// Swaps the two colours on the path of edges of `c` and `d` from `u`, at which `c` is free.
    fn invert_path(&mut self, u: usize, c: usize, d: usize) {
        if c == d {
            return;
        }
        let mut path = vec![u];
        let (mut at, mut color) = (u, d);
        while self.partner(at, color) != NOBODY {
            at = self.partner(at, color);
            path.push(at);
            color = if color == d { c } else { d };
        }
        let ends = || path.windows(2).enumerate().map(|(index, pair)| (index, pair[0], pair[1]));
        for (index, a, b) in ends() {
            self.unset(a, b, if index % 2 == 0 { d } else { c });
        }
        for (index, a, b) in ends() {
            self.set(a, b, if index % 2 == 0 { c } else { d });
        }
    }

    /// How much of the fan is still a fan and ends in a node at which `d` is free.
    fn usable_prefix(&self, u: usize, fan: &[usize], d: usize) -> usize {
        for (index, &node) in fan.iter().enumerate() {
            if index > 0 {
                let is_fan = self.color_of(u, node).is_some_and(|color| self.is_free(fan[index - 1], color));
                if !is_fan {
                    break;
                }
            }
            if self.is_free(node, d) {
                return index + 1;
            }
        }
        fan.len()
    }

    /// Moves every colour of the fan one node forward and gives the last edge `d`.
    fn rotate(&mut self, u: usize, fan: &[usize], d: usize) {
        for pair in fan.windows(2) {
            if let Some(color) = self.color_of(u, pair[1]) {
                self.unset(u, pair[1], color);
                self.set(u, pair[0], color);
            }
        }
        self.set(u, fan[fan.len() - 1], d);
    }
}
