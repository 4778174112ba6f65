//! A spanning tree whose largest degree is within one of the least possible: step 1 of Algorithm 1 \[NH\].
//!
//! Fürer and Raghavachari, "Approximating the minimum-degree Steiner tree to within one of optimal", Journal of
//! Algorithms 17 (1994). Let `k` be the largest degree of the tree. Nodes of degree `k` and `k - 1` are *blocking*:
//! taking them out leaves a forest. A graph edge between two parts of the forest closes a cycle through blocking nodes.
//! If one of these has degree `k`, exchanging one of its tree edges for the new edge lowers its degree. Those of degree
//! `k - 1` are not improved yet, but could be: they stop blocking, and the parts around the cycle become one. If such a
//! node is an end of a later exchange, it is improved first, so that it does not rise to `k`. When no edge is left
//! between two parts, the blocking nodes prove that no tree has degree less than `k - 1`.

use crate::topology::Topology;

/// A spanning tree whose maximum degree is at most one more than the least possible.
///
/// Returns the `n - 1` edges `(u, v)`, `u < v`, in ascending order. Starts from the breadth-first tree of node 0 and
/// looks at graph edges in ascending order. O(n m) per exchange, at most O(n log n) exchanges.
///
/// ```
/// use mingle_planner::{Topology, minimum_degree_spanning_tree::minimum_degree_spanning_tree};
/// // Breadth-first search makes a star of a complete graph; local improvement ends with a path.
/// let complete = Topology::generate("complete:n=6")?;
/// let tree = minimum_degree_spanning_tree(&complete);
/// let degree = |node| tree.iter().filter(|&&(u, v)| u == node || v == node).count();
/// assert_eq!((0..6).map(degree).max(), Some(2));
/// # Ok::<(), mingle_planner::TopologyError>(())
/// ```
#[must_use]
pub fn minimum_degree_spanning_tree(topology: &Topology) -> Vec<(usize, usize)> {
    let mut tree = Tree::breadth_first(topology);
    while improve(topology, &mut tree) {}
    tree.edges()
}

/// Lowers the degree of one node of maximum degree. Returns `false` if the search finds no exchange that does.
fn improve(topology: &Topology, tree: &mut Tree) -> bool {
    let degree = tree.max_degree();
    if degree <= 2 {
        return false; // a path, and the best there is
    }
    let mut search = Search::new(tree, degree);
    while let Some((u, v)) = search.edge_between_parts(topology) {
        let path = tree.path(u, v);
        if let Some(&node) = path.iter().find(|&&node| tree.degree(node) == degree) {
            search.released_by[node] = Some((u, v));
            search.exchange_at(node, tree);
            return true;
        }
        search.release(&path, (u, v), tree);
    }
    false
}

/// One round of the search: the blocking nodes, the exchange that could improve each released one, and the forest's
/// parts.
struct Search {
    degree: usize,
    blocking: Vec<bool>,
    released_by: Vec<Option<(usize, usize)>>,
    parts: UnionFind,
}

impl Search {
    fn new(tree: &Tree, degree: usize) -> Self {
        let node_count = tree.adjacency.len();
        let blocking: Vec<bool> = (0..node_count).map(|node| tree.degree(node) + 1 >= degree).collect();
        let mut parts = UnionFind::new(node_count);
        for (u, v) in tree.edges() {
            if !blocking[u] && !blocking[v] {
                parts.join(u, v);
            }
        }
        Self { degree, blocking, released_by: vec![None; node_count], parts }
    }

    /// The first graph edge that joins two parts of the forest; tree edges between nodes that do not block never do.
    fn edge_between_parts(&mut self, topology: &Topology) -> Option<(usize, usize)> {
        let mut edges = topology.edges().iter().copied();
        edges.find(|&(u, v)| !self.blocking[u] && !self.blocking[v] && self.parts.of(u) != self.parts.of(v))
    }

