//! Operations on burn's tensors, with their gradients.

use burn::Tensor;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::autodiff::grads::Gradients as Tape;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::backend::{Autodiff, BackendTypes, Flex};

use super::tensors::contiguous;

/// An operation on `N` tensors. All tensors passed to it are contiguous.
pub(super) trait Operation<const N: usize>: Clone + std::fmt::Debug + Send + 'static {
    /// The values that the backward pass needs.
    type Seen: Clone + std::fmt::Debug + Send + 'static;

    /// Returns the output, and the values that the backward pass needs.
    fn forward(&self, inputs: [FlexTensor; N]) -> (FlexTensor, Self::Seen);

    /// The output alone, where no backward pass follows.
    fn infer(&self, inputs: [FlexTensor; N]) -> FlexTensor {
        self.forward(inputs).0
    }

    /// The gradients of the inputs marked in `wanted`, given that of the output.
    fn backward(&self, seen: &Self::Seen, gradient: &FlexTensor, wanted: [bool; N]) -> [Option<FlexTensor>; N];
}

/// Computes a layer. `None` for tensors that are not on burn's flex device.
pub(super) fn apply<O: Operation<3>, const D: usize>(
    layer: O,
    input: Tensor<D>,
    weight: Tensor<D>,
    bias: Tensor<1>,
) -> Option<Tensor<D>> {
    if input.device().is_autodiff() {
        return tracked(layer, [tracked_part(input)?, tracked_part(weight)?, tracked_part(bias)?]);
    }
    plain(&layer, [plain_part(input)?, plain_part(weight)?, plain_part(bias)?])
}

/// Computes an operation on one tensor. `None` where it is not on burn's flex device.
pub(super) fn apply_to<O: Operation<1>, const D: usize>(operation: O, input: Tensor<D>) -> Option<Tensor<D>> {
    if input.device().is_autodiff() {
        return tracked(operation, [tracked_part(input)?]);
    }
    plain(&operation, [plain_part(input)?])
}

/// Computes an operation on an input and weights. `None` for tensors that are not on burn's flex device.
pub(super) fn apply_with<O: Operation<2>, const D: usize, const W: usize>(
    operation: O,
    input: Tensor<D>,
    weight: Tensor<W>,
) -> Option<Tensor<D>> {
    if input.device().is_autodiff() {
        return tracked(operation, [tracked_part(input)?, tracked_part(weight)?]);
    }
    plain(&operation, [plain_part(input)?, plain_part(weight)?])
}

/// Computes an operation on several tensors. `None` for tensors that are not on burn's flex device.
pub(super) fn apply_all<O: Operation<N>, const N: usize, const D: usize>(
    operation: O,
    inputs: [Tensor<D>; N],
) -> Option<Tensor<D>> {
    if inputs.first()?.device().is_autodiff() {
        let parts = inputs.into_iter().map(tracked_part).collect::<Option<Vec<_>>>()?;
        return tracked(operation, parts.try_into().ok()?);
    }
    let parts = inputs.into_iter().map(plain_part).collect::<Option<Vec<_>>>()?;
    plain(&operation, parts.try_into().ok()?)
}

fn plain_part<const D: usize>(tensor: Tensor<D>) -> Option<FlexTensor> {
    Some(contiguous(tensor.try_into_primitive::<Flex>().ok()?))
}

fn plain<O: Operation<N>, const N: usize, const D: usize>(operation: &O, inputs: [FlexTensor; N]) -> Option<Tensor<D>> {
    Some(Tensor::from_primitive::<Flex>(operation.infer(inputs)))
}

/// A tensor on the autodiff tape.
type Tracked = <Autodiff<Flex> as BackendTypes>::FloatTensorPrimitive;

fn tracked_part<const D: usize>(tensor: Tensor<D>) -> Option<Tracked> {
    tensor.try_into_primitive::<Autodiff<Flex>>().ok()
}

fn tracked<O: Operation<N>, const N: usize, const D: usize>(operation: O, inputs: [Tracked; N]) -> Option<Tensor<D>>
where
    TapeNode<O>: Backward<Flex, N, State = O::Seen>,
{
    let mut parents = Vec::with_capacity(N);
    let tensors = inputs.map(|input| {
        let (tensor, parent) = input.into_parts();
        parents.push(parent);
        contiguous(tensor)
    });
    let parents: [_; N] = parents.try_into().ok()?;
    let (output, seen) = operation.forward(tensors);
    let node = TapeNode(operation).prepare::<NoCheckpointing>(parents).compute_bound();
    Some(Tensor::from_primitive::<Autodiff<Flex>>(match node.stateful() {
        OpsKind::Tracked(node) => node.finish(seen, output),
        OpsKind::UnTracked(node) => node.finish(output),
    }))
}

/// An operation on the autodiff tape.
#[derive(Debug)]
struct TapeNode<O>(O);

impl<O: Operation<N>, const N: usize> Backward<Flex, N> for TapeNode<O> {
    type State = O::Seen;

    fn backward(self, ops: Ops<O::Seen, N>, tape: &mut Tape, _: &mut Checkpointer) {
        let gradient = contiguous(tape.consume::<Flex>(&ops.node));
        let wanted = ops.parents.each_ref().map(Option::is_some);
        let gradients = self.0.backward(&ops.state, &gradient, wanted);
        for (parent, gradient) in ops.parents.into_iter().zip(gradients) {
            if let (Some(parent), Some(gradient)) = (parent, gradient) {
                tape.register::<Flex>(parent.id, gradient);
            }
        }
    }
}
