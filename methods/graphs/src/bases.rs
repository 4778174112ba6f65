//! Homophily and heterophily bases of a client's features (UniFilter: Huang et al. 2024, "How universal polynomial bases enhance
//! spectral graph neural networks"; FedGSP's appendix, section II).
//!
//! With `P = D^-1/2 A D^-1/2`, whose rows are zero at isolated nodes, and column by column `x` of the features:
//!
//! ```text
//! homophily:    h^0 = x,          h^k = P h^(k-1)
//! orthonormal:  v^0 = x / |x|,    v^k = normalised  P v^(k-1) - <.,v^(k-1)> v^(k-1) - <.,v^(k-2)> v^(k-2)
//! heterophily:  u^0 = v^0,        u^k = normalised  (u^0 + ... + u^(k-1)) / k + t_k v^k
//!               t_k = sqrt(a (a - c^2)) / c,   a = ((k-1) c + 1) / k,   c = cos((1 - h) pi / 2)
//! ```
//!
//! so that every two heterophily bases of a column have the same angle, `(1 - h) pi / 2`. Where neighbours are alike
//! they are nearly parallel, where they are opposites nearly orthogonal. The printed `t_k` contains an inner product
//! that equals `a` exactly and cancels; here it is not computed. The printed algorithm has Frobenius norms of whole
//! matrices, with which angles are not kept.
//!
//! A column whose Krylov space is exhausted (a small component, or no neighbours at all) has `v^k = 0` from there on.
//! Its bases lose the angle: `u^k` is the mean of the earlier ones. Such *breakdowns* are counted by order.

use crate::graph::Graph;

/// A new direction with a smaller norm is rounding error.
const BREAKDOWN: f64 = 1e-8;
/// The number of columns computed together, which bounds the memory beside the result.
const BLOCK: usize = 64;

/// The bases of all orders, each `[nodes, features]` row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Bases {
    nodes: usize,
    columns: usize,
    homophily: Vec<Vec<f32>>,
    heterophily: Vec<Vec<f32>>,
    breakdowns: Vec<usize>,
}

impl Bases {
    /// Bases of orders 0 to `orders` for features `[nodes, columns]` row by row, with an estimated homophily, clamped
    /// to `[0, 1]`. `O(orders * columns * (nodes + edges))`, in f64, kept in f32.
    ///
    /// # Panics
    ///
    /// When there are not `nodes * columns` features.
    pub fn new(graph: &Graph, features: &[f32], columns: usize, orders: usize, homophily: f64) -> Self {
        let nodes = graph.node_count();
        assert_eq!(features.len(), nodes * columns, "one row of features a node");
        let zeros = || vec![vec![0.0; features.len()]; orders + 1];
        let mut bases =
            Self { nodes, columns, homophily: zeros(), heterophily: zeros(), breakdowns: vec![0; orders + 1] };
        for first in (0..columns).step_by(BLOCK) {
            let width = BLOCK.min(columns - first);
            let block: Vec<f64> = features
                .chunks_exact(columns)
                .flat_map(|row| row[first..first + width].iter().map(|&value| f64::from(value)))
                .collect();
            let keep = |kept: &mut Vec<Vec<f32>>, order: usize, block: &[f64]| {
                for (row, values) in kept[order].chunks_exact_mut(columns).zip(block.chunks_exact(width)) {
                    row[first..first + width].iter_mut().zip(values).for_each(|(kept, value)| *kept = *value as f32);
                }
            };
            homophily_bases(graph, &block, width, orders, |order, basis| keep(&mut bases.homophily, order, basis));
            let broken = heterophily_bases(graph, &block, width, orders, homophily, |order, basis| {
                keep(&mut bases.heterophily, order, basis);
            });
            bases.breakdowns.iter_mut().zip(broken).for_each(|(all, here)| *all += here);
        }
        bases
    }

    /// The highest order.
    pub fn orders(&self) -> usize {
        self.homophily.len() - 1
    }

