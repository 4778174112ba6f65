//! Puts a payload together from its chunks.

use std::sync::Arc;

use super::WireError;
use super::writer::ParcelFrame;
use crate::codec::{self, BufferPool, Codec};
use crate::message::{Parcel, ParcelHeader};
use crate::payload::{Payload, PayloadHasher};
use crate::reference::ReferenceId;

/// A parcel whose chunks are still arriving.
///
/// It knows the dimension of the task, and refuses any length but that of its encoding before it allocates. A buffer of
/// that one length is taken when the first chunk comes; each chunk is copied into place, checked and hashed while it is
/// in the cache, and the finished payload is not copied again.
#[derive(Debug)]
pub(super) struct ParcelAssembler {
    header: ParcelHeader,
    hash: [u8; 32],
    codec: Codec,
    reference: Option<ReferenceId>,
    dimension: usize,
    buffer: Arc<[u8]>,
    filled: usize,
    /// Bytes that are known to be sound: whole units of the codec.
    checked: usize,
    hasher: PayloadHasher,
}

impl ParcelAssembler {
    pub(super) fn new(frame: &ParcelFrame, dimension: usize) -> Result<Self, WireError> {
        let expected = frame.codec.encoded_len(dimension) as u64;
        if frame.payload_bytes != expected || expected == 0 {
            return Err(WireError::PayloadSize { bytes: frame.payload_bytes, expected });
        }
        Ok(Self {
            header: frame.header,
            hash: frame.hash,
            codec: frame.codec,
            reference: frame.reference,
            dimension,
            buffer: Arc::from([]),
            filled: 0,
            checked: 0,
            hasher: PayloadHasher::default(),
        })
    }

    /// Forgets the bytes that have come: all are expected again.
    pub(super) fn restart(&mut self) {
        self.filled = 0;
        self.checked = 0;
        self.hasher = PayloadHasher::default();
    }

    /// Returns `true` if these bytes are the payload.
    pub(super) fn matches(&self) -> bool {
        self.missing() == 0 && self.hasher.clone().seal(&self.buffer, self.codec, self.reference) == self.hash
    }

    /// The length of the payload.
    pub(super) fn payload_bytes(&self) -> usize {
        self.codec.encoded_len(self.dimension)
    }

    /// Bytes still to come.
    pub(super) fn missing(&self) -> usize {
        self.codec.encoded_len(self.dimension) - self.filled
    }

    /// Bytes that have come.
    pub(super) fn filled(&self) -> usize {
        self.filled
    }

    /// Takes the next bytes, in pieces of any size; the first ones into a buffer of the pool.
    ///
    /// # Errors
    /// [`WireError::TooManyBytes`] past the end, [`WireError::Unusable`] for a coordinate that is not finite.
    pub(super) fn push(&mut self, bytes: &[u8], pool: &mut BufferPool<u8>) -> Result<(), WireError> {
        if bytes.len() > self.missing() {
            return Err(WireError::TooManyBytes { excess: bytes.len() - self.missing() });
        }
        if self.buffer.is_empty() {
            self.buffer = pool.take(self.codec.encoded_len(self.dimension));
        }
        // The buffer is not shared before `finish`, so this is always there.
        let Some(buffer) = Arc::get_mut(&mut self.buffer) else {
            return Ok(());
        };
        let end = self.filled + bytes.len();
        buffer[self.filled..end].copy_from_slice(bytes);
        self.filled = end;
        self.hasher.advance(&buffer[..end]);
        self.check()
    }

    /// Checks the units that are complete now.
    fn check(&mut self) -> Result<(), WireError> {
        let (unit_bytes, unit) = self.codec.unit();
        let whole = if self.missing() == 0 { self.filled } else { self.filled / unit_bytes * unit_bytes };
        if let Some(offset) = codec::first_flaw(self.codec, &self.buffer[self.checked..whole]) {
            let index = self.checked / unit_bytes * unit + offset;
            return Err(WireError::Unusable { seq: self.header.seq, index });
        }
        self.checked = whole;
        Ok(())
    }

    /// The parcel, once nothing is missing. The pool keeps a reference to its buffer.
    ///
    /// # Errors
    /// [`WireError::HashMismatch`] when the bytes are not those the header announced.
    pub(super) fn finish(self, pool: &mut BufferPool<u8>) -> Result<Parcel, WireError> {
        if self.missing() > 0 || self.hasher.seal(&self.buffer, self.codec, self.reference) != self.hash {
            return Err(WireError::HashMismatch { seq: self.header.seq });
        }
        pool.put(Arc::clone(&self.buffer));
        let payload = Payload::from_verified(self.codec, self.reference, self.dimension, self.buffer, self.hash);
        Ok(Parcel { header: self.header, payload })
    }
}
