//! Products of matrices with very many rows, which are divided among threads by their rows.
//!
//! Parts have a fixed size and sums over parts a fixed order, so that the number of threads changes no bit. No thread
//! waits for another at a barrier, as those of a matrix library do: that costs half of the time where cores have other
//! work too.

use burn::Tensor;
use burn::backend::flex::FlexTensor;
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

use super::tape::{Operation, apply_with};
use super::tensors::{floats, tensor};

/// The number of rows of a part.
const ROWS: usize = 512;

/// `left x right`: `[rows, inner]` and `[inner, columns]` to `[rows, columns]`, where `rows` is by far the largest
/// side.
pub fn tall_product(left: Tensor<2>, right: Tensor<2>) -> Tensor<2> {
    apply_with(Tall, left.clone(), right.clone()).unwrap_or_else(|| left.matmul(right))
}

/// `left^T x right`: `[rows, some]` and `[rows, others]` to `[some, others]`, where `rows` is by far the largest side.
pub fn transposed_product(left: Tensor<2>, right: Tensor<2>) -> Tensor<2> {
    apply_with(Transposed, left.clone(), right.clone()).unwrap_or_else(|| left.transpose().matmul(right))
}

#[derive(Clone, Debug)]
struct Tall;

impl Operation<2> for Tall {
    /// Both factors.
    type Seen = [FlexTensor; 2];

    fn forward(&self, factors: [FlexTensor; 2]) -> (FlexTensor, Self::Seen) {
        let [left, right] = factors.each_ref().map(Rows::of);
        (by_rows(left, right.matrix()), factors)
    }

    fn backward(&self, seen: &Self::Seen, gradient: &FlexTensor, wanted: [bool; 2]) -> [Option<FlexTensor>; 2] {
        let [left, right] = seen.each_ref().map(Rows::of);
        let gradient = Rows::of(gradient);
        let of_left = wanted[0].then(|| by_rows(gradient, right.matrix().transpose()));
        [of_left, wanted[1].then(|| over_rows(left, gradient))]
    }
}

#[derive(Clone, Debug)]
struct Transposed;

impl Operation<2> for Transposed {
    /// Both factors.
    type Seen = [FlexTensor; 2];

    fn forward(&self, factors: [FlexTensor; 2]) -> (FlexTensor, Self::Seen) {
        let [left, right] = factors.each_ref().map(Rows::of);
        (over_rows(left, right), factors)
    }

    fn backward(&self, seen: &Self::Seen, gradient: &FlexTensor, wanted: [bool; 2]) -> [Option<FlexTensor>; 2] {
        let [left, right] = seen.each_ref().map(Rows::of);
        let gradient = Rows::of(gradient).matrix();
        let of_left = wanted[0].then(|| by_rows(right, gradient.transpose()));
        [of_left, wanted[1].then(|| by_rows(left, gradient))]
    }
}

/// A matrix in row-major order.
#[derive(Clone, Copy)]
struct Rows<'a> {
    numbers: &'a [f32],
    columns: usize,
}

impl<'a> Rows<'a> {
    fn of(tensor: &'a FlexTensor) -> Self {
        Self { numbers: floats(tensor), columns: tensor.layout().shape()[1] }
    }

    fn matrix(self) -> MatRef<'a, f32> {
        MatRef::from_row_major_slice(self.numbers, self.numbers.len() / self.columns.max(1), self.columns)
    }

    fn parts(self) -> impl IndexedParallelIterator<Item = Rows<'a>> {
        let columns = self.columns;
        self.numbers.par_chunks((ROWS * columns).max(1)).map(move |numbers| Rows { numbers, columns })
    }
}

/// `left x right`, part by part of the rows of `left`.
fn by_rows(left: Rows<'_>, right: MatRef<'_, f32>) -> FlexTensor {
    let rows = left.matrix().nrows();
    let columns = right.ncols();
    let mut values = vec![0.0; rows * columns];
    values.par_chunks_mut((ROWS * columns).max(1)).zip(left.parts()).for_each(|(place, left)| {
        let left = left.matrix();
        let place = MatMut::from_row_major_slice_mut(place, left.nrows(), columns);
        matmul(place, Accum::Replace, left, right, 1.0, Par::Seq);
    });
    tensor(values, [rows, columns])
}

/// `left^T x right`, summed over parts of the rows of both in their order.
fn over_rows(left: Rows<'_>, right: Rows<'_>) -> FlexTensor {
    let shape = [left.columns, right.columns];
    let part = |(left, right): (Rows<'_>, Rows<'_>)| {
        let mut values = vec![0.0_f32; shape[0] * shape[1]];
        let place = MatMut::from_row_major_slice_mut(&mut values, shape[0], shape[1]);
        matmul(place, Accum::Replace, left.matrix().transpose(), right.matrix(), 1.0, Par::Seq);
        values
    };
    let parts: Vec<Vec<f32>> = left.parts().zip(right.parts()).map(part).collect();
    let mut parts = parts.into_iter();
    let mut sum = parts.next().unwrap_or_else(|| vec![0.0; shape[0] * shape[1]]);
    parts.for_each(|part| sum.iter_mut().zip(part).for_each(|(sum, value)| *sum += value));
    tensor(sum, shape)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use burn::tensor::{Device, TensorData};

    use super::*;

    fn draw(sides: [usize; 2], seed: usize) -> Tensor<2> {
        let values: Vec<f32> =
            (0..sides[0] * sides[1]).map(|at| ((at * 37 + seed) % 101) as f32 / 50.0 - 1.0).collect();
        Tensor::from_data(TensorData::new(values, sides), &Device::flex().autodiff()).require_grad()
    }

    /// The product of two tensors, and the gradients of both.
    fn all_of(function: impl Fn(Tensor<2>, Tensor<2>) -> Tensor<2>, sides: [[usize; 2]; 2]) -> Vec<Vec<f32>> {
        let (left, right) = (draw(sides[0], 1), draw(sides[1], 2));
        let product = function(left.clone(), right.clone());
        let gradients = (product.clone() * draw(product.dims(), 3)).sum().backward();
        let tensors = [product.inner(), left.grad(&gradients).unwrap(), right.grad(&gradients).unwrap()];
        tensors.into_iter().map(|tensor| tensor.into_data().try_into_vec().unwrap()).collect()
    }

    fn assert_close(one: Vec<Vec<f32>>, other: Vec<Vec<f32>>) {
        for (one, other) in one.into_iter().zip(other) {
            assert_eq!(one.len(), other.len());
            let most = other.iter().fold(1.0_f32, |most, value| most.max(value.abs()));
            assert!(one.iter().zip(&other).all(|(one, other)| (one - other).abs() < 2e-5 * most));
        }
    }

    #[test]
    fn products_by_rows_are_those_of_burn() {
        for rows in [1, ROWS, 3 * ROWS + 7] {
            assert_close(
                all_of(tall_product, [[rows, 5], [5, 3]]),
                all_of(|left, right| left.matmul(right), [[rows, 5], [5, 3]]),
            );
            assert_close(
                all_of(transposed_product, [[rows, 5], [rows, 3]]),
                all_of(|left, right| left.transpose().matmul(right), [[rows, 5], [rows, 3]]),
            );
        }
    }
}
