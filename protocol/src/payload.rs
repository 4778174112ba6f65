//! The vector a parcel carries: the sender's ratio z = x / w, encoded once for all its out-links.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use thiserror::Error;

use crate::codec::{self, Codec, Dither, Encoded, Unwritten};
use crate::reference::{Reference, ReferenceId, References};

pub use crate::codec::MAX_MAGNITUDE;

/// Largest dimension of a payload: 2^28 coordinates, one gibibyte.
pub const MAX_DIMENSION: usize = 1 << 28;
/// Tolerance for rounding when the norm of a parcel or model is compared with the bound.
pub const NORM_TOLERANCE: f64 = 1.0 + 1.0 / 64.0;

#[cfg(target_endian = "big")]
compile_error!("payloads travel as little-endian f32 and are sent without conversion: big-endian hosts need one");

/// A finite vector as a [`Codec`] wrote it, or its difference to a reference. Cloning shares the bytes, and their hash
/// once it was asked for.
///
/// Every copy in an outbox, every retransmission and every out-link of a step refers to the same allocation. The bytes
/// are decoded where they are used, so a node keeps 16-bit parcels in 16 bits.
///
/// ```
/// use mingle_protocol::{Codec, Payload};
/// let payload = Payload::new(&[1.0, -2.0]).unwrap();
/// assert_eq!(*payload.values(), [1.0, -2.0]);
/// assert!(Payload::new(&[f32::NAN]).is_err());
/// let short = Payload::encoded(Codec::F16, &[1.0, 2.0 / 3.0], 0).unwrap();
/// assert_eq!((short.bytes().len(), short.values()[0]), (4, 1.0));
/// ```
#[derive(Clone)]
pub struct Payload {
    codec: Codec,
    dimension: usize,
    bytes: Arc<[u8]>,
    base: Base,
    hash: Arc<OnceLock<[u8; 32]>>,
}

/// The vector that the bytes of a payload are a difference to.
#[derive(Clone, Debug)]
enum Base {
    Zero,
    /// A reference that has not been looked up.
    Named(ReferenceId),
    Known(Reference),
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        (self.codec, self.dimension, self.reference()) == (other.codec, other.dimension, other.reference())
            && self.bytes == other.bytes
    }
}

impl Payload {
    /// `values` in [`Codec::F32`], checked.
    ///
    /// # Errors
    /// [`PayloadError`] when there are too many coordinates, or one is not finite or beyond [`MAX_MAGNITUDE`].
    pub fn new(values: &[f32]) -> Result<Self, PayloadError> {
        Self::encoded(Codec::F32, values, 0)
    }

    /// `values` in `codec`, or in a finer one if they are out of its range; `seed` decides the random rounding of
    /// codecs that have some.
    ///
    /// # Errors
    /// [`PayloadError`] when there are too many coordinates, or one is not finite or beyond [`MAX_MAGNITUDE`].
    pub fn encoded(codec: Codec, values: &[f32], seed: u64) -> Result<Self, PayloadError> {
        if values.len() > MAX_DIMENSION {
            return Err(PayloadError::TooLong { dimension: values.len() });
        }
        if let Some(index) = first_unusable(values) {
            return Err(PayloadError::Unusable { index, value: values[index] });
        }
        let codec = codec.suited_to(codec::largest_of(values), 0.0, 1.0);
        let mut bytes = vec![0; codec.encoded_len(values.len())];
        let unwritten = Unwritten { codec, bytes: &mut bytes, base: &[] };
        codec::emit(&mut values.to_vec(), unwritten, (1.0, 1.0), &mut Dither::seeded(seed));
        Ok(Self::of(codec, values.len(), bytes.into()))
    }

    /// A payload from bytes of a file or a peer, checked to be an encoding of `dimension` coordinates.
    ///
    /// # Errors
    /// [`PayloadError`] when there are too many coordinates, the length is not theirs, or a coordinate is not finite or
    /// beyond [`MAX_MAGNITUDE`].
    pub fn from_bytes(codec: Codec, dimension: usize, bytes: Arc<[u8]>) -> Result<Self, PayloadError> {
        if dimension > MAX_DIMENSION {
            return Err(PayloadError::TooLong { dimension });
        }
        let expected = codec.encoded_len(dimension);
        if bytes.len() != expected {
            return Err(PayloadError::Length { codec, dimension, bytes: bytes.len(), expected });
        }
        if let Some(index) = codec::first_flaw(codec, &bytes) {
            return Err(PayloadError::Unreadable { codec, index });
        }
        Ok(Self::of(codec, dimension, bytes))
    }

    /// A payload whose bytes are known to be sound.
    pub(crate) fn of(codec: Codec, dimension: usize, bytes: Arc<[u8]>) -> Self {
        Self { codec, dimension, bytes, base: Base::Zero, hash: Arc::default() }
    }

