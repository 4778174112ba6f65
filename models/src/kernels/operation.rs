//! The block as an operation on burn's tensors, with its gradient.

use std::sync::Arc;

use burn::Tensor;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Flex};

use super::backward;
use super::forward::{Pooled, forward};
use super::geometry::Geometry;
use super::tensors::{contiguous, floats, tensor};

/// `relu(max of each 2 x 2 of (images * weight) + bias)`: `[batch, height, width, channels]` to
/// `[batch, height / 2, width / 2, outputs]`, where height and width are even and `weight` is
/// `[outputs, channels, side, side]` with an odd side. `None` for tensors that are not on burn's
/// flex device.
pub(crate) fn pooled_convolution(images: Tensor<4>, weight: Tensor<4>, bias: Tensor<1>) -> Option<Tensor<4>> {
    let [_, height, width, channels] = images.dims();
    let [outputs, _, side, _] = weight.dims();
    let geometry = Geometry { height, width, channels, outputs, side };
    if images.device().is_autodiff() {
        let images = images.try_into_primitive::<Autodiff<Flex>>().ok()?;
        let weight = weight.try_into_primitive::<Autodiff<Flex>>().ok()?;
        let bias = bias.try_into_primitive::<Autodiff<Flex>>().ok()?;
        Some(Tensor::from_primitive::<Autodiff<Flex>>(tracked(geometry, images, weight, bias)))
    } else {
        let images = contiguous(images.try_into_primitive::<Flex>().ok()?);
        let weight = contiguous(weight.try_into_primitive::<Flex>().ok()?);
        let bias = contiguous(bias.try_into_primitive::<Flex>().ok()?);
        Some(Tensor::from_primitive::<Flex>(compute(&geometry, &images, &weight, &bias).0))
    }
}

/// Computes a block, and leaves behind what the way back needs.
fn tracked(
    geometry: Geometry,
    images: FloatTensor<Autodiff<Flex>>,
    weight: FloatTensor<Autodiff<Flex>>,
    bias: FloatTensor<Autodiff<Flex>>,
) -> FloatTensor<Autodiff<Flex>> {
    let (images, of_images) = images.into_parts();
    let (weight, of_weight) = weight.into_parts();
    let (bias, of_bias) = bias.into_parts();
    let [images, weight, bias] = [images, weight, bias].map(contiguous);
    let (output, winners) = compute(&geometry, &images, &weight, &bias);
    match PooledConvolution.prepare::<NoCheckpointing>([of_images, of_weight, of_bias]).compute_bound().stateful() {
        OpsKind::Tracked(operation) => operation.finish(Seen { geometry, images, weight, winners }, output),
        OpsKind::UnTracked(operation) => operation.finish(output),
    }
}

fn compute(
    geometry: &Geometry,
    images: &FlexTensor,
    weight: &FlexTensor,
    bias: &FlexTensor,
) -> (FlexTensor, Arc<[u8]>) {
    let Pooled { values, winners } = forward(geometry, floats(images), floats(weight), floats(bias));
    let batch = images.layout().shape()[0];
    let shape = [batch, geometry.height / 2, geometry.width / 2, geometry.outputs];
    (tensor(values, shape), winners.into())
}

/// The block on burn's tape.
#[derive(Debug)]
struct PooledConvolution;

/// What the way back needs.
#[derive(Clone, Debug)]
struct Seen {
    geometry: Geometry,
    images: FlexTensor,
    weight: FlexTensor,
    winners: Arc<[u8]>,
}

impl Backward<Flex, 3> for PooledConvolution {
    type State = Seen;

    fn backward(self, ops: Ops<Seen, 3>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let Seen { geometry, images, weight, winners } = ops.state;
        let gradient = contiguous(gradients.consume::<Flex>(&ops.node));
        let [of_images, of_weight, of_bias] = ops.parents;
        if let Some(node) = of_images {
            let values = backward::of_images(&geometry, floats(&weight), floats(&gradient), &winners);
            gradients.register::<Flex>(node.id, tensor(values, images.layout().shape().clone()));
        }
        if of_weight.is_none() && of_bias.is_none() {
            return;
        }
        let (values, bias) = backward::of_weight(&geometry, floats(&images), floats(&gradient), &winners);
        if let Some(node) = of_weight {
            gradients.register::<Flex>(node.id, tensor(values, weight.layout().shape().clone()));
        }
        if let Some(node) = of_bias {
            gradients.register::<Flex>(node.id, tensor(bias, [geometry.outputs]));
        }
    }
}
