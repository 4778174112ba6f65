//! The first layer: a convolution of images, a norm and a rectifier.

use std::sync::Arc;

use burn::Tensor;
use burn::backend::flex::FlexTensor;
use rayon::prelude::*;

use super::group_norm::Statistics;
use super::layer::{ConvNorm, Gradients};
use super::patches::{Geometry, Planes};
use super::{LANES, Normed};
use crate::kernels::recycled::Recycled;
use crate::kernels::tape::{Operation, apply_all};
use crate::kernels::tensors::{floats, tensor};

/// Images whose gradients are added up one after the other.
pub(super) const IMAGES_AT_ONCE: usize = 8;

/// `relu(norm(convolution(images)))`: `[batch, channels, height, width]` to planes, `[batch, planes, height * width, LANES]`.
/// The images get no gradient. `None` for tensors that are not on burn's flex device.
pub(crate) fn stem(images: Tensor<4>, layer: Normed<'_>) -> Option<Tensor<4>> {
    let [_, from, height, width] = images.dims();
    let [weight, scale, shift] = layer.tensors()?;
    let [to, _, side, _] = weight.dims();
    let layer = ConvNorm::new(Geometry { from, lanes: from, to, side, step: 1, height, width });
    apply_all(Stem { layer }, [images, weight, scale, shift])
}

#[derive(Clone, Debug)]
struct Stem {
    layer: ConvNorm,
}

/// The tensors that the backward pass needs.
#[derive(Clone, Debug)]
struct Seen {
    tensors: [FlexTensor; 4],
    /// The outputs of the convolution.
    convolved: Arc<Recycled>,
    statistics: Vec<Statistics>,
}

impl Operation<4> for Stem {
    type Seen = Seen;

    fn forward(&self, tensors: [FlexTensor; 4]) -> (FlexTensor, Seen) {
        let layer = &self.layer;
        let Geometry { height, width, .. } = layer.geometry;
        let [images, parts @ ..] = tensors.each_ref().map(floats);
        let weights = layer.weights(parts, false);
        let batch = images.len() / layer.geometry.input();
        let mut values = vec![0.0; batch * layer.geometry.output()];
        let mut convolved = Recycled::any(values.len());
        let mut statistics = vec![Statistics::default(); batch * layer.planes()];
        let outputs = convolved.numbers_mut().par_chunks_exact_mut(layer.geometry.output());
        let outputs = outputs.zip(statistics.par_chunks_exact_mut(layer.planes()));
        let images = images.par_chunks_exact(layer.geometry.input());
        let values_of = values.par_chunks_exact_mut(layer.geometry.output());
        images.zip(outputs).zip(values_of).for_each_init(
            || self.blank(),
            |padded, ((image, (convolved, statistics)), values)| {
                self.pad(image, padded);
                layer.convolve(&weights, padded, convolved, statistics);
                let planes = Planes { margin: 0, ..layer.geometry.padded_output() };
                layer.rectified(&weights, (convolved, statistics), planes, values);
            },
        );
        let output = tensor(values, [batch, layer.planes(), height * width, LANES]);
        (output, Seen { tensors, convolved: convolved.into(), statistics })
    }

    fn backward(&self, seen: &Seen, gradient: &FlexTensor, _: [bool; 4]) -> [Option<FlexTensor>; 4] {
        let layer = &self.layer;
        let [images, parts @ ..] = seen.tensors.each_ref().map(floats);
        let weights = layer.weights(parts, false);
        let input = layer.geometry.input();
        let output = layer.geometry.output();
        let gradients = floats(gradient).par_chunks(IMAGES_AT_ONCE * output);
        let convolved = seen.convolved.numbers().par_chunks(IMAGES_AT_ONCE * output);
        let outputs = convolved.zip(seen.statistics.par_chunks(IMAGES_AT_ONCE * layer.planes()));
        let parts = images.par_chunks(IMAGES_AT_ONCE * input).zip(outputs).zip(gradients);
        let parts = parts.map(|((images, (convolved, statistics)), gradients)| {
            let mut sums = layer.no_gradients();
            let mut padded = self.blank();
            let mut of_output = vec![0.0; layer.planes() * layer.geometry.padded_output().size()];
            let outputs = convolved.chunks_exact(output).zip(statistics.chunks_exact(layer.planes()));
            let images = images.chunks_exact(input).zip(outputs).zip(gradients.chunks_exact(output));
            for ((image, seen), gradient) in images {
                layer.of_norm(&weights, seen, gradient, true, (&mut of_output, &mut sums));
                self.pad(image, &mut padded);
                layer.of_weights(&padded, &of_output, &mut sums);
            }
            vec![sums]
        });
        let sums = summed(parts.collect(), || vec![layer.no_gradients()]);
        let mut gradients = sums.iter().flat_map(|sums| layer.in_given_order(sums)).zip(&seen.tensors[1..]);
        let mut next = || gradients.next().map(|(values, of)| tensor(values, of.layout().shape().clone()));
        [None, next(), next(), next()]
    }
}

impl Stem {
    /// Zeros for an image with its margins.
    fn blank(&self) -> Vec<f32> {
        vec![0.0; self.layer.geometry.padded_input().size()]
    }

    /// Copies an image `[channels, height, width]` into the middle of `[height, width, channels]`.
    fn pad(&self, image: &[f32], padded: &mut [f32]) {
        let Geometry { from, height, width, .. } = self.layer.geometry;
        let planes = self.layer.geometry.padded_input();
        for (channel, plane) in image.chunks_exact(height * width).enumerate() {
            for (row, to) in plane.chunks_exact(width).zip(planes.rows_mut(padded)) {
                row.iter().zip(to.chunks_exact_mut(from)).for_each(|(value, pixel)| pixel[channel] = *value);
            }
        }
    }
}

/// The sums of the gradients of each layer over parts in their order.
pub(super) fn summed(parts: Vec<Vec<Gradients>>, none: impl FnOnce() -> Vec<Gradients>) -> Vec<Gradients> {
    let mut parts = parts.into_iter();
    let mut sums = parts.next().unwrap_or_else(none);
    parts.for_each(|part| sums.iter_mut().zip(&part).for_each(|(sum, part)| sum.add(part)));
    sums
}
