//! A linear layer, with a bias or without.

use burn::Tensor;
use burn::backend::flex::FlexTensor;
use burn::nn;
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

use super::tape::{Operation, apply, apply_with};
use super::tensors::{floats, tensor};

/// The number of multiplications above which a product is divided into halves.
const WORTH_DIVIDING: usize = 1 << 23;
/// The most times that a product is divided.
const DIVISIONS: u32 = 4;
/// The rows and columns of which a half has a multiple.
const TILE: usize = 16;

/// `input x weight + bias`, where there is a bias: `[batch, inputs]` to `[batch, outputs]`.
pub(crate) fn linear(layer: &nn::Linear, input: Tensor<2>) -> Tensor<2> {
    let Some(bias) = &layer.bias else { return product(input, layer.weight.val()) };
    apply(Linear, input.clone(), layer.weight.val(), bias.val()).unwrap_or_else(|| layer.forward(input))
}

/// `left x right`: `[rows, inner]` and `[inner, columns]` to `[rows, columns]`.
pub(crate) fn product(left: Tensor<2>, right: Tensor<2>) -> Tensor<2> {
    apply_with(Product, left.clone(), right.clone()).unwrap_or_else(|| left.matmul(right))
}

#[derive(Clone, Debug)]
struct Product;

impl Operation<2> for Product {
    /// Both factors.
    type Seen = [FlexTensor; 2];

    fn forward(&self, factors: [FlexTensor; 2]) -> (FlexTensor, [FlexTensor; 2]) {
        let [left, right] = &factors;
        (multiplied(matrix(left), matrix(right)), factors)
    }

    fn backward(
        &self,
        [left, right]: &[FlexTensor; 2],
        gradient: &FlexTensor,
        wanted: [bool; 2],
    ) -> [Option<FlexTensor>; 2] {
        let of_left = wanted[0].then(|| multiplied(matrix(gradient), matrix(right).transpose()));
        let of_right = wanted[1].then(|| multiplied(matrix(left).transpose(), matrix(gradient)));
        [of_left, of_right]
    }
}

fn multiplied(left: MatRef<'_, f32>, right: MatRef<'_, f32>) -> FlexTensor {
    let rows = left.nrows();
    let columns = right.ncols();
    let mut values = vec![0.0; rows * columns];
    multiply(MatMut::from_row_major_slice_mut(&mut values, rows, columns), Accum::Replace, left, right);
    tensor(values, [rows, columns])
}

#[derive(Clone, Debug)]
struct Linear;

impl Operation<3> for Linear {
    /// Input and weight.
    type Seen = [FlexTensor; 2];

    fn forward(&self, [input, weight, bias]: [FlexTensor; 3]) -> (FlexTensor, Self::Seen) {
        let [batch, _] = sides(&input);
        let [_, outputs] = sides(&weight);
        let mut values = floats(&bias).repeat(batch);
        let output = MatMut::from_row_major_slice_mut(&mut values, batch, outputs);
        multiply(output, Accum::Add, matrix(&input), matrix(&weight));
        (tensor(values, [batch, outputs]), [input, weight])
    }

    fn backward(&self, seen: &Self::Seen, gradient: &FlexTensor, wanted: [bool; 3]) -> [Option<FlexTensor>; 3] {
        let [of_input, of_weight] = Product.backward(seen, gradient, [wanted[0], wanted[1]]);
        let [_, outputs] = sides(gradient);
        let of_bias = wanted[2].then(|| tensor(column_sums(floats(gradient), outputs), [outputs]));
        [of_input, of_weight, of_bias]
    }
}

fn multiply(product: MatMut<'_, f32>, accumulate: Accum, left: MatRef<'_, f32>, right: MatRef<'_, f32>) {
    let multiplications = left.nrows() * left.ncols() * right.ncols();
    let divisions = (multiplications / WORTH_DIVIDING).checked_ilog2().map_or(0, |times| times + 1);
    multiply_halves(product, accumulate, left, right, divisions.min(DIVISIONS));
}

/// Divides a product into halves by its longer side, so many times over. A thread without work takes a half from another
/// one: none waits for the others at a barrier, as those of the matrix library do, which is slow where cores have other
/// work too. The halves do not depend on the number of threads, and so their sums do not.
fn multiply_halves(
    product: MatMut<'_, f32>,
    accumulate: Accum,
    left: MatRef<'_, f32>,
    right: MatRef<'_, f32>,
    divisions: u32,
) {
    let sides = [product.nrows(), product.ncols()];
    if divisions == 0 || sides.iter().all(|side| *side <= TILE) {
        return matmul(product, accumulate, left, right, 1.0, Par::Seq);
    }
    let half = |side: usize| (side / 2).next_multiple_of(TILE);
    let halves = if sides[0] >= sides[1] {
        let (left, other_left) = left.split_at_row(half(sides[0]));
        let (product, other) = product.split_at_row_mut(half(sides[0]));
        [(product, left, right), (other, other_left, right)]
    } else {
        let (right, other_right) = right.split_at_col(half(sides[1]));
        let (product, other) = product.split_at_col_mut(half(sides[1]));
        [(product, left, right), (other, left, other_right)]
    };
    let [one, other] =
        halves.map(|(product, left, right)| move || multiply_halves(product, accumulate, left, right, divisions - 1));
    rayon::join(one, other);
}

fn column_sums(rows: &[f32], columns: usize) -> Vec<f32> {
    let mut sums = vec![0.0; columns];
    for row in rows.chunks_exact(columns) {
        for (sum, term) in sums.iter_mut().zip(row) {
            *sum += term;
        }
    }
    sums
}

fn matrix(tensor: &FlexTensor) -> MatRef<'_, f32> {
    let [rows, columns] = sides(tensor);
    MatRef::from_row_major_slice(floats(tensor), rows, columns)
}

fn sides(tensor: &FlexTensor) -> [usize; 2] {
    let shape = tensor.layout().shape();
    [shape[0], shape[1]]
}
