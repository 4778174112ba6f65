//! The operations of a language model against burn's own.

#![allow(clippy::unwrap_used)]

use burn::Tensor;
use burn::nn::LayerNormConfig;
use burn::tensor::{Device, TensorData};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{causal_attention, gelu, layer_norm, product, tanh};
use crate::model::attention;

fn draw(sides: [usize; 2], seed: u64) -> Tensor<2> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let values: Vec<f32> = (0..sides[0] * sides[1]).map(|_| 6.0 * rng.random::<f32>() - 3.0).collect();
    Tensor::from_data(TensorData::new(values, sides), &Device::flex().autodiff())
}

fn values(tensor: Tensor<2>) -> Vec<f32> {
    tensor.into_data().try_into_vec().unwrap()
}

fn assert_close(one: &[f32], other: &[f32]) {
    assert_eq!(one.len(), other.len());
    let most = one.iter().chain(other).fold(1.0f32, |most, value| most.max(value.abs()));
    for (index, (one, other)) in one.iter().zip(other).enumerate() {
        assert!((one - other).abs() < 2e-5 * most, "{index}: {one} and {other}");
    }
}

/// Asserts that both give the same output, and the same gradient of the input for some gradient of the output.
fn assert_same(sides: [usize; 2], one: impl Fn(Tensor<2>) -> Tensor<2>, other: impl Fn(Tensor<2>) -> Tensor<2>) {
    let run = |function: &dyn Fn(Tensor<2>) -> Tensor<2>| {
        let input = draw(sides, 1).require_grad();
        let output = function(input.clone());
        let gradients = (output.clone() * draw(output.dims(), 2)).sum().backward();
        (values(output.inner()), values(input.grad(&gradients).unwrap()))
    };
    let (one, other) = (run(&one), run(&other));
    assert_close(&one.0, &other.0);
    assert_close(&one.1, &other.1);
}

/// Asserts that the gradient of the input, for some gradient of the output, is the slope of the function along it.
fn assert_slope(sides: [usize; 2], function: impl Fn(Tensor<2>) -> Tensor<2>) {
    let input = draw(sides, 1).require_grad();
    let output = function(input.clone());
    let factors = draw(output.dims(), 2);
    let gradients = (output * factors.clone()).sum().backward();
    let gradient = input.grad(&gradients).unwrap();
    let factors = values(factors);
    let along = values(gradient.clone());
    let step = 1e-2 / along.iter().fold(0.0f32, |most, value| most.max(value.abs()));
    let at = |step: f32| -> f64 {
        let there = input.clone().inner() + gradient.clone() * step;
        values(function(there)).iter().zip(&factors).map(|(value, factor)| f64::from(value * factor)).sum()
    };
    let slope = (at(step) - at(-step)) / f64::from(2.0 * step);
    let expected: f64 = along.iter().map(|value| f64::from(*value).powi(2)).sum();
    assert!((slope / expected - 1.0).abs() < 5e-3, "{slope} for {expected}");
}

#[test]
fn the_gradients_of_a_language_model_are_slopes() {
    assert_slope([10, 24], |input| causal_attention(input, 2, 2).unwrap());
    assert_slope([70, 48], |input| causal_attention(input, 1, 4).unwrap());
    assert_slope([9, 33], gelu);
    let layer = LayerNormConfig::new(40).with_bias(false).init(&Device::flex());
    let tracked = LayerNormConfig::new(40).with_bias(false).init(&Device::flex().autodiff());
    assert_slope([70, 40], |input| layer_norm(if input.device().is_autodiff() { &tracked } else { &layer }, input));
    let on = |input: &Tensor<2>, factor: Tensor<2>| if input.device().is_autodiff() { factor } else { factor.inner() };
    assert_slope([9, 7], |input| product(input.clone(), on(&input, draw([7, 11], 5))));
    assert_slope([7, 11], |input| product(on(&input, draw([9, 7], 6)), input));
}

#[test]
fn attention_is_that_of_burn() {
    // The last has more tokens than are computed at once.
    for (batch, length, width, heads) in [(3, 5, 8, 2), (1, 1, 4, 4), (2, 33, 48, 3), (4, 64, 32, 1), (2, 150, 16, 2)] {
        let own = |input| causal_attention(input, batch, heads).unwrap();
        assert_same([batch * length, 3 * width], own, |input| attention(&input, batch, heads));
    }
}

#[test]
fn gelu_is_that_of_burn() {
    assert_same([67, 129], gelu, burn::tensor::activation::gelu);
    let far = Tensor::<2>::from_data([[-1e30, -40.0, -0.0, 40.0, 1e30]], &Device::flex());
    let found = values(gelu(far));
    assert!(found[..3].iter().all(|value| value.abs() < 1e-6) && found[3..] == [40.0, 1e30], "{found:?}");
}

#[test]
fn the_hyperbolic_tangent_is_that_of_burn() {
    assert_same([67, 129], tanh, |input| input.tanh());
    assert_same([3, 5], |input| tanh(input.transpose()).transpose(), |input| input.tanh());
}

#[test]
fn layer_norm_is_that_of_burn() {
    let device = Device::flex().autodiff();
    for (rows, width) in [(1, 3), (65, 16), (130, 40)] {
        let layer = LayerNormConfig::new(width).with_bias(false).init(&device);
        assert_same([rows, width], |input| layer_norm(&layer, input), |input| layer.forward(input));
        let of_weight = |norm: &dyn Fn(Tensor<2>) -> Tensor<2>| {
            let gradients = (norm(draw([rows, width], 1)) * draw([rows, width], 2)).sum().backward();
            layer.gamma.val().grad(&gradients).unwrap().into_data().try_into_vec::<f32>().unwrap()
        };
        assert_close(&of_weight(&|input| layer_norm(&layer, input)), &of_weight(&|input| layer.forward(input)));
    }
}

#[test]
fn a_product_that_is_divided_is_that_of_burn() {
    // More multiplications than one part has, by rows and by columns, and sides that are no multiples of a tile.
    for [rows, inner, columns] in [[900, 130, 150], [130, 150, 900]] {
        let right = draw([inner, columns], 5);
        assert_same([rows, inner], |input| product(input, right.clone()), |input| input.matmul(right.clone()));
        let left = draw([rows, inner], 6);
        assert_same([inner, columns], |input| product(left.clone(), input), |input| left.clone().matmul(input));
    }
}

#[test]
fn a_product_is_that_of_burn() {
    let right = draw([7, 11], 5);
    assert_same([9, 7], |input| product(input, right.clone()), |input| input.matmul(right.clone()));
    let left = draw([9, 7], 6);
    // Transposed: not contiguous.
    let own = |input: Tensor<2>| product(left.clone(), input.transpose());
    assert_same([11, 7], own, |input| left.clone().matmul(input.transpose()));
}
