//! Causal attention of all heads (Vaswani et al. 2017): each token attends to the earlier ones of its window and
//! itself.
//!
//! ```text
//! shares = softmax over earlier tokens of (q k^T / sqrt(head width))        output = shares v
//! ```

use burn::Tensor;
use burn::backend::flex::FlexTensor;
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use pulp::Arch;
use rayon::prelude::*;

use super::exponential::exp;
use super::layer_norm::sum;
use super::tape::{Operation, apply_to};
use super::tensors::{floats, tensor};

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
                || vec![0.0; length * length],
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
        let part = |part| self.part(window, part, head);
        let scores = MatMut::from_row_major_slice_mut(shares, length, length);
        matmul(scores, Accum::Replace, part(0), part(1).transpose(), self.scale(), Par::Seq);
        Arch::new().dispatch(|| {
            for (last, row) in shares.chunks_exact_mut(length).enumerate() {
                let (seen, later) = row.split_at_mut(last + 1);
                softmax(seen);
                later.fill(0.0);
            }
        });
        let shares = MatRef::from_row_major_slice(shares, length, length);
        matmul(self.head_mut(values, head), Accum::Replace, shares, part(2), 1.0, Par::Seq);
    }

    fn backward_head(
        &self,
        head: usize,
        (window, shares, gradient): (&[f32], &[f32], &[f32]),
        of_scores: &mut [f32],
        of_window: &mut [f32],
    ) {
        let length = self.length;
        let part = |part| self.part(window, part, head);
        let gradient = self.head(gradient, head);
        let by_token = MatRef::from_row_major_slice(shares, length, length);
        matmul(self.part_mut(of_window, 2, head), Accum::Replace, by_token.transpose(), gradient, 1.0, Par::Seq);

        let of_shares = MatMut::from_row_major_slice_mut(of_scores, length, length);
        matmul(of_shares, Accum::Replace, gradient, part(2).transpose(), 1.0, Par::Seq);
        let scale = self.scale();
        Arch::new().dispatch(|| {
            for (shares, of_scores) in shares.chunks_exact(length).zip(of_scores.chunks_exact_mut(length)) {
                let mean = sum(shares.iter().zip(&*of_scores).map(|(share, gradient)| share * gradient));
                for (share, gradient) in shares.iter().zip(of_scores) {
                    *gradient = share * (*gradient - mean) * scale;
                }
            }
        });
        let of_scores = MatRef::from_row_major_slice(&*of_scores, length, length);
        matmul(self.part_mut(of_window, 0, head), Accum::Replace, of_scores, part(1), 1.0, Par::Seq);
        matmul(self.part_mut(of_window, 1, head), Accum::Replace, of_scores.transpose(), part(0), 1.0, Par::Seq);
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

#[inline(always)]
fn softmax(scores: &mut [f32]) {
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, |most, score| if score > most { score } else { most });
    for score in scores.iter_mut() {
        *score = exp(*score - most);
    }
    let factor = 1.0 / sum(scores.iter().copied());
    for score in scores {
        *score *= factor;
    }
}
