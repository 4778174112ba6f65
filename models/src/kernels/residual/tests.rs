//! The stem and blocks against ones written for clarity in double precision.

#![allow(clippy::unwrap_used)]

use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{GroupNorm, GroupNormConfig, PaddingConfig2d};
use burn::tensor::{Device, TensorData};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

/// More images than are added up one after the other.
const BATCH: usize = 9;

/// A convolution and a norm in double precision: weight `[to, from, side, side]`, scale and shift `[to]`.
#[derive(Clone)]
struct Reference {
    from: usize,
    to: usize,
    side: usize,
    step: usize,
    tensors: [Vec<f64>; 3],
}

/// Images in double precision, `[batch, channels, height, width]`.
#[derive(Clone)]
struct Images {
    channels: usize,
    height: usize,
    width: usize,
    values: Vec<f64>,
}

impl Reference {
    fn drawn(from: usize, to: usize, side: usize, step: usize, rng: &mut ChaCha8Rng) -> Self {
        let mut draw =
            |count: usize| -> Vec<f64> { (0..count).map(|_| f64::from(rng.random::<f32>() - 0.5)).collect() };
        let tensors = [draw(to * from * side * side), draw(to).iter().map(|value| value + 1.0).collect(), draw(to)];
        // Numbers of single precision, so that both sides have the same.
        Self {
            from,
            to,
            side,
            step,
            tensors: tensors.map(|values| values.iter().map(|&value| f64::from(value as f32)).collect()),
        }
    }

    fn apply(&self, images: &Images) -> Images {
        let (height, width) = (images.height / self.step, images.width / self.step);
        let mut values = Vec::new();
        for image in images.values.chunks_exact(images.channels * images.height * images.width) {
            let mut convolved = Vec::new();
            for (output, y, x) in
                (0..self.to).flat_map(|output| (0..height * width).map(move |at| (output, at / width, at % width)))
            {
                convolved.push(self.at(image, (images.height, images.width), output, (y * self.step, x * self.step)));
            }
            for (group, plane) in convolved.chunks_exact(LANES * height * width).enumerate() {
                let count = plane.len() as f64;
                let mean = plane.iter().sum::<f64>() / count;
                let variance = plane.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
                values.extend(plane.iter().enumerate().map(|(at, value)| {
                    let channel = group * LANES + at / (height * width);
                    (value - mean) / (variance + 1e-5).sqrt() * self.tensors[1][channel] + self.tensors[2][channel]
                }));
            }
        }
        Images { channels: self.to, height, width, values }
    }

    fn at(&self, image: &[f64], (height, width): (usize, usize), output: usize, (y, x): (usize, usize)) -> f64 {
        let mut sum = 0.0;
        for (row, column) in (0..self.side).flat_map(|row| (0..self.side).map(move |column| (row, column))) {
            let (y, x) = ((y + row).wrapping_sub(self.side / 2), (x + column).wrapping_sub(self.side / 2));
            if y >= height || x >= width {
                continue;
            }
            for channel in 0..self.from {
                let weight = ((output * self.from + channel) * self.side + row) * self.side + column;
                sum += self.tensors[0][weight] * image[(channel * height + y) * width + x];
            }
        }
        sum
    }

    fn on(&self, device: &Device) -> (Conv2d, GroupNorm) {
        let margin = self.side / 2;
        let mut convolution = Conv2dConfig::new([self.from, self.to], [self.side, self.side])
            .with_stride([self.step, self.step])
            .with_padding(PaddingConfig2d::Explicit(margin, margin, margin, margin))
            .with_bias(false)
            .init(device);
        let mut norm = GroupNormConfig::new(self.to / LANES, self.to).init(device);
        let [weight, scale, shift] = self.tensors.each_ref().map(|values| narrow(values));
        let shape = [self.to, self.from, self.side, self.side];
        convolution.weight =
            convolution.weight.map(|_| tracked(Tensor::from_data(TensorData::new(weight, shape), device)));
        let set = |values: Vec<f32>| tracked(Tensor::<1>::from_data(TensorData::new(values, [self.to]), device));
        norm.gamma = norm.gamma.map(|gamma| gamma.map(|_| set(scale)));
        norm.beta = norm.beta.map(|beta| beta.map(|_| set(shift)));
        (convolution, norm)
    }
}

/// The tensor, with a gradient where its device keeps any.
fn tracked<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    if tensor.device().is_autodiff() { tensor.require_grad() } else { tensor }
}

fn narrow(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&value| value as f32).collect()
}

impl Images {
    fn drawn(channels: usize, height: usize, width: usize, rng: &mut ChaCha8Rng) -> Self {
        let values =
            (0..BATCH * channels * height * width).map(|_| f64::from(2.0 * rng.random::<f32>() - 1.0)).collect();
        Self { channels, height, width, values }
    }

    fn rectified(mut self) -> Self {
        self.values.iter_mut().for_each(|value| *value = value.max(0.0));
        self
    }

    fn plus(mut self, other: &Self) -> Self {
        self.values.iter_mut().zip(&other.values).for_each(|(sum, term)| *sum += term);
        self
    }

    fn on(&self, device: &Device) -> Tensor<4> {
        let shape = [BATCH, self.channels, self.height, self.width];
        Tensor::from_data(TensorData::new(narrow(&self.values), shape), device)
    }
}

/// Images `[batch, channels, height, width]` in planes.
fn in_planes(images: Tensor<4>) -> Tensor<4> {
    let [batch, channels, height, width] = images.dims();
    images.reshape([batch, channels / LANES, LANES, height * width]).permute([0, 1, 3, 2])
}

