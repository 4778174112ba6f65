//! A block as an operation on burn's tensors.

use std::sync::Arc;

use burn::Tensor;
use burn::backend::flex::FlexTensor;

use super::backward;
use super::forward::{Pooled, forward};
use super::geometry::Geometry;
use super::tape::{Operation, apply};
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

impl Operation<3> for Geometry {
    type Seen = Seen;

    fn forward(&self, [images, weight, bias]: [FlexTensor; 3]) -> (FlexTensor, Seen) {
        let Pooled { values, winners } = forward(self, floats(&images), floats(&weight), floats(&bias));
        let batch = images.layout().shape()[0];
        let output = tensor(values, [batch, self.height / 2, self.width / 2, self.outputs]);
        (output, Seen { images, weight, winners: winners.into() })
    }

    fn backward(&self, seen: &Seen, gradient: &FlexTensor, wanted: [bool; 3]) -> [Option<FlexTensor>; 3] {
        let Seen { images, weight, winners } = seen;
        let of_images = wanted[0].then(|| {
            let values = backward::of_images(self, floats(weight), floats(gradient), winners);
            tensor(values, images.layout().shape().clone())
        });
        if !wanted[1] && !wanted[2] {
            return [of_images, None, None];
        }
        let (of_weight, of_bias) = backward::of_weight(self, floats(images), floats(gradient), winners);
        let of_weight = tensor(of_weight, weight.layout().shape().clone());
        [of_images, Some(of_weight), Some(tensor(of_bias, [self.outputs]))]
    }
}
