//! Models as safetensors files: tensors by the layout, metadata in the header.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use half::{bf16, f16};
use mingle_plaintext::InputFile;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde_json::{Map, Value};

use crate::{Layout, ModelEncoder, TrainingError};

/// Metadata key of the BLAKE3 hash of a model's numbers, by which the file alone can be checked.
pub const MODEL_CHECKSUM: &str = "data_blake3";

/// Bytes of the header's length, a little-endian number before it; the tensors start at multiples of this.
const WORD: usize = 8;
/// Longest header that the format allows.
const MAX_HEADER_BYTES: u64 = 100_000_000;

impl Layout {
    /// An encoder of models as safetensors files with these tensors in `f32`.
    ///
    /// ```
    /// use mingle_training::Layout;
    ///
    /// let encode = Layout::new([("bias", vec![2])]).encoder();
    /// let file = encode(&[0.5, -1.0])?;
    /// assert_eq!(file[file.len() - 8..], [0, 0, 0, 63, 0, 0, 128, 191]);
    /// # Ok::<(), mingle_training::TrainingError>(())
    /// ```
    pub fn encoder(self) -> ModelEncoder {
        Arc::new(move |parameters| encode(&self, parameters))
    }
}

/// Encodes a model: tensors in the names and shapes of the layout. Equal models give equal bytes.
///
/// # Errors
/// The vector has another length than the layout, or two tensors share a name.
pub fn encode(layout: &Layout, parameters: &[f32]) -> Result<Vec<u8>, TrainingError> {
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
    Ok(safetensors::serialize(views, None::<HashMap<String, String>>)?)
}

/// Reads a model of this layout from a safetensors file: its parameters, `[dimension]`.
///
/// # Errors
/// The file cannot be read or is no safetensors file, has not exactly the tensors of the layout as 32-bit numbers or in
/// half precision, or one of these is not finite.
pub fn read(path: &Path, layout: &Layout) -> Result<Vec<f32>, TrainingError> {
    let limit = MAX_HEADER_BYTES + (WORD + layout.dimension() * size_of::<f32>()) as u64;
    let mut bytes = Vec::new();
    InputFile::open(path)?.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(format!("it is longer than {limit} bytes, more than the model has room for").into());
    }
    decode(layout, &bytes)
}

/// The parameters in the bytes of a file, in the order of the layout.
fn decode(layout: &Layout, bytes: &[u8]) -> Result<Vec<f32>, TrainingError> {
    let file = SafeTensors::deserialize(bytes).map_err(|error| format!("it is no safetensors file: {error}"))?;
    let mut parameters = Vec::with_capacity(layout.dimension());
    for tensor in layout.tensors() {
        let name = &tensor.name;
        let found =
            file.tensor(name).map_err(|_| format!("the model has a tensor `{name}`, which the file has not"))?;
        if found.shape() != tensor.shape {
            let there = found.shape();
            let here = &tensor.shape;
            return Err(format!("tensor `{name}` has shape {there:?} in the file and {here:?} in the model").into());
        }
        let first = parameters.len();
        extend_by(&mut parameters, found.dtype(), found.data()).ok_or_else(|| {
            format!("tensor `{name}` holds {} in the file; models here hold F32, F16 or BF16", found.dtype())
        })?;
        if let Some((index, value)) = parameters[first..].iter().enumerate().find(|(_, value)| !value.is_finite()) {
            return Err(format!("number {index} of tensor `{name}` is {value}").into());
        }
    }
    let known: BTreeSet<&str> = layout.tensors().iter().map(|tensor| tensor.name.as_str()).collect();
    match file.names().into_iter().find(|name| !known.contains(&**name)) {
        Some(name) => Err(format!("the file has a tensor `{name}`, which the model has not").into()),
        None => Ok(parameters),
    }
}

/// Appends the numbers of a tensor's bytes, of 32 bits or in half precision. `None` for any other type.
fn extend_by(parameters: &mut Vec<f32>, dtype: Dtype, bytes: &[u8]) -> Option<()> {
    let halves = || bytes.as_chunks().0.iter().copied();
    match dtype {
        Dtype::F32 => parameters.extend(bytes.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value))),
        Dtype::F16 => parameters.extend(halves().map(|half| f16::from_le_bytes(half).to_f32())),
        Dtype::BF16 => parameters.extend(halves().map(|half| bf16::from_le_bytes(half).to_f32())),
        _ => return None,
    }
    Some(())
}

/// BLAKE3 of the parameters of a model, as little-endian bytes.
pub fn hash(parameters: &[f32]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for value in parameters {
        hasher.update(&value.to_le_bytes());
    }
    *hasher.finalize().as_bytes()
}

