//! Model files in half precision, as other programs write them: read as 32-bit numbers.

use std::collections::{BTreeMap, HashMap};

use half::{bf16, f16};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

/// The numbers in a tensor's little-endian bytes, of the types in which models are read: `F32`, `F16` and `BF16`. `None`
/// for any other type.
pub(crate) fn numbers<'a>(dtype: Dtype, bytes: &'a [u8]) -> Option<Box<dyn Iterator<Item = f32> + 'a>> {
    let halves = || bytes.as_chunks().0.iter().copied();
    match dtype {
        Dtype::F32 => Some(Box::new(bytes.as_chunks().0.iter().map(|number| f32::from_le_bytes(*number)))),
        Dtype::F16 => Some(Box::new(halves().map(|half| f16::from_le_bytes(half).to_f32()))),
        Dtype::BF16 => Some(Box::new(halves().map(|half| bf16::from_le_bytes(half).to_f32()))),
        _ => None,
    }
}

/// A safetensors file with its tensors of half precision as 32-bit numbers; a file without any stays as it is.
pub(crate) fn widened(file: Vec<u8>) -> Result<Vec<u8>, String> {
    let (_, header) = SafeTensors::read_metadata(&file).map_err(|error| error.to_string())?;
    let tensors = SafeTensors::deserialize(&file).map_err(|error| error.to_string())?;
    let is_half = |dtype| matches!(dtype, Dtype::F16 | Dtype::BF16);
    if !tensors.iter().any(|(_, tensor)| is_half(tensor.dtype())) {
        return Ok(file);
    }
    let metadata: HashMap<String, String> = header.metadata().clone().into_iter().flatten().collect();
    let wide = tensors.iter().map(|(name, tensor)| {
        let numbers = numbers(tensor.dtype(), tensor.data()).filter(|_| is_half(tensor.dtype()));
        let (dtype, bytes) = match numbers {
            Some(numbers) => (Dtype::F32, numbers.flat_map(f32::to_le_bytes).collect()),
            None => (tensor.dtype(), tensor.data().to_vec()),
        };
        (name, (dtype, tensor.shape().to_vec(), bytes))
    });
    let wide: BTreeMap<&str, (Dtype, Vec<usize>, Vec<u8>)> = wide.collect();
    let views = wide.iter().map(|(name, (dtype, shape, bytes))| {
        TensorView::new(*dtype, shape.clone(), bytes).map(|view| (*name, view)).map_err(|error| error.to_string())
    });
    let views: BTreeMap<&str, TensorView<'_>> = views.collect::<Result<_, _>>()?;
    safetensors::serialize(views, Some(metadata)).map_err(|error| error.to_string())
}
