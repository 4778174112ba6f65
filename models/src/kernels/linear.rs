//! A linear layer.

use burn::Tensor;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Flex};
use burn::nn;
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

use super::tensors::{contiguous, floats, tensor};

/// Multiplications from which on a product is divided among threads.
const WORTH_DIVIDING: usize = 1 << 23;

/// `input x weight + bias`: `[batch, inputs]` to `[batch, outputs]`.
pub(crate) fn linear(layer: &nn::Linear, input: Tensor<2>) -> Tensor<2> {
    on_processor(layer, input.clone()).unwrap_or_else(|| layer.forward(input))
}

/// `None` if the layer is not on burn's flex device, or has no bias.
fn on_processor(layer: &nn::Linear, input: Tensor<2>) -> Option<Tensor<2>> {
    let (weight, bias) = (layer.weight.val(), layer.bias.as_ref()?.val());
    if input.device().is_autodiff() {
        let input = input.try_into_primitive::<Autodiff<Flex>>().ok()?;
        let weight = weight.try_into_primitive::<Autodiff<Flex>>().ok()?;
        let bias = bias.try_into_primitive::<Autodiff<Flex>>().ok()?;
        Some(Tensor::from_primitive::<Autodiff<Flex>>(tracked(input, weight, bias)))
    } else {
        let input = contiguous(input.try_into_primitive::<Flex>().ok()?);
        let weight = contiguous(weight.try_into_primitive::<Flex>().ok()?);
        let bias = contiguous(bias.try_into_primitive::<Flex>().ok()?);
        Some(Tensor::from_primitive::<Flex>(compute(&input, &weight, &bias)))
    }
}

/// Computes the layer, and leaves behind what the way back needs.
fn tracked(
    input: FloatTensor<Autodiff<Flex>>,
    weight: FloatTensor<Autodiff<Flex>>,
    bias: FloatTensor<Autodiff<Flex>>,
) -> FloatTensor<Autodiff<Flex>> {
    let (input, of_input) = input.into_parts();
    let (weight, of_weight) = weight.into_parts();
    let (bias, of_bias) = bias.into_parts();
    let [input, weight, bias] = [input, weight, bias].map(contiguous);
    let output = compute(&input, &weight, &bias);
    match Linear.prepare::<NoCheckpointing>([of_input, of_weight, of_bias]).compute_bound().stateful() {
        OpsKind::Tracked(operation) => operation.finish((input, weight), output),
        OpsKind::UnTracked(operation) => operation.finish(output),
    }
}

fn compute(input: &FlexTensor, weight: &FlexTensor, bias: &FlexTensor) -> FlexTensor {
    let ([batch, inputs], [_, outputs]) = (sides(input), sides(weight));
    let mut output = floats(bias).repeat(batch);
    multiply(
        MatMut::from_row_major_slice_mut(&mut output, batch, outputs),
        Accum::Add,
        MatRef::from_row_major_slice(floats(input), batch, inputs),
        MatRef::from_row_major_slice(floats(weight), inputs, outputs),
    );
    tensor(output, [batch, outputs])
}

/// The layer on burn's tape.
#[derive(Debug)]
struct Linear;

impl Backward<Flex, 3> for Linear {
    /// Input and weight.
    type State = (FlexTensor, FlexTensor);

    fn backward(self, ops: Ops<Self::State, 3>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let (input, weight) = ops.state;
        let ([batch, inputs], [_, outputs]) = (sides(&input), sides(&weight));
        let gradient = contiguous(gradients.consume::<Flex>(&ops.node));
        let gradient = floats(&gradient);
        let of_output = MatRef::from_row_major_slice(gradient, batch, outputs);
        let [of_input, of_weight, of_bias] = ops.parents;
        if let Some(node) = of_input {
            let mut values = vec![0.0; batch * inputs];
            let weight = MatRef::from_row_major_slice(floats(&weight), inputs, outputs);
            let product = MatMut::from_row_major_slice_mut(&mut values, batch, inputs);
            multiply(product, Accum::Replace, of_output, weight.transpose());
            gradients.register::<Flex>(node.id, tensor(values, [batch, inputs]));
        }
        if let Some(node) = of_weight {
            let mut values = vec![0.0; inputs * outputs];
            let input = MatRef::from_row_major_slice(floats(&input), batch, inputs);
            let product = MatMut::from_row_major_slice_mut(&mut values, inputs, outputs);
            multiply(product, Accum::Replace, input.transpose(), of_output);
            gradients.register::<Flex>(node.id, tensor(values, [inputs, outputs]));
        }
        if let Some(node) = of_bias {
            gradients.register::<Flex>(node.id, tensor(column_sums(gradient, outputs), [outputs]));
        }
    }
}

fn multiply(product: MatMut<'_, f32>, accumulate: Accum, left: MatRef<'_, f32>, right: MatRef<'_, f32>) {
    let multiplications = left.nrows() * left.ncols() * right.ncols();
    let threads = if multiplications < WORTH_DIVIDING { Par::Seq } else { Par::rayon(0) };
    matmul(product, accumulate, left, right, 1.0, threads);
}

fn column_sums(rows: &[f32], columns: usize) -> Vec<f32> {
    let mut sums = vec![0.0; columns];
    for row in rows.chunks_exact(columns) {
        for (sum, term) in sums.iter_mut().zip(row) {
            *sum += term;
        }
    }
    sums
}

fn sides(tensor: &FlexTensor) -> [usize; 2] {
    let shape = tensor.layout().shape();
    [shape[0], shape[1]]
}
