//! A model file in memory: its bytes, and the places of its numbers.

use safetensors::tensor::Metadata;
use safetensors::{Dtype, SafeTensors};

/// Bytes of the header's length, a little-endian number before it.
const WORD: usize = 8;

/// The bytes of a safetensors file whose header is sound.
#[derive(Clone)]
pub struct ModelBytes {
    bytes: Vec<u8>,
    /// Place of the first number.
    data_at: usize,
    /// Runs of numbers of one size, in the order of the file.
    runs: Vec<Run>,
    layout: [u8; 32],
    digest: [u8; 32],
}

/// Numbers of the same size, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Bytes of a number: 1, 2, 4 or 8.
    pub(crate) width: usize,
    /// Bytes of all of them.
    pub(crate) length: usize,
}

/// Bytes that are no safetensors file.
#[derive(Debug, thiserror::Error)]
pub enum ModelBytesError {
    /// The header contradicts the format or the length of the file.
    #[error("it is no safetensors file")]
    Header(#[from] safetensors::SafeTensorError),
}

impl ModelBytes {
    /// Reads the header of a file.
    ///
    /// # Errors
    /// The bytes are no safetensors file.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, ModelBytesError> {
        // Checks that the tensors fill the file without gaps.
        let (header, metadata) = SafeTensors::read_metadata(&bytes)?;
        let runs = runs(&metadata);
        let layout = layout_hash(&metadata);
        let digest = *blake3::hash(&bytes).as_bytes();
        Ok(Self { data_at: WORD + header, runs, layout, digest, bytes })
    }

    /// All bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The file as its bytes alone.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// BLAKE3 of all bytes.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// Returns `true` if both files have the same tensors: names, types, shapes and order. A patch between them exists.
    pub fn has_layout_of(&self, other: &Self) -> bool {
        self.layout == other.layout
    }

    /// The length of the header and the header.
    pub(crate) fn header(&self) -> &[u8] {
        &self.bytes[..self.data_at]
    }

    /// The numbers of all tensors.
    pub(crate) fn data(&self) -> &[u8] {
        &self.bytes[self.data_at..]
    }

    pub(crate) fn runs(&self) -> &[Run] {
        &self.runs
    }
}

impl std::fmt::Debug for ModelBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelBytes").field("bytes", &self.bytes.len()).field("runs", &self.runs).finish_non_exhaustive()
    }
}

/// Bytes of a number of this type; numbers of other sizes are compared byte by byte.
fn width(dtype: Dtype) -> usize {
    match dtype.bitsize() {
        16 => 2,
        32 => 4,
        64 => 8,
        _ => 1,
    }
}

fn runs(metadata: &Metadata) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for name in metadata.offset_keys() {
        let Some(tensor) = metadata.info(&name) else { continue };
        let (begin, end) = tensor.data_offsets;
        let width = width(tensor.dtype);
        let length = end - begin;
        match runs.last_mut() {
            Some(last) if last.width == width => last.length += length,
            _ if length > 0 => runs.push(Run { width, length }),
            _ => {}
        }
    }
    runs
}

fn layout_hash(metadata: &Metadata) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("mingle 2026 layout of a model file");
    for name in metadata.offset_keys() {
        let Some(tensor) = metadata.info(&name) else { continue };
        let shape = format!("{name}\0{}\0{:?}\0", tensor.dtype, tensor.shape);
        hasher.update(&(shape.len() as u64).to_le_bytes());
        hasher.update(shape.as_bytes());
    }
    *hasher.finalize().as_bytes()
}
