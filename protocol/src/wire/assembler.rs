//! Puts a payload together from its chunks.

use std::sync::Arc;

use super::WireError;
use super::writer::ParcelFrame;
use crate::message::{Parcel, ParcelHeader};
use crate::payload::{Payload, first_unusable};

/// A parcel whose chunks are still arriving.
///
/// It is told the dimension the task has, and refuses any other before it allocates. The buffer of that one size is
/// allocated when the first chunk comes; each chunk is hashed, copied into place and checked while it is in the cache,
/// and the finished payload is not copied again.
#[derive(Debug)]
pub struct ParcelAssembler {
    header: ParcelHeader,
    hash: [u8; 32],
    dimension: usize,
    values: Arc<[f32]>,
    filled: usize,
    hasher: blake3::Hasher,
}

impl ParcelAssembler {
    pub(super) fn new(frame: &ParcelFrame, dimension: usize) -> Result<Self, WireError> {
        let expected = dimension as u64 * 4;
        if frame.payload_bytes != expected || expected == 0 {
            return Err(WireError::PayloadSize { bytes: frame.payload_bytes, expected });
        }
        Ok(Self {
            header: frame.header,
            hash: frame.hash,
            dimension,
            values: Arc::from([]),
            filled: 0,
            hasher: blake3::Hasher::new(),
        })
    }

    /// Bytes still to come.
    pub fn missing(&self) -> usize {
        self.dimension * 4 - self.filled
    }

    /// Takes the next bytes, in pieces of any size.
    ///
    /// # Errors
    /// [`WireError::TooManyBytes`] past the end, [`WireError::Unusable`] for a coordinate that is not finite.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        if bytes.len() > self.missing() {
            return Err(WireError::TooManyBytes { excess: bytes.len() - self.missing() });
        }
        if self.values.is_empty() {
            self.values = std::iter::repeat_n(0.0, self.dimension).collect();
        }
        self.hasher.update(bytes);
        // The buffer is not shared before `finish`, so this is always there.
        let Some(values) = Arc::get_mut(&mut self.values) else {
            return Ok(());
        };
        let end = self.filled + bytes.len();
        let (from, whole) = (self.filled / 4, end / 4);
        let target: &mut [u8] = bytemuck::cast_slice_mut(values);
        target[self.filled..end].copy_from_slice(bytes);
        self.filled = end;
        match first_unusable(&values[from..whole]) {
            Some(index) => Err(WireError::Unusable { seq: self.header.seq, index: from + index }),
            None => Ok(()),
        }
    }

    /// The parcel, once nothing is missing.
    ///
    /// # Errors
    /// [`WireError::HashMismatch`] when the bytes are not those the header announced.
    pub fn finish(self) -> Result<Parcel, WireError> {
        if *self.hasher.finalize().as_bytes() != self.hash || self.missing() > 0 {
            return Err(WireError::HashMismatch { seq: self.header.seq });
        }
        Ok(Parcel { header: self.header, payload: Payload::from_verified(self.values, self.hash) })
    }
}
