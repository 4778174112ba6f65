//! How few slots any exact averaging needs.

use crate::topology::Topology;

/// A number of slots that no schedule of broadcasts with an exact average at its end goes below.
///
/// Two arguments, of which the larger counts. What a node holds must travel to the farthest other node, a hop a slot.
/// And all nodes but one must have been heard before anybody can know the average, who must be heard after that: so
/// with `T` a set of nodes no two of which can be heard in one slot, `|T|` slots are needed. Two nodes cannot be heard
/// in one slot when all whom one reaches are reached by the other; `T` is grown greedily from each node.
///
/// O(n^2 degree) for the first 500 nodes.
pub(super) fn least_slots(topology: &Topology) -> usize {
    let nodes = topology.node_count().min(500);
    let largest = (0..nodes).map(|start| exclusive_from(topology, start)).max().unwrap_or(0);
    largest.max(eccentricity(topology, 0))
}

/// The size of a set of nodes no two of which can be heard in one slot, grown from one node among its neighbours.
fn exclusive_from(topology: &Topology, start: usize) -> usize {
    let mut set = vec![start];
    for &candidate in topology.neighbors(start) {
        if set.iter().all(|&member| are_exclusive(topology, member, candidate)) {
            set.push(candidate);
        }
    }
    set.len()
}

/// Whether no receiver of one of the nodes escapes the other.
fn are_exclusive(topology: &Topology, a: usize, b: usize) -> bool {
    let covers = |a: usize, b: usize| topology.neighbors(b).iter().all(|&to| topology.interferes(a, to));
    covers(a, b) || covers(b, a)
}

/// The distance of the farthest node.
fn eccentricity(topology: &Topology, from: usize) -> usize {
    let mut hops = vec![usize::MAX; topology.node_count()];
    hops[from] = 0;
    let mut queue = vec![from];
    let mut at = 0;
    while let Some(&node) = queue.get(at) {
        at += 1;
        for &next in topology.neighbors(node) {
            if hops[next] == usize::MAX {
                hops[next] = hops[node] + 1;
                queue.push(next);
            }
        }
    }
    queue.last().map_or(0, |&last| hops[last])
}