/// Adds metadata to the header of a safetensors file, beside the existing ones, and the checksum of its numbers. Keys
/// are sorted: a `HashMap` would write them in random order.
///
/// # Errors
/// The file has no valid safetensors header.
pub fn describe(file: &mut Vec<u8>, metadata: &BTreeMap<String, String>) -> Result<(), TrainingError> {
    let length = file.first_chunk().map_or(0, |bytes: &[u8; WORD]| u64::from_le_bytes(*bytes));
    let end = usize::try_from(length)?.checked_add(WORD).ok_or("the header of the model file is too long")?;
    let (header, data) = file.split_at_checked(end).ok_or("the header of the model file is cut off")?;
    let checksum = blake3::hash(data).to_hex().to_string();
    let mut entries: BTreeMap<String, Value> = serde_json::from_slice(header.get(WORD..).unwrap_or_default())?;
    let mut all = match entries.remove("__metadata__") {
        Some(Value::Object(known)) => known,
        _ => Map::new(),
    };
    all.extend(metadata.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str()))));
    all.insert(MODEL_CHECKSUM.to_owned(), checksum.into());
    let sorted: BTreeMap<String, Value> = all.into_iter().collect();
    entries.insert("__metadata__".to_owned(), serde_json::to_value(sorted)?);
    let mut header = serde_json::to_vec(&entries)?;
    header.resize(header.len().next_multiple_of(WORD), b' ');
    let length = (header.len() as u64).to_le_bytes();
    file.splice(..end, length.into_iter().chain(header));
    Ok(())
}

/// A model file with its tensors of `F32` rounded to the nearest `BF16`, ties to even; the others, and the metadata, stay.
/// The checksum is that of the new numbers.
///
/// # Errors
/// The bytes are no safetensors file.
pub fn rounded_to_bf16(file: &[u8]) -> Result<Vec<u8>, TrainingError> {
    let (_, header) = SafeTensors::read_metadata(file)?;
    let metadata: BTreeMap<String, String> = header.metadata().clone().into_iter().flatten().collect();
    let tensors = SafeTensors::deserialize(file)?;
    let rounded: BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)> = tensors
        .iter()
        .map(|(name, tensor)| {
            let (dtype, data) = match tensor.dtype() {
                Dtype::F32 => (Dtype::BF16, rounded_numbers(tensor.data())),
                other => (other, tensor.data().to_vec()),
            };
            (name.to_owned(), (dtype, tensor.shape().to_vec(), data))
        })
        .collect();
    let views = rounded.iter().map(|(name, (dtype, shape, data))| {
        TensorView::new(*dtype, shape.clone(), data).map(|view| (name.as_str(), view))
    });
    let views: BTreeMap<&str, TensorView<'_>> = views.collect::<Result<_, _>>()?;
    let mut rounded = safetensors::serialize(views, None::<HashMap<String, String>>)?;
    describe(&mut rounded, &metadata)?;
    Ok(rounded)
}

/// Numbers of `f32`, little-endian, as the nearest `bf16`: their upper halves.
fn rounded_numbers(numbers: &[u8]) -> Vec<u8> {
    let rounded = |number: &[u8; 4]| {
        let bits = u32::from_le_bytes(*number);
        let is_nan = f32::from_bits(bits).is_nan();
        // Half a unit of the last place, less one where the place is even: a carry goes up into the exponent.
        let up = bits.wrapping_add(0x7fff + ((bits >> 16) & 1));
        // A number that is none stays so, whatever bits it loses.
        let bits = if is_nan { bits | 0x0040_0000 } else { up };
        ((bits >> 16) as u16).to_le_bytes()
    };
    numbers.as_chunks().0.iter().flat_map(rounded).collect()
}

