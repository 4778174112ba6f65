//! A step of RMSProp (Tieleman and Hinton 2012) in one pass over memory.

use burn::Tensor;
use burn::backend::Flex;
use burn::backend::flex::FlexTensor;
use burn::tensor::Device;
use pulp::Arch;
use rayon::prelude::*;

use super::tensors::{contiguous, floats};

/// The number of values computed at once.
const CHUNK: usize = 1 << 14;

/// RMSProp without momentum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RmsProp {
    /// The step size.
    pub learning_rate: f64,
    /// The share of the old mean of squares that is kept.
    pub kept: f64,
    /// The term added to the root of the mean of squares.
    pub epsilon: f64,
}

/// `s <- kept s + (1 - kept) g^2`, then `x <- x - learning_rate g / (sqrt(s) + epsilon)`: the new `x` and `s`.
///
/// On burn's flex device both are changed in place where they have no other owner. A value whose gradient and mean of
/// squares are 0 stays as it is, and so does its mean of squares.
pub fn rms_prop(rule: RmsProp, values: Tensor<2>, squares: Tensor<2>, gradient: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
    let RmsProp { learning_rate, kept, epsilon } = rule;
    let is_plain = |tensor: &Tensor<2>| tensor.device() == Device::flex() && !tensor.device().is_autodiff();
    if ![&values, &squares, &gradient].into_iter().all(is_plain) {
        let squares = squares * kept + gradient.clone() * gradient.clone() * (1.0 - kept);
        let change = gradient * learning_rate / (squares.clone().sqrt() + epsilon);
        return (values - change, squares);
    }
    let part = |tensor: Tensor<2>| {
        contiguous(tensor.try_into_primitive::<Flex>().expect("a tensor on flex, as its device says"))
    };
    let [mut x, mut s, g] = [values, squares, gradient].map(part);
    step(rule, &mut x, &mut s, floats(&g));
    (Tensor::from_primitive::<Flex>(x), Tensor::from_primitive::<Flex>(s))
}

fn step(rule: RmsProp, values: &mut FlexTensor, squares: &mut FlexTensor, gradient: &[f32]) {
    let [rate, kept, new, epsilon] =
        [rule.learning_rate, rule.kept, 1.0 - rule.kept, rule.epsilon].map(|number| number as f32);
    let chunks =
        values.storage_mut::<f32>().par_chunks_mut(CHUNK).zip(squares.storage_mut::<f32>().par_chunks_mut(CHUNK));
    chunks.zip(gradient.par_chunks(CHUNK)).for_each(|((values, squares), gradient)| {
        Arch::new().dispatch(|| {
            for ((value, square), slope) in values.iter_mut().zip(squares).zip(gradient) {
                *square = *square * kept + slope * slope * new;
                *value -= slope * rate / (square.sqrt() + epsilon);
            }
        });
    });
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use burn::tensor::TensorData;

    use super::*;

    const SIDES: [usize; 2] = [129, 300];

    fn draw(factor: f32) -> Tensor<2> {
        let values: Vec<f32> = (0..SIDES[0] * SIDES[1]).map(|at| factor * ((at * 37 % 101) as f32 - 50.0)).collect();
        Tensor::from_data(TensorData::new(values, SIDES), &Device::flex())
    }

    fn numbers(tensor: Tensor<2>) -> Vec<f32> {
        tensor.into_data().try_into_vec().unwrap()
    }

    #[test]
    fn it_is_the_formula_and_leaves_what_others_hold() {
        let rule = RmsProp { learning_rate: 1e-3, kept: 0.99, epsilon: 1e-8 };
        let (values, squares, gradient) = (draw(0.02), draw(0.01).abs(), draw(1e-3));
        let (x, s) = rms_prop(rule, values.clone(), squares.clone(), gradient.clone());
        let (values, squares, gradient) = (numbers(values), numbers(squares), numbers(gradient));
        assert_eq!(values, numbers(draw(0.02)));
        for (at, (x, s)) in numbers(x).into_iter().zip(numbers(s)).enumerate() {
            let slope = f64::from(gradient[at]);
            let square = 0.99 * f64::from(squares[at]) + 0.01 * slope * slope;
            let value = f64::from(values[at]) - 1e-3 * slope / (square.sqrt() + 1e-8);
            assert!((f64::from(s) - square).abs() <= 1e-6 * square, "{at}: {s} for {square}");
            assert!((f64::from(x) - value).abs() <= 1e-6 * value.abs().max(1e-3), "{at}: {x} for {value}");
        }
    }

    #[test]
    fn what_has_no_slope_stays() {
        let rule = RmsProp { learning_rate: 0.1, kept: 0.9, epsilon: 1e-8 };
        let (x, s) =
            rms_prop(rule, draw(0.3), Tensor::zeros(SIDES, &Device::flex()), Tensor::zeros(SIDES, &Device::flex()));
        assert_eq!(numbers(x), numbers(draw(0.3)));
        assert!(numbers(s).iter().all(|square| *square == 0.0));
    }
}
