//! The spectrum of large periods: power iterations on the steps, with a bound on the residual.

use faer::Mat;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::Unresolved;
use crate::step::MixingStep;

/// Vectors iterated together: convergence depends on the gap to the modulus after these.
const BLOCK: usize = 8;

/// The most multiplications spent on one number.
const WORK_LIMIT: usize = 2_000_000_000;

/// Largest residual accepted, relative to the eigenvalue.
const TOLERANCE: f64 = 1e-8;

/// `|lambda_2|` by subspace iteration with Rayleigh-Ritz steps (Saad, "Numerical Methods for Large Eigenvalue
/// Problems", chapter 5). A column-stochastic product maps vectors of sum 0 to vectors of sum 0, and all its
/// eigenvectors but the Perron vector have sum 0: starting with such vectors excludes the eigenvalue 1 exactly.
///
/// The answer is a Ritz value whose residual is at most 1e-8 of its modulus.
pub(super) fn second_modulus(node_count: usize, steps: &[MixingStep]) -> Result<f64, Unresolved> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let draw = |_| (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64 - 0.5;
    let mut block: Vec<Vec<f64>> = Vec::with_capacity(BLOCK);
    let mut draws = (0..BLOCK * node_count).map(draw);
    for _ in 0..BLOCK {
        block.push(draws.by_ref().take(node_count).collect());
    }
    orthonormalize(&mut block);
    let mut scratch = vec![0.0; node_count];
    let mut residual = f64::INFINITY;
    for _ in 0..rounds(node_count, steps, BLOCK * (2 + BLOCK)) {
        let mut image = block.clone();
        for vector in &mut image {
            steps.iter().for_each(|step| step.mix(vector, &mut scratch));
        }
        let (modulus, distance) = ritz(&block, &image)?;
        if modulus < 1e-12 {
            return Ok(0.0);
        }
        residual = distance / modulus;
        if residual <= TOLERANCE {
            return Ok(modulus);
        }
        block = image;
        orthonormalize(&mut block);
    }
    let reason = format!("power iteration stopped at a relative residual of {residual:.1e}, {TOLERANCE:.0e} is wanted");
    Err(Unresolved { reason })
}

/// `n pi` by repeating the period from equal masses until nothing moves.
pub(super) fn perron(node_count: usize, steps: &[MixingStep]) -> Result<Vec<f64>, Unresolved> {
    let mut mass = vec![1.0; node_count];
    let mut scratch = vec![0.0; node_count];
    let mut moved = f64::INFINITY;
    for _ in 0..rounds(node_count, steps, 1) {
        let before = mass.clone();
        steps.iter().for_each(|step| step.mix(&mut mass, &mut scratch));
        moved = mass.iter().zip(&before).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        if moved <= 1e-13 {
            return Ok(mass);
        }
    }
    Err(Unresolved { reason: format!("masses still moved by {moved:.1e} per period when the iteration stopped") })
}

/// The number of periods within the work limit, and at least one, when each is applied to `vectors` vectors.
fn rounds(node_count: usize, steps: &[MixingStep], vectors: usize) -> usize {
    let work = steps.iter().map(MixingStep::work).sum::<usize>().max(node_count);
    (WORK_LIMIT / (work * vectors)).max(1)
}

/// The Ritz value of largest modulus, and the residual of its vector: the distance from being an eigenvector.
fn ritz(block: &[Vec<f64>], image: &[Vec<f64>]) -> Result<(f64, f64), Unresolved> {
    let projected = Mat::from_fn(BLOCK, BLOCK, |i, j| dot(&block[i], &image[j]));
    let eigen =
        projected.eigen().map_err(|error| Unresolved { reason: format!("the eigenvalue solver failed: {error:?}") })?;
    let values = eigen.S().column_vector();
    let modulus = |k: usize| values[k].re.hypot(values[k].im);
    let largest = (0..BLOCK).max_by(|&a, &b| modulus(a).total_cmp(&modulus(b))).unwrap_or(0);
    let theta = values[largest];
    let vectors = eigen.U();
    let coefficients: Vec<_> = (0..BLOCK).map(|k| vectors[(k, largest)]).collect();
    let norm: f64 = coefficients.iter().map(|c| c.re * c.re + c.im * c.im).sum::<f64>().sqrt();
    let mut squared = 0.0;
    for node in 0..block[0].len() {
        let mut re = 0.0;
        let mut im = 0.0;
        for (k, c) in coefficients.iter().enumerate() {
            // c (P q - theta q), with P q - theta q = (image - theta.re q) - i theta.im q.
            let (a, b) = (image[k][node] - theta.re * block[k][node], -theta.im * block[k][node]);
            re += c.re * a - c.im * b;
            im += c.re * b + c.im * a;
        }
        squared += re * re + im * im;
    }
    Ok((modulus(largest), squared.sqrt() / norm))
}

/// Orthonormalises by modified Gram-Schmidt after subtracting the mean; a vector that vanishes is left as zero.
fn orthonormalize(block: &mut [Vec<f64>]) {
    for at in 0..block.len() {
        let (done, rest) = block.split_at_mut(at);
        let vector = &mut rest[0];
        let mean = vector.iter().sum::<f64>() / vector.len() as f64;
        vector.iter_mut().for_each(|x| *x -= mean);
        for _ in 0..2 {
            for other in done.iter() {
                let along = dot(other, vector);
                vector.iter_mut().zip(other).for_each(|(x, y)| *x -= along * y);
            }
        }
        let norm = dot(vector, vector).sqrt();
        if norm > f64::MIN_POSITIVE {
            vector.iter_mut().for_each(|x| *x /= norm);
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}
