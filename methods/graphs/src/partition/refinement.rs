//! Refinement of a bisection: fewer edges between two sides, by moving one node at a time (Fiduccia and Mattheyses
//! 1982).

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use crate::graph::Graph;

/// The most passes; each ends with a smaller cut than the one before.
const PASSES: usize = 10;

/// Moves nodes between the sides while that makes the cut smaller, and keeps the number of nodes on the first side
/// within bounds. In a pass each node moves once at most, the one with the largest gain first, even where the cut
/// becomes larger for a while. The smallest cut on the way is kept. `O(passes * edges * log nodes)`.
pub(super) fn refine(graph: &Graph, side: &mut [bool], here: RangeInclusive<usize>) {
    for _ in 0..PASSES {
        if !pass(graph, side, &here) {
            return;
        }
    }
}

/// The decrease of the cut when a node changes its side.
fn gain(graph: &Graph, side: &[bool], node: usize) -> i64 {
    let away = graph.neighbours(node).iter().filter(|&&other| side[other as usize] != side[node]).count() as i64;
    2 * away - graph.degree(node) as i64
}

/// One pass; returns `true` if the cut became smaller.
fn pass(graph: &Graph, side: &mut [bool], here: &RangeInclusive<usize>) -> bool {
    let nodes = graph.node_count();
    let mut gains: Vec<i64> = (0..nodes).map(|node| gain(graph, side, node)).collect();
    // Largest gain first, then the lowest node; one queue a side.
    let mut queues = [BTreeSet::new(), BTreeSet::new()];
    for node in (0..nodes).filter(|&node| graph.degree(node) > 0) {
        queues[usize::from(side[node])].insert((-gains[node], node));
    }
    let mut count = side.iter().filter(|side| **side).count();
    let mut total = 0;
    let mut best = 0;
    let mut kept = 0;
    let mut moved = Vec::new();
    loop {
        let candidate = |from: bool, allowed: bool| queues[usize::from(from)].first().copied().filter(|_| allowed);
        let leaving = candidate(true, count > *here.start());
        let coming = candidate(false, count < *here.end());
        let Some((negated, node)) = leaving.into_iter().chain(coming).min() else { break };
        queues[usize::from(side[node])].remove(&(negated, node));
        total -= negated;
        side[node] = !side[node];
        count = if side[node] { count + 1 } else { count - 1 };
        moved.push(node);
        for &other in graph.neighbours(node) {
            let other = other as usize;
            // Nodes that have moved are no longer in a queue.
            if queues[usize::from(side[other])].remove(&(-gains[other], other)) {
                gains[other] += if side[other] == side[node] { -2 } else { 2 };
                queues[usize::from(side[other])].insert((-gains[other], other));
            }
        }
        if total > best {
            best = total;
            kept = moved.len();
        }
    }
    moved[kept..].iter().for_each(|&node| side[node] = !side[node]);
    best > 0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_bad_bisection_of_two_cliques_becomes_the_good_one() {
        let clique = |first: u32| (0..6).flat_map(move |a| (0..a).map(move |b| (first + a, first + b)));
        let graph = Graph::from_edges(12, clique(0).chain(clique(6)).chain([(0, 6)])).unwrap().0;
        let mut side: Vec<bool> = (0..12).map(|node| node % 2 == 0).collect();
        refine(&graph, &mut side, 5..=7);
        let cut = graph.edges().filter(|&(one, other)| side[one] != side[other]).count();
        assert_eq!(cut, 1, "{side:?}");
    }
}
