//! Layer normalization (Ba, Kiros and Hinton 2016) without a bias: with the mean and the variance of a row,
//!
//! ```text
//! y = (x - mean) / sqrt(variance + epsilon) * weight
//! ```

use burn::Tensor;
use burn::backend::flex::FlexTensor;
use burn::nn;
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::rows::sum;
use super::tape::{Operation, apply_with};
use super::tensors::{floats, tensor};

/// The epsilon of PyTorch and burn.
const EPSILON: f32 = 1e-5;
/// The number of rows computed at once. Sums over rows are taken in such groups, so that they do not depend on the
/// threads.
const ROWS: usize = 64;

/// Rows `[rows, width]`, each normalized.
pub(crate) fn layer_norm(layer: &nn::LayerNorm, input: Tensor<2>) -> Tensor<2> {
    apply_with(LayerNorm, input.clone(), layer.gamma.val()).unwrap_or_else(|| layer.forward(input))
}

#[derive(Clone, Debug)]
struct LayerNorm;

/// The tensors that the backward pass needs.
#[derive(Clone, Debug)]
struct Seen {
    input: FlexTensor,
    weight: FlexTensor,
    lines: Vec<NormalizingLine>,
}

/// The straight line that normalizes the values of a row: `factor (x - mean)`.
#[derive(Clone, Copy, Debug, Default)]
struct NormalizingLine {
    mean: f32,
    factor: f32,
}

impl Operation<2> for LayerNorm {
    type Seen = Seen;

    fn forward(&self, [input, weight]: [FlexTensor; 2]) -> (FlexTensor, Seen) {
        let width = weight.layout().shape()[0];
        let numbers = floats(&input);
        let scale = floats(&weight);
        let mut values = vec![0.0; numbers.len()];
        let mut lines = vec![NormalizingLine::default(); numbers.len() / width];
        let groups = numbers.par_chunks(ROWS * width).zip(values.par_chunks_mut(ROWS * width));
        groups.zip(lines.par_chunks_mut(ROWS)).for_each(|((numbers, values), lines)| {
            Arch::new().dispatch(NormalizeRows { numbers, scale, values, lines });
        });
        let shape = input.layout().shape().clone();
        (tensor(values, shape), Seen { input, weight, lines })
    }

    fn backward(&self, seen: &Seen, gradient: &FlexTensor, _: [bool; 2]) -> [Option<FlexTensor>; 2] {
        let width = seen.weight.layout().shape()[0];
        let gradients = floats(gradient);
        let numbers = floats(&seen.input);
        let scale = floats(&seen.weight);
        let mut of_input = vec![0.0; gradients.len()];
        let mut of_weight = vec![0.0; seen.lines.len().div_ceil(ROWS) * width];
        let outputs = of_input.par_chunks_mut(ROWS * width).zip(of_weight.par_chunks_exact_mut(width));
        let inputs = gradients.par_chunks(ROWS * width).zip(numbers.par_chunks(ROWS * width));
        inputs.zip(seen.lines.par_chunks(ROWS)).zip(outputs).for_each(|(((gradients, numbers), lines), outputs)| {
            let (of_input, of_weight) = outputs;
            Arch::new().dispatch(GradientsOfRows { gradients, numbers, lines, scale, of_input, of_weight });
        });
        let mut sums = vec![0.0; width];
        for group in of_weight.chunks_exact(width) {
            sums.iter_mut().zip(group).for_each(|(sum, term)| *sum += term);
        }
        [Some(tensor(of_input, gradient.layout().shape().clone())), Some(tensor(sums, [width]))]
    }
}

struct NormalizeRows<'a> {
    numbers: &'a [f32],
    scale: &'a [f32],
    values: &'a mut [f32],
    lines: &'a mut [NormalizingLine],
}

impl WithSimd for NormalizeRows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let width = self.scale.len();
        let rows = self.numbers.chunks_exact(width).zip(self.values.chunks_exact_mut(width));
        for ((row, values), line) in rows.zip(self.lines) {
            *line = NormalizingLine::normalize(row, self.scale, values);
        }
    }
}

/// The gradients of rows, and their sum for the weight.
struct GradientsOfRows<'a> {
    gradients: &'a [f32],
    numbers: &'a [f32],
    lines: &'a [NormalizingLine],
    scale: &'a [f32],
    of_input: &'a mut [f32],
    of_weight: &'a mut [f32],
}

impl WithSimd for GradientsOfRows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let width = self.scale.len();
        let rows = self.gradients.chunks_exact(width).zip(self.numbers.chunks_exact(width)).zip(self.lines);
        for (((gradients, row), line), of_input) in rows.zip(self.of_input.chunks_exact_mut(width)) {
            line.add_of_weight(gradients, row, self.of_weight);
            line.of_row(gradients, row, self.scale, of_input);
        }
    }
}

impl NormalizingLine {
    /// Normalizes a row and multiplies it by `scale`.
    #[inline(always)]
    fn normalize(row: &[f32], scale: &[f32], values: &mut [f32]) -> Self {
        let mean = sum([row], |[x]| x) / row.len() as f32;
        let variance = sum([row], |[x]| (x - mean) * (x - mean)) / row.len() as f32;
        let line = Self { mean, factor: 1.0 / (variance + EPSILON).sqrt() };
        for ((x, scale), value) in row.iter().zip(scale).zip(values) {
            *value = line.at(*x) * scale;
        }
        line
    }

    #[inline(always)]
    fn at(self, x: f32) -> f32 {
        (x - self.mean) * self.factor
    }

    /// Adds the gradient of the weight for a row.
    #[inline(always)]
    fn add_of_weight(self, gradients: &[f32], row: &[f32], of_weight: &mut [f32]) {
        for ((sum, gradient), x) in of_weight.iter_mut().zip(gradients).zip(row) {
            *sum += gradient * self.at(*x);
        }
    }

    /// The gradient of a row of the input.
    #[inline(always)]
    fn of_row(self, gradients: &[f32], row: &[f32], scale: &[f32], of_input: &mut [f32]) {
        let width = row.len() as f32;
        let mean = sum([gradients, scale], |[gradient, scale]| gradient * scale) / width;
        let along = sum([gradients, scale, row], |[gradient, scale, x]| gradient * scale * self.at(x)) / width;
        for (((gradient, scale), x), of_input) in gradients.iter().zip(scale).zip(row).zip(of_input) {
            *of_input = self.factor * (gradient * scale - mean - self.at(*x) * along);
        }
    }
}
