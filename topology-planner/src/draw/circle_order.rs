//! The order of nodes on a circle: circular sifting (Baur and Brandes, "Crossing Reduction in Circular Layouts", 2004).
//!
//! One node at a time is taken out and put where the fewest edges cross. Moving it past its neighbour on the circle
//! changes only the crossings between the edges of these two, so all places are tried in one turn of the circle: O(m +
//! n deg) for a node, O(n m) for a round. Uses whole numbers only.

/// Rounds of sifting; it usually settles after three or four.
const MOST_ROUNDS: usize = 8;

/// Rounds stop when nodes times edges times rounds would exceed this: some seconds.
const MOST_WORK: usize = 20_000_000;

/// The nodes in the order in which they stand on the circle; node 0 comes first. Edges are pairs of different nodes.
///
/// Starts from the order of the numbers and from a breadth-first search, and keeps the better end.
pub(super) fn circle_order(node_count: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut neighbors = vec![Vec::new(); node_count];
    for &(u, v) in edges {
        neighbors[u].push(v);
        neighbors[v].push(u);
    }
    let natural: Vec<usize> = (0..node_count).collect();
    let starts = [natural, breadth_first(&neighbors)];
    let ends = starts.map(|start| {
        let order = sifted(start, &neighbors, edges.len());
        (crossings(&order, edges), order)
    });
    // The first among equals: the natural order.
    let best = ends.into_iter().min_by_key(|(crossings, _)| *crossings).map(|(_, order)| order);
    from_node_0(best.unwrap_or_default())
}

/// The order rotated so that node 0 comes first, and in the direction in which its next neighbour on the circle is the
/// lower one.
fn from_node_0(mut order: Vec<usize>) -> Vec<usize> {
    let first = order.iter().position(|&node| node == 0).unwrap_or(0);
    order.rotate_left(first);
    if order.len() > 2 && order[1] > order[order.len() - 1] {
        order[1..].reverse();
    }
    order
}

fn breadth_first(neighbors: &[Vec<usize>]) -> Vec<usize> {
    let mut seen = vec![false; neighbors.len()];
    let mut order = Vec::with_capacity(neighbors.len());
    for root in 0..neighbors.len() {
        if seen[root] {
            continue;
        }
        seen[root] = true;
        let mut at = order.len();
        order.push(root);
        while let Some(&node) = order.get(at) {
            at += 1;
            let mut next: Vec<usize> = neighbors[node].iter().copied().filter(|&next| !seen[next]).collect();
            next.sort_unstable();
            for node in next {
                if !std::mem::replace(&mut seen[node], true) {
                    order.push(node);
                }
            }
        }
    }
    order
}

fn sifted(mut order: Vec<usize>, neighbors: &[Vec<usize>], edge_count: usize) -> Vec<usize> {
    let work = order.len().saturating_mul(edge_count).max(1);
    for _ in 0..MOST_ROUNDS.min(MOST_WORK / work) {
        let mut improved = false;
        for node in 0..order.len() {
            improved |= sift(node, &mut order, neighbors);
        }
        if !improved {
            break;
        }
    }
    order
}

/// Moves one node to its best place; returns `true` if that saved a crossing.
fn sift(node: usize, order: &mut Vec<usize>, neighbors: &[Vec<usize>]) -> bool {
    let Some(start) = order.iter().position(|&other| other == node) else {
        return false;
    };
    // The others, beginning with the one after the node.
    order.rotate_left(start);
    let others = &order[1..];
    let mut place = vec![usize::MAX; order.len()];
    for (at, &other) in others.iter().enumerate() {
        place[other] = at;
    }
    let mut saved = 0_i64;
    let mut best = 0_i64;
    let mut best_at = 0;
    let mut mine = Vec::new();
    let mut theirs = Vec::new();
    for (at, &other) in others.iter().enumerate() {
        // Places on the circle, counted from the pair onwards.
        let onward = |list: &[usize], places: &mut Vec<usize>| {
            places.clear();
            let rest = list.iter().filter(|&&end| end != node && end != other);
            places.extend(rest.map(|&end| (place[end] + others.len() - at) % others.len()));
            places.sort_unstable();
        };
        onward(&neighbors[node], &mut mine);
        onward(&neighbors[other], &mut theirs);
        // Before the swap, edges to `x` (mine) and `y` (theirs) cross if y is farther; after it, if x is.
        saved += pairs_below(&mine, &theirs) - pairs_below(&theirs, &mine);
        if saved > best {
            best = saved;
            best_at = at + 1;
        }
    }
    order.remove(0);
    order.insert(best_at, node);
    best > 0
}