    /// The number of rows of each basis.
    pub fn node_count(&self) -> usize {
        self.nodes
    }

    /// The number of columns of each basis.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// `P^order X`.
    pub fn homophily(&self, order: usize) -> &[f32] {
        &self.homophily[order]
    }

    /// `U^order`.
    pub fn heterophily(&self, order: usize) -> &[f32] {
        &self.heterophily[order]
    }

    /// The number of columns, by order, without a new direction; columns without any feature are not counted.
    pub fn breakdowns(&self) -> &[usize] {
        &self.breakdowns
    }

    /// The input of the filter at an order: `X` at 0, else `tau H + (1 - tau) U`.
    pub fn mixed(&self, order: usize, tau: f32) -> Vec<f32> {
        if order == 0 {
            return self.homophily[0].clone();
        }
        let pairs = self.homophily[order].iter().zip(&self.heterophily[order]);
        pairs.map(|(alike, opposite)| tau * alike + (1.0 - tau) * opposite).collect()
    }
}

/// `P x` for a block of columns, row by row.
fn propagate(graph: &Graph, block: &[f64], width: usize) -> Vec<f64> {
    let mut out = vec![0.0; block.len()];
    for node in 0..graph.node_count() {
        let own = graph.degree(node) as f64;
        let row = &mut out[node * width..(node + 1) * width];
        for &other in graph.neighbours(node) {
            let other = other as usize;
            let share = 1.0 / (own * graph.degree(other) as f64).sqrt();
            let theirs = &block[other * width..(other + 1) * width];
            row.iter_mut().zip(theirs).for_each(|(sum, value)| *sum += share * value);
        }
    }
    out
}

fn homophily_bases(graph: &Graph, block: &[f64], width: usize, orders: usize, mut keep: impl FnMut(usize, &[f64])) {
    let mut basis = block.to_vec();
    keep(0, &basis);
    for order in 1..=orders {
        basis = propagate(graph, &basis, width);
        keep(order, &basis);
    }
}

/// Passes each basis to `keep`; returns the number of columns that broke down, by order.
fn heterophily_bases(
    graph: &Graph,
    block: &[f64],
    width: usize,
    orders: usize,
    homophily: f64,
    mut keep: impl FnMut(usize, &[f64]),
) -> Vec<usize> {
    let c = cosine(homophily);
    let mut v = block.to_vec();
    let is_there: Vec<bool> = normalise(&mut v, width).into_iter().map(|norm| norm > 0.0).collect();
    let mut before = vec![0.0; block.len()];
    let mut sum = v.clone();
    let mut broken = vec![0; orders + 1];
    keep(0, &v);
    for (order, broken) in broken.iter_mut().enumerate().skip(1) {
        let mut next = propagate(graph, &v, width);
        for earlier in [&v, &before] {
            let projections = dot(&next, earlier, width);
            for (row, theirs) in next.chunks_exact_mut(width).zip(earlier.chunks_exact(width)) {
                for column in 0..width {
                    row[column] -= projections[column] * theirs[column];
                }
            }
        }
        let norms = normalise(&mut next, width);
        *broken = (0..width).filter(|&column| is_there[column] && norms[column] == 0.0).count();
        before = std::mem::replace(&mut v, next);
        let mut u = combine(&sum, &v, order, c);
        normalise(&mut u, width);
        sum.iter_mut().zip(&u).for_each(|(sum, value)| *sum += value);
        keep(order, &u);
    }
    broken
}

/// `cos((1 - h) pi / 2)`, in `[0, 1]`.
fn cosine(homophily: f64) -> f64 {
    libm::sin(homophily.clamp(0.0, 1.0) * std::f64::consts::FRAC_PI_2).clamp(0.0, 1.0)
}

