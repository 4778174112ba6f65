//! The signature of a client's bases: their leading directions in the space of features.

use faer::linalg::solvers::SelfAdjointEigen;
use faer::{Mat, Side};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use thiserror::Error;

use crate::bases::Bases;

/// The sizes of signatures, equal at all clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignatureShape {
    /// Orders of bases, from 1.
    pub orders: usize,
    /// Directions of each basis.
    pub directions: usize,
    /// Numbers of each direction.
    pub dimension: usize,
}

/// The largest dimension of a direction: more features are projected to as many random directions.
pub const PROJECTED_DIMENSION: usize = 256;

/// The signatures of a client: unit vectors by kind of basis, order and direction, which the client publishes.
///
/// A missing direction (a client with fewer nodes than directions, or features of lower rank) is zero.
#[derive(Clone, Debug, PartialEq)]
pub struct Signatures {
    shape: SignatureShape,
    /// All homophily bases, then all heterophily bases; order by order, direction by direction.
    values: Vec<f64>,
}

/// Errors of making or reading signatures.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum SignatureError {
    /// The eigenvectors of a basis did not converge.
    #[error(
        "the leading directions of the bases of order {order} were not found: the features may be too large to be squared"
    )]
    NoDirections { order: usize },
    /// The number of values is wrong.
    #[error("signatures have {expected} numbers, not {found}")]
    Length { expected: usize, found: usize },
    /// A direction is neither a unit vector nor zero.
    #[error("direction {direction} is neither a unit vector nor zero")]
    NotUnit { direction: usize },
}

impl SignatureShape {
    /// The shape for clients with this many features.
    pub fn new(orders: usize, directions: usize, features: usize) -> Self {
        Self { orders, directions, dimension: features.min(PROJECTED_DIMENSION) }
    }

    /// The number of values of one client.
    pub fn len(&self) -> usize {
        2 * self.orders * self.directions * self.dimension
    }

    /// Returns `true` if signatures of this shape have no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Signatures {
    /// The leading right singular vectors of each basis of order 1 and above, with centred columns. The entry with the
    /// largest magnitude is positive, the first of equals. More than [`PROJECTED_DIMENSION`] features are projected by
    /// random signs from `seed`, the same for all clients, and made unit vectors again.
    ///
    /// The singular vectors are found as eigenvectors of the smaller product of a basis with itself:
    /// `O(orders * min(nodes, features)^2 * max(nodes, features))`.
    ///
    /// # Errors
    ///
    /// The eigenvectors did not converge.
    pub fn of(bases: &Bases, directions: usize, seed: u64) -> Result<Self, SignatureError> {
        let shape = SignatureShape::new(bases.orders(), directions, bases.columns());
        let projection = (bases.columns() > PROJECTED_DIMENSION).then(|| Projection::new(bases.columns(), seed));
        let mut values = Vec::with_capacity(shape.len());
        for basis in [Bases::homophily, Bases::heterophily] {
            for order in 1..=bases.orders() {
                let found = leading_directions(basis(bases, order), bases.columns(), directions);
                for mut direction in found.ok_or(SignatureError::NoDirections { order })? {
                    if let Some(projection) = &projection {
                        direction = projection.of(&direction);
                    }
                    make_unit(&mut direction);
                    // Rounded to f32 as in messages, so that this client computes with the same values as the others.
                    values.extend(direction.into_iter().map(|value| f64::from(value as f32)));
                }
            }
        }
        Ok(Self { shape, values })
    }

    /// The signatures with these values, as received from a client.
    ///
    /// # Errors
    ///
    /// The number of values is wrong, or directions are neither unit vectors nor zero.
    pub fn from_values(shape: SignatureShape, values: Vec<f64>) -> Result<Self, SignatureError> {
        /// Tolerance of the square of a unit vector's norm, computed from f32.
        const ROUNDING: f64 = 1e-4;
        if values.len() != shape.len() {
            return Err(SignatureError::Length { expected: shape.len(), found: values.len() });
        }
        for (direction, vector) in values.chunks(shape.dimension.max(1)).enumerate() {
            let square: f64 = vector.iter().map(|value| value * value).sum();
            // A square that is not finite is refused too.
            if !(square == 0.0 || (square - 1.0).abs() < ROUNDING) {
                return Err(SignatureError::NotUnit { direction });
            }
        }
        Ok(Self { shape, values })
    }

    /// All values, rounded to f32.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The sizes of these signatures.
    pub fn shape(&self) -> SignatureShape {
        self.shape
    }

