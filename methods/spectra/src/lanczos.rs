//! Block Lanczos with full reorthogonalisation and thick restarts, for the largest eigenvalues of a symmetric operator.
//!
//! Wu and Simon, "Thick-restart Lanczos method for large symmetric eigenvalue problems", SIAM J. Matrix Anal. Appl. 22
//! (2000), with a block of vectors in place of one (Golub and Underwood 1977), so that close and equal eigenvalues come
//! together. The images of the basis are kept, so that residuals are computed and not estimated. A Krylov space
//! contains no more copies of a multiple eigenvalue than its block is wide. So when all wanted pairs have converged, a
//! random block joins them and the space is filled again. They are accepted only if the same eigenvalues come out.

use std::collections::VecDeque;

use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{self, ComputeEigenvectors};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::error::SpectrumError;
use crate::operator::SymmetricOperator;

/// Options of an iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LanczosOptions {
    /// The largest residual `||A v - mu v||` allowed for a wanted pair.
    pub tolerance: f64,
    /// The number of vectors that are multiplied together; multiplicities up to it are found at once.
    pub block: usize,
    /// The number of vectors in the space before a restart; twice the wanted pairs plus 20 if `None`. Never less than
    /// the wanted pairs plus two blocks, unless there are fewer dimensions.
    pub subspace: Option<usize>,
    /// The most restarts.
    pub restarts: usize,
    /// Seed of the starting vectors.
    pub seed: u64,
}

impl Default for LanczosOptions {
    fn default() -> Self {
        Self { tolerance: 1e-8, block: 4, subspace: None, restarts: 300, seed: 0 }
    }
}

/// Eigenvalues and orthonormal eigenvectors.
#[derive(Clone, Debug, PartialEq)]
pub struct Eigenpairs {
    /// The number of entries of a vector.
    pub dimension: usize,
    /// The eigenvalues.
    pub values: Vec<f64>,
    /// The eigenvectors, `[values, dimension]`.
    pub vectors: Vec<f64>,
    /// The largest residual of a pair.
    pub residual: f64,
    /// The number of restarts taken.
    pub restarts: usize,
}

impl Eigenpairs {
    /// The eigenvector of a pair.
    ///
    /// # Panics
    /// If there is no such pair.
    pub fn vector(&self, pair: usize) -> &[f64] {
        &self.vectors[pair * self.dimension..][..self.dimension]
    }
}

/// A vector lies in the space already if orthogonalisation leaves a smaller part of it than this.
const LEAST_PART: f64 = 1e-10;
/// A vector that keeps at least this share of its length has lost no digits that matter.
const MOST_LOST: f64 = 0.5;
/// The share of the tolerance that pairs have to reach before they are checked.
const FIRST_SHARE: f64 = 0.1;
/// The largest difference, relative above 1, of two eigenvalues that count as the same.
const SAME_VALUE: f64 = 1e-10;
/// The number of random vectors that are tried for one that is not in the space yet.
const TRIES: usize = 3;

/// The `wanted` largest eigenvalues of an operator on the space that it does not leave out, descending, with their
/// eigenvectors.
///
/// # Errors
/// [`SpectrumError::TooManyWanted`], [`SpectrumError::NotConverged`], [`SpectrumError::NotFinite`].
///
/// # Complexity
/// A restart costs as many applications as the space has vectors, and O(n m^2) for m of them.
pub fn largest(
    operator: &dyn SymmetricOperator,
    wanted: usize,
    options: &LanczosOptions,
) -> Result<Eigenpairs, SpectrumError> {
    let free = operator.dimension().saturating_sub(operator.left_out());
    if wanted > free {
        return Err(SpectrumError::TooManyWanted { wanted, dimension: free });
    }
    let mut space = Space::new(operator, wanted, free, options);
    if wanted == 0 {
        return Ok(space.pairs(&[], 0.0, 0));
    }
    let mut believed: Option<Vec<f64>> = None;
    let mut residual = f64::INFINITY;
    for restarts in 0..=options.restarts {
        space.fill();
        let values = space.rotate()?;
        residual = space.residual(&values[..wanted]);
        // The first convergence is stricter: its residuals are left out of the space when random vectors come in.
        let strict = if believed.is_none() { FIRST_SHARE } else { 1.0 };
        let is_there = residual <= strict * options.tolerance;
        if is_there || (space.is_everything() && residual <= options.tolerance) {
            let is_same = |before: &Vec<f64>| {
                before.iter().zip(&values).all(|(before, now)| (before - now).abs() <= SAME_VALUE * now.abs().max(1.0))
            };
            if space.is_everything() || believed.as_ref().is_some_and(is_same) {
                return Ok(space.pairs(&values[..wanted], residual, restarts));
            }
            believed = Some(values[..wanted].to_vec());
        }
        space.shrink(is_there);
    }
    Err(SpectrumError::NotConverged { residual, tolerance: options.tolerance, restarts: options.restarts })
}

