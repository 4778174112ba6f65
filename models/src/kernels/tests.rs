//! The block against one written for clarity, and against burn's own operations.

#![allow(clippy::unwrap_used)]

use burn::Tensor;
use burn::nn::conv::Conv2dConfig;
use burn::nn::pool::MaxPool2dConfig;
use burn::nn::{LinearConfig, PaddingConfig2d};
use burn::tensor::activation::relu;
use burn::tensor::{Device, TensorData};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::backward;
use super::forward::{RECTIFIED, forward};
use super::geometry::Geometry;
use super::{linear, pooled_convolution};

/// Shallow and deep kernels, with runs that fill registers and that do not.
const GEOMETRIES: [Geometry; 6] = [
    Geometry { height: 4, width: 6, channels: 1, outputs: 3, side: 3 },
    Geometry { height: 6, width: 2, channels: 3, outputs: 5, side: 5 },
    Geometry { height: 2, width: 4, channels: 33, outputs: 8, side: 1 },
    Geometry { height: 6, width: 4, channels: 8, outputs: 7, side: 5 },
    Geometry { height: 4, width: 4, channels: 22, outputs: 16, side: 3 },
    // Smaller than its kernel.
    Geometry { height: 2, width: 2, channels: 8, outputs: 3, side: 5 },
];

/// More images than are added up one after the other.
const BATCH: usize = 11;

struct Case {
    geometry: Geometry,
    images: Vec<f32>,
    weight: Vec<f32>,
    bias: Vec<f32>,
    /// The gradient of the output.
    gradient: Vec<f32>,
}

impl Case {
    fn new(geometry: Geometry) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut draw = |count: usize| -> Vec<f32> { (0..count).map(|_| 2.0 * rng.random::<f32>() - 1.0).collect() };
        Self {
            geometry,
            images: draw(BATCH * geometry.image()),
            weight: draw(geometry.outputs * geometry.kernel()),
            bias: draw(geometry.outputs),
            gradient: draw(BATCH * geometry.pooled()),
        }
    }

    fn images(&self, device: &Device) -> Tensor<4> {
        let Geometry { height, width, channels, .. } = self.geometry;
        Tensor::from_data(TensorData::new(self.images.clone(), [BATCH, height, width, channels]), device)
    }

    fn weight(&self, device: &Device) -> Tensor<4> {
        let Geometry { outputs, channels, side, .. } = self.geometry;
        Tensor::from_data(TensorData::new(self.weight.clone(), [outputs, channels, side, side]), device)
    }

    fn bias(&self, device: &Device) -> Tensor<1> {
        Tensor::from_data(TensorData::new(self.bias.clone(), [self.geometry.outputs]), device)
    }

    fn gradient(&self, device: &Device) -> Tensor<4> {
        let Geometry { height, width, outputs, .. } = self.geometry;
        Tensor::from_data(TensorData::new(self.gradient.clone(), [BATCH, height / 2, width / 2, outputs]), device)
    }

    /// The sum over outputs times their gradients, in double precision: `backward` is its slope.
    fn objective(&self, images: &[f64], weight: &[f64], bias: &[f64]) -> f64 {
        let g = self.geometry;
        let at = |image: usize, y: usize, x: usize, output: usize| -> f64 {
            let mut sum = bias[output];
            for row in 0..g.side {
                for column in 0..g.side {
                    let (y, x) = ((y + row).wrapping_sub(g.margin()), (x + column).wrapping_sub(g.margin()));
                    if y >= g.height || x >= g.width {
                        continue;
                    }
                    for channel in 0..g.channels {
                        let weight = weight[((output * g.channels + channel) * g.side + row) * g.side + column];
                        sum += weight * images[((image * g.height + y) * g.width + x) * g.channels + channel];
                    }
                }
            }
            sum
        };
        let mut objective = 0.0;
        let mut gradient = self.gradient.iter();
        for image in 0..BATCH {
            for (y, x) in (0..g.height).step_by(2).flat_map(|y| (0..g.width).step_by(2).map(move |x| (y, x))) {
                for output in 0..g.outputs {
                    let four = [(y, x), (y, x + 1), (y + 1, x), (y + 1, x + 1)];
                    let best = four.map(|(y, x)| at(image, y, x, output)).into_iter().fold(0.0, f64::max);
                    objective += best * f64::from(*gradient.next().unwrap());
                }
            }
        }
        objective
    }
}

fn assert_close(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (place, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() < 2e-4 * (1.0 + expected.abs()), "{what} {place}: {found} for {expected}");
    }
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

#[test]
fn gradients_are_the_slopes_of_the_sum_of_outputs() {
    const STEP: f64 = 1e-6;
    for geometry in GEOMETRIES {
        let case = Case::new(geometry);
        let pooled = forward(&geometry, &case.images, &case.weight, &case.bias);
        let of_images = backward::of_images(&geometry, &case.weight, &case.gradient, &pooled.winners);
        let (of_weight, of_bias) = backward::of_weight(&geometry, &case.images, &case.gradient, &pooled.winners);
        let point = [wide(&case.images), wide(&case.weight), wide(&case.bias)];
        for (part, gradient) in [of_images, of_weight, of_bias].into_iter().enumerate() {
            for place in (0..gradient.len()).step_by(1 + gradient.len() / 12) {
                let at = |step: f64| {
                    let mut point = point.clone();
                    point[part][place] += step;
                    case.objective(&point[0], &point[1], &point[2])
                };
                let slope = (at(STEP) - at(-STEP)) / (2.0 * STEP);
                let found = f64::from(gradient[place]);
                assert!((found - slope).abs() < 1e-3, "{geometry:?}, part {part}, {place}: {found} for {slope}");
            }
        }
    }
}