    /// The directions of the homophily basis of an order, from 1, one after the other.
    pub fn homophily(&self, order: usize) -> &[f64] {
        let size = self.shape.directions * self.shape.dimension;
        &self.values[(order - 1) * size..order * size]
    }

    /// The directions of the heterophily basis of an order, from 1, one after the other.
    pub fn heterophily(&self, order: usize) -> &[f64] {
        let size = self.shape.directions * self.shape.dimension;
        let order = order + self.shape.orders;
        &self.values[(order - 1) * size..order * size]
    }

    /// The number of missing directions.
    pub fn missing(&self) -> usize {
        self.values
            .chunks(self.shape.dimension.max(1))
            .filter(|vector| vector.iter().all(|value| *value == 0.0))
            .count()
    }
}

/// The right singular vectors of a matrix in row-major order, whose columns are centred first; zero beyond its rank.
/// `None` if they do not converge.
fn leading_directions(matrix: &[f32], columns: usize, directions: usize) -> Option<Vec<Vec<f64>>> {
    let rows = matrix.len() / columns;
    let mut means = vec![0.0; columns];
    for row in matrix.chunks_exact(columns) {
        means.iter_mut().zip(row).for_each(|(mean, value)| *mean += f64::from(*value) / rows as f64);
    }
    let centred = Mat::from_fn(rows, columns, |row, column| f64::from(matrix[row * columns + column]) - means[column]);
    let is_wide = rows < columns;
    let product = if is_wide { &centred * centred.transpose() } else { centred.transpose() * &centred };
    let largest = (0..product.nrows()).map(|at| product[(at, at)]).fold(0.0, f64::max);
    let mut found = vec![vec![0.0; columns]; directions];
    if largest == 0.0 {
        return Some(found);
    }
    if !largest.is_finite() {
        return None;
    }
    let eigen = SelfAdjointEigen::new(product.as_ref(), Side::Lower).ok()?;
    // In ascending order. An eigenvalue at the rounding error of the largest is no direction.
    let values = eigen.S().column_vector();
    let size = values.nrows();
    let least = values[size - 1] * size as f64 * f64::EPSILON * 8.0;
    for (nth, direction) in found.iter_mut().enumerate().take(size) {
        let at = size - 1 - nth;
        if values[at] <= least {
            break;
        }
        let vector = eigen.U().col(at);
        if is_wide {
            let right = centred.transpose() * vector;
            direction.iter_mut().enumerate().for_each(|(column, value)| *value = right[column]);
        } else {
            direction.iter_mut().enumerate().for_each(|(column, value)| *value = vector[column]);
        }
        if !make_unit(direction) {
            return None;
        }
    }
    Some(found)
}

/// Makes a unit vector whose entry of largest magnitude is positive; zero stays zero. Returns `false` if the norm is
/// not finite.
fn make_unit(vector: &mut [f64]) -> bool {
    let norm = vector.iter().map(|value| value * value).sum::<f64>().sqrt();
    if !norm.is_finite() {
        return false;
    }
    if norm > 0.0 {
        let mut largest = 0.0_f64;
        // The first entry counts among those that differ by rounding alone.
        vector.iter().for_each(|&value| {
            if value.abs() > largest.abs() * (1.0 + 1e-9) {
                largest = value;
            }
        });
        vector.iter_mut().for_each(|value| *value /= norm.copysign(largest));
    }
    true
}

/// A projection by random signs (Achlioptas 2003), the same for the same seed.
struct Projection {
    columns: usize,
    /// Row by row; a set bit is minus one.
    signs: Vec<u64>,
}

impl Projection {
    fn new(columns: usize, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let words = columns.div_ceil(64);
        Self { columns, signs: (0..PROJECTED_DIMENSION * words).map(|_| rng.next_u64()).collect() }
    }

    fn of(&self, vector: &[f64]) -> Vec<f64> {
        let words = self.columns.div_ceil(64);
        let row = |signs: &[u64]| {
            let signed = vector
                .iter()
                .enumerate()
                .map(|(column, value)| if signs[column / 64] >> (column % 64) & 1 == 1 { -value } else { *value });
            signed.sum::<f64>()
        };
        self.signs.chunks_exact(words).map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use rand::RngExt;

    use super::*;
    use crate::graph::Graph;

    fn random(rows: usize, columns: usize, seed: u64) -> Vec<f32> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        (0..rows * columns).map(|_| rng.random::<f32>()).collect()
    }

