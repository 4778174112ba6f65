//! Causal attention of all heads (Vaswani et al. 2017): each token attends to the earlier ones of its window and
//! itself.
//!
//! ```text
//! shares = softmax over earlier tokens of (q k^T / sqrt(head width))        output = shares v
//! ```

use std::ops::Range;

use burn::Tensor;
use burn::backend::flex::FlexTensor;
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::exponential::exp;
use super::rows::{LANES, maximum, sum};
use super::tape::{Operation, apply_to};
use super::tensors::{floats, tensor};

/// The tokens whose scores are computed at once. They have none for tokens after the last of them.
const TOKENS: usize = 64;

/// The attention's output, `[batch * length, width]`, for queries, keys and values side by side,
/// `[batch * length, 3 * width]`. Each of the three is `heads` parts of a row. O(batch x length^2 x width) operations.
/// `None` for tensors that are not on burn's flex device.
pub(crate) fn causal_attention(projected: Tensor<2>, batch: usize, heads: usize) -> Option<Tensor<2>> {
    let [rows, columns] = projected.dims();
    let attention = Attention { length: rows / batch, width: columns / 3, heads };
    // `apply_to` keeps the number of sides, not their lengths.
    apply_to(attention, projected)
}

#[derive(Clone, Debug)]
struct Attention {
    length: usize,
    width: usize,
    heads: usize,
}

/// The tensors that the backward pass needs.
#[derive(Clone, Debug)]
struct Seen {
    projected: FlexTensor,
    /// `[batch, heads, length, length]`.
    shares: FlexTensor,
}

impl Operation<1> for Attention {
    type Seen = Seen;

    fn forward(&self, [projected]: [FlexTensor; 1]) -> (FlexTensor, Seen) {
        let Self { length, width, heads } = *self;
        let windows = floats(&projected);
        let batch = windows.len() / (3 * length * width);
        let mut values = vec![0.0; batch * length * width];
        let mut shares = vec![0.0; batch * heads * length * length];
        windows
            .par_chunks_exact(3 * length * width)
            .zip(values.par_chunks_exact_mut(length * width))
            .zip(shares.par_chunks_exact_mut(heads * length * length))
            .for_each(|((window, values), shares)| {
                for (head, shares) in shares.chunks_exact_mut(length * length).enumerate() {
                    self.forward_head(head, window, values, shares);
                }
            });
        let shares = tensor(shares, [batch, heads, length, length]);
        (tensor(values, [batch * length, width]), Seen { projected, shares })
    }

    fn backward(&self, seen: &Seen, gradient: &FlexTensor, _: [bool; 1]) -> [Option<FlexTensor>; 1] {
        let Self { length, width, heads } = *self;
        let windows = floats(&seen.projected);
        let shares = floats(&seen.shares);
        let mut of_windows = vec![0.0; windows.len()];
        windows
            .par_chunks_exact(3 * length * width)
            .zip(shares.par_chunks_exact(heads * length * length))
            .zip(floats(gradient).par_chunks_exact(length * width))
            .zip(of_windows.par_chunks_exact_mut(3 * length * width))
            .for_each_init(
                || vec![0.0; TOKENS.min(length) * length],
                |of_scores, (((window, shares), gradient), of_window)| {
                    for (head, shares) in shares.chunks_exact(length * length).enumerate() {
                        self.backward_head(head, (window, shares, gradient), of_scores, of_window);
                    }
                },
            );
        [Some(tensor(of_windows, seen.projected.layout().shape().clone()))]
    }
}

impl Attention {
    fn forward_head(&self, head: usize, window: &[f32], values: &mut [f32], shares: &mut [f32]) {
        let length = self.length;
        let [queries, keys, of_values] = [0, 1, 2].map(|part| self.part(window, part, head));
        for tokens in self.groups() {
            let end = tokens.end;
            let shares = &mut shares[tokens.start * length..end * length];
            let scores = rows_mut(shares, tokens.len(), end, length);
            let queries = queries.subrows(tokens.start, tokens.len());
            matmul(scores, Accum::Replace, queries, keys.subrows(0, end).transpose(), self.scale(), Par::Seq);
            Arch::new().dispatch(ScoreShares { scores: shares, length, tokens: tokens.clone() });
            let shares = MatRef::from_row_major_slice_with_stride(shares, tokens.len(), end, length);
            let values = self.head_mut(values, head).subrows_mut(tokens.start, tokens.len());
            matmul(values, Accum::Replace, shares, of_values.subrows(0, end), 1.0, Par::Seq);
        }
    }