/// The pairs of an element of the first list and a larger one of the second; both ascend.
fn pairs_below(low: &[usize], high: &[usize]) -> i64 {
    let mut below = 0;
    let mut pairs = 0;
    for value in high {
        while below < low.len() && low[below] < *value {
            below += 1;
        }
        pairs += below as i64;
    }
    pairs
}

/// Pairs of edges that cross when the nodes stand on a circle in this order. O(m (log n + n)) at worst, as chords that
/// are open when one closes.
fn crossings(order: &[usize], edges: &[(usize, usize)]) -> u64 {
    let mut place = vec![0; order.len()];
    for (at, &node) in order.iter().enumerate() {
        place[node] = at;
    }
    let chord = |&(u, v): &(usize, usize)| (place[u].min(place[v]), place[u].max(place[v]));
    let mut chords: Vec<(usize, usize)> = edges.iter().map(chord).collect();
    chords.sort_unstable_by_key(|&(open, close)| (close, std::cmp::Reverse(open)));
    // For each place, the chords that opened there and are not closed yet; those that opened in between cross.
    let mut opened = vec![0_u64; order.len() + 1];
    for &(open, _) in &chords {
        opened[open] += 1;
    }
    let mut total = 0;
    let mut at = 0;
    while at < chords.len() {
        let close = chords[at].1;
        let end = at + chords[at..].partition_point(|chord| chord.1 == close);
        for &(open, _) in &chords[at..end] {
            opened[open] -= 1;
        }
        for &(open, _) in &chords[at..end] {
            total += opened[open + 1..close].iter().sum::<u64>();
        }
        at = end;
    }
    total
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The definition: two chords cross when exactly one end of the one lies between the ends of the other.
    fn crossings_by_pairs(order: &[usize], edges: &[(usize, usize)]) -> u64 {
        let place = |node: usize| order.iter().position(|&other| other == node).unwrap();
        let mut total = 0;
        for (at, &(u, v)) in edges.iter().enumerate() {
            let (low, high) = (place(u).min(place(v)), place(u).max(place(v)));
            let between = |node: usize| low < place(node) && place(node) < high;
            let shares = |node: usize| node == u || node == v;
            total +=
                edges[at + 1..].iter().filter(|&&(x, y)| !shares(x) && !shares(y) && between(x) != between(y)).count()
                    as u64;
        }
        total
    }

    fn edges_of(expression: &str) -> (usize, Vec<(usize, usize)>) {
        let topology = crate::Topology::generate(expression).unwrap();
        (topology.node_count(), topology.edges().to_vec())
    }

    #[test]
    fn crossings_are_counted_as_their_definition_says() {
        for seed in 0..20 {
            let (nodes, edges) = edges_of(&format!("erdos-renyi:n=11,p=0.4,seed={seed}"));
            let order: Vec<usize> = (0..nodes).map(|at| at * 5 % nodes).collect();
            assert_eq!(crossings(&order, &edges), crossings_by_pairs(&order, &edges), "seed {seed}");
        }
    }

    #[test]
    fn sifting_never_adds_a_crossing_and_loses_no_node() {
        for seed in 0..20 {
            let (nodes, edges) = edges_of(&format!("erdos-renyi:n=14,p=0.3,seed={seed}"));
            let natural: Vec<usize> = (0..nodes).collect();
            let order = circle_order(nodes, &edges);
            assert!(crossings(&order, &edges) <= crossings(&natural, &edges), "seed {seed}");
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!((sorted, order[0]), (natural, 0), "seed {seed}");
        }
    }

    #[test]
    fn a_ring_whose_numbers_are_mixed_up_is_drawn_without_a_crossing() {
        let ring: Vec<(usize, usize)> = (0..13).map(|k| (k * 5 % 13, (k + 1) * 5 % 13)).collect();
        let order = circle_order(13, &ring);
        assert_eq!(crossings(&order, &ring), 0, "{order:?}");
    }

    #[test]
    fn nodes_without_edges_keep_their_order() {
        assert_eq!(circle_order(3, &[]), [0, 1, 2]);
        assert_eq!(circle_order(2, &[(0, 1)]), [0, 1]);
    }
}
