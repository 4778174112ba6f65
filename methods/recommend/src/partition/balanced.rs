//! Balanced assignment: parts that have about as many interactions each.

use mingle_spectra::WeightedGraph;

use super::distance;

/// The slack of a part's capacity over an equal share of the interactions, for its users and for its items.
pub const SLACK: f64 = 0.05;

/// The capacities of parts, in interactions. Users and items are counted apart, so that no part is without either.
pub(super) struct Capacities {
    /// The number of users, which come first among the nodes.
    users: usize,
    /// The interactions of each user and item.
    degrees: Vec<f64>,
    /// The capacity of one side in one part.
    most: f64,
}

impl Capacities {
    pub(super) fn of(graph: &WeightedGraph, users: usize, clusters: usize) -> Self {
        let degrees: Vec<f64> = (0..graph.node_count()).map(|node| graph.degree(node)).collect();
        let all: f64 = degrees[..users].iter().sum();
        Self { users, degrees, most: (1.0 + SLACK) * all / clusters as f64 }
    }

    /// Assigns each node to the nearest centre whose part has room for it, in the order of falling regret. A node for
    /// which no part has room goes to the part with the most room left.
    pub(super) fn assign(&self, points: &[Vec<f64>], centres: &[Vec<f64>]) -> Vec<u32> {
        let orders: Vec<(f64, Vec<usize>)> = points.iter().map(|point| preferences(point, centres)).collect();
        let mut labels = vec![0; points.len()];
        for side in [0..self.users, self.users..points.len()] {
            let mut nodes: Vec<usize> = side.collect();
            nodes.sort_by(|a, b| orders[*b].0.total_cmp(&orders[*a].0).then(a.cmp(b)));
            let mut left = vec![self.most; centres.len()];
            for node in nodes {
                let has_room = |part: &&usize| left[**part] >= self.degrees[node];
                let found = orders[node].1.iter().find(has_room).copied().unwrap_or_else(|| roomiest(&left));
                left[found] -= self.degrees[node];
                labels[node] = found as u32;
            }
        }
        labels
    }
}

/// The regret of a point, by how much the second nearest centre is farther than the nearest, and all centres, the
/// nearest first.
fn preferences(point: &[f64], centres: &[Vec<f64>]) -> (f64, Vec<usize>) {
    let distances: Vec<f64> = centres.iter().map(|centre| distance(point, centre)).collect();
    let mut order: Vec<usize> = (0..centres.len()).collect();
    order.sort_by(|a, b| distances[*a].total_cmp(&distances[*b]).then(a.cmp(b)));
    let regret = match order[..] {
        [first, second, ..] => distances[second] - distances[first],
        _ => 0.0,
    };
    (regret, order)
}

fn roomiest(left: &[f64]) -> usize {
    (0..left.len()).reduce(|best, next| if left[next] > left[best] { next } else { best }).unwrap_or(0)
}
