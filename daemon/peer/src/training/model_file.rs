//! A model as a safetensors file, by its layout.

use std::collections::{BTreeMap, HashMap};

use safetensors::Dtype;
use safetensors::tensor::TensorView;

use super::{Layout, TrainingError};

/// The bytes of the file: tensors in the names and shapes of the layout. Equal models and metadata give equal bytes.
///
/// # Errors
/// The vector has another length than the layout, or two tensors share a name.
pub(crate) fn encode(
    layout: &Layout,
    parameters: &[f32],
    metadata: &BTreeMap<String, String>,
) -> Result<Vec<u8>, TrainingError> {
    if parameters.len() != layout.dimension() {
        return Err(format!("{} numbers for a layout of {}", parameters.len(), layout.dimension()).into());
    }
    let bytes: Vec<u8> = parameters.iter().flat_map(|value| value.to_le_bytes()).collect();
    let mut rest = bytes.as_slice();
    let mut views = BTreeMap::new();
    for tensor in layout.tensors() {
        let (own, others) = rest.split_at(tensor.len() * size_of::<f32>());
        rest = others;
        let view = TensorView::new(Dtype::F32, tensor.shape.clone(), own)?;
        if views.insert(tensor.name.clone(), view).is_some() {
            return Err(format!("two tensors are called `{}`", tensor.name).into());
        }
    }
    // In the order of their keys: a map of the standard library would write them in a random one.
    let mut file = safetensors::serialize(views, None::<HashMap<String, String>>)?;
    insert_metadata(&mut file, metadata)?;
    Ok(file)
}

/// The header starts after its length, a little-endian 64-bit number, and the tensors start at multiples of that.
const WORD: usize = 8;

fn insert_metadata(file: &mut Vec<u8>, metadata: &BTreeMap<String, String>) -> Result<(), TrainingError> {
    let length = file.first_chunk().map_or(0, |bytes: &[u8; WORD]| u64::from_le_bytes(*bytes));
    let end = WORD + usize::try_from(length)?;
    let header = file.get(WORD..end).ok_or("the header of the model file is cut off")?;
    let mut entries: BTreeMap<String, serde_json::Value> = serde_json::from_slice(header)?;
    entries.insert("__metadata__".to_owned(), serde_json::to_value(metadata)?);
    let mut header = serde_json::to_vec(&entries)?;
    header.resize(header.len().next_multiple_of(WORD), b' ');
    let length = (header.len() as u64).to_le_bytes();
    file.splice(..end, length.into_iter().chain(header));
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use safetensors::SafeTensors;

    #[test]
    fn tensors_have_the_names_the_shapes_and_the_numbers_of_the_layout() {
        let layout = Layout::new([("second", vec![2, 2]), ("first", vec![1])]);
        let metadata = BTreeMap::from([("round".to_owned(), "7".to_owned()), ("a".to_owned(), "b".to_owned())]);
        let file = encode(&layout, &[1.0, 2.0, 3.0, 4.0, 5.0], &metadata).unwrap();
        assert_eq!(encode(&layout, &[1.0, 2.0, 3.0, 4.0, 5.0], &metadata).unwrap(), file, "equal bytes");
        let read = SafeTensors::deserialize(&file).unwrap();
        let tensor = read.tensor("second").unwrap();
        assert_eq!((tensor.shape(), tensor.data().len()), (&[2, 2][..], 16));
        assert_eq!(tensor.data()[..4], 1.0_f32.to_le_bytes());
        assert_eq!(read.tensor("first").unwrap().data(), 5.0_f32.to_le_bytes());
        let (_, header) = SafeTensors::read_metadata(&file).unwrap();
        assert_eq!(header.metadata().as_ref().unwrap().len(), 2);
        assert!(encode(&layout, &[1.0], &metadata).unwrap_err().to_string().contains("1 numbers for a layout of 5"));
    }
}
