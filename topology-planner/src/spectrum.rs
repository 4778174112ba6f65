//! Spectrum of a period: the second modulus is the speed of mixing, the Perron vector its result.
//!
//! A period's product `P` is column-stochastic with a single eigenvalue of modulus 1 ([`crate::recurrence`]). The next
//! modulus, `|lambda_2|`, is the factor by which disagreement shrinks each period in the long run. The Perron vector
//! `pi` (`P pi = pi`, entries sum to 1) gives the mass in the long run: node `i` ends with push-sum weight `n pi_i`.

use faer::{
    Mat, Par,
    diag::Diag,
    dyn_stack::{MemBuffer, MemStack},
    linalg::evd::{self, ComputeEigenvectors},
};

use crate::step::MixingStep;

mod dense;
mod iterative;
mod momentum;

pub use momentum::largest_momentum;

/// Up to this many nodes the product is formed and solved directly, O(n^3).
pub const MAX_DENSE_NODES: usize = 1024;

/// The reason why a number of the spectrum is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Unresolved {
    /// The reason, for the reader of a forecast.
    pub reason: String,
}

/// `|lambda_2|`: the second largest modulus of the eigenvalues of the product of the steps, applied first to last.
///
/// Up to [`MAX_DENSE_NODES`] nodes all eigenvalues of the product are computed. Those of a period of several steps have
/// their relative accuracy however small they are. Above, a power iteration on the steps themselves stops when its
/// residual is at most 1e-8 of the answer.
///
/// # Errors
///
/// The solver or the iteration did not converge.
pub fn second_modulus(node_count: usize, steps: &[MixingStep]) -> Result<f64, Unresolved> {
    if node_count > MAX_DENSE_NODES {
        return iterative::second_modulus(node_count, steps);
    }
    match steps {
        [_] => dense::second_modulus(&dense::product(node_count, steps)),
        _ => dense::second_modulus_of_period(node_count, steps),
    }
}

/// `n pi`: the push-sum weight of each node at the start of a period in the long run. They average 1.
///
/// `recurrent` are the nodes that hold mass in the long run, from [`crate::recurrence::recurrent_nodes`]. By
/// elimination up to [`MAX_DENSE_NODES`] nodes, by power iteration above, which does not need them.
///
/// # Errors
///
/// The iteration did not converge.
pub fn perron_weights(node_count: usize, steps: &[MixingStep], recurrent: &[usize]) -> Result<Vec<f64>, Unresolved> {
    if node_count <= MAX_DENSE_NODES {
        Ok(dense::perron(&dense::product(node_count, steps), recurrent))
    } else {
        iterative::perron(node_count, steps)
    }
}

/// The moduli of all eigenvalues, largest first.
fn moduli(matrix: &Mat<f64>) -> Result<Vec<f64>, Unresolved> {
    Ok(descending(eigenvalues(matrix)?.into_iter().map(|(re, im)| re.hypot(im)).collect()))
}

/// The real and imaginary parts of all eigenvalues. Uses one thread: the same bits however many cores there are.
fn eigenvalues(matrix: &Mat<f64>) -> Result<Vec<(f64, f64)>, Unresolved> {
    let n = matrix.nrows();
    let mut re = Diag::zeros(n);
    let mut im = Diag::zeros(n);
    let no = ComputeEigenvectors::No;
    let mut memory = MemBuffer::new(evd::evd_scratch::<f64>(n, no, no, Par::Seq, Default::default()));
    let stack = MemStack::new(&mut memory);
    let solved =
        evd::evd_real(matrix.as_ref(), re.as_mut(), im.as_mut(), None, None, Par::Seq, stack, Default::default());
    solved.map_err(|error| Unresolved { reason: format!("the eigenvalue solver failed: {error:?}") })?;
    let parts = re.column_vector().iter().zip(im.column_vector().iter());
    Ok(parts.map(|(re, im)| (*re, *im)).collect())
}

/// The eigenvalues of a symmetric matrix, ascending, and the eigenvectors as columns. O(n^3).
pub(crate) fn symmetric_eigen(matrix: &Mat<f64>) -> Result<(Vec<f64>, Mat<f64>), Unresolved> {
    let n = matrix.nrows();
    let mut values = Diag::zeros(n);
    let mut vectors = Mat::zeros(n, n);
    let yes = ComputeEigenvectors::Yes;
    let mut memory = MemBuffer::new(evd::self_adjoint_evd_scratch::<f64>(n, yes, Par::Seq, Default::default()));
    let stack = MemStack::new(&mut memory);
    let solved = evd::self_adjoint_evd(
        matrix.as_ref(),
        values.as_mut(),
        Some(vectors.as_mut()),
        Par::Seq,
        stack,
        Default::default(),
    );
    solved.map_err(|error| Unresolved { reason: format!("the eigenvalue solver failed: {error:?}") })?;
    Ok((values.column_vector().iter().copied().collect(), vectors))
}

