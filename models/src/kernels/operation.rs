//! A block as an operation on burn's tensors.

use std::sync::Arc;

use burn::Tensor;
use burn::backend::flex::FlexTensor;

use super::backward;
use super::forward::{Pooled, forward};
use super::geometry::Geometry;
use super::tape::{Layer, apply};
use super::tensors::{floats, tensor};

/// `relu(max of each 2 x 2 of (images * weight) + bias)`: `[batch, height, width, channels]` to
/// `[batch, height / 2, width / 2, outputs]`, where height and width are even and `weight` is
/// `[outputs, channels, side, side]` with an odd side. `None` for tensors that are not on burn's
/// flex device.
pub(crate) fn pooled_convolution(images: Tensor<4>, weight: Tensor<4>, bias: Tensor<1>) -> Option<Tensor<4>> {
    let [_, height, width, channels] = images.dims();
    let [outputs, _, side, _] = weight.dims();
    apply(Geometry { height, width, channels, outputs, side }, images, weight, bias)
}

/// The arrays that the backward pass of a block needs.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    images: FlexTensor,
    weight: FlexTensor,
    winners: Arc<[u8]>,
}

impl Layer for Geometry {
    type Seen = Seen;

    fn forward(&self, images: FlexTensor, weight: FlexTensor, bias: FlexTensor) -> (FlexTensor, Seen) {
        let Pooled { values, winners } = forward(self, floats(&images), floats(&weight), floats(&bias));
        let batch = images.layout().shape()[0];
        let output = tensor(values, [batch, self.height / 2, self.width / 2, self.outputs]);
        (output, Seen { images, weight, winners: winners.into() })
    }

    fn of_input(&self, seen: &Seen, gradient: &FlexTensor) -> FlexTensor {
        let values = backward::of_images(self, floats(&seen.weight), floats(gradient), &seen.winners);
        tensor(values, seen.images.layout().shape().clone())
    }

    fn of_weight(&self, seen: &Seen, gradient: &FlexTensor) -> (FlexTensor, FlexTensor) {
        let (weight, bias) = backward::of_weight(self, floats(&seen.images), floats(gradient), &seen.winners);
        (tensor(weight, seen.weight.layout().shape().clone()), tensor(bias, [self.outputs]))
    }
}
