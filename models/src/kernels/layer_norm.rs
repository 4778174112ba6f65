//! Layer normalization (Ba, Kiros and Hinton 2016) without a bias: with the mean and the variance of a row,
//!
//! ```text
//! y = (x - mean) / sqrt(variance + epsilon) * weight
//! ```

use burn::Tensor;
use burn::backend::flex::FlexTensor;
use burn::nn;
use pulp::Arch;
use rayon::prelude::*;

use super::tape::{Operation, apply_with};
use super::tensors::{floats, tensor};

/// The epsilon of PyTorch and burn.
const EPSILON: f32 = 1e-5;
/// The number of rows computed at once. Sums over rows are taken in such groups, so that they do not depend on the
/// threads.
const ROWS: usize = 64;
/// The number of partial sums kept side by side.
const LANES: usize = 16;

/// Rows `[rows, width]`, each normalized.
pub(crate) fn layer_norm(layer: &nn::LayerNorm, input: Tensor<2>) -> Tensor<2> {
    apply_with(LayerNorm, input.clone(), layer.gamma.val()).unwrap_or_else(|| layer.forward(input))
}

#[derive(Clone, Debug)]
struct LayerNorm;

/// The tensors that the backward pass needs.
#[derive(Clone, Debug)]
struct Seen {
    /// The normalized rows, before they are multiplied by the weight.
    normalized: FlexTensor,
    /// The inverse of the deviation of each row.
    factors: FlexTensor,
    weight: FlexTensor,
}

impl Operation<2> for LayerNorm {
    type Seen = Seen;

    fn forward(&self, [input, weight]: [FlexTensor; 2]) -> (FlexTensor, Seen) {
        let width = weight.layout().shape()[0];
        let numbers = floats(&input);
        let scale = floats(&weight);
        let rows = numbers.len() / width;
        let mut values = vec![0.0; numbers.len()];
        let mut normalized = vec![0.0; numbers.len()];
        let mut factors = vec![0.0; rows];
        let outputs = values.par_chunks_mut(ROWS * width).zip(normalized.par_chunks_mut(ROWS * width));
        let groups = numbers.par_chunks(ROWS * width).zip(outputs).zip(factors.par_chunks_mut(ROWS));
        groups.for_each(|((numbers, (values, normalized)), factors)| {
            Arch::new().dispatch(|| {
                let outputs = values.chunks_exact_mut(width).zip(normalized.chunks_exact_mut(width));
                for ((row, (values, normalized)), factor) in numbers.chunks_exact(width).zip(outputs).zip(factors) {
                    *factor = normalize(row, scale, values, normalized);
                }
            });
        });
        let shape = input.layout().shape().clone();
        let seen = Seen { normalized: tensor(normalized, shape.clone()), factors: tensor(factors, [rows]), weight };
        (tensor(values, shape), seen)
    }

    fn backward(&self, seen: &Seen, gradient: &FlexTensor, _: [bool; 2]) -> [Option<FlexTensor>; 2] {
        let width = seen.weight.layout().shape()[0];
        let gradients = floats(gradient);
        let normalized = floats(&seen.normalized);
        let factors = floats(&seen.factors);
        let scale = floats(&seen.weight);
        let mut of_input = vec![0.0; gradients.len()];
        let mut of_weight = vec![0.0; factors.len().div_ceil(ROWS) * width];
        let outputs = of_input.par_chunks_mut(ROWS * width).zip(of_weight.par_chunks_exact_mut(width));
        let inputs = gradients.par_chunks(ROWS * width).zip(normalized.par_chunks(ROWS * width));
        inputs.zip(factors.par_chunks(ROWS)).zip(outputs).for_each(|(((gradients, normalized), factors), outputs)| {
            let (of_input, of_weight) = outputs;
            Arch::new().dispatch(|| {
                let rows = gradients.chunks_exact(width).zip(normalized.chunks_exact(width)).zip(factors);
                for (((gradients, normalized), factor), of_input) in rows.zip(of_input.chunks_exact_mut(width)) {
                    for ((sum, gradient), normal) in of_weight.iter_mut().zip(gradients).zip(normalized) {
                        *sum += gradient * normal;
                    }
                    of_row(gradients, normalized, scale, *factor, of_input);
                }
            });
        });
        let mut sums = vec![0.0; width];
        for group in of_weight.chunks_exact(width) {
            sums.iter_mut().zip(group).for_each(|(sum, term)| *sum += term);
        }
        [Some(tensor(of_input, gradient.layout().shape().clone())), Some(tensor(sums, [width]))]
    }
}

/// Normalizes a row; returns the factor by which its values less their mean are multiplied.
#[inline(always)]
fn normalize(row: &[f32], scale: &[f32], values: &mut [f32], normalized: &mut [f32]) -> f32 {
    let mean = sum(row.iter().copied()) / row.len() as f32;
    let variance = sum(row.iter().map(|x| (x - mean) * (x - mean))) / row.len() as f32;
    let factor = 1.0 / (variance + EPSILON).sqrt();
    for (((x, scale), value), normal) in row.iter().zip(scale).zip(values).zip(normalized) {
        *normal = (x - mean) * factor;
        *value = *normal * scale;
    }
    factor
}

/// The gradient of a row of the input.
#[inline(always)]
fn of_row(gradients: &[f32], normalized: &[f32], scale: &[f32], factor: f32, of_input: &mut [f32]) {
    let width = gradients.len() as f32;
    let scaled = || gradients.iter().zip(scale).map(|(gradient, scale)| gradient * scale);
    let mean = sum(scaled()) / width;
    let along = sum(scaled().zip(normalized).map(|(gradient, normal)| gradient * normal)) / width;
    for ((gradient, normal), of_input) in scaled().zip(normalized).zip(of_input) {
        *of_input = factor * (gradient - mean - normal * along);
    }
}

/// A sum in an order that allows several additions at once.
#[inline(always)]
pub(super) fn sum(terms: impl ExactSizeIterator<Item = f32>) -> f32 {
    let mut lanes = [0.0; LANES];
    for (index, term) in terms.enumerate() {
        lanes[index % LANES] += term;
    }
    lanes.iter().sum()
}