#[test]
fn a_block_computes_what_its_operations_do_one_by_one() {
    for geometry in GEOMETRIES {
        let case = Case::new(geometry);
        for device in [Device::flex(), Device::flex().autodiff()] {
            let block = pooled_convolution(case.images(&device), case.weight(&device), case.bias(&device)).unwrap();
            let found = values(block.into_data());
            let expected = one_by_one(&case, case.images(&device), case.weight(&device), case.bias(&device));
            assert_close(&found, &values(expected.into_data()), &format!("{geometry:?}"));
        }
    }
}

#[test]
fn the_tape_of_burn_gets_the_gradient_of_each_tensor_that_asks_for_one() {
    let device = Device::flex().autodiff();
    let case = Case::new(GEOMETRIES[4]);
    let tensors = || {
        (case.images(&device).require_grad(), case.weight(&device).require_grad(), case.bias(&device).require_grad())
    };
    let gradients = |output: Tensor<4>, (images, weight, bias): (Tensor<4>, Tensor<4>, Tensor<1>)| {
        let gradients = (output * case.gradient(&device)).sum().backward();
        [
            values(images.grad(&gradients).unwrap().into_data()),
            values(weight.grad(&gradients).unwrap().into_data()),
            values(bias.grad(&gradients).unwrap().into_data()),
        ]
    };
    let of = tensors();
    let found = gradients(pooled_convolution(of.0.clone(), of.1.clone(), of.2.clone()).unwrap(), of);
    let of = tensors();
    let expected = gradients(one_by_one(&case, of.0.clone(), of.1.clone(), of.2.clone()), of);
    for (found, (expected, what)) in found.iter().zip(expected.iter().zip(["images", "weight", "bias"])) {
        assert_close(found, expected, what);
    }

    // The first block of a network: the gradient of the images is not wanted.
    let (weight, bias) = (case.weight(&device).require_grad(), case.bias(&device));
    let output = pooled_convolution(case.images(&device), weight.clone(), bias).unwrap();
    let gradients = (output * case.gradient(&device)).sum().backward();
    assert_close(&values(weight.grad(&gradients).unwrap().into_data()), &found[1], "weight alone");
}

/// The block in burn's operations, for images `[batch, height, width, channels]`.
fn one_by_one(case: &Case, images: Tensor<4>, weight: Tensor<4>, bias: Tensor<1>) -> Tensor<4> {
    let Geometry { channels, outputs, side, .. } = case.geometry;
    let config = Conv2dConfig::new([channels, outputs], [side, side]).with_padding(PaddingConfig2d::Same);
    let mut convolution = config.init(&images.device());
    convolution.weight = burn::module::Param::initialized(convolution.weight.id, weight);
    convolution.bias = Some(burn::module::Param::initialized(burn::module::ParamId::new(), bias));
    let pool = MaxPool2dConfig::new([2, 2]).with_strides([2, 2]).init();
    relu(pool.forward(convolution.forward(images.permute([0, 3, 1, 2])))).permute([0, 2, 3, 1])
}

#[test]
fn a_linear_layer_computes_what_burn_does() {
    // The first product is small enough for one thread.
    for [batch, inputs, outputs] in [[5, 7, 3], [64, 600, 300]] {
        let device = Device::flex().autodiff();
        let layer = LinearConfig::new(inputs, outputs).init(&device);
        let draw = |sides: [usize; 2]| -> Tensor<2> {
            let mut rng = ChaCha8Rng::seed_from_u64(11);
            let values: Vec<f32> = (0..sides[0] * sides[1]).map(|_| 2.0 * rng.random::<f32>() - 1.0).collect();
            Tensor::from_data(TensorData::new(values, sides), &device)
        };
        let all = |compute: &dyn Fn(Tensor<2>) -> Tensor<2>| {
            let input = draw([batch, inputs]).require_grad();
            let output = compute(input.clone());
            let gradients = (output.clone() * draw([batch, outputs])).sum().backward();
            [
                values(output.into_data()),
                values(input.grad(&gradients).unwrap().into_data()),
                values(layer.weight.val().grad(&gradients).unwrap().into_data()),
                values(layer.bias.as_ref().unwrap().val().grad(&gradients).unwrap().into_data()),
            ]
        };
        let (found, expected) = (all(&|input| linear(&layer, input)), all(&|input| layer.forward(input)));
        for (part, what) in ["output", "input", "weight", "bias"].into_iter().enumerate() {
            assert_close(&found[part], &expected[part], what);
        }
    }
}

fn values(data: TensorData) -> Vec<f32> {
    data.try_into_vec().unwrap()
}

#[test]
fn what_is_not_a_number_is_not_hidden() {
    let geometry = GEOMETRIES[0];
    let mut case = Case::new(geometry);
    case.images[0] = f32::NAN;
    let pooled = forward(&geometry, &case.images, &case.weight, &case.bias);
    assert!(pooled.values[0].is_nan());
    assert_ne!(pooled.winners[0], RECTIFIED);
}
