//! The encoding of a record as bytes.
//!
//! ```text
//!   head      magic [8]   version: u32   codec: u8   vectors: u8   0: u16   books: u32   dimension d: u32
//!             n: u32                   if bit 3 of `vectors` is set
//!   books     postcard
//!   x         d f32                    the numerator, or n bytes of `remainder`, if bit 3 is set
//!   z         d f32                    the ratio, if bit 0 of `vectors` is set
//!   h         d f32                    changes that were held back, if bit 1 is
//!   r         d f32                    the reference that the payload is a difference to, if bit 2 is
//!   payload   bytes of d coordinates   unless the head's codec is 255
//!   checksum  BLAKE3 of all of the above
//! ```
//!
//! Versions 3 to 5 are read too. None of them has bit 3, 3 and 4 have no r, and version 3 has other books.
//!
//! Everything is little-endian. Bytes after the checksum are none of the record's: a file keeps its size, and what an
//! earlier, longer record left there is ignored, a [`Postscript`] to this record excepted. The length of a record
//! follows from its head. Nothing of it is used, or allocated, before there are that many bytes and their checksum is
//! right.

mod head;
mod remainder;
mod vectors;
mod version_3;

use std::borrow::Cow;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::RecordError;
use super::limits::{FORMAT_VERSION, MAX_BOOKS_BYTES, MAX_HOST_BYTES, MAX_HOST_VECTORS};
use super::postscript::Postscript;
use super::rules;
use super::{Books, Record};
use crate::codec::{self, Codec};
use crate::payload::{MAX_DIMENSION, Payload, PayloadError};
use crate::reference::Reference;
use crate::window::WINDOW;
use head::Head;
pub use head::record_length;
use remainder::{Expected, Numerator};
use vectors::{check_base, check_finite, floats};
use version_3::Books3;

/// The first format whose numerators may be differences to what follows from the payload.
const WITH_REMAINDERS: u32 = 6;
/// The first format whose payloads may be differences to a vector in the record.
const WITH_BASES: u32 = 5;
/// The first format whose books have the statements of neighbours.
const WITH_EVIDENCE: u32 = 4;
/// The oldest format that is read.
const OLDEST_VERSION: u32 = 3;
const MAGIC: [u8; 8] = *b"mgl-mass";
const HEAD_BYTES: usize = 24;
const CHECKSUM_BYTES: usize = 32;
const NO_PAYLOAD: u8 = u8::MAX;
/// Bits of the byte that marks which vectors there are.
const RATIO: u8 = 1;
const HELD_BACK: u8 = 2;
const BASE: u8 = 4;
const REMAINDER: u8 = 8;
/// Bytes of the length of a remainder, which follow the head.
const LENGTH_BYTES: usize = 4;

/// The longest a postcard integer of 32, 64 and 128 bits can be.
const VARINT_U32: usize = 5;
const VARINT_U64: usize = 10;
const VARINT_U128: usize = 19;
const HASH: usize = 32;
const SIGNATURE: usize = 64;
const MAC: usize = 16;

/// A record without its vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// Everything but the vectors.
    pub books: Books,
    /// Coordinates of each vector.
    pub dimension: usize,
    /// `true` if there is a ratio.
    pub has_ratio: bool,
    /// `true` if there are changes that were held back.
    pub has_held_back: bool,
    /// The codec of the payload, if there is one.
    pub payload: Option<Codec>,
    /// `true` if acknowledgements were written behind the record. They are part of the books.
    pub has_postscript: bool,
}

/// A record ready to be written: the vectors are borrowed, not copied.
#[derive(Clone, Debug)]
pub struct EncodedRecord<'a> {
    /// Head and books.
    front: Vec<u8>,
    vectors: [Cow<'a, [u8]>; 5],
    checksum: [u8; CHECKSUM_BYTES],
}

impl EncodedRecord<'_> {
    /// The slices to write, one after the other.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> {
        let front = std::iter::once(&self.front[..]);
        let checksum = std::iter::once(&self.checksum[..]);
        front.chain(self.vectors.iter().map(|vector| &**vector)).chain(checksum).filter(|part| !part.is_empty())
    }

    /// The number of bytes in all slices.
    pub fn total_bytes(&self) -> u64 {
        self.slices().map(|part| part.len() as u64).sum()
    }
}

