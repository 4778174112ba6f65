//! Topologies, as JSON, GraphML, GML and edge lists.

use mingle_planner::Topology;
use mingle_planner::topology::{MAX_EDGES, MAX_NODES};

/// Checks a text. A topology that is read from it lies within the limits, lists its edges in order, has the same
/// neighbours in both directions, and equals one built from its parts.
///
/// # Panics
/// If that does not hold.
pub fn check(text: &str) {
    match Topology::parse(text) {
        Ok(topology) => check_sound(&topology),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn check_sound(topology: &Topology) {
    let (names, edges) = (topology.names(), topology.edges());
    assert!((2..=MAX_NODES).contains(&names.len()));
    assert!(edges.len() <= MAX_EDGES);
    assert!(edges.windows(2).all(|pair| pair[0] < pair[1]), "{edges:?} is not in order");
    for &(u, v) in edges {
        assert!(u < v && topology.has_edge(u, v) && topology.has_edge(v, u) && topology.interferes(u, v));
    }
    let degrees: usize = (0..names.len()).map(|node| topology.neighbors(node).len()).sum();
    assert_eq!(degrees, 2 * edges.len());
    let mut rebuilt = Topology::new(names.to_vec(), edges).expect("the parts of a topology make one");
    if let Some(interference) = topology.interference_edges() {
        rebuilt = rebuilt.with_interference(interference).expect("the parts of a topology make one");
    }
    if let Some(positions) = topology.positions() {
        rebuilt = rebuilt.with_positions(positions.to_vec());
    }
    assert_eq!(&rebuilt, topology);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds;

    #[test]
    fn every_seed_is_a_topology() {
        for (name, text) in seeds::topology_text() {
            assert!(Topology::parse(&text).is_ok(), "{name}");
            check(&text);
        }
    }
}
