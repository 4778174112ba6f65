//! A model of a positive semidefinite matrix that is known by its products with vectors: the symmetric rank-one update
//! (SR1; Nocedal and Wright, Numerical Optimization, 2006, section 6.2).
//!
//! ```text
//!   H_(k+1) = H_k + u u' / (v' u),     u = (H - H_k) v
//! ```
//!
//! From zero, `0 <= H_k <= H` in the order of matrices, `H_k v = H v` for all vectors learned so far, and `H_k = H` after as
//! many independent vectors as `H` has rank.

use crate::vector::{add, dot};

/// The most numbers kept of directions, and as many of factors. A model that would need more begins anew.
const MOST_NUMBERS: usize = 1 << 24;
/// The share of the trace that counts as rounding.
const ROUNDING: f64 = 1e-12;
/// The share of a vector outside the known directions that counts as rounding.
const KNOWN: f64 = 1e-9;

/// The model of a matrix of which products become known one by one.
pub(crate) struct CurvatureModel {
    trace: f64,
    /// The largest rank that the matrix can have.
    rank: usize,
    /// The directions learned, orthonormal.
    directions: Vec<Vec<f64>>,
    /// `H_k` is the sum of `b b'` over these.
    factors: Vec<Vec<f64>>,
    /// The trace of `H - H_k`.
    left: f64,
}

impl CurvatureModel {
    /// The model of a matrix of this trace, and of this rank at most, before its first product.
    pub(crate) fn new(trace: f64, rank: usize) -> Self {
        Self { trace, rank: rank.max(1), directions: Vec::new(), factors: Vec::new(), left: trace }
    }

    /// All but rounding of the matrix is known.
    pub(crate) fn is_exact(&self) -> bool {
        self.left <= ROUNDING * self.trace
    }

    /// The part of `vector` outside the directions learned, of length 1; `None` if the product with `vector` is known.
    pub(crate) fn unknown_part(&self, vector: &[f64]) -> Option<Vec<f64>> {
        if self.is_exact() {
            return None;
        }
        let length = dot(vector, vector).sqrt();
        let mut rest = vector.to_vec();
        // Twice, against rounding.
        for _ in 0..2 {
            for direction in &self.directions {
                let share = dot(direction, &rest);
                add(&mut rest, -share, direction);
            }
        }
        let beyond = dot(&rest, &rest).sqrt();
        (beyond > KNOWN * length).then(|| rest.iter().map(|x| x / beyond).collect())
    }

    /// Takes the product with `direction`, an [`unknown_part`](Self::unknown_part).
    pub(crate) fn learn(&mut self, direction: Vec<f64>, product: &[f64]) {
        if (self.directions.len() + 1).saturating_mul(direction.len()) > MOST_NUMBERS {
            self.directions.clear();
            self.factors.clear();
            self.left = self.trace;
        }
        let mut update = product.to_vec();
        add(&mut update, -1.0, &self.product(&direction));
        let curvature = dot(&direction, &update);
        if curvature > ROUNDING * ROUNDING * self.trace {
            let root = curvature.sqrt();
            update.iter_mut().for_each(|x| *x /= root);
            self.left = (self.left - dot(&update, &update)).max(0.0);
            self.factors.push(update);
        }
        self.directions.push(direction);
    }

    /// `H_k vector`.
    pub(crate) fn product(&self, vector: &[f64]) -> Vec<f64> {
        let mut product = vec![0.0; vector.len()];
        self.factors.iter().for_each(|factor| add(&mut product, dot(factor, vector), factor));
        product
    }

    /// The mean of the eigenvalues that are still unknown, and never quite zero.
    pub(crate) fn unknown_curvature(&self) -> f64 {
        let unknown = self.rank.saturating_sub(self.factors.len()).max(1);
        (self.left / unknown as f64).max(ROUNDING * self.trace)
    }

    /// `H_k` between these variables, row by row.
    pub(crate) fn between(&self, variables: &[usize]) -> Vec<f64> {
        let side = variables.len();
        let mut matrix = vec![0.0; side * side];
        for factor in &self.factors {
            let part: Vec<f64> = variables.iter().map(|&at| factor[at]).collect();
            for (row, scale) in matrix.chunks_exact_mut(side.max(1)).zip(&part) {
                if *scale != 0.0 {
                    add(row, *scale, &part);
                }
            }
        }
        matrix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_is_known_after_as_many_products_as_it_has_rank() {
        // Rank 2 of 4.
        let rows = [[1.0, 2.0, 0.0, -1.0], [0.5, 0.0, 3.0, 1.0]];
        let times = |vector: &[f64]| {
            let mut product = vec![0.0; 4];
            rows.iter().for_each(|row| add(&mut product, dot(row, vector), row));
            product
        };
        let trace = rows.iter().map(|row| dot(row, row)).sum();
        let mut model = CurvatureModel::new(trace, 2);
        for vector in [[1.0, 0.0, 0.0, 0.0], [0.3, 1.0, -2.0, 0.5]] {
            let Some(direction) = model.unknown_part(&vector) else { panic!("{vector:?} is not known yet") };
            let product = times(&direction);
            model.learn(direction, &product);
        }
        assert!(model.unknown_part(&[0.0, 0.0, 0.0, 1.0]).is_none());
        for vector in [[0.0, 0.0, 0.0, 1.0], [1.0, -1.0, 2.0, 0.1]] {
            assert!(crate::vector::distance(&model.product(&vector), &times(&vector)) < 1e-12);
        }
        let between = model.between(&[2, 0]);
        assert!(crate::vector::distance(&between, &[9.0, 1.5, 1.5, 1.25]) < 1e-12, "{between:?}");
    }
}
