//! Edge colouring: the edges of a graph as few matchings.
//!
//! Misra and Gries, "A constructive proof of Vizing's theorem", Information Processing Letters 41, 1992. Edges are
//! coloured one by one. For an edge `u v`, a *fan* of `u` is a row of neighbours that begins with `v`, in which the
//! edge to each next one has a colour that is free at the one before: the colours can be moved one place down the row.
//! With `c` free at `u` and `d` free at the end of the fan, swapping `c` and `d` along the path from `u` makes `d` free
//! at `u` and at the end of some first part of the fan; that part is moved down and its last edge gets `d`.

use crate::topology::Topology;

/// The edges of a topology in at most `Delta + 1` matchings, `Delta` the largest degree: within one of the fewest
/// possible. Edges ascend within each matching, and no matching is empty.
///
/// O(edges (n + Delta^2)) time, O(n Delta) memory.
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
    let mut coloring = EdgeColoring { colors, partner: vec![NOBODY; nodes * colors], in_fan: vec![false; nodes] };
    for &(u, v) in topology.edges() {
        coloring.add(u, v);
    }
    let matching = |color: usize| {
        let partners = (0..nodes).map(|node| (node, coloring.partner(node, color)));
        partners.filter(|&(u, v)| v != NOBODY && u < v).collect::<Vec<_>>()
    };
    let mut matchings: Vec<_> = (0..colors).map(matching).filter(|matching| !matching.is_empty()).collect();
    matchings.sort_unstable();
    matchings
}

const NOBODY: usize = usize::MAX;

struct EdgeColoring {
    colors: usize,
    /// `partner[node * colors + color]`: the other end of the node's edge of that colour.
    partner: Vec<usize>,
    /// The nodes in the fan that is being made; all `false` in between.
    in_fan: Vec<bool>,
}

impl EdgeColoring {
    fn partner(&self, node: usize, color: usize) -> usize {
        self.partner[node * self.colors + color]
    }

    fn is_free(&self, node: usize, color: usize) -> bool {
        self.partner(node, color) == NOBODY
    }

    fn lowest_free(&self, node: usize) -> usize {
        // There is one colour more than the largest degree.
        (0..self.colors).find(|&color| self.is_free(node, color)).unwrap_or(0)
    }

    fn set(&mut self, u: usize, v: usize, color: usize) {
        self.partner[u * self.colors + color] = v;
        self.partner[v * self.colors + color] = u;
    }

    fn unset(&mut self, u: usize, v: usize, color: usize) {
        self.partner[u * self.colors + color] = NOBODY;
        self.partner[v * self.colors + color] = NOBODY;
    }

    /// Colours the edge `u v`.
    fn add(&mut self, u: usize, v: usize) {
        let mut fan = self.maximal_fan(u, v);
        let c = self.lowest_free(u);
        let d = self.lowest_free(fan[fan.len() - 1].node);
        self.swap_path(u, c, d);
        // The swap has recoloured the edge of u that was d, if there is one.
        if let Some(blade) = fan.iter_mut().skip(1).find(|blade| blade.color == d) {
            blade.color = c;
        }
        let usable = self.usable_part(&fan, d);
        for pair in fan[..usable].windows(2) {
            self.unset(u, pair[1].node, pair[1].color);
            self.set(u, pair[0].node, pair[1].color);
        }
        self.set(u, fan[usable - 1].node, d);
    }

    /// A fan that no neighbour of `u` can be added to.
    fn maximal_fan(&mut self, u: usize, v: usize) -> Vec<Blade> {
        let mut fan = vec![Blade { node: v, color: NOBODY }];
        self.in_fan[v] = true;
        loop {
            let last = fan[fan.len() - 1].node;
            let blades = (0..self.colors).map(|color| Blade { node: self.partner(u, color), color });
            let mut known = blades.filter(|blade| blade.node != NOBODY);
            match known.find(|blade| self.is_free(last, blade.color) && !self.in_fan[blade.node]) {
                Some(blade) => {
                    self.in_fan[blade.node] = true;
                    fan.push(blade);
                }
                None => break,
            }
        }
        fan.iter().for_each(|blade| self.in_fan[blade.node] = false);
        fan
    }

    /// Swaps the two colours on the path of edges of `d` and `c` from `u`, at which `c` is free.
    fn swap_path(&mut self, u: usize, c: usize, d: usize) {
        if c == d {
            return;
        }
        let mut path = vec![u];
        let mut at = u;
        let mut color = d;
        while self.partner(at, color) != NOBODY {
            at = self.partner(at, color);
            path.push(at);
            color = if color == d { c } else { d };
        }
        let edges = || path.windows(2).enumerate().map(|(index, pair)| (index, pair[0], pair[1]));
        for (index, a, b) in edges() {
            self.unset(a, b, if index % 2 == 0 { d } else { c });
        }
        for (index, a, b) in edges() {
            self.set(a, b, if index % 2 == 0 { c } else { d });
        }
    }

    /// The number of blades that are still a fan and end in a node at which `d` is free.
    fn usable_part(&self, fan: &[Blade], d: usize) -> usize {
        let is_broken = |index: usize| index > 0 && !self.is_free(fan[index - 1].node, fan[index].color);
        let whole = (0..fan.len()).find(|&index| is_broken(index)).unwrap_or(fan.len());
        (0..whole).find(|&index| self.is_free(fan[index].node, d)).map_or(whole, |index| index + 1)
    }
}

/// A node of a fan of `u`, and the colour of its edge to `u`, which only the first lacks.
#[derive(Debug, Clone, Copy)]
struct Blade {
    node: usize,
    color: usize,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn every_edge_is_in_one_matching_and_no_node_in_two_edges_of_one() {
        let rings_and_cliques = ["ring:n=5", "ring:n=6", "complete:n=2", "complete:n=9", "complete:n=10", "star:n=7"];
        let sparse = (0..60).map(|seed| format!("erdos-renyi:n=14,p=0.35,seed={seed}"));
        let dense = (0..30).map(|seed| format!("erdos-renyi:n=20,p=0.8,seed={seed}"));
        for expression in rings_and_cliques.map(str::to_owned).into_iter().chain(sparse).chain(dense) {
            let topology = Topology::generate(&expression).unwrap();
            let matchings = matchings(&topology);
            let degree = (0..topology.node_count()).map(|node| topology.neighbors(node).len()).max().unwrap();
            assert!((degree..=degree + 1).contains(&matchings.len()), "{expression}: {} matchings", matchings.len());
            let mut edges = matchings.concat();
            edges.sort_unstable();
            assert_eq!(edges, topology.edges(), "{expression}");
            for matching in &matchings {
                let mut ends: Vec<usize> = matching.iter().flat_map(|&(u, v)| [u, v]).collect();
                ends.sort_unstable();
                assert!(ends.windows(2).all(|pair| pair[0] != pair[1]), "{expression}: {matching:?}");
            }
        }
    }

    #[test]
    fn a_star_needs_a_matching_for_each_leaf() {
        assert_eq!(matchings(&Topology::generate("star:n=4").unwrap()), [[(0, 1)], [(0, 2)], [(0, 3)]]);
    }
}