/// The moduli of all eigenvalues of a symmetric matrix, largest first, some seven times faster than for any matrix.
pub(crate) fn symmetric_moduli(matrix: &Mat<f64>) -> Result<Vec<f64>, Unresolved> {
    let n = matrix.nrows();
    let mut values = Diag::zeros(n);
    let no = ComputeEigenvectors::No;
    let mut memory = MemBuffer::new(evd::self_adjoint_evd_scratch::<f64>(n, no, Par::Seq, Default::default()));
    let stack = MemStack::new(&mut memory);
    let solved = evd::self_adjoint_evd(matrix.as_ref(), values.as_mut(), None, Par::Seq, stack, Default::default());
    solved.map_err(|error| Unresolved { reason: format!("the eigenvalue solver failed: {error:?}") })?;
    Ok(descending(values.column_vector().iter().map(|value| value.abs()).collect()))
}

fn descending(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_unstable_by(|a, b| b.total_cmp(a));
    values
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::{DesignOptions, ExtraEdges, Method, Topology, design, recurrence::recurrent_nodes};

    fn steps_of(expression: &str, method: Method) -> (usize, Vec<MixingStep>) {
        let topology = Topology::generate(expression).unwrap();
        let plan = design(&topology, method, &DesignOptions::default()).unwrap();
        (plan.node_count(), plan.steps().to_vec())
    }

    /// The directed ring, whose second eigenvalues are a complex pair.
    fn directed_ring(n: usize) -> (usize, Vec<MixingStep>) {
        let ring = Topology::generate(&format!("ring:n={n}")).unwrap();
        let options = DesignOptions { extra_edges: ExtraEdges::Exactly(1), ..DesignOptions::default() };
        let plan = design(&ring, Method::NguyenHe, &options).unwrap();
        assert_eq!(plan.forecast().max_out_degree, 1);
        (n, plan.steps().to_vec())
    }

    fn assert_close(a: f64, b: f64, what: &str) {
        assert!((a - b).abs() < 1e-7, "{what}: {a} and {b}");
    }

    #[test]
    fn iteration_and_elimination_agree() {
        let general = steps_of("rg:n=40,r=0.5,seed=1", Method::NguyenHe);
        let symmetric = steps_of("rg:n=40,r=0.5,seed=1", Method::DPsgd);
        let windmill = steps_of("windmill:cliques=3,size=9", Method::SgpUniform);
        for (what, (n, steps)) in [
            ("general", general),
            ("symmetric", symmetric),
            ("directed ring", directed_ring(24)),
            ("windmill", windmill),
        ] {
            let dense = second_modulus(n, &steps).unwrap();
            assert_close(iterative::second_modulus(n, &steps).unwrap(), dense, what);
            let masses = perron_weights(n, &steps, &recurrent_nodes(n, &steps).unwrap()).unwrap();
            for (a, b) in masses.iter().zip(iterative::perron(n, &steps).unwrap()) {
                assert_close(*a, b, what);
            }
        }
    }

    #[test]
    fn perron_weights_are_a_fixed_point_and_sum_to_the_number_of_nodes() {
        let (n, steps) = steps_of("rg:n=33,r=0.4,seed=2", Method::NguyenHe);
        let masses = perron_weights(n, &steps, &recurrent_nodes(n, &steps).unwrap()).unwrap();
        assert!((masses.iter().sum::<f64>() - n as f64).abs() < 1e-10);
        let (mut mixed, mut scratch) = (masses.clone(), vec![0.0; n]);
        steps.iter().for_each(|step| step.mix(&mut mixed, &mut scratch));
        for (before, after) in masses.iter().zip(mixed) {
            assert!((before - after).abs() <= 1e-12 * before);
        }
    }

    #[test]
    fn a_long_period_has_the_modulus_of_its_step_to_its_power() {
        let (n, steps) = steps_of("rg:n=20,r=0.5,seed=3", Method::NguyenHe);
        let one = second_modulus(n, &steps).unwrap();
        for times in [2_usize, 8, 64, 300] {
            let period: Vec<MixingStep> = (0..times).map(|_| steps[0].clone()).collect();
            let modulus = second_modulus(n, &period).unwrap();
            let ratio = modulus.ln() / (times as f64 * one.ln());
            assert!((ratio - 1.0).abs() < 1e-8, "{times}: {modulus:e} of {one}");
        }
    }

    #[test]
    fn a_period_that_ends_all_differences_has_modulus_zero_exactly() {
        for (expression, method) in
            [("exponential:n=16", Method::OnePeerExponential), ("rg:n=20,r=0.5,seed=3", Method::ExactAverage)]
        {
            let (n, steps) = steps_of(expression, method);
            assert_eq!(second_modulus(n, &steps), Ok(0.0), "{expression}");
        }
    }

    #[test]
    fn a_directed_ring_has_the_modulus_of_its_cosine() {
        let (n, steps) = directed_ring(12);
        assert_close(second_modulus(n, &steps).unwrap(), (std::f64::consts::PI / 12.0).cos(), "ring");
    }

    #[test]
    fn a_large_plan_is_solved_by_iteration_to_the_known_value() {
        // A leaf keeps half and gives half to the hub: what differs between leaves halves each time.
        let (n, steps) = steps_of("star:n=1500", Method::SgpUniform);
        assert!(n > MAX_DENSE_NODES);
        assert_close(second_modulus(n, &steps).unwrap(), 0.5, "star");
    }

    #[test]
    fn an_iteration_that_does_not_converge_says_so() {
        let (n, steps) = steps_of("ring:n=1200", Method::SgpUniform);
        let error = second_modulus(n, &steps).unwrap_err();
        assert!(error.reason.starts_with("power iteration stopped at a relative residual of"), "{error}");
    }
}