impl Record {
    /// The record as slices that borrow its vectors: for models that should not be in memory twice.
    ///
    /// # Errors
    /// [`RecordError`] if it could not be read back. A record to be written is held to the rules that
    /// [`decode`](Self::decode) checks: a mistake shows while the record before it is still there.
    ///
    /// # Complexity
    /// One pass over the vectors for the check and one for the checksum.
    pub fn encoded(&self) -> Result<EncodedRecord<'_>, RecordError> {
        self.check()?;
        let books =
            postcard::to_stdvec(&self.books).map_err(|error| RecordError::Malformed { reason: error.to_string() })?;
        if books.len() > most_books_bytes(self.numerator.len()) {
            return Err(RecordError::BooksTooLong { bytes: books.len() as u64 });
        }
        let remainder = self.remainder();
        let mut front = Vec::with_capacity(HEAD_BYTES + LENGTH_BYTES + books.len());
        front.extend_from_slice(&MAGIC);
        front.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        front.push(self.payload.as_ref().map_or(NO_PAYLOAD, |payload| payload.codec().id()));
        let base = self.payload.as_ref().and_then(Payload::base);
        let marks = [
            (self.ratio.is_some(), RATIO),
            (self.held_back.is_some(), HELD_BACK),
            (base.is_some(), BASE),
            (remainder.is_some(), REMAINDER),
        ];
        front.push(marks.iter().filter(|(is_there, _)| *is_there).map(|(_, mark)| mark).sum());
        front.extend_from_slice(&[0, 0]);
        // All are far below 2^32: they were checked, and a remainder is shorter than what it stands for.
        front.extend_from_slice(&(books.len() as u32).to_le_bytes());
        front.extend_from_slice(&(self.numerator.len() as u32).to_le_bytes());
        remainder.iter().for_each(|bytes| front.extend_from_slice(&(bytes.len() as u32).to_le_bytes()));
        front.extend_from_slice(&books);
        let vectors = [
            remainder.map_or_else(|| Cow::Borrowed(bytemuck::cast_slice(&self.numerator)), Cow::Owned),
            Cow::Borrowed(self.ratio.as_deref().map_or(&[], bytemuck::cast_slice)),
            Cow::Borrowed(self.held_back.as_deref().map_or(&[], bytemuck::cast_slice)),
            Cow::Borrowed(base.map_or(&[], |base| bytemuck::cast_slice(base))),
            Cow::Borrowed(self.payload.as_ref().map_or(&[], Payload::bytes)),
        ];
        let mut hasher = blake3::Hasher::new();
        hasher.update(&front);
        vectors.iter().for_each(|vector| {
            hasher.update(vector);
        });
        Ok(EncodedRecord { front, vectors, checksum: *hasher.finalize().as_bytes() })
    }

    /// The numerator as its difference to what follows from the payload, where that is shorter.
    fn remainder(&self) -> Option<Vec<u8>> {
        let payload =
            self.payload.as_ref().filter(|payload| payload.codec() == Codec::F32 && payload.base().is_none())?;
        remainder::encode(&self.numerator, &Expected::of(&self.books, payload.bytes()))
    }

    /// Replaces the content of `bytes` by the record.
    ///
    /// # Errors
    /// As [`encoded`](Self::encoded); `bytes` is then empty.
    pub fn encode(&self, bytes: &mut Vec<u8>) -> Result<(), RecordError> {
        bytes.clear();
        let encoded = self.encoded()?;
        bytes.reserve(encoded.slices().map(<[u8]>::len).sum());
        encoded.slices().for_each(|part| bytes.extend_from_slice(part));
        Ok(())
    }

    /// Reads the record that `bytes` begin with.
    ///
    /// Never allocates more than a small multiple of the bytes that are there, whatever their content.
    ///
    /// ```
    /// # use mingle_protocol::{Books, Generation, Mass, NodeId, Record, record::RecordError};
    /// # let books = Books {
    /// #     number: 1, generation: Generation { counter: 0, plan_hash: [0; 32] }, task: [0; 32], id: NodeId(0),
    /// #     incarnation: 1, brought: Mass::ONE, mass: Mass::ONE, step: 0, split_done: false,
    /// #     neighbours: Default::default(), incoming: Default::default(), outgoing: Default::default(), left: Vec::new(), evidence: Default::default(), host: Default::default(),
    /// # };
    /// let record = Record { books, numerator: [1.0, 2.0].into(), ratio: None, held_back: None, payload: None };
    /// let mut bytes = Vec::new();
    /// record.encode(&mut bytes)?;
    /// assert_eq!(Record::decode(&bytes)?, record);
    /// bytes[70] ^= 1;
    /// assert_eq!(Record::decode(&bytes), Err(RecordError::Torn));
    /// # Ok::<(), RecordError>(())
    /// ```
    ///
    /// # Errors
    /// [`RecordError`] for bytes that are not a sound record.
    pub fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        let Parts { outline, numerator, ratio, held_back, base, payload } = Parts::of(bytes)?;
        let payload =
            outline.payload.map(|codec| Payload::from_bytes(codec, outline.dimension, payload.into())).transpose()?;
        let payload = match (payload, base) {
            (Some(payload), Some(base)) => {
                let reference = Reference::new(floats(base));
                Some(payload.against(&reference.ok_or(RecordError::UnfitBase)?))
            }
            (payload, _) => payload,
        };
        let numerator = numerator.decode()?;
        let ratio = outline.has_ratio.then(|| floats(ratio));
        let held_back = outline.has_held_back.then(|| floats(held_back));
        Ok(Self { books: outline.books, numerator, ratio, held_back, payload })
    }

    /// The most bytes of a record of a node with so many coordinates and links, while no node leaves and its host keeps
    /// no more than [`MAX_HOST_BYTES`]: the size of a slot that seldom has to grow. `None` when the books of so many
    /// links could not be stored.
    pub fn largest_bytes(dimension: usize, in_links: usize, out_links: usize) -> Option<u64> {
        let books = largest_books(in_links as u64, out_links as u64)?;
        let vector = 4 * dimension as u64;
        (dimension <= MAX_DIMENSION && books <= MAX_BOOKS_BYTES as u64)
            .then_some((HEAD_BYTES + CHECKSUM_BYTES) as u64 + books + 3 * vector)
    }

    /// The record without its vectors.
    pub fn outline(&self) -> Outline {
        Outline {
            books: self.books.clone(),
            dimension: self.numerator.len(),
            has_ratio: self.ratio.is_some(),
            has_held_back: self.held_back.is_some(),
            payload: self.payload.as_ref().map(Payload::codec),
            has_postscript: false,
        }
    }

    /// Checks a record against the rules of the format.
    ///
    /// # Errors
    /// The first that is broken.
    pub fn check(&self) -> Result<(), RecordError> {
        let dimension = self.numerator.len();
        if dimension > MAX_DIMENSION {
            return Err(RecordError::TooManyCoordinates { dimension });
        }
        let same_length = |vector, found| {
            let error = RecordError::Dimension { vector, found, dimension };
            if found == dimension { Ok(()) } else { Err(error) }
        };
        same_length("ratio", self.ratio.as_ref().map_or(dimension, |ratio| ratio.len()))?;
        same_length("held-back changes", self.held_back.as_ref().map_or(dimension, |held_back| held_back.len()))?;
        same_length("payload", self.payload.as_ref().map_or(dimension, Payload::dimension))?;
        if self.payload.as_ref().is_some_and(|payload| !payload.is_resolved()) {
            return Err(RecordError::UnfitBase);
        }
        check_finite("numerator", bytemuck::cast_slice(&self.numerator))?;
        check_finite("ratio", self.ratio.as_deref().map_or(&[], bytemuck::cast_slice))?;
        check_finite("held-back changes", self.held_back.as_deref().map_or(&[], bytemuck::cast_slice))?;
        rules::check(&self.books, self.payload.is_some(), dimension)
    }
}