    /// Stops nodes of degree `k - 1` on the cycle from blocking, and joins the parts around the cycle.
    fn release(&mut self, path: &[usize], edge: (usize, usize), tree: &Tree) {
        for &node in path.iter().filter(|&&node| tree.degree(node) + 1 == self.degree) {
            if self.blocking[node] {
                self.blocking[node] = false;
                self.released_by[node] = Some(edge);
            }
        }
        for &node in path {
            self.parts.join(node, edge.0);
            for &neighbor in &tree.adjacency[node] {
                if !self.blocking[neighbor] {
                    self.parts.join(node, neighbor);
                }
            }
        }
    }

    /// Lowers the degree of `node` by the exchange noted for it; first improves ends that would rise to `k`.
    ///
    /// The ends lie in parts of the forest of their own, and improving one changes the tree only inside its part, so
    /// the cycle of the edge still runs through `node` afterwards.
    fn exchange_at(&self, node: usize, tree: &mut Tree) {
        let Some((u, v)) = self.released_by[node] else {
            return;
        };
        for end in [u, v] {
            if tree.degree(end) + 1 == self.degree {
                self.exchange_at(end, tree);
            }
        }
        let path = tree.path(u, v);
        if let Some(at) = path.iter().position(|&step| step == node).filter(|&at| at > 0) {
            tree.remove(path[at - 1], node);
            tree.insert(u, v);
        }
    }
}

/// A spanning tree as lists of neighbours, ascending.
struct Tree {
    adjacency: Vec<Vec<usize>>,
}

impl Tree {
    fn breadth_first(topology: &Topology) -> Self {
        let mut tree = Self { adjacency: vec![Vec::new(); topology.node_count()] };
        let mut seen = vec![false; topology.node_count()];
        seen[0] = true;
        let mut queue = vec![0];
        let mut at = 0;
        while let Some(&node) = queue.get(at) {
            at += 1;
            for &next in topology.neighbors(node) {
                if !seen[next] {
                    seen[next] = true;
                    tree.insert(node, next);
                    queue.push(next);
                }
            }
        }
        tree
    }

    fn degree(&self, node: usize) -> usize {
        self.adjacency[node].len()
    }

    fn max_degree(&self) -> usize {
        self.adjacency.iter().map(Vec::len).max().unwrap_or(0)
    }

    fn insert(&mut self, u: usize, v: usize) {
        for (a, b) in [(u, v), (v, u)] {
            if let Err(place) = self.adjacency[a].binary_search(&b) {
                self.adjacency[a].insert(place, b);
            }
        }
    }

    fn remove(&mut self, u: usize, v: usize) {
        for (a, b) in [(u, v), (v, u)] {
            self.adjacency[a].retain(|&neighbor| neighbor != b);
        }
    }

    /// The nodes on the path from `u` to `v`, both included.
    fn path(&self, u: usize, v: usize) -> Vec<usize> {
        let mut parent = vec![usize::MAX; self.adjacency.len()];
        parent[v] = v;
        let mut open = vec![v];
        while let Some(node) = open.pop() {
            for &next in &self.adjacency[node] {
                if parent[next] == usize::MAX {
                    parent[next] = node;
                    open.push(next);
                }
            }
        }
        let mut path = vec![u];
        let mut node = u;
        while node != v {
            node = parent[node];
            path.push(node);
        }
        path
    }

    fn edges(&self) -> Vec<(usize, usize)> {
        let rows = self.adjacency.iter().enumerate();
        rows.flat_map(|(u, row)| row.iter().filter(move |&&v| u < v).map(move |&v| (u, v))).collect()
    }
}

/// Disjoint sets of nodes (union-find with path halving).
struct UnionFind {
    parent: Vec<usize>,
}

impl UnionFind {
    fn new(node_count: usize) -> Self {
        Self { parent: (0..node_count).collect() }
    }

    fn of(&mut self, mut node: usize) -> usize {
        while self.parent[node] != node {
            self.parent[node] = self.parent[self.parent[node]];
            node = self.parent[node];
        }
        node
    }

    fn join(&mut self, u: usize, v: usize) {
        let u = self.of(u);
        let v = self.of(v);
        self.parent[u.max(v)] = u.min(v);
    }
}