/// `u^k` before it is normalised: `s / k + t v^k`. At a right angle `t` is infinite, and the direction is `v^k`.
fn combine(sum: &[f64], v: &[f64], order: usize, c: f64) -> Vec<f64> {
    let k = order as f64;
    match distance(order, c) {
        Some(t) => sum.iter().zip(v).map(|(sum, v)| sum / k + t * v).collect(),
        None => v.to_vec(),
    }
}

/// `t_k`: the distance from the mean of the earlier bases to the next one, along its new direction. `None` is infinity,
/// at a right angle.
fn distance(order: usize, c: f64) -> Option<f64> {
    let k = order as f64;
    let a = ((k - 1.0) * c + 1.0) / k;
    (c > f64::EPSILON).then(|| (a * (a - c * c)).max(0.0).sqrt() / c)
}

/// Makes the columns unit vectors and returns their norms; a norm below `BREAKDOWN` and its column become zero.
fn normalise(block: &mut [f64], width: usize) -> Vec<f64> {
    let mut norms: Vec<f64> = dot(block, block, width).into_iter().map(f64::sqrt).collect();
    norms.iter_mut().filter(|norm| **norm < BREAKDOWN).for_each(|norm| *norm = 0.0);
    for row in block.chunks_exact_mut(width) {
        for (value, norm) in row.iter_mut().zip(&norms) {
            *value = if *norm > 0.0 { *value / norm } else { 0.0 };
        }
    }
    norms
}