/// Reads the metadata of a safetensors file, without its tensors.
///
/// # Errors
/// The file cannot be read, or has no valid header with metadata.
pub fn read_metadata(path: &Path) -> Result<BTreeMap<String, String>, TrainingError> {
    let mut file = InputFile::open(path)?;
    let mut length = [0; WORD];
    file.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > MAX_HEADER_BYTES {
        return Err("the header of the model file is too long".into());
    }
    let mut header = Vec::new();
    file.take(length).read_to_end(&mut header)?;
    let mut entries: BTreeMap<String, Value> = serde_json::from_slice(&header)?;
    let metadata = entries.remove("__metadata__").ok_or("the model file has no metadata")?;
    Ok(serde_json::from_value(metadata)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn metadata_of(file: &[u8]) -> HashMap<String, String> {
        let (_, header) = SafeTensors::read_metadata(file).unwrap();
        header.metadata().clone().unwrap()
    }

    #[test]
    fn tensors_have_the_names_the_shapes_and_the_numbers_of_the_layout() {
        let layout = Layout::new([("second", vec![2, 2]), ("first", vec![1])]);
        let file = encode(&layout, &[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!(encode(&layout, &[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap(), file, "equal bytes");
        let read = SafeTensors::deserialize(&file).unwrap();
        let tensor = read.tensor("second").unwrap();
        assert_eq!((tensor.shape(), tensor.data().len()), (&[2, 2][..], 16));
        assert_eq!(tensor.data()[..4], 1.0_f32.to_le_bytes());
        assert_eq!(read.tensor("first").unwrap().data(), 5.0_f32.to_le_bytes());
        assert!(encode(&layout, &[1.0]).unwrap_err().to_string().contains("1 numbers for a layout of 5"));
    }

    #[test]
    fn a_file_is_read_as_the_model_of_its_layout_or_the_first_difference_is_named() {
        let layout = Layout::new([("second", vec![2, 2]), ("first", vec![1])]);
        let model = [1.0, 2.0, 3.0, 4.0, 5.0];
        let file = encode(&layout, &model).unwrap();
        assert_eq!(decode(&layout, &file).unwrap(), model);
        let refused = |layout: &Layout, words: &str| {
            let error = decode(layout, &file).unwrap_err().to_string();
            assert!(error.contains(words), "`{words}` is missing in: {error}");
        };
        refused(&Layout::new([("third", vec![1])]), "a tensor `third`, which the file has not");
        refused(&Layout::new([("first", vec![1])]), "a tensor `second`, which the model has not");
        refused(&Layout::new([("first", vec![1]), ("second", vec![4])]), "[2, 2] in the file and [4] in the model");
        let not_finite = encode(&layout, &[1.0, 2.0, 3.0, f32::NAN, 5.0]).unwrap();
        let error = decode(&layout, &not_finite).unwrap_err().to_string();
        assert_eq!(error, "number 3 of tensor `second` is NaN");
        let one = Layout::new([("first", vec![1])]);
        let of = |dtype, bytes: &[u8]| {
            let tensor = TensorView::new(dtype, vec![1], bytes).unwrap();
            decode(&one, &safetensors::serialize([("first", tensor)], None::<HashMap<String, String>>).unwrap())
        };
        let error = of(Dtype::F64, &[0; 8]).unwrap_err().to_string();
        assert!(error.contains("holds F64 in the file"), "{error}");
        assert_eq!(of(Dtype::BF16, &bf16::from_f32(-1.5).to_le_bytes()).unwrap(), [-1.5]);
        assert_eq!(of(Dtype::F16, &f16::from_f32(0.25).to_le_bytes()).unwrap(), [0.25]);
        assert!(of(Dtype::F16, &f16::NAN.to_le_bytes()).unwrap_err().to_string().contains("is NaN"));
        for length in 0..file.len() {
            assert!(decode(&layout, &file[..length]).is_err(), "the first {length} bytes");
        }
    }

    #[test]
    fn metadata_are_added_to_those_that_are_there_with_the_checksum_of_the_numbers() {
        let mut file = encode(&Layout::flat(2), &[1.0, 2.0]).unwrap();
        let told = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        describe(&mut file, &told("columns", "a, b")).unwrap();
        let once = metadata_of(&file);
        describe(&mut file, &told("round", "7")).unwrap();
        let twice = metadata_of(&file);
        assert_eq!((twice["columns"].as_str(), twice["round"].as_str()), ("a, b", "7"));
        assert_eq!(once[MODEL_CHECKSUM], twice[MODEL_CHECKSUM]);
        let bytes: Vec<u8> = [1.0_f32, 2.0].iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(once[MODEL_CHECKSUM], blake3::hash(&bytes).to_hex().to_string());
        assert_eq!(SafeTensors::deserialize(&file).unwrap().tensor("parameters").unwrap().data(), bytes);
    }

    #[test]
    fn a_file_is_rounded_to_the_nearest_bf16_with_ties_to_even_and_keeps_its_metadata() {
        let ulp = 2.0_f32.powi(-7);
        let model = [1.0 + 0.49 * ulp, 1.0 + 0.5 * ulp, 1.0 + 1.5 * ulp, -1.0 - 0.51 * ulp, f32::MAX];
        let mut file = encode(&Layout::new([("w", vec![5])]), &model).unwrap();
        describe(&mut file, &BTreeMap::from([("round".to_owned(), "7".to_owned())])).unwrap();
        let rounded = rounded_to_bf16(&file).unwrap();
        let read = SafeTensors::deserialize(&rounded).unwrap();
        let tensor = read.tensor("w").unwrap();
        assert_eq!((tensor.dtype(), tensor.shape()), (Dtype::BF16, &[5][..]));
        let halves = tensor.data().as_chunks::<2>().0.iter();
        let found: Vec<f32> = halves.map(|half| f32::from_bits(u32::from(u16::from_le_bytes(*half)) << 16)).collect();
        assert_eq!(found, [1.0, 1.0, 1.0 + 2.0 * ulp, -1.0 - ulp, f32::INFINITY]);
        let metadata = metadata_of(&rounded);
        assert_eq!(metadata["round"], "7");
        assert_eq!(metadata[MODEL_CHECKSUM], blake3::hash(tensor.data()).to_hex().to_string());
        assert_eq!(rounded_to_bf16(&file).unwrap(), rounded, "the same bytes");
        assert_eq!(rounded_numbers(&f32::from_bits(0x7f80_0001).to_le_bytes()), [0xc0, 0x7f], "still no number");
        assert!(rounded_to_bf16(&file[..file.len() - 1]).is_err());
    }

    #[test]
    fn what_is_no_safetensors_file_is_left_as_it_is() {
        for other in [b"".as_slice(), b"PK", &[0xff; 64], &[8, 0, 0, 0, 0, 0, 0, 0, b'{']] {
            let mut file = other.to_vec();
            assert!(describe(&mut file, &BTreeMap::new()).is_err());
            assert_eq!(file, other);
        }
    }
}
