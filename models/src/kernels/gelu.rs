//! The Gaussian error linear unit (Hendrycks and Gimpel 2016): `x P(X <= x)` for a standard normal X.

use burn::Tensor;
use burn::backend::flex::FlexTensor;
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::exponential::exp;
use super::tape::{Operation, apply_to};
use super::tensors::{floats, tensor};

/// The number of values computed at once.
const CHUNK: usize = 1 << 12;

/// The Gaussian error linear unit of each value.
pub(crate) fn gelu(input: Tensor<2>) -> Tensor<2> {
    apply_to(Gelu, input.clone()).unwrap_or_else(|| burn::tensor::activation::gelu(input))
}

#[derive(Clone, Debug)]
struct Gelu;

impl Operation<1> for Gelu {
    /// The slope at each value.
    type Seen = FlexTensor;

    fn forward(&self, [input]: [FlexTensor; 1]) -> (FlexTensor, FlexTensor) {
        let numbers = floats(&input);
        let mut values = vec![0.0; numbers.len()];
        let mut slopes = vec![0.0; numbers.len()];
        let outputs = values.par_chunks_mut(CHUNK).zip(slopes.par_chunks_mut(CHUNK));
        numbers.par_chunks(CHUNK).zip(outputs).for_each(|(numbers, (values, slopes))| {
            Arch::new().dispatch(ValuesAndSlopes { numbers, values, slopes });
        });
        let shape = input.layout().shape().clone();
        (tensor(values, shape.clone()), tensor(slopes, shape))
    }

    fn backward(&self, slopes: &FlexTensor, gradient: &FlexTensor, _: [bool; 1]) -> [Option<FlexTensor>; 1] {
        let gradients = floats(gradient);
        let mut values = vec![0.0; gradients.len()];
        let inputs = floats(slopes).par_chunks(CHUNK).zip(gradients.par_chunks(CHUNK));
        values.par_chunks_mut(CHUNK).zip(inputs).for_each(|(values, (slopes, gradients))| {
            for ((value, slope), gradient) in values.iter_mut().zip(slopes).zip(gradients) {
                *value = slope * gradient;
            }
        });
        [Some(tensor(values, slopes.layout().shape().clone()))]
    }
}

struct ValuesAndSlopes<'a> {
    numbers: &'a [f32],
    values: &'a mut [f32],
    slopes: &'a mut [f32],
}

impl WithSimd for ValuesAndSlopes<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for ((x, value), slope) in self.numbers.iter().zip(self.values).zip(self.slopes) {
            (*value, *slope) = value_and_slope(*x);
        }
    }
}

/// `x P(x)` and its slope `P(x) + x p(x)`, where `P` is the distribution and `p` the density.
///
/// Abramowitz and Stegun, formula 7.1.26, with an absolute error of 1.5e-7 at most: its exponential is that of the density.
#[inline(always)]
fn value_and_slope(x: f32) -> (f32, f32) {
    const FACTOR: f32 = 0.327_591_1;
    const TERMS: [f32; 5] = [0.254_829_6, -0.284_496_72, 1.421_413_8, -1.453_152, 1.061_405_4];
    let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + FACTOR * z);
    let sum = ((((TERMS[4] * t + TERMS[3]) * t + TERMS[2]) * t + TERMS[1]) * t + TERMS[0]) * t;
    let bell = exp(-z * z);
    let tail = 0.5 * sum * bell;
    let distribution = if x < 0.0 { tail } else { 1.0 - tail };
    let density = bell * (0.5 * std::f32::consts::FRAC_1_SQRT_2 * std::f32::consts::FRAC_2_SQRT_PI);
    (x * distribution, distribution + x * density)
}
