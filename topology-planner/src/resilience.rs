//! Resilience of a graph to the loss of one node or one link.
//!
//! A node is critical when the rest is no longer strongly connected without it, and so is a link: strong articulation
//! points and strong bridges (Italiano, Laura and Santaroni, "Finding strong bridges and strong articulation points in
//! linear time", 2012). From any root, they are the nodes and links that lie on all paths from the root to some other
//! node, or on all paths back: dominators of the graph and of its reverse.

use crate::{
    digraph::{Digraph, Link},
    dominators::{Direction, Dominators},
};

/// The critical nodes and links of a graph: those whose loss leaves it not strongly connected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resilience {
    /// Nodes without which the others are not strongly connected, ascending.
    pub critical_nodes: Vec<usize>,
    /// Links without which the graph is not strongly connected, ascending.
    pub critical_links: Vec<Link>,
}

impl Resilience {
    /// Finds the critical nodes and links of a strongly connected graph. O((n + links) log n).
    ///
    /// ```
    /// use mingle_planner::{Link, digraph::Digraph, resilience::Resilience};
    /// // A path of three, both ways: all hangs on the middle, and on every link.
    /// let links = [(0, 1), (1, 0), (1, 2), (2, 1)].map(|(from, to)| Link::new(from, to));
    /// let path = Resilience::of(&Digraph::new(3, links));
    /// assert_eq!(path.critical_nodes, [1]);
    /// assert_eq!(path.critical_links.len(), 4);
    /// ```
    #[must_use]
    pub fn of(graph: &Digraph) -> Self {
        let both = [Direction::Forth, Direction::Back].map(|direction| Dominators::of(graph, 0, direction));
        let mut critical_nodes: Vec<usize> = both.iter().flat_map(Dominators::inner).collect();
        critical_nodes.sort_unstable();
        critical_nodes.dedup();
        if graph.node_count() > 2 && !stays_connected_without(graph, 0) {
            critical_nodes.insert(0, 0);
        }
        let mut critical_links: Vec<Link> = both.iter().flat_map(Dominators::bridges).collect();
        critical_links.sort_unstable();
        critical_links.dedup();
        Self { critical_nodes, critical_links }
    }
}

/// Returns `true` if the graph without one node is strongly connected.
fn stays_connected_without(graph: &Digraph, lost: usize) -> bool {
    let number = |node: usize| if node > lost { node - 1 } else { node };
    let links = graph.links().filter(|link| link.from != lost && link.to != lost);
    let rest = Digraph::new(graph.node_count() - 1, links.map(|link| Link::new(number(link.from), number(link.to))));
    rest.first_cut_off().is_none()
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn by_removal(graph: &Digraph) -> Resilience {
        let nodes = graph.node_count();
        let is_critical = |&link: &Link| {
            let rest = Digraph::new(nodes, graph.links().filter(|&other| other != link));
            rest.first_cut_off().is_some()
        };
        Resilience {
            critical_nodes: (0..nodes).filter(|&lost| nodes > 2 && !stays_connected_without(graph, lost)).collect(),
            critical_links: graph.links().filter(is_critical).collect(),
        }
    }

    #[test]
    fn dominators_find_what_removing_each_node_and_link_finds() {
        for seed in 0..200 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let nodes = 2 + (rng.next_u32() % 12) as usize;
            let mut graph = Digraph::new(nodes, (0..nodes).map(|node| Link::new(node, (node + 1) % nodes)));
            for _ in 0..rng.next_u32() % 30 {
                let (from, to) = (rng.next_u32() as usize % nodes, rng.next_u32() as usize % nodes);
                if from != to {
                    graph.insert(Link::new(from, to));
                }
            }
            assert_eq!(Resilience::of(&graph), by_removal(&graph), "seed {seed}");
        }
    }
}
