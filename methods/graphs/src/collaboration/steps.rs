//! The three steps of the printed alternation as they are, and their effects.
//!
//! With the Laplacian `L` of `(W + W^T) / 2` and, at a coordinate `l`, the spread `e_l = p_l^T L p_l` of all clients' values:
//!
//! * R: `min sum r_l^2 e_l` over the simplex is solved by `r_l ~ 1 / e_l` ([`by_reciprocals`]). A coordinate on which all clients
//!   agree has `e_l = 0`, and takes everything.
//! * S: `min -sum s_l^2 n_l` is concave, so its minimum is at a vertex, all on the largest `n_l`. The printed
//!   `s_l ~ 1 / n_l` is the *maximiser*. It is kept as printed in the mode `paper` alone.
//! * W: with `t_ij` the difference of the two distances, row `i` is the projection of `-t_i / (2 gamma)` onto the simplex.

use super::WeightMatrix;
use super::simplex::project_onto_simplex;

/// `p_l^T L p_l` at each coordinate `l`, by client vectors `p` and weights `w`: half of `sum_ij w_ij (p_il - p_jl)^2`.
pub fn spreads(vectors: &[Vec<f64>], weights: &WeightMatrix) -> Vec<f64> {
    let mut spreads = vec![0.0; vectors.first().map_or(0, Vec::len)];
    for (i, one) in vectors.iter().enumerate() {
        for (j, other) in vectors.iter().enumerate().skip(i + 1) {
            let weight = (weights[i][j] + weights[j][i]) / 2.0;
            for (spread, (one, other)) in spreads.iter_mut().zip(one.iter().zip(other)) {
                *spread += weight * (one - other) * (one - other);
            }
        }
    }
    spreads
}

/// `1 / (e + epsilon)`, over their sum: the printed R and S.
pub fn by_reciprocals(spreads: &[f64], epsilon: f64) -> Vec<f64> {
    let reciprocals: Vec<f64> = spreads.iter().map(|spread| 1.0 / (spread + epsilon)).collect();
    let total: f64 = reciprocals.iter().sum();
    reciprocals.into_iter().map(|reciprocal| reciprocal / total).collect()
}

/// `|D (o_i - o_j)|^2` for all pairs of clients, with a diagonal `D`.
pub fn distances(vectors: &[Vec<f64>], diagonal: &[f64]) -> WeightMatrix {
    let clients = vectors.len();
    let mut distances = vec![vec![0.0; clients]; clients];
    for i in 0..clients {
        for j in i + 1..clients {
            let pairs = vectors[i].iter().zip(&vectors[j]).zip(diagonal);
            let distance = pairs.map(|((one, other), scale)| (scale * (one - other)) * (scale * (one - other))).sum();
            distances[i][j] = distance;
            distances[j][i] = distance;
        }
    }
    distances
}

/// The W-step: row by row the projection of `-t / (2 gamma)` onto the simplex.
pub fn weights_of(t: &WeightMatrix, gamma: f64) -> WeightMatrix {
    let row = |t: &Vec<f64>| project_onto_simplex(&t.iter().map(|t| -t / (2.0 * gamma)).collect::<Vec<_>>());
    t.iter().map(row).collect()
}

/// The equal weights with which an alternation begins.
pub(super) fn uniform(clients: usize) -> WeightMatrix {
    vec![vec![1.0 / clients as f64; clients]; clients]
}

/// `one - other`, entry by entry.
pub(super) fn difference(one: &WeightMatrix, other: &WeightMatrix) -> WeightMatrix {
    let row = |(one, other): (&Vec<f64>, &Vec<f64>)| one.iter().zip(other).map(|(one, other)| one - other).collect();
    one.iter().zip(other).map(row).collect()
}
