//! A large clique as a lower bound: links that all conflict with one another need a slot each.

use std::cmp::Reverse;

use super::stored::StoredConflicts;

/// A large clique of the conflict graph, as link numbers: from each of the `starts` links with the most conflicts,
/// links are added that keep the most candidates, the lowest number among equals. O(starts * clique * links^2 / 64).
pub(super) fn large_clique(graph: &StoredConflicts, starts: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..graph.len()).collect();
    order.sort_by_key(|&link| (Reverse(graph.degree(link)), link));
    let mut best = Vec::new();
    for &start in order.iter().take(starts) {
        let clique = grow(graph, start);
        if clique.len() > best.len() {
            best = clique;
        }
    }
    best
}

/// Grows a clique from one link until nothing fits.
fn grow(graph: &StoredConflicts, start: usize) -> Vec<usize> {
    let mut clique = vec![start];
    let mut candidates = graph.rows[start].clone();
    loop {
        let room = |link: usize| candidates.intersection_count(&graph.rows[link]);
        let Some(next) = candidates.iter().max_by_key(|&link| (room(link), Reverse(link))) else {
            return clique;
        };
        clique.push(next);
        candidates.intersect_with(&graph.rows[next]);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::{Link, Topology, conflict_graph::ConflictGraph};

    #[test]
    fn all_links_of_a_clique_conflict_with_one_another() {
        for expression in ["grid:rows=4,cols=5", "rg:n=20,r=0.4,seed=2", "windmill:cliques=2,size=5"] {
            let topology = Topology::generate(expression).unwrap();
            let links = topology.edges().iter().flat_map(|&(u, v)| [Link::new(u, v), Link::new(v, u)]).collect();
            let graph = StoredConflicts::new(&ConflictGraph::new(&topology, links));
            let clique = large_clique(&graph, 10);
            let conflicts = |a: usize, b: usize| graph.rows[a].contains(b);
            let is_clique = clique.iter().enumerate().all(|(at, &a)| clique[..at].iter().all(|&b| conflicts(a, b)));
            assert!(is_clique && clique.len() > 2, "{expression}: {clique:?}");
        }
    }
}
