//! The hyperbolic tangent.

use burn::Tensor;
use burn::backend::flex::FlexTensor;
use pulp::Arch;
use rayon::prelude::*;

use super::exponential::exp;
use super::tape::{Operation, apply_to};
use super::tensors::{floats, tensor};

/// The number of values computed at once.
const CHUNK: usize = 1 << 12;

/// `tanh` of each number, within 3 units in the last place on burn's flex device, and burn's own elsewhere.
pub fn tanh(input: Tensor<2>) -> Tensor<2> {
    apply_to(Tanh, input.clone()).unwrap_or_else(|| input.tanh())
}

#[derive(Clone, Debug)]
struct Tanh;

impl Operation<1> for Tanh {
    /// The output, which gives the slope `1 - output^2`.
    type Seen = FlexTensor;

    fn forward(&self, [input]: [FlexTensor; 1]) -> (FlexTensor, FlexTensor) {
        let mut values = floats(&input).to_vec();
        values.par_chunks_mut(CHUNK).for_each(tanh_in_place);
        let output = tensor(values, input.layout().shape().clone());
        (output.clone(), output)
    }

    fn backward(&self, output: &FlexTensor, gradient: &FlexTensor, _: [bool; 1]) -> [Option<FlexTensor>; 1] {
        let values = floats(output);
        let slopes = floats(gradient);
        let mut of_input = vec![0.0; values.len()];
        let chunks = values.par_chunks(CHUNK).zip(slopes.par_chunks(CHUNK));
        of_input.par_chunks_mut(CHUNK).zip(chunks).for_each(|(of_input, (values, slopes))| {
            for ((place, value), slope) in of_input.iter_mut().zip(values).zip(slopes) {
                *place = (1.0 - value * value) * slope;
            }
        });
        [Some(tensor(of_input, output.layout().shape().clone()))]
    }
}

/// Replaces each value by its hyperbolic tangent.
pub(super) fn tanh_in_place(values: &mut [f32]) {
    Arch::new().dispatch(|| {
        for value in values {
            *value = value_at(*value);
        }
    });
}

/// Near 0 a polynomial (Cephes' `tanhf`, Moshier), which keeps small numbers exact; else `1 - 2 / (e^{2 |x|} + 1)` with the sign of x.
#[inline(always)]
fn value_at(x: f32) -> f32 {
    const NEAR: f32 = 0.625;
    const TERMS: [f32; 5] = [-5.704_988_7e-3, 2.063_909e-2, -5.373_971_6e-2, 1.333_144_3e-1, -3.333_328e-1];
    let size = x.abs();
    let square = x * x;
    let sum = (((TERMS[0] * square + TERMS[1]) * square + TERMS[2]) * square + TERMS[3]) * square + TERMS[4];
    let near = sum * square * x + x;
    let far = (1.0 - 2.0 / (exp(2.0 * size) + 1.0)).copysign(x);
    // NaN compares false and so takes the polynomial.
    if size >= NEAR { far } else { near }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_hyperbolic_tangent_to_a_few_units_in_the_last_place() {
        for step in -100_000..=100_000 {
            let x = step as f32 * 1e-4;
            let (found, wanted) = (f64::from(value_at(x)), f64::from(x).tanh());
            assert!((found - wanted).abs() <= 2.5e-7 * wanted.abs(), "{x}: {found} for {wanted}");
        }
    }

    #[test]
    fn small_numbers_stay_and_large_ones_are_one() {
        for x in [1e-30_f32, -3e-9, 1e-4] {
            assert!((value_at(x) - x).abs() <= 1e-8 * x.abs(), "{x}");
        }
        assert_eq!([f32::INFINITY, 1e30, 20.0, -20.0, -1e30].map(value_at), [1.0, 1.0, 1.0, -1.0, -1.0]);
        assert_eq!(value_at(-0.0), 0.0);
        assert!(value_at(f32::NAN).is_nan());
    }
}