impl Outline {
    /// Reads the record that `bytes` begin with, checks all of it, and keeps all but the vectors.
    ///
    /// # Errors
    /// [`RecordError`], as [`Record::decode`].
    pub fn read(bytes: &[u8]) -> Result<Self, RecordError> {
        let Parts { outline, payload, .. } = Parts::of(bytes)?;
        match outline.payload.and_then(|codec| Some((codec, codec::first_flaw(codec, payload)?))) {
            Some((codec, index)) => Err(PayloadError::Unreadable { codec, index }.into()),
            None => Ok(outline),
        }
    }
}

/// A record whose checksum is right and whose books and own vectors are sound. The payload is not checked.
struct Parts<'a> {
    outline: Outline,
    numerator: Numerator<'a>,
    ratio: &'a [u8],
    held_back: &'a [u8],
    base: Option<&'a [u8]>,
    payload: &'a [u8],
}

impl<'a> Parts<'a> {
    fn of(bytes: &'a [u8]) -> Result<Self, RecordError> {
        let head = Head::read(bytes)?;
        let needed = head.record_bytes();
        let cut = RecordError::Cut { bytes: bytes.len() as u64, needed };
        let length = usize::try_from(needed).ok().filter(|length| *length <= bytes.len()).ok_or(cut)?;
        let (content, checksum) = bytes[..length].split_at(length - CHECKSUM_BYTES);
        if *blake3::hash(content).as_bytes() != *checksum {
            return Err(RecordError::Torn);
        }
        let (books, vectors) = content[head.bytes()..].split_at(head.books_bytes);
        let (numerator, rest) = vectors.split_at(head.numerator_bytes());
        let (ratio, rest) = rest.split_at(if head.has_ratio { 4 * head.dimension } else { 0 });
        let (held_back, rest) = rest.split_at(if head.has_held_back { 4 * head.dimension } else { 0 });
        let (base, payload) = rest.split_at(if head.has_base { 4 * head.dimension } else { 0 });
        check_finite("ratio", ratio)?;
        check_finite("held-back changes", held_back)?;
        let base = head.has_base.then_some(base);
        base.map_or(Ok(()), check_base)?;
        let mut books = head.read_books(books)?;
        rules::check(&books, head.payload.is_some(), head.dimension)?;
        let numerator = match head.remainder_bytes {
            None => Numerator::Whole(numerator),
            Some(_) => Numerator::Remainder(numerator, Expected::of(&books, payload)),
        };
        numerator.check()?;
        let postscript = usize::try_from(Postscript::offset(needed)).ok().and_then(|offset| bytes.get(offset..));
        let postscript = postscript.and_then(|bytes| Postscript::read(bytes, checksum, &books));
        postscript.iter().for_each(|postscript| postscript.apply(&mut books));
        let has_postscript = postscript.is_some();
        let Head { dimension, has_ratio, has_held_back, payload: codec, .. } = head;
        let outline = Outline { books, dimension, has_ratio, has_held_back, payload: codec, has_postscript };
        Ok(Self { outline, numerator, ratio, held_back, base, payload })
    }
}

