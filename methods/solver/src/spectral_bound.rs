//! Upper bounds of the largest eigenvalue of `A' A`, as a Lipschitz constant requires. A power iteration gives lower
//! bounds, and poor ones where it starts nearly orthogonal to the eigenvector.
//!
//! ```text
//!   lambda_max(G)  <=  || G^(2^k) ||_F ^ (1 / 2^k)  <=  m^(1 / 2^(k+1)) lambda_max(G)       G = A' A or A A', m x m
//! ```
//!
//! Additions, multiplications, divisions and square roots only: every machine gets the same bits.

/// The number of squarings after which the bound is at most 5 % above the eigenvalue for `m` up to a million.
const MOST_SQUARINGS: u32 = 8;
/// The ratio of bound to eigenvalue that is accepted, as far as [`WORK_LIMIT`] allows.
const ENOUGH: f64 = 1.05;
/// The most multiplications: where more would be needed, a looser bound is taken.
const WORK_LIMIT: usize = 1_000_000_000;
/// The allowance for rounding.
const ROUNDING: f64 = 1.0 + 1e-10;

/// An upper bound of the largest eigenvalue of `A' A`, for `A` of so many columns, row by row. At most 5 % above it unless `A`
/// has many hundreds of rows and columns.
///
/// O(m^2 max(rows, columns) + m^3 log log m), where `m` is the smaller number of rows and columns.
pub(crate) fn largest_eigenvalue(columns: usize, matrix: &[f64]) -> f64 {
    let largest = matrix.iter().fold(0.0, |largest: f64, entry| largest.max(entry.abs()));
    if largest == 0.0 || !largest.is_finite() {
        return if largest == 0.0 { 0.0 } else { f64::INFINITY };
    }
    // Squares of entries up to 1 do not overflow, and not all underflow.
    let scaled: Vec<f64> = matrix.iter().map(|entry| entry / largest).collect();
    let rows = matrix.len() / columns;
    let side = rows.min(columns);
    let bound = match side.saturating_mul(side).saturating_mul(rows.max(columns)) {
        work if work <= WORK_LIMIT => by_squaring(gram(columns, &scaled), side, WORK_LIMIT - work),
        _ => by_norms(columns, &scaled),
    };
    bound * ROUNDING * largest * largest
}

/// `A' A`, or `A A'` where that is smaller, in row-major order.
fn gram(columns: usize, matrix: &[f64]) -> Vec<f64> {
    let rows = matrix.len() / columns;
    let vectors: Vec<Vec<f64>> = if rows <= columns {
        matrix.chunks_exact(columns).map(<[f64]>::to_vec).collect()
    } else {
        (0..columns).map(|at| matrix.iter().skip(at).step_by(columns).copied().collect()).collect()
    };
    vectors.iter().flat_map(|a| vectors.iter().map(move |b| dot(a, b))).collect()
}

/// The Frobenius norm of repeated squares; squares of symmetric matrices are products of their rows.
fn by_squaring(mut matrix: Vec<f64>, side: usize, work: usize) -> f64 {
    let affordable = work / side.saturating_pow(3).max(1);
    let mut factor = 1.0_f64;
    let mut root = 0;
    let mut norm = frobenius(&matrix);
    let mut excess = (side as f64).sqrt();
    while excess > ENOUGH && root < MOST_SQUARINGS && (root as usize) < affordable && norm > 0.0 {
        matrix.iter_mut().for_each(|entry| *entry /= norm);
        factor *= root_of(norm, root);
        let rows: Vec<&[f64]> = matrix.chunks_exact(side).collect();
        matrix = rows.iter().flat_map(|a| rows.iter().map(|b| dot(a, b)).collect::<Vec<f64>>()).collect();
        root += 1;
        norm = frobenius(&matrix);
        excess = excess.sqrt();
    }
    factor * root_of(norm, root)
}

/// The `2^times`-th root.
fn root_of(value: f64, times: u32) -> f64 {
    (0..times).fold(value, |value, _| value.sqrt())
}

/// The smaller of the trace, and of the product of the largest sums of magnitudes of a row and a column.
fn by_norms(columns: usize, matrix: &[f64]) -> f64 {
    let mut of_columns = vec![0.0; columns];
    let mut of_rows: f64 = 0.0;
    for row in matrix.chunks_exact(columns) {
        of_rows = of_rows.max(row.iter().map(|entry| entry.abs()).sum());
        of_columns.iter_mut().zip(row).for_each(|(sum, entry)| *sum += entry.abs());
    }
    dot(matrix, matrix).min(of_rows * of_columns.into_iter().fold(0.0, f64::max))
}

fn frobenius(matrix: &[f64]) -> f64 {
    dot(matrix, matrix).sqrt()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_of_a_diagonal_matrix_is_its_largest_square_and_little_more() {
        for (diagonal, expected) in
            [(vec![3.0], 9.0), (vec![1.0; 10], 1.0), (vec![2e-60, 1e-60], 4e-120), (vec![1e90, 2e90], 4e180)]
        {
            let n = diagonal.len();
            let matrix: Vec<f64> = (0..n * n).map(|at| if at % n == at / n { diagonal[at / n] } else { 0.0 }).collect();
            let bound = largest_eigenvalue(n, &matrix);
            assert!(bound >= expected && bound <= 1.051 * expected, "{diagonal:?}: {bound:e}");
        }
        assert_eq!(largest_eigenvalue(3, &[0.0; 6]), 0.0);
    }

    #[test]
    fn matrices_with_more_rows_or_more_columns_have_the_same_bound_up_to_rounding() {
        let tall: Vec<f64> = (0..40).map(|at| f64::from(at * 7 % 11) - 5.0).collect();
        let wide: Vec<f64> = (0..5)
            .flat_map(|column| (0..8).map(move |row| (row, column)))
            .map(|(row, column)| tall[row * 5 + column])
            .collect();
        let (a, b) = (largest_eigenvalue(5, &tall), largest_eigenvalue(8, &wide));
        assert!((a - b).abs() <= 1e-9 * a, "{a} {b}");
        assert!(by_norms(5, &tall) >= a / 1.051);
    }
}