/// An orthonormal basis, and its images under the operator.
struct Space<'a> {
    operator: &'a dyn SymmetricOperator,
    wanted: usize,
    free: usize,
    block: usize,
    /// `[n, capacity]`, of which the first `filled` columns are in use.
    basis: Mat<f64>,
    images: Mat<f64>,
    filled: usize,
    /// The vectors by which the space grows next. The residuals of all Ritz vectors are combinations of their parts
    /// outside of the space.
    next: VecDeque<Vec<f64>>,
    dice: ChaCha8Rng,
}

impl<'a> Space<'a> {
    fn new(operator: &'a dyn SymmetricOperator, wanted: usize, free: usize, options: &LanczosOptions) -> Self {
        let n = operator.dimension();
        let block = options.block.clamp(1, free.max(1));
        let least = wanted.saturating_add(2 * block);
        let capacity = options.subspace.unwrap_or(2 * wanted + 20).max(least).min(free);
        Self {
            operator,
            wanted,
            free,
            block,
            basis: Mat::zeros(n, capacity),
            images: Mat::zeros(n, capacity),
            filled: 0,
            next: VecDeque::new(),
            dice: ChaCha8Rng::seed_from_u64(options.seed),
        }
    }

    fn capacity(&self) -> usize {
        self.basis.ncols()
    }

    /// Returns `true` if the space is all of the free dimensions.
    fn is_everything(&self) -> bool {
        self.filled == self.free
    }

    /// Grows the space block by block up to its capacity.
    fn fill(&mut self) {
        let n = self.operator.dimension();
        while self.filled < self.capacity() {
            let begin = self.filled;
            let block = self.block.min(self.capacity() - begin);
            let candidates = self.candidates(block);
            let mut candidates = candidates.into_iter();
            for _ in 0..block {
                if !self.append(candidates.next(), begin) {
                    // Within rounding, nothing is left outside of the space.
                    self.free = self.filled.max(self.wanted);
                    break;
                }
            }
            let added = self.filled - begin;
            if added == 0 {
                return;
            }
            let mut vectors = Vec::with_capacity(n * added);
            (begin..self.filled).for_each(|column| vectors.extend(self.basis.col(column).iter()));
            let mut images = vec![0.0; n * added];
            self.operator.apply(&vectors, &mut images);
            for (column, image) in (begin..self.filled).zip(images.chunks_exact(n)) {
                self.images.col_mut(column).iter_mut().zip(image).for_each(|(place, value)| *place = *value);
                self.next.push_back(image.to_vec());
            }
        }
    }

    /// The next vectors, at most a block, made orthogonal to the space, each with its length before that.
    fn candidates(&mut self, block: usize) -> Vec<(Vec<f64>, f64)> {
        let mut vectors: Vec<Vec<f64>> = self.next.drain(..block.min(self.next.len())).collect();
        let lengths: Vec<f64> = vectors.iter().map(|vector| norm(vector)).collect();
        // Twice is enough (Kahan; Parlett 1980, section 6.9).
        (0..2).for_each(|_| self.orthogonalize_all(&mut vectors));
        vectors.into_iter().zip(lengths).collect()
    }

    /// Appends the part of the candidate, or else of a random vector, that is not in the space yet; returns `false` if
    /// there is none. The candidate is orthogonal to the columns before `begin` already.
    fn append(&mut self, candidate: Option<(Vec<f64>, f64)>, begin: usize) -> bool {
        let randoms = (0..TRIES).map(|_| None);
        for candidate in candidate.map(Some).into_iter().chain(randoms) {
            let (mut vector, before, is_orthogonal) = match candidate {
                Some((mut vector, before)) => {
                    let first = norm(&vector);
                    self.orthogonalize(&mut vector, begin);
                    let is_long = norm(&vector) >= MOST_LOST * first;
                    (vector, before, is_long)
                }
                None => {
                    let vector = self.random();
                    let before = norm(&vector);
                    (vector, before, false)
                }
            };
            if !is_orthogonal {
                (0..2).for_each(|_| self.orthogonalize(&mut vector, 0));
            }
            let length = norm(&vector);
            if length > LEAST_PART * before.max(LEAST_PART) {
                vector.iter_mut().for_each(|value| *value /= length);
                if !is_orthogonal {
                    // A vector divided by a small number is less orthogonal than before.
                    self.orthogonalize(&mut vector, 0);
                }
                let length = norm(&vector);
                let column = self.basis.col_mut(self.filled);
                column.iter_mut().zip(&vector).for_each(|(place, value)| *place = value / length);
                self.filled += 1;
                return true;
            }
        }
        false
    }

    /// Subtracts from the vector its part in the columns from `begin` on; if these are all, its part in the left-out
    /// space too.
    fn orthogonalize(&self, vector: &mut [f64], begin: usize) {
        if begin == 0 {
            self.operator.project(vector);
        }
        let length = vector.len();
        self.subtract_shares(vector, length, begin);
    }

    /// Subtracts from all vectors their parts in the left-out space and in the basis, in one pass over the basis.
    fn orthogonalize_all(&self, vectors: &mut [Vec<f64>]) {
        let n = self.operator.dimension();
        vectors.iter_mut().for_each(|vector| self.operator.project(vector));
        let mut together = vectors.concat();
        self.subtract_shares(&mut together, n, 0);
        vectors.iter_mut().zip(together.chunks_exact(n)).for_each(|(vector, left)| vector.copy_from_slice(left));
    }

