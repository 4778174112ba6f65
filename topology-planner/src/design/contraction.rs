//! The contraction of disagreement by a random symmetric step.
//!
//! With `W = I - a L`, `L` the Laplacian of a random graph, one step shrinks the expected squared distance from the
//! average by `|| E[W W] - J || = || I - 2 a E[L] + a^2 E[L L] - J ||` at least, `J` the matrix of averaging: the
//! mixing rate of MATCHA (Wang et al., 2022, theorem 2) and BASS (Herrera et al., 2025, section IV).

use faer::Mat;

use super::{DesignError, sampled::Edge};
use crate::spectrum;

/// Evaluations of the contraction in the search for the best weight.
const EVALUATIONS: usize = 32;

/// `E[L]` and `E[L L]`.
#[derive(Debug, Clone)]
pub(super) struct LaplacianMoments {
    mean: Mat<f64>,
    square: Mat<f64>,
}

impl LaplacianMoments {
    /// The moments with the given matrices.
    pub(super) fn new(mean: Mat<f64>, square: Mat<f64>) -> Self {
        Self { mean, square }
    }

    /// The moments of a step drawn evenly from the given ones.
    pub(super) fn of_steps(nodes: usize, steps: &[Vec<Edge>]) -> Self {
        let mut mean = Mat::zeros(nodes, nodes);
        let mut square = Mat::zeros(nodes, nodes);
        let share = 1.0 / steps.len().max(1) as f64;
        for edges in steps {
            add_laplacian(&mut mean, edges, share);
            for column in laplacian_columns(nodes, edges) {
                for &(row, a) in &column {
                    column.iter().for_each(|&(other, b)| square[(row, other)] += share * a * b);
                }
            }
        }
        Self { mean, square }
    }

    /// `|| E[W W] - J ||` at a weight. O(n^3).
    pub(super) fn contraction(&self, weight: f64) -> Result<f64, DesignError> {
        let nodes = self.mean.nrows();
        let average = 1.0 / nodes as f64;
        let matrix = Mat::from_fn(nodes, nodes, |row, column| {
            let at = (row, column);
            let identity = f64::from(u8::from(row == column));
            identity - average - 2.0 * weight * self.mean[at] + weight * weight * self.square[at]
        });
        let moduli = spectrum::symmetric_moduli(&matrix).map_err(DesignError::Spectrum)?;
        Ok(moduli.first().copied().unwrap_or(0.0))
    }

    /// The weight up to `most` with the least contraction, by golden-section search: the contraction is convex in the
    /// weight.
    pub(super) fn best_weight(&self, most: f64) -> Result<f64, DesignError> {
        const GOLDEN: f64 = 0.618_033_988_749_894_9;
        let mut low = 0.0;
        let mut high = most;
        let mut left = high - GOLDEN * (high - low);
        let mut right = low + GOLDEN * (high - low);
        let mut at_left = self.contraction(left)?;
        let mut at_right = self.contraction(right)?;
        for _ in 2..EVALUATIONS {
            if at_left < at_right {
                high = right;
                right = left;
                at_right = at_left;
                left = high - GOLDEN * (high - low);
                at_left = self.contraction(left)?;
            } else {
                low = left;
                left = right;
                at_left = at_right;
                right = low + GOLDEN * (high - low);
                at_right = self.contraction(right)?;
            }
        }
        // Golden-section search never looks at the ends, and the largest weight is often the best.
        let middle = f64::midpoint(low, high);
        if self.contraction(most)? <= self.contraction(middle)? { Ok(most) } else { Ok(middle) }
    }
}

/// Adds a multiple of the Laplacian of some edges.
pub(super) fn add_laplacian(matrix: &mut Mat<f64>, edges: &[Edge], scale: f64) {
    for &(u, v) in edges {
        matrix[(u, u)] += scale;
        matrix[(v, v)] += scale;
        matrix[(u, v)] -= scale;
        matrix[(v, u)] -= scale;
    }
}

/// The columns of a Laplacian, as pairs of row and value.
fn laplacian_columns(nodes: usize, edges: &[Edge]) -> Vec<Vec<(usize, f64)>> {
    let mut columns: Vec<Vec<(usize, f64)>> = (0..nodes).map(|node| vec![(node, 0.0)]).collect();
    for &(u, v) in edges {
        columns[u].push((v, -1.0));
        columns[v].push((u, -1.0));
        columns[u][0].1 += 1.0;
        columns[v][0].1 += 1.0;
    }
    columns
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_step_of_one_edge_that_is_active_half_of_the_time_halves_the_square() {
        // W is J or I, with equal chance.
        let moments = LaplacianMoments::of_steps(2, &[vec![(0, 1)], vec![]]);
        let weight = moments.best_weight(1.0).unwrap();
        assert!((weight - 0.5).abs() < 1e-5, "{weight}");
        assert!((moments.contraction(weight).unwrap() - 0.5).abs() < 1e-9);
    }

    #[test]
    fn the_best_weight_of_a_ring_of_four_is_known() {
        // The Laplacian has eigenvalues 2, 2, 4: (1 - 2 a)^2 and (1 - 4 a)^2 meet at a = 1 / 3.
        let moments = LaplacianMoments::of_steps(4, &[vec![(0, 1), (1, 2), (2, 3), (0, 3)]]);
        let weight = moments.best_weight(0.5).unwrap();
        assert!((weight - 1.0 / 3.0).abs() < 1e-5, "{weight}");
        assert!((moments.contraction(weight).unwrap() - 1.0 / 9.0).abs() < 1e-4);
        assert_eq!(moments.best_weight(0.25).unwrap(), 0.25, "no more than allowed");
    }
}