/// Inner products column by column.
fn dot(one: &[f64], other: &[f64], width: usize) -> Vec<f64> {
    let mut sums = vec![0.0; width];
    for (one, other) in one.chunks_exact(width).zip(other.chunks_exact(width)) {
        for column in 0..width {
            sums[column] += one[column] * other[column];
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    const NODES: usize = 300;
    const WIDTH: usize = 12;
    const ORDERS: usize = 13;

    fn random_graph(seed: u64) -> (Graph, Vec<f64>) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let edges: Vec<(u32, u32)> =
            (0..1200).map(|_| (rng.random_range(0..NODES as u32), rng.random_range(0..NODES as u32))).collect();
        let ring = (0..NODES as u32).map(|node| (node, (node + 1) % NODES as u32));
        let graph = Graph::from_edges(NODES, edges.into_iter().chain(ring)).unwrap().0;
        (graph, (0..NODES * WIDTH).map(|_| rng.random::<f64>() - 0.3).collect())
    }

    fn all_bases(graph: &Graph, block: &[f64], homophily: f64) -> Vec<Vec<f64>> {
        let mut bases = Vec::new();
        let broken = heterophily_bases(graph, block, WIDTH, ORDERS, homophily, |_, basis| bases.push(basis.to_vec()));
        assert_eq!(broken, [0; ORDERS + 1]);
        bases
    }

    #[test]
    fn every_two_heterophily_bases_have_the_angle_of_the_homophily() {
        let (graph, block) = random_graph(1);
        for homophily in [0.0, 0.05, 0.3, 0.6, 0.81, 1.0] {
            let c = cosine(homophily);
            let bases = all_bases(&graph, &block, homophily);
            for one in 0..=ORDERS {
                for other in 0..one {
                    for (column, cos) in dot(&bases[one], &bases[other], WIDTH).into_iter().enumerate() {
                        assert!(
                            (cos - c).abs() < 1e-10,
                            "h {homophily}, {one} and {other}, column {column}: {cos}, not {c}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn the_closed_form_is_the_inner_product_of_the_printed_algorithm() {
        let (graph, block) = random_graph(2);
        for homophily in [0.05, 0.3, 0.6, 0.81] {
            let c = cosine(homophily);
            let bases = all_bases(&graph, &block, homophily);
            let mut sum = bases[0].clone();
            for order in 1..=ORDERS {
                let k = order as f64;
                let inner = dot(&sum, &bases[order - 1], WIDTH);
                for inner in inner {
                    let square = (inner / k / c).powi(2) - ((k - 1.0) * c + 1.0) / k;
                    let closed = distance(order, c).unwrap();
                    // The printed square root has the rounding of all inner products before it, divided by c squared.
                    let rounding = if order <= 4 { 1e-12 } else { 1e-9 };
                    let error = (square.sqrt() - closed).abs();
                    assert!(error < rounding * (1.0 + closed), "h {homophily}, order {order}: {error:e} of {closed}");
                }
                sum.iter_mut().zip(&bases[order]).for_each(|(sum, value)| *sum += value);
            }
        }
    }

    #[test]
    fn frobenius_norms_of_whole_matrices_as_printed_do_not_keep_the_angle() {
        // The literal reading has one norm and one inner product for all columns. It loses the angle, so bases are
        // computed column by column.
        let (graph, block) = random_graph(3);
        let c = cosine(0.3);
        let norm = |matrix: &[f64]| matrix.iter().map(|value| value * value).sum::<f64>().sqrt();
        let scaled = |matrix: Vec<f64>| {
            let norm = norm(&matrix);
            matrix.into_iter().map(|value| value / norm).collect::<Vec<_>>()
        };
        let v = scaled(block);
        let mut next = propagate(&graph, &v, WIDTH);
        let inner: f64 = next.iter().zip(&v).map(|(one, other)| one * other).sum();
        next.iter_mut().zip(&v).for_each(|(value, earlier)| *value -= inner * earlier);
        let u = scaled(combine(&v, &scaled(next), 1, c));
        let norms = |block: &[f64]| dot(block, block, WIDTH).into_iter().map(f64::sqrt).collect::<Vec<_>>();
        let cosines =
            dot(&u, &v, WIDTH).into_iter().zip(norms(&u).into_iter().zip(norms(&v))).map(|(dot, (a, b))| dot / (a * b));
        let worst = cosines.map(|cos| (cos - c).abs()).fold(0.0, f64::max);
        assert!(worst > 0.05, "{worst}");
    }

    #[test]
    fn breakdowns_are_counted_and_leave_finite_bases() {
        // Two nodes that are linked, an isolated one, and a column of zeros.
        let graph = Graph::from_edges(3, [(0, 1)]).unwrap().0;
        let features = [1.0, 0.0, 2.0, 0.0, 0.0, 0.0];
        let bases = Bases::new(&graph, &features, 2, 4, 0.5);
        assert_eq!(bases.breakdowns(), [0, 0, 1, 1, 1]);
        for order in 0..=4 {
            for basis in [bases.homophily(order), bases.heterophily(order)] {
                assert!(basis.iter().all(|value| value.is_finite()));
                assert!(basis.iter().skip(1).step_by(2).all(|value| *value == 0.0), "a column of zeros stays one");
            }
        }
        // With h = 1 all bases are the same, with h = 0 they are orthonormal.
        let same = Bases::new(&graph, &features, 2, 3, 1.0);
        assert!(same.heterophily(0).iter().zip(same.heterophily(3)).all(|(one, other)| (one - other).abs() < 1e-6));
    }

    #[test]
    fn homophily_bases_are_powers_of_the_normalised_adjacency() {
        let graph = Graph::from_edges(3, [(0, 1), (1, 2)]).unwrap().0;
        let bases = Bases::new(&graph, &[1.0, 0.0, 0.0], 1, 2, 0.5);
        let half = 0.5_f32;
        assert!(bases.homophily(1).iter().zip([0.0, half.sqrt(), 0.0]).all(|(one, other)| (one - other).abs() < 1e-7));
        assert!(bases.homophily(2).iter().zip([half, 0.0, half]).all(|(one, other)| (one - other).abs() < 1e-7));
        let mixed = bases.mixed(1, 0.25);
        assert!((mixed[1] - (0.25 * bases.homophily(1)[1] + 0.75 * bases.heterophily(1)[1])).abs() < 1e-7);
        assert_eq!(bases.mixed(0, 0.25), [1.0, 0.0, 0.0]);
    }
}