fn of_planes(planes: Tensor<4>, [height, width]: [usize; 2]) -> Tensor<4> {
    let [batch, count, ..] = planes.dims();
    planes.permute([0, 1, 3, 2]).reshape([batch, count * LANES, height, width])
}

fn floats<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec().unwrap()
}

/// A way from images through layers, computed in double precision.
type Way = fn(&Images, &[Reference]) -> Images;

fn stem_in_double(images: &Images, layers: &[Reference]) -> Images {
    layers[0].apply(images).rectified()
}

fn block_in_double(images: &Images, layers: &[Reference]) -> Images {
    let first = layers[0].apply(images).rectified();
    let third = layers[2].apply(&layers[1].apply(&first).rectified());
    let residual = layers.get(3).map_or_else(|| images.clone(), |layer| layer.apply(images));
    third.plus(&residual).rectified()
}

/// Asserts that outputs are those of `way`, and gradients its slopes, for images and all tensors of the layers.
fn assert_gradients(images: &Images, layers: &[Reference], way: Way) {
    const STEP: f64 = 1e-5;
    let device = Device::flex().autodiff();
    let parts: Vec<_> = layers.iter().map(|layer| layer.on(&device)).collect();
    let normed: Vec<_> = parts.iter().map(|(convolution, norm)| Normed { convolution, norm }).collect();
    let input = images.on(&device).require_grad();
    let sides = [images.height, images.width];
    let expected = way(images, layers);
    let output = match *normed.as_slice() {
        [layer] => stem(input.clone(), layer),
        [one, two, three] => bottleneck(in_planes(input.clone()), sides, [one, two, three], None),
        [one, two, three, four] => bottleneck(in_planes(input.clone()), sides, [one, two, three], Some(four)),
        _ => panic!("one, three or four layers"),
    };
    let output = of_planes(output.unwrap(), [expected.height, expected.width]);
    for (place, (found, wanted)) in floats(output.clone()).into_iter().zip(&expected.values).enumerate() {
        assert!(
            (f64::from(found) - wanted).abs() < 1e-4 * (1.0 + wanted.abs()),
            "output {place}: {found} for {wanted}"
        );
    }

    let factors = Images::drawn(expected.channels, expected.height, expected.width, &mut ChaCha8Rng::seed_from_u64(5));
    let gradients = (output * factors.on(&device)).sum().backward();
    let objective = |images: &Images, layers: &[Reference]| -> f64 {
        way(images, layers).values.iter().zip(&factors.values).map(|(value, factor)| value * factor).sum()
    };
    let check = |what: &str, gradient: Vec<f32>, at: &dyn Fn(usize, f64) -> f64| {
        for place in (0..gradient.len()).step_by(1 + gradient.len() / 7) {
            let slope = (at(place, STEP) - at(place, -STEP)) / (2.0 * STEP);
            let found = f64::from(gradient[place]);
            assert!((found - slope).abs() < 2e-3 * (1.0 + slope.abs()), "{what} {place}: {found} for {slope}");
        }
    };
    if layers.len() > 1 {
        check("images", floats(input.grad(&gradients).unwrap()), &|place, step| {
            let mut images = images.clone();
            images.values[place] += step;
            objective(&images, layers)
        });
    }
    for (layer, (convolution, norm)) in parts.iter().enumerate() {
        let of_norm = [&norm.gamma, &norm.beta].map(|tensor| tensor.as_ref().unwrap().val().grad(&gradients).unwrap());
        let [scale, shift] = of_norm.map(floats);
        let weight = floats(convolution.weight.val().grad(&gradients).unwrap());
        for (tensor, gradient) in [weight, scale, shift].into_iter().enumerate() {
            check(&format!("layer {layer}, tensor {tensor},"), gradient, &|place, step| {
                let mut layers = layers.to_vec();
                layers[layer].tensors[tensor][place] += step;
                objective(images, &layers)
            });
        }
    }
}

#[test]
fn the_gradients_of_a_stem_are_slopes() {
    for channels in [1, 3] {
        let rng = &mut ChaCha8Rng::seed_from_u64(1);
        let layers = [Reference::drawn(channels, 32, 3, 1, rng)];
        assert_gradients(&Images::drawn(channels, 4, 8, rng), &layers, stem_in_double);
    }
}

#[test]
fn the_gradients_of_a_block_are_slopes() {
    // Of one shape, with a shortcut, and with a shortcut to half the sides.
    for (from, narrow, to, step) in [(32, 16, 32, 1), (16, 16, 48, 1), (32, 32, 16, 2)] {
        let rng = &mut ChaCha8Rng::seed_from_u64(2);
        let mut layers = vec![
            Reference::drawn(from, narrow, 1, 1, rng),
            Reference::drawn(narrow, narrow, 3, step, rng),
            Reference::drawn(narrow, to, 1, 1, rng),
        ];
        if from != to {
            layers.push(Reference::drawn(from, to, 1, step, rng));
        }
        assert_gradients(&Images::drawn(from, 6, 4, rng), &layers, block_in_double);
    }
}

#[test]
fn an_output_is_the_same_with_and_without_a_backward_pass() {
    let rng = &mut ChaCha8Rng::seed_from_u64(3);
    let references =
        [(16, 16, 1), (16, 16, 3), (16, 16, 1)].map(|(from, to, side)| Reference::drawn(from, to, side, 1, rng));
    let images = Images::drawn(16, 4, 4, rng);
    let [one, other] = [Device::flex(), Device::flex().autodiff()].map(|device| {
        let parts = references.each_ref().map(|layer| layer.on(&device));
        let layers = parts.each_ref().map(|(convolution, norm)| Normed { convolution, norm });
        floats(bottleneck(in_planes(images.on(&device)), [4, 4], layers, None).unwrap())
    });
    assert_eq!(one, other);
}
