//! Weights by angles between directions: the objective of the published code in effect.
//!
//! `t_ij = alpha cos(mean angle of S q_i and S q_j) - beta cos(mean angle of R p_i and R p_j)`, where the directions of two clients are
//! matched greedily by the largest |cos|, so that neither sign nor order of singular vectors matters. A client has angle 0 to
//! itself: `t_ii = alpha - beta`, which gives it weight of its own where `beta > alpha`.

use super::distances::{agreeing, differing};
use super::steps::{spreads, uniform, weights_of};
use super::{CollaborationOptions, WeightMatrix};

/// The unit to which differences are rounded: arc cosines of two machines may differ in the last bits, weights must
/// not.
const GRAIN: f64 = 1e-9;

/// Weights from the vectors of all clients, each made of directions of `dimension` numbers, of which `directions`
/// belong to one order. R and S are those of one pass from equal weights: angles do not depend on their scale, and
/// further passes could only oscillate.
pub(super) fn weights(
    p: &[Vec<f64>],
    q: &[Vec<f64>],
    (directions, dimension): (usize, usize),
    options: &CollaborationOptions,
) -> WeightMatrix {
    let clients = p.len();
    let equal = uniform(clients);
    let r = agreeing(&spreads(p, &equal));
    let s = differing(&spreads(q, &equal));
    let p = scaled(p, &r);
    let q = scaled(q, &s);
    let alike = |vectors: &[Vec<f64>], i: usize, j: usize| {
        libm::cos(mean_angle(&vectors[i], &vectors[j], (directions, dimension)))
    };
    let mut t = vec![vec![options.alpha - options.beta; clients]; clients];
    for (i, j) in (0..clients).flat_map(|i| (i + 1..clients).map(move |j| (i, j))) {
        let exact = options.alpha * alike(&q, i, j) - options.beta * alike(&p, i, j);
        let rounded = (exact / GRAIN).round() * GRAIN;
        t[i][j] = rounded;
        t[j][i] = rounded;
    }
    weights_of(&t, options.gamma)
}

fn scaled(vectors: &[Vec<f64>], diagonal: &[f64]) -> Vec<Vec<f64>> {
    let scale = |vector: &Vec<f64>| vector.iter().zip(diagonal).map(|(value, scale)| value * scale).collect();
    vectors.iter().map(scale).collect()
}

/// The mean over all orders of the angles between matched directions, in `[0, pi / 2]`. Two directions that are both
/// missing are not counted; one that is missing is at a right angle to any other. Without any direction the angle is
/// right.
fn mean_angle(one: &[f64], other: &[f64], (directions, dimension): (usize, usize)) -> f64 {
    let mut sum = 0.0;
    let mut count = 0_u32;
    let order = (directions * dimension).max(1);
    for (one, other) in one.chunks(order).zip(other.chunks(order)) {
        for cosine in matched(one, other, dimension) {
            sum += libm::acos(cosine);
            count += 1;
        }
    }
    if count == 0 { std::f64::consts::FRAC_PI_2 } else { sum / f64::from(count) }
}

/// cos| of pairs of directions of one order, the largest first, each direction once; ties go to the lowest indices.
fn matched(one: &[f64], other: &[f64], dimension: usize) -> Vec<f64> {
    let norms = |vectors: &[f64]| -> Vec<f64> {
        vectors.chunks(dimension).map(|vector| vector.iter().map(|value| value * value).sum::<f64>().sqrt()).collect()
    };
    let one_norms = norms(one);
    let other_norms = norms(other);
    let mut pairs = Vec::new();
    for (i, a) in one.chunks(dimension).enumerate() {
        for (j, b) in other.chunks(dimension).enumerate() {
            let norm = one_norms[i] * other_norms[j];
            let dot: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
            pairs.push((if norm > 0.0 { (dot / norm).abs().min(1.0) } else { 0.0 }, i, j));
        }
    }
    pairs.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)).then(one.2.cmp(&other.2)));
    let mut taken = vec![false; one_norms.len()];
    let mut given = vec![false; other_norms.len()];
    let mut cosines = Vec::new();
    for (cosine, i, j) in pairs {
        if taken[i] || given[j] {
            continue;
        }
        taken[i] = true;
        given[j] = true;
        if one_norms[i] > 0.0 || other_norms[j] > 0.0 {
            cosines.push(cosine);
        }
    }
    cosines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_signs_nor_order_of_directions_matter() {
        let one = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0];
        let other = [0.0, -1.0, 0.0, 1.0, 0.0, 0.0];
        assert_eq!(mean_angle(&one, &other, (2, 3)), 0.0);
    }

    #[test]
    fn missing_directions_are_at_right_angles_and_two_of_them_tell_nothing() {
        let full = [1.0, 0.0, 0.0, 1.0];
        let half = [1.0, 0.0, 0.0, 0.0];
        assert!((mean_angle(&full, &half, (2, 2)) - std::f64::consts::FRAC_PI_4).abs() < 1e-12);
        assert_eq!(mean_angle(&half, &half, (2, 2)), 0.0);
        assert_eq!(mean_angle(&[0.0; 4], &[0.0; 4], (2, 2)), std::f64::consts::FRAC_PI_2);
    }
}
