//! Symmetric doubly stochastic matrices, by rows.

use thiserror::Error;

/// The tolerance of a row's sum, which is 1.
const TOLERANCE: f64 = 1e-9;

/// A symmetric doubly stochastic matrix: row `i` has the weights with which node `i` mixes its own vector and its
/// neighbours', by ascending nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixing {
    rows: Vec<Vec<(usize, f64)>>,
}

/// Errors of rows that are no symmetric doubly stochastic matrix.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum MixingError {
    /// A row names a node that does not exist, or nodes twice or out of order.
    #[error("row {row} of the mixing matrix must name nodes below {nodes}, ascending")]
    Order { row: usize, nodes: usize },
    /// A row does not sum to 1.
    #[error("row {row} of the mixing matrix sums to {sum}, not to 1")]
    Sum { row: usize, sum: f64 },
    /// Two nodes give each other different weights.
    #[error(
        "nodes {a} and {b} give each other different weights: this method needs a symmetric plan, such as clique-phi"
    )]
    Asymmetric { a: usize, b: usize },
}

impl Mixing {
    /// Checks and keeps the rows.
    ///
    /// # Errors
    ///
    /// [`MixingError`] with the first row that is not valid.
    pub fn new(rows: Vec<Vec<(usize, f64)>>) -> Result<Self, MixingError> {
        let nodes = rows.len();
        for (row, entries) in rows.iter().enumerate() {
            let ascending = entries.windows(2).all(|pair| pair[0].0 < pair[1].0);
            if !ascending || entries.last().is_none_or(|last| last.0 >= nodes) {
                return Err(MixingError::Order { row, nodes });
            }
            let sum: f64 = entries.iter().map(|entry| entry.1).sum();
            if (sum - 1.0).abs() > TOLERANCE || !sum.is_finite() {
                return Err(MixingError::Sum { row, sum });
            }
        }
        let mixing = Self { rows };
        for (a, entries) in mixing.rows.iter().enumerate() {
            for &(b, weight) in entries {
                if (mixing.weight(b, a) - weight).abs() > TOLERANCE {
                    return Err(MixingError::Asymmetric { a, b });
                }
            }
        }
        Ok(mixing)
    }

    /// The number of nodes.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.rows.len()
    }

    /// The weights of a node, by ascending nodes.
    #[must_use]
    pub fn row(&self, node: usize) -> &[(usize, f64)] {
        &self.rows[node]
    }

    fn weight(&self, row: usize, column: usize) -> f64 {
        let entries = &self.rows[row];
        entries.binary_search_by_key(&column, |entry| entry.0).map_or(0.0, |at| entries[at].1)
    }

    /// The mixture of the vectors at a node, summed by ascending nodes, as over a network.
    #[must_use]
    pub fn mix(&self, node: usize, vectors: &[Vec<f64>]) -> Vec<f64> {
        let mut mixed = vec![0.0; vectors[node].len()];
        self.rows[node].iter().for_each(|&(other, weight)| crate::vector::add(&mut mixed, weight, &vectors[other]));
        mixed
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_symmetric_doubly_stochastic_matrices_are_taken() {
        let even = vec![(0, 0.5), (1, 0.5)];
        assert!(Mixing::new(vec![even.clone(), even.clone()]).is_ok());
        let refused = |rows| Mixing::new(rows).unwrap_err();
        assert_eq!(refused(vec![even.clone(), vec![(0, 0.5), (2, 0.5)]]), MixingError::Order { row: 1, nodes: 2 });
        assert_eq!(refused(vec![even.clone(), vec![(1, 0.5), (0, 0.5)]]), MixingError::Order { row: 1, nodes: 2 });
        assert_eq!(refused(vec![even.clone(), vec![]]), MixingError::Order { row: 1, nodes: 2 });
        assert_eq!(refused(vec![vec![(0, 0.5), (1, 0.25)], even.clone()]), MixingError::Sum { row: 0, sum: 0.75 });
        assert!(matches!(refused(vec![even.clone(), vec![(0, f64::NAN), (1, 0.5)]]), MixingError::Sum { row: 1, .. }));
        let lopsided = vec![even, vec![(0, 0.25), (1, 0.75)]];
        assert_eq!(refused(lopsided), MixingError::Asymmetric { a: 0, b: 1 });
    }
}
