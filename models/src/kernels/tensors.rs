//! Conversions between burn's tensors and slices of numbers.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Shape, TensorData};

/// The tensor with its values one after the other, in the order of its shape.
pub(super) fn contiguous(tensor: FlexTensor) -> FlexTensor {
    if tensor.is_contiguous() { tensor } else { tensor.to_contiguous() }
}

/// The values of a [`contiguous`] tensor.
pub(super) fn floats(tensor: &FlexTensor) -> &[f32] {
    tensor.as_slice().expect("a contiguous tensor of f32, which all parameters and features are")
}

pub(super) fn tensor(values: Vec<f32>, shape: impl Into<Shape>) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values, shape))
}
