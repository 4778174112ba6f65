//! Betweenness centrality (Brandes, "A faster algorithm for betweenness centrality", 2001).

use crate::topology::Topology;

/// For each node, over all ordered pairs of other nodes, the fraction of shortest paths that pass through it, added up.
///
/// O(n edges) time, O(n + edges) memory.
///
/// ```
/// use mingle_planner::{Topology, betweenness::betweenness};
/// let path = Topology::generate("grid:rows=1,cols=3")?;
/// assert_eq!(betweenness(&path), [0.0, 2.0, 0.0]); // 0 to 2, and back
/// # Ok::<(), mingle_planner::TopologyError>(())
/// ```
#[must_use]
pub fn betweenness(topology: &Topology) -> Vec<f64> {
    let nodes = topology.node_count();
    let mut centrality = vec![0.0; nodes];
    let mut paths = vec![0.0; nodes];
    let mut hops = vec![usize::MAX; nodes];
    let mut dependency = vec![0.0; nodes];
    for source in 0..nodes {
        paths.fill(0.0);
        hops.fill(usize::MAX);
        dependency.fill(0.0);
        paths[source] = 1.0;
        hops[source] = 0;
        let mut order = vec![source];
        let mut at = 0;
        while let Some(&node) = order.get(at) {
            at += 1;
            for &next in topology.neighbors(node) {
                if hops[next] == usize::MAX {
                    hops[next] = hops[node] + 1;
                    order.push(next);
                }
                if hops[next] == hops[node] + 1 {
                    paths[next] += paths[node];
                }
            }
        }
        for &node in order.iter().skip(1).rev() {
            for &before in topology.neighbors(node).iter().filter(|&&before| hops[before] + 1 == hops[node]) {
                dependency[before] += paths[before] / paths[node] * (1.0 + dependency[node]);
            }
            centrality[node] += dependency[node];
        }
    }
    centrality
}