    /// Computes the gradients of a head; those of its queries, keys and values in `of_window` are zero before.
    fn backward_head(
        &self,
        head: usize,
        (window, shares, gradient): (&[f32], &[f32], &[f32]),
        of_scores: &mut [f32],
        of_window: &mut [f32],
    ) {
        let length = self.length;
        let [queries, keys, values] = [0, 1, 2].map(|part| self.part(window, part, head));
        for tokens in self.groups() {
            let first = tokens.start;
            let count = tokens.len();
            let end = tokens.end;
            let gradient = self.head(gradient, head).subrows(first, count);
            let shares = &shares[first * length..end * length];
            let by_token = MatRef::from_row_major_slice_with_stride(shares, count, end, length);
            let of_values = self.part_mut(of_window, 2, head).subrows_mut(0, end);
            matmul(of_values, Accum::Add, by_token.transpose(), gradient, 1.0, Par::Seq);

            let of_shares = MatMut::from_row_major_slice_mut(&mut of_scores[..count * end], count, end);
            matmul(of_shares, Accum::Replace, gradient, values.subrows(0, end).transpose(), 1.0, Par::Seq);
            Arch::new().dispatch(ScoreGradients { shares, length, scale: self.scale(), gradients: of_scores, end });
            let of_scores = MatRef::from_row_major_slice(&of_scores[..count * end], count, end);
            let of_queries = self.part_mut(of_window, 0, head).subrows_mut(first, count);
            matmul(of_queries, Accum::Replace, of_scores, keys.subrows(0, end), 1.0, Par::Seq);
            let of_keys = self.part_mut(of_window, 1, head).subrows_mut(0, end);
            matmul(of_keys, Accum::Add, of_scores.transpose(), queries.subrows(first, count), 1.0, Par::Seq);
        }
    }

    /// The tokens of a window in groups.
    fn groups(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let length = self.length;
        (0..length).step_by(TOKENS).map(move |first| first..(first + TOKENS).min(length))
    }

    /// `1 / sqrt(head width)`.
    fn scale(&self) -> f32 {
        1.0 / ((self.width / self.heads) as f32).sqrt()
    }

    /// The queries (0), keys (1) or values (2) of a head in a window, `[length, head width]`.
    fn part<'a>(&self, window: &'a [f32], part: usize, head: usize) -> MatRef<'a, f32> {
        let columns = self.width / self.heads;
        let from = part * self.width + head * columns;
        MatRef::from_row_major_slice_with_stride(&window[from..], self.length, columns, 3 * self.width)
    }

    fn part_mut<'a>(&self, window: &'a mut [f32], part: usize, head: usize) -> MatMut<'a, f32> {
        let columns = self.width / self.heads;
        let from = part * self.width + head * columns;
        rows_mut(&mut window[from..], self.length, columns, 3 * self.width)
    }

    /// The columns of a head in rows of all heads, `[length, head width]`.
    fn head<'a>(&self, rows: &'a [f32], head: usize) -> MatRef<'a, f32> {
        let columns = self.width / self.heads;
        MatRef::from_row_major_slice_with_stride(&rows[head * columns..], self.length, columns, self.width)
    }

    fn head_mut<'a>(&self, rows: &'a mut [f32], head: usize) -> MatMut<'a, f32> {
        let columns = self.width / self.heads;
        rows_mut(&mut rows[head * columns..], self.length, columns, self.width)
    }
}

/// Rows that begin `stride` numbers apart. Not `from_row_major_slice_with_stride_mut`: faer 0.24.4 takes rows for columns there.
fn rows_mut(numbers: &mut [f32], rows: usize, columns: usize, stride: usize) -> MatMut<'_, f32> {
    MatMut::from_column_major_slice_with_stride_mut(numbers, columns, rows, stride).transpose_mut()
}

/// Shares in place of the scores of some tokens, in rows of `length`.
struct ScoreShares<'a> {
    scores: &'a mut [f32],
    length: usize,
    tokens: Range<usize>,
}

impl WithSimd for ScoreShares<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let end = self.tokens.end;
        for (token, row) in self.tokens.zip(self.scores.chunks_exact_mut(self.length)) {
            softmax(&mut row[..end], token + 1);
        }
    }
}

/// The shares of the first `seen` scores; the others become zero.
#[inline(always)]
fn softmax(scores: &mut [f32], seen: usize) {
    let most = maximum(&scores[..seen]);
    // Whole vectors: some of the exponentials are of scores that do not count.
    let computed = seen.next_multiple_of(LANES).min(scores.len());
    let (computed, never) = scores.split_at_mut(computed);
    for score in computed.iter_mut() {
        *score = exp(*score - most);
    }
    computed[seen..].fill(0.0);
    never.fill(0.0);
    let factor = 1.0 / sum([&*computed], |[share]| share);
    for share in computed {
        *share *= factor;
    }
}

/// Gradients of the products of queries and keys in place of those of shares, in rows of `end`. Rows of shares have
/// `length` numbers.
struct ScoreGradients<'a> {
    shares: &'a [f32],
    length: usize,
    scale: f32,
    gradients: &'a mut [f32],
    end: usize,
}

impl WithSimd for ScoreGradients<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let rows = self.shares.chunks_exact(self.length).zip(self.gradients.chunks_exact_mut(self.end));
        for (shares, gradients) in rows {
            let shares = &shares[..self.end];
            let mean = sum([shares, &*gradients], |[share, gradient]| share * gradient);
            for (share, gradient) in shares.iter().zip(gradients) {
                *gradient = share * (*gradient - mean) * self.scale;
            }
        }
    }
}