    /// A matrix with known right singular vectors: two directions, strengths 5 and 2, rows that add up to zero.
    fn planted(columns: usize) -> (Vec<f32>, Vec<f64>, Vec<f64>) {
        let one: Vec<f64> = (0..columns).map(|column| if column % 2 == 0 { 1.0 } else { 0.5 }).collect();
        let other: Vec<f64> = (0..columns).map(|column| if column % 2 == 0 { 0.5 } else { -1.0 }).collect();
        let rows = [(5.0, 2.0), (-5.0, 2.0), (5.0, -2.0), (-5.0, -2.0)];
        let matrix = rows.iter().flat_map(|(a, b)| one.iter().zip(&other).map(move |(x, y)| (a * x + b * y) as f32));
        (matrix.collect(), one.clone(), other.clone())
    }

    fn cosine(one: &[f64], other: &[f64]) -> f64 {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        dot(one, other) / (dot(one, one) * dot(other, other)).sqrt()
    }

    #[test]
    fn directions_are_right_singular_vectors_of_wide_and_of_tall_matrices() {
        for columns in [2, 12] {
            let (matrix, one, other) = planted(columns);
            let found = leading_directions(&matrix, columns, 3).unwrap();
            assert!((cosine(&found[0], &one).abs() - 1.0).abs() < 1e-6, "{found:?}");
            assert!((cosine(&found[1], &other).abs() - 1.0).abs() < 1e-6);
            assert!(found[2].iter().all(|value| *value == 0.0), "the rank is two");
        }
    }

    #[test]
    fn signs_are_canonical_so_that_equal_bases_have_equal_signatures() {
        let (matrix, ..) = planted(6);
        let negated: Vec<f32> = matrix.iter().map(|value| -value).collect();
        assert_eq!(leading_directions(&matrix, 6, 2), leading_directions(&negated, 6, 2));
    }

    #[test]
    fn a_client_with_fewer_nodes_than_directions_has_zeros_and_says_how_many() {
        let graph = Graph::from_edges(3, [(0, 1), (1, 2)]).unwrap().0;
        let bases = Bases::new(&graph, &random(3, 5, 1), 5, 2, 0.5);
        let signatures = Signatures::of(&bases, 4, 7).unwrap();
        // Three centred rows have rank two at most.
        assert!(signatures.missing() >= 2 * 2 * 2, "{}", signatures.missing());
        let again = Signatures::from_values(signatures.shape(), signatures.values().to_vec()).unwrap();
        assert_eq!(again, signatures);
    }

    #[test]
    fn features_of_zero_give_no_directions_and_no_panic() {
        let graph = Graph::from_edges(4, [(0, 1)]).unwrap().0;
        let bases = Bases::new(&graph, &[0.0; 8], 2, 2, 0.5);
        let signatures = Signatures::of(&bases, 2, 7).unwrap();
        assert_eq!(signatures.missing(), 2 * 2 * 2);
        // f32 values, the largest included, do not overflow when squared in f64.
        let large = Bases::new(&graph, &[f32::MAX, 1.0, 0.0, 0.0, 1.0, f32::MAX, 0.0, 3.0], 2, 2, 0.5);
        assert!(Signatures::of(&large, 2, 7).is_ok());
    }

    #[test]
    fn a_projection_keeps_angles_roughly_and_is_the_same_for_the_same_seed() {
        let columns = 3_000;
        let one: Vec<f64> = random(1, columns, 1).into_iter().map(f64::from).collect();
        let other: Vec<f64> = random(1, columns, 2).into_iter().map(|value| f64::from(value) - 0.3).collect();
        let projection = Projection::new(columns, 5);
        let (near, exact) = (cosine(&projection.of(&one), &projection.of(&other)), cosine(&one, &other));
        // The deviation is about 1 / sqrt(256).
        assert!((near - exact).abs() < 0.2, "{near} {exact}");
        assert_eq!(projection.of(&one), Projection::new(columns, 5).of(&one));
    }

    #[test]
    fn told_signatures_are_checked() {
        let shape = SignatureShape::new(1, 1, 3);
        assert_eq!(shape.len(), 6);
        assert!(matches!(
            Signatures::from_values(shape, vec![0.0; 5]),
            Err(SignatureError::Length { expected: 6, found: 5 })
        ));
        for bad in [f64::NAN, 2.0, f64::INFINITY, 1e300] {
            let refused = Signatures::from_values(shape, vec![1.0, 0.0, 0.0, bad, 0.0, 0.0]);
            assert_eq!(refused, Err(SignatureError::NotUnit { direction: 1 }), "{bad}");
        }
    }
}
