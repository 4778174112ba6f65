//! Orientation of a connected undirected graph so that it is strongly connected: step 3 of Algorithm 1 \[NH\].

use petgraph::{algo::bridges::bridges, graph::UnGraph, visit::EdgeRef};

use crate::digraph::Link;

/// Orients a connected undirected graph so that it is strongly connected.
///
/// A *bridge*, an edge whose removal splits the graph, becomes two links. The other edges fall into bridge-connected
/// components; in each, a depth-first search sends tree edges from parent to child and all other edges back from
/// descendant to ancestor, which closes a cycle over every tree edge (Robbins 1939). The search starts at the lowest
/// node of a component and visits neighbours in ascending order.
///
/// `edges` are pairs of nodes below `node_count`, each pair once. The links come back in ascending order: two per
/// bridge, one per other edge. O(n + m log m).
///
/// ```
/// use mingle_planner::{Link, orientation::orient};
/// // A triangle with a tail: the tail is a bridge.
/// let links = orient(4, &[(0, 1), (0, 2), (1, 2), (2, 3)]);
/// assert_eq!(links, [Link::new(0, 1), Link::new(1, 2), Link::new(2, 0), Link::new(2, 3), Link::new(3, 2)]);
/// ```
#[must_use]
pub fn orient(node_count: usize, edges: &[(usize, usize)]) -> Vec<Link> {
    let mut links = Vec::with_capacity(2 * edges.len());
    let mut within = vec![Vec::new(); node_count];
    for (&(u, v), is_bridge) in edges.iter().zip(mark_bridges(node_count, edges)) {
        if is_bridge {
            links.extend([Link::new(u, v), Link::new(v, u)]);
        } else {
            within[u].push(v);
            within[v].push(u);
        }
    }
    for row in &mut within {
        row.sort_unstable();
    }
    let mut preorder = vec![usize::MAX; node_count];
    let mut clock = 0;
    for root in 0..node_count {
        if preorder[root] == usize::MAX {
            orient_component(root, &within, &mut preorder, &mut clock, &mut links);
        }
    }
    links.sort_unstable();
    links
}

/// For each edge, `true` if it is a bridge.
fn mark_bridges(node_count: usize, edges: &[(usize, usize)]) -> Vec<bool> {
    let mut graph = UnGraph::<(), (), usize>::with_capacity(node_count, edges.len());
    for _ in 0..node_count {
        graph.add_node(());
    }
    for &(u, v) in edges {
        graph.add_edge(u.into(), v.into(), ());
    }
    let mut is_bridge = vec![false; edges.len()];
    for bridge in bridges(&graph) {
        is_bridge[bridge.id().index()] = true;
    }
    is_bridge
}

/// Depth-first search of one bridge-connected component; each edge is oriented when it is first met.
fn orient_component(
    root: usize,
    within: &[Vec<usize>],
    preorder: &mut [usize],
    clock: &mut usize,
    links: &mut Vec<Link>,
) {
    preorder[root] = *clock;
    *clock += 1;
    let mut path = vec![(root, root, 0)]; // node, parent, next neighbour to look at
    while let Some((node, parent, next)) = path.last_mut() {
        let node = *node;
        let parent = *parent;
        let Some(&neighbor) = within[node].get(*next) else {
            path.pop();
            continue;
        };
        *next += 1;
        if preorder[neighbor] == usize::MAX {
            preorder[neighbor] = *clock;
            *clock += 1;
            links.push(Link::new(node, neighbor));
            path.push((neighbor, node, 0));
        } else if preorder[neighbor] < preorder[node] && neighbor != parent {
            links.push(Link::new(node, neighbor));
        }
    }
}
