//! Scattering along a tree in which a node sends to one child in a step: on separate links it takes its whole uplink.

use std::cmp::Reverse;

use super::channel::Channel;
use crate::digraph::Link;

/// The steps of the scattering along a tree: each node sends to its children one after the other, first to those whose
/// own subtrees take longest. No order takes fewer steps on this tree (Slater, Cockayne and Hedetniemi, "Information
/// dissemination in trees", SIAM Journal on Computing 1981).
///
/// `levels` are the links from parents to children, the level next to the root first. O(n log n).
pub(super) fn in_turn(nodes: usize, root: usize, levels: &[Vec<Link>]) -> Vec<Vec<Link>> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    levels.iter().flatten().for_each(|link| children[link.from].push(link.to));
    let order: Vec<usize> = [root].into_iter().chain(levels.iter().flatten().map(|link| link.to)).collect();
    let mut steps_below = vec![0; nodes];
    for &parent in order.iter().rev() {
        children[parent].sort_unstable_by_key(|&child| (Reverse(steps_below[child]), child));
        let ends = children[parent].iter().enumerate().map(|(at, &child)| at + 1 + steps_below[child]);
        steps_below[parent] = ends.max().unwrap_or(0);
    }
    let mut steps: Vec<Vec<Link>> = vec![Vec::new(); steps_below[root]];
    let mut has_it_from = vec![0; nodes];
    for node in order {
        for (at, &child) in children[node].iter().enumerate() {
            let step = has_it_from[node] + at;
            steps[step].push(Link::new(node, child));
            has_it_from[child] = step + 1;
        }
    }
    steps
}

/// Steps of a scattering that grows its own tree: in each step every node that has the root's mass sends to a neighbour
/// that has not, nodes with few such neighbours first, and to those with many of them. On a complete graph it doubles the
/// nodes in each step. `None` if `limit` neighbours in the tree leave nodes out.
///
/// O(links) for each step.
pub(super) fn grown(channel: &Channel<'_>, root: usize, limit: usize) -> Option<Vec<Vec<Link>>> {
    let nodes = channel.node_count();
    let mut has_it = vec![false; nodes];
    // Neighbours without the root's mass.
    let mut open: Vec<usize> = (0..nodes).map(|node| channel.partners(node).len()).collect();
    let mut degree = vec![0; nodes];
    let mut senders = vec![root];
    let mut steps = Vec::new();
    let mut reached = 1;
    has_it[root] = true;
    channel.partners(root).iter().for_each(|&node| open[node] -= 1);
    while reached < nodes {
        senders.retain(|&node| open[node] > 0 && degree[node] < limit);
        senders.sort_by_key(|&node| (open[node], node));
        let mut links = Vec::new();
        for &from in &senders {
            let without = channel.partners(from).iter().copied().filter(|&to| !has_it[to]);
            if let Some(to) = without.max_by_key(|&to| (open[to], Reverse(to))) {
                has_it[to] = true;
                channel.partners(to).iter().for_each(|&node| open[node] -= 1);
                degree[from] += 1;
                degree[to] += 1;
                links.push(Link::new(from, to));
            }
        }
        if links.is_empty() {
            return None;
        }
        reached += links.len();
        senders.extend(links.iter().map(|link| link.to));
        steps.push(links);
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::Topology;

    #[test]
    fn on_a_complete_graph_the_nodes_double_in_each_step() {
        for nodes in [2, 3, 8, 9, 33] {
            let complete = Topology::generate(&format!("complete:n={nodes}")).unwrap();
            let steps = grown(&Channel::new(&complete), 0, usize::MAX).unwrap();
            let doublings = usize::BITS - (nodes - 1_usize).leading_zeros();
            assert_eq!(steps.len(), doublings as usize, "{nodes} nodes");
        }
    }

    #[test]
    fn a_parent_serves_the_longest_subtree_first_and_one_child_in_a_step() {
        // 0 has the children 1 (a leaf) and 2, from which a path of two goes on.
        let levels = [vec![Link::new(0, 1), Link::new(0, 2)], vec![Link::new(2, 3)], vec![Link::new(3, 4)]];
        let steps = in_turn(5, 0, &levels);
        let expected = [vec![Link::new(0, 2)], vec![Link::new(0, 1), Link::new(2, 3)], vec![Link::new(3, 4)]];
        let sorted = |mut step: Vec<Link>| {
            step.sort_unstable();
            step
        };
        assert_eq!(steps.into_iter().map(sorted).collect::<Vec<_>>(), expected);
    }
}
