//! Sizes of a problem over cliques.

use mingle_solver::CliqueTerm;

/// The most cliques that any node is in.
pub(crate) fn most_memberships(cliques: &[CliqueTerm]) -> usize {
    cliques.iter().flat_map(|term| term.memberships.iter().copied()).max().unwrap_or(1)
}

/// The most numbers in any message about a problem over cliques: variables and their gradient, or multipliers of all cliques
/// of a node, or two bounds.
pub(crate) fn longest_message(cliques: &[CliqueTerm], dimension: usize) -> usize {
    (most_memberships(cliques) * dimension).max(2 * dimension).max(4)
}