/// Gives the record that `bytes` begin with a checksum that fits its content, whatever that is: an injected bug of the
/// simulator, whose nodes then use records that no write completed.
#[cfg(feature = "sim")]
pub(crate) fn forge_checksum(bytes: &mut [u8]) {
    let length = Head::read(bytes).ok().and_then(|head| usize::try_from(head.record_bytes()).ok());
    if let Some(record) = length.and_then(|length| bytes.get_mut(..length)) {
        let (content, checksum) = record.split_at_mut(record.len() - CHECKSUM_BYTES);
        checksum.copy_from_slice(blake3::hash(content).as_bytes());
    }
}

/// Reads books, and only as they are written: postcard would also take integers with needless bytes, maps out of order,
/// and one entry in place of another of the same key.
fn read_books<B: Serialize + DeserializeOwned>(bytes: &[u8]) -> Result<B, RecordError> {
    let malformed = |reason: String| RecordError::Malformed { reason };
    let books: B = postcard::from_bytes(bytes).map_err(|error| malformed(error.to_string()))?;
    let again = postcard::to_stdvec(&books).map_err(|error| malformed(error.to_string()))?;
    if again != bytes {
        return Err(malformed("they are not written as this version writes them".to_owned()));
    }
    Ok(books)
}

/// The most bytes that books of a node with so many coordinates may take.
const fn most_books_bytes(dimension: usize) -> usize {
    MAX_BOOKS_BYTES + MAX_HOST_VECTORS * 4 * dimension
}

/// The most bytes that books can take where the host keeps no more than [`MAX_HOST_BYTES`].
fn largest_books(in_links: u64, out_links: u64) -> Option<u64> {
    const OWN: usize = 6 * VARINT_U64 + VARINT_U32 + 2 * HASH + 1 + 4 * VARINT_U64 + 2 * VARINT_U64 + MAX_HOST_BYTES;
    /// The neighbour's statements about both of its ends.
    const EVIDENCE: usize = VARINT_U32 + (1 + VARINT_U64 + HASH + MAC) + (1 + VARINT_U64 + MAC);
    /// The neighbour of a link: the process the node last dealt with, signed.
    const NEIGHBOUR: usize = VARINT_U32 + 2 * VARINT_U64 + SIGNATURE + EVIDENCE;
    const IN_LINK: usize = NEIGHBOUR + VARINT_U32 + 3 * VARINT_U64 + 1 + HASH + 1 + VARINT_U64 + 2 * VARINT_U128;
    const OWED: usize = 4 * VARINT_U64 + HASH;
    const OUT_LINK: usize = NEIGHBOUR + VARINT_U32 + 5 * VARINT_U64 + HASH + WINDOW * OWED + 5 * VARINT_U128;
    let incoming = in_links.checked_mul(IN_LINK as u64)?;
    let outgoing = out_links.checked_mul(OUT_LINK as u64)?;
    incoming.checked_add(outgoing)?.checked_add(OWN as u64)
}

#[cfg(test)]
mod tests;
