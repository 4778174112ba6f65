//! The eigenvalues of a period that say how fast, and to what, it mixes.
//!
//! A period's product `P` is column-stochastic with a single eigenvalue of modulus 1 ([`crate::recurrence`]). The next
//! modulus, `|lambda_2|`, is the factor by which disagreement shrinks each period in the long run. The Perron vector
//! `pi` (`P pi = pi`, entries sum to 1) is where mass settles: node `i` ends with push-sum weight `n pi_i`.

use faer::{
    Mat, Par,
    diag::Diag,
    dyn_stack::{MemBuffer, MemStack},
    linalg::evd::{self, ComputeEigenvectors},
};

use crate::plan::Step;

mod dense;
mod iterative;

/// Up to this many nodes the product is formed and solved directly, O(n^3).
pub const MAX_DENSE_NODES: usize = 1024;

/// Why a number of the spectrum is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Unresolved {
    /// The reason, for the reader of a forecast.
    pub reason: String,
}

/// `|lambda_2|`: the second largest modulus of the eigenvalues of the product of the steps, applied first to last.
///
/// Up to [`MAX_DENSE_NODES`] nodes all eigenvalues of the product are computed; above, a power iteration on the steps
/// themselves stops when its residual is at most 1e-8 of the answer.
///
/// # Errors
///
/// The solver or the iteration did not converge.
pub fn second_modulus(node_count: usize, steps: &[Step]) -> Result<f64, Unresolved> {
    if node_count <= MAX_DENSE_NODES {
        dense::second_modulus(&dense::product(node_count, steps))
    } else {
        iterative::second_modulus(node_count, steps)
    }
}

/// `n pi`: the push-sum weight of each node at the start of a period in the long run. They average 1.
///
/// `recurrent` are the nodes that hold mass in the long run, from [`crate::recurrence::recurrent_nodes`]. By
/// elimination up to [`MAX_DENSE_NODES`] nodes, by power iteration above.
///
/// # Errors
///
/// The iteration did not converge.
pub fn perron_weights(
    node_count: usize,
    steps: &[Step],
    recurrent: &[usize],
) -> Result<Vec<f64>, Unresolved> {
    if node_count <= MAX_DENSE_NODES {
        Ok(dense::perron(&dense::product(node_count, steps), recurrent))
    } else {
        iterative::perron(node_count, steps)
    }
}

/// The moduli of all eigenvalues, largest first. One thread: the same bits however many cores there are.
fn moduli(matrix: &Mat<f64>) -> Result<Vec<f64>, Unresolved> {
    let n = matrix.nrows();
    let (mut re, mut im) = (Diag::zeros(n), Diag::zeros(n));
    let no = ComputeEigenvectors::No;
    let mut memory = MemBuffer::new(evd::evd_scratch::<f64>(
        n,
        no,
        no,
        Par::Seq,
        Default::default(),
    ));
    let stack = MemStack::new(&mut memory);
    let solved = evd::evd_real(
        matrix.as_ref(),
        re.as_mut(),
        im.as_mut(),
        None,
        None,
        Par::Seq,
        stack,
        Default::default(),
    );
    solved.map_err(|error| Unresolved {
        reason: format!("the eigenvalue solver failed: {error:?}"),
    })?;
    let parts = re.column_vector().iter().zip(im.column_vector().iter());
    Ok(descending(parts.map(|(re, im)| re.hypot(*im)).collect()))
}

/// The same for a symmetric matrix, some seven times faster.
fn symmetric_moduli(matrix: &Mat<f64>) -> Result<Vec<f64>, Unresolved> {
    let n = matrix.nrows();
    let mut values = Diag::zeros(n);
    let no = ComputeEigenvectors::No;
    let mut memory = MemBuffer::new(evd::self_adjoint_evd_scratch::<f64>(
        n,
        no,
        Par::Seq,
        Default::default(),
    ));
    let stack = MemStack::new(&mut memory);
    let solved = evd::self_adjoint_evd(
        matrix.as_ref(),
        values.as_mut(),
        None,
        Par::Seq,
        stack,
        Default::default(),
    );
    solved.map_err(|error| Unresolved {
        reason: format!("the eigenvalue solver failed: {error:?}"),
    })?;
    Ok(descending(
        values
            .column_vector()
            .iter()
            .map(|value| value.abs())
            .collect(),
    ))
}

fn descending(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_unstable_by(|a, b| b.total_cmp(a));
    values
}