    /// A payload whose bytes were checked and hashed on the way in; the hash covers the name of its reference.
    pub(crate) fn from_verified(
        codec: Codec,
        reference: Option<ReferenceId>,
        dimension: usize,
        bytes: Arc<[u8]>,
        hash: [u8; 32],
    ) -> Self {
        let base = reference.map_or(Base::Zero, Base::Named);
        Self { codec, dimension, bytes, base, hash: Arc::new(hash.into()) }
    }

    /// The same bytes as a difference to a reference.
    pub(crate) fn against(self, reference: &Reference) -> Self {
        Self { base: Base::Known(reference.clone()), hash: Arc::default(), ..self }
    }

    /// The same bytes as a difference to a reference of which only the name is known.
    #[must_use]
    pub fn against_named(self, reference: ReferenceId) -> Self {
        Self { base: Base::Named(reference), hash: Arc::default(), ..self }
    }

    /// Looks the reference up by its name. Does nothing if there is none to look up, or it is not there.
    pub(crate) fn resolve(&mut self, references: &References) {
        if let Base::Named(id) = self.base
            && let Some(reference) = references.find(id)
        {
            self.base = Base::Known(reference.clone());
        }
    }

    /// Returns `true` unless the vector cannot be decoded, for want of its reference.
    pub fn is_resolved(&self) -> bool {
        !matches!(self.base, Base::Named(_))
    }

    /// The name of the reference that the bytes are a difference to, if any.
    pub fn reference(&self) -> Option<ReferenceId> {
        match &self.base {
            Base::Zero => None,
            Base::Named(id) => Some(*id),
            Base::Known(reference) => Some(reference.id()),
        }
    }

    /// The vector that the bytes are a difference to; `None` where they are the whole ratio, or it is not known.
    pub(crate) fn base(&self) -> Option<&Arc<[f32]>> {
        match &self.base {
            Base::Known(reference) => Some(reference.values()),
            Base::Zero | Base::Named(_) => None,
        }
    }

    /// The encoded vector, for kernels.
    pub(crate) fn encoded_vector(&self) -> Encoded<'_> {
        Encoded { codec: self.codec, bytes: &self.bytes, base: self.base().map_or(&[], |base| base) }
    }

    /// The encoding of the coordinates.
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// The number of coordinates.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// The coordinates, decoded: a copy unless they are encoded as what they are in memory. Where the payload is not
    /// [resolved](Self::is_resolved), those of the difference.
    pub fn values(&self) -> Cow<'_, [f32]> {
        if self.codec == Codec::F32
            && self.base().is_none()
            && let Ok(values) = bytemuck::try_cast_slice(&self.bytes)
        {
            return Cow::Borrowed(values);
        }
        let mut values = vec![0.0; self.dimension];
        codec::decode(self.encoded_vector(), &mut values);
        Cow::Owned(values)
    }

    /// The Euclidean norm of the coordinates; infinite where the square of one does not fit f32.
    ///
    /// ```
    /// # use mingle_protocol::Payload;
    /// assert_eq!(Payload::new(&[3.0, -4.0])?.norm(), 5.0);
    /// # Ok::<(), mingle_protocol::PayloadError>(())
    /// ```
    pub fn norm(&self) -> f64 {
        codec::square_of(self.encoded_vector()).sqrt()
    }

    /// Returns `true` if the norm is above a bound by more than rounding. `false` while the reference is not known: the
    /// norm is checked when it is.
    pub(crate) fn exceeds(&self, bound: f64) -> bool {
        self.is_resolved() && self.norm() > NORM_TOLERANCE * bound
    }

    /// The coordinates as they travel.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The coordinates as they travel, shared.
    pub fn shared(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    /// BLAKE3 of the bytes followed by the [number](Codec::id) of the codec and the name of the reference, if any: the
    /// same bytes mean something else with another one. Computed when it is first asked for.
    pub fn hash(&self) -> &[u8; 32] {
        self.hash.get_or_init(|| PayloadHasher::default().seal(&self.bytes, self.codec, self.reference()))
    }
}

/// Hashes a payload while its buffer fills up, in pieces that suit the hash.
///
/// BLAKE3 hashes a tree of 1 KiB leaves, many at a time, but only whole subtrees: of bytes that come in pieces of any
/// other length it has to hash some leaf by leaf.
#[derive(Clone, Debug, Default)]
pub(crate) struct PayloadHasher {
    hasher: blake3::Hasher,
    hashed: usize,
}

impl PayloadHasher {
    /// Few enough bytes to be in the cache still, and a power of two of leaves.
    const PIECE: usize = 64 * 1024;

