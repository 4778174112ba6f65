//! Symmetric operators, given by their products with vectors, and matrices in compressed rows.

/// A symmetric linear map of R^n, or of a subspace of it.
pub trait SymmetricOperator {
    /// The dimension `n`.
    fn dimension(&self) -> usize;

    /// The image of a block of vectors: `block` and `image` hold the same number of columns of `n` values each, one
    /// after the other.
    fn apply(&self, block: &[f64], image: &mut [f64]);

    /// The number of dimensions left out: those of the space that [`project`](Self::project) removes.
    fn left_out(&self) -> usize {
        0
    }

    /// Subtracts from a vector its part in the left-out space, which must be invariant under the map.
    fn project(&self, vector: &mut [f64]) {
        let _ = vector;
    }
}

/// A symmetric matrix in compressed rows.
#[derive(Clone, Debug, PartialEq)]
pub struct SparseSymmetric {
    /// Start of each row, and the end of the last.
    offsets: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl SparseSymmetric {
    /// The matrix of these entries on and above the diagonal, row by row and ascending, each once.
    pub(crate) fn from_upper(dimension: usize, entries: &[(u32, u32, f64)]) -> Self {
        let mut offsets = vec![0; dimension + 1];
        for &(a, b, _) in entries {
            offsets[a as usize + 1] += 1;
            if a != b {
                offsets[b as usize + 1] += 1;
            }
        }
        for row in 0..dimension {
            offsets[row + 1] += offsets[row];
        }
        let mut ends = offsets.clone();
        let mut columns = vec![0; offsets[dimension]];
        let mut values = vec![0.0; offsets[dimension]];
        let mut put = |row: u32, column: u32, value: f64| {
            let end = &mut ends[row as usize];
            columns[*end] = column;
            values[*end] = value;
            *end += 1;
        };
        // The entries below the diagonal come first: then every row is ascending.
        entries.iter().filter(|(a, b, _)| a != b).for_each(|&(a, b, value)| put(b, a, value));
        entries.iter().for_each(|&(a, b, value)| put(a, b, value));
        Self { offsets, columns, values }
    }

    /// The entries of a row, ascending by column.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: usize) -> impl Iterator<Item = (u32, f64)> + '_ {
        let range = self.offsets[row]..self.offsets[row + 1];
        self.columns[range.clone()].iter().copied().zip(self.values[range].iter().copied())
    }

    /// The number of stored entries, those below the diagonal too.
    pub fn stored(&self) -> usize {
        self.values.len()
    }

    /// `S M S` for the diagonal matrix `S` of these numbers.
    pub(crate) fn scaled(&self, scale: &[f64]) -> Self {
        let mut scaled = self.clone();
        for row in 0..self.dimension() {
            for at in self.offsets[row]..self.offsets[row + 1] {
                scaled.values[at] *= scale[row] * scale[self.columns[at] as usize];
            }
        }
        scaled
    }
}

impl SymmetricOperator for SparseSymmetric {
    fn dimension(&self) -> usize {
        self.offsets.len() - 1
    }

    fn apply(&self, block: &[f64], image: &mut [f64]) {
        let n = self.dimension().max(1);
        for (vector, image) in block.chunks_exact(n).zip(image.chunks_exact_mut(n)) {
            for (row, image) in image.iter_mut().enumerate() {
                *image = self.row(row).map(|(column, value)| value * vector[column as usize]).sum();
            }
        }
    }
}