    /// `V - Q Q^T V` for the columns `Q` of the basis from `begin` on and the vectors `V` of `n` numbers each, one
    /// after the other.
    fn subtract_shares(&self, vectors: &mut [f64], n: usize, begin: usize) {
        if begin == self.filled {
            return;
        }
        let count = vectors.len() / n.max(1);
        let basis = self.basis.get(.., begin..self.filled);
        let mut shares = Mat::<f64>::zeros(self.filled - begin, count);
        let columns = MatRef::from_column_major_slice(&*vectors, n, count);
        matmul(&mut shares, Accum::Replace, basis.transpose(), columns, 1.0, Par::Seq);
        let columns = MatMut::from_column_major_slice_mut(vectors, n, count);
        matmul(columns, Accum::Add, basis, &shares, -1.0, Par::Seq);
    }

    fn random(&mut self) -> Vec<f64> {
        let unit = |bits: u64| (bits >> 11) as f64 / (1_u64 << 53) as f64 - 0.5;
        (0..self.operator.dimension()).map(|_| unit(self.dice.next_u64())).collect()
    }

    /// Turns the basis into Ritz vectors, by descending Ritz values (Rayleigh and Ritz). Returns the values.
    fn rotate(&mut self) -> Result<Vec<f64>, SpectrumError> {
        let m = self.filled;
        let basis = self.basis.get(.., ..m);
        let images = self.images.get(.., ..m);
        let mut projected = Mat::<f64>::zeros(m, m);
        matmul(&mut projected, Accum::Replace, basis.transpose(), images, 1.0, Par::Seq);
        let symmetric = Mat::from_fn(m, m, |i, j| 0.5 * (projected[(i, j)] + projected[(j, i)]));
        let (values, rotation) = eigen(&symmetric)?;
        for of in [&mut self.basis, &mut self.images] {
            let mut rotated = Mat::<f64>::zeros(of.nrows(), m);
            matmul(&mut rotated, Accum::Replace, of.get(.., ..m), &rotation, 1.0, Par::Seq);
            of.get_mut(.., ..m).copy_from(&rotated);
        }
        Ok(values)
    }

    /// The largest residual of the first Ritz pairs.
    fn residual(&self, values: &[f64]) -> f64 {
        let of = |(at, value): (usize, &f64)| {
            let pairs = self.images.col(at).iter().zip(self.basis.col(at).iter());
            pairs.map(|(image, entry)| (image - value * entry).powi(2)).sum::<f64>().sqrt()
        };
        values.iter().enumerate().map(of).fold(0.0, f64::max)
    }

    /// Keeps the best Ritz vectors and continues from the last images. With `anew`, keeps only the wanted ones and
    /// continues from random vectors.
    fn shrink(&mut self, anew: bool) {
        // Before the space shrinks: orthogonal to all of it.
        let mut next = if anew { VecDeque::new() } else { std::mem::take(&mut self.next) };
        self.orthogonalize_all(next.make_contiguous());
        self.next = next;
        let room = self.capacity().saturating_sub(2 * self.block);
        let more = if anew { 0 } else { (self.wanted / 4).max(8) };
        self.filled = (self.wanted + more).min(room).max(self.wanted);
    }

    fn pairs(&self, values: &[f64], residual: f64, restarts: usize) -> Eigenpairs {
        let n = self.operator.dimension();
        let mut vectors = Vec::with_capacity(n * values.len());
        (0..values.len()).for_each(|column| vectors.extend(self.basis.col(column).iter()));
        Eigenpairs { dimension: n, values: values.to_vec(), vectors, residual, restarts }
    }
}

/// The eigenvalues of a small symmetric matrix, descending, and its eigenvectors as columns.
fn eigen(matrix: &Mat<f64>) -> Result<(Vec<f64>, Mat<f64>), SpectrumError> {
    let m = matrix.nrows();
    if (0..m).any(|column| matrix.col(column).iter().any(|value| !value.is_finite())) {
        return Err(SpectrumError::NotFinite);
    }
    let mut values = Diag::<f64>::zeros(m);
    let mut vectors = Mat::<f64>::zeros(m, m);
    let scratch = evd::self_adjoint_evd_scratch::<f64>(m, ComputeEigenvectors::Yes, Par::Seq, faer::prelude::default());
    evd::self_adjoint_evd(
        matrix.as_ref(),
        values.as_mut(),
        Some(vectors.as_mut()),
        Par::Seq,
        MemStack::new(&mut MemBuffer::new(scratch)),
        faer::prelude::default(),
    )
    .map_err(|_| SpectrumError::NotFinite)?;
    let descending = (0..m).rev().map(|at| values[at]).collect();
    Ok((descending, Mat::from_fn(m, m, |row, column| vectors[(row, m - 1 - column)])))
}

fn norm(vector: &[f64]) -> f64 {
    vector.iter().map(|value| value * value).sum::<f64>().sqrt()
}