    /// Hashes what is complete; `filled` is the buffer from its beginning.
    pub(crate) fn advance(&mut self, filled: &[u8]) {
        let whole = filled.len() / Self::PIECE * Self::PIECE;
        if whole > self.hashed {
            self.hasher.update(&filled[self.hashed..whole]);
            self.hashed = whole;
        }
    }

    /// Hashes the rest of the whole buffer, the number of the codec and the name of the reference.
    pub(crate) fn seal(mut self, bytes: &[u8], codec: Codec, reference: Option<ReferenceId>) -> [u8; 32] {
        self.hasher.update(&bytes[self.hashed..]).update(&[codec.id()]);
        reference.iter().for_each(|id| {
            self.hasher.update(&id.0);
        });
        *self.hasher.finalize().as_bytes()
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let against = if self.reference().is_some() { " against a reference" } else { "" };
        write!(f, "Payload({} coordinates in {}{against})", self.dimension, self.codec)
    }
}

/// The first coordinate that is not finite or too large, if any. One vectorised pass when all are fine.
pub(crate) fn first_unusable(values: &[f32]) -> Option<usize> {
    const BLOCK: usize = 1024;
    let block = values.chunks(BLOCK).position(|block| !all_usable(block))?;
    let start = block * BLOCK;
    values[start..].iter().position(|value| !usable(*value)).map(|offset| start + offset)
}

fn all_usable(values: &[f32]) -> bool {
    values.iter().fold(true, |all, &value| all & usable(value))
}

/// False for NaN as well.
fn usable(value: f32) -> bool {
    value.abs() <= MAX_MAGNITUDE
}

/// A reason why a vector cannot be a payload.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum PayloadError {
    /// Too many coordinates.
    #[error("{dimension} coordinates are more than the {MAX_DIMENSION} a payload may have")]
    TooLong { dimension: usize },
    /// A coordinate is NaN, infinite or absurdly large.
    #[error("coordinate {index} is {value}; payloads hold finite numbers up to {MAX_MAGNITUDE:e} in magnitude")]
    Unusable { index: usize, value: f32 },
    /// Bytes that are too few or too many for the coordinates they are said to hold.
    #[error("{dimension} coordinates in {codec} take {expected} bytes, not {bytes}")]
    Length {
        /// The encoding.
        codec: Codec,
        /// The number of coordinates there should be.
        dimension: usize,
        /// The number of bytes there are.
        bytes: usize,
        /// The number of bytes there should be.
        expected: usize,
    },
    /// An encoded coordinate, or the scale of a block of them, is not finite or absurdly large.
    #[error("coordinate {index} in {codec} is no finite number up to {MAX_MAGNITUDE:e} in magnitude")]
    Unreadable {
        /// The encoding.
        codec: Codec,
        /// The index of the coordinate, or of the first one of its block.
        index: usize,
    },
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_offending_coordinate_is_named_wherever_it_is() {
        for (dimension, bad) in [(1, 0), (1024, 1023), (1025, 1024), (5000, 3333)] {
            for value in [f32::NAN, f32::INFINITY, -f32::INFINITY, 2e30] {
                let mut values = vec![1.0; dimension];
                values[bad] = value;
                assert_eq!(first_unusable(&values), Some(bad));
            }
            assert_eq!(first_unusable(&vec![MAX_MAGNITUDE; dimension]), None);
        }
    }

    #[test]
    fn a_buffer_that_fills_up_in_any_pieces_has_one_hash() {
        let bytes: Vec<u8> = (0..300_000_u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
        let whole = PayloadHasher::default().seal(&bytes, Codec::F32, None);
        assert_eq!(whole, *blake3::Hasher::new().update(&bytes).update(&[0]).finalize().as_bytes());
        for piece in [1_000, 16_640, 65_536, 100_000, 131_072] {
            let mut hasher = PayloadHasher::default();
            for end in (0..bytes.len()).step_by(piece) {
                hasher.advance(&bytes[..end]);
            }
            assert_eq!(hasher.seal(&bytes, Codec::F32, None), whole, "pieces of {piece}");
        }
    }

    #[test]
    fn the_hash_is_that_of_the_bytes_and_the_codec() {
        let payload = Payload::new(&[1.5, -0.0]).unwrap();
        assert_eq!(payload.bytes(), [0, 0, 0xc0, 0x3f, 0, 0, 0, 0x80]);
        assert_eq!(payload.hash(), blake3::hash(&[0, 0, 0xc0, 0x3f, 0, 0, 0, 0x80, 0]).as_bytes());
        let [half, brain] = [Codec::F16, Codec::Bf16].map(|codec| Payload::encoded(codec, &[0.0], 0).unwrap());
        assert_eq!(half.bytes(), brain.bytes());
        assert_ne!(half.hash(), brain.hash());
    }
}
