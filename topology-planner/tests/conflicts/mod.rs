//! The conflicts of a link as a list.

use mingle_planner::conflict_graph::ConflictGraph;

/// The numbers of the links that conflict with link `index`, ascending.
pub(crate) fn conflicts_of(graph: &ConflictGraph<'_>, index: usize) -> Vec<usize> {
    let mut conflicts = Vec::new();
    graph.for_each_conflict(index, |other| conflicts.push(other));
    conflicts.sort_unstable();
    conflicts.dedup();
    conflicts
}
