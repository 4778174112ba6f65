//! Layers as operations on burn's tensors, with their gradients.

use burn::Tensor;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::autodiff::grads::Gradients as Tape;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::backend::{Autodiff, Flex};

use super::tensors::contiguous;

/// Something that is computed from an input, weights and biases. All tensors it meets are
/// contiguous.
pub(super) trait Layer: Clone + std::fmt::Debug + Send + 'static {
    /// What the way back needs.
    type Seen: Clone + std::fmt::Debug + Send + 'static;

    /// The output, and what the way back needs.
    fn forward(&self, input: FlexTensor, weight: FlexTensor, bias: FlexTensor) -> (FlexTensor, Self::Seen);

    /// The gradient of the input, given that of the output.
    fn of_input(&self, seen: &Self::Seen, gradient: &FlexTensor) -> FlexTensor;

    /// The gradients of weights and biases.
    fn of_weight(&self, seen: &Self::Seen, gradient: &FlexTensor) -> (FlexTensor, FlexTensor);
}

/// Computes a layer. `None` for tensors that are not on burn's flex device.
pub(super) fn apply<L: Layer, const D: usize>(
    layer: L,
    input: Tensor<D>,
    weight: Tensor<D>,
    bias: Tensor<1>,
) -> Option<Tensor<D>> {
    if !input.device().is_autodiff() {
        let input = contiguous(input.try_into_primitive::<Flex>().ok()?);
        let weight = contiguous(weight.try_into_primitive::<Flex>().ok()?);
        let bias = contiguous(bias.try_into_primitive::<Flex>().ok()?);
        return Some(Tensor::from_primitive::<Flex>(layer.forward(input, weight, bias).0));
    }
    let (input, of_input) = input.try_into_primitive::<Autodiff<Flex>>().ok()?.into_parts();
    let (weight, of_weight) = weight.try_into_primitive::<Autodiff<Flex>>().ok()?.into_parts();
    let (bias, of_bias) = bias.try_into_primitive::<Autodiff<Flex>>().ok()?.into_parts();
    let (output, seen) = layer.forward(contiguous(input), contiguous(weight), contiguous(bias));
    let node = Node(layer).prepare::<NoCheckpointing>([of_input, of_weight, of_bias]).compute_bound();
    Some(Tensor::from_primitive::<Autodiff<Flex>>(match node.stateful() {
        OpsKind::Tracked(node) => node.finish(seen, output),
        OpsKind::UnTracked(node) => node.finish(output),
    }))
}

/// A layer on the tape.
#[derive(Debug)]
struct Node<L>(L);

impl<L: Layer> Backward<Flex, 3> for Node<L> {
    type State = L::Seen;

    fn backward(self, ops: Ops<L::Seen, 3>, tape: &mut Tape, _: &mut Checkpointer) {
        let gradient = contiguous(tape.consume::<Flex>(&ops.node));
        let [of_input, of_weight, of_bias] = ops.parents;
        if let Some(node) = of_input {
            tape.register::<Flex>(node.id, self.0.of_input(&ops.state, &gradient));
        }
        if of_weight.is_none() && of_bias.is_none() {
            return;
        }
        let (weight, bias) = self.0.of_weight(&ops.state, &gradient);
        if let Some(node) = of_weight {
            tape.register::<Flex>(node.id, weight);
        }
        if let Some(node) = of_bias {
            tape.register::<Flex>(node.id, bias);
        }
    }
}
