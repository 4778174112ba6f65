//! The head of a record: the vectors that follow, and the number of bytes there must be before any of them is used.

use super::*;

/// The head of a record, checked, without the books and vectors that follow.
pub(super) struct Head {
    pub(super) version: u32,
    pub(super) payload: Option<Codec>,
    pub(super) has_ratio: bool,
    pub(super) has_held_back: bool,
    pub(super) has_base: bool,
    /// The length of the numerator, where that is a difference to what follows from the payload.
    pub(super) remainder_bytes: Option<usize>,
    pub(super) books_bytes: usize,
    pub(super) dimension: usize,
}

impl Head {
    pub(super) fn read(bytes: &[u8]) -> Result<Self, RecordError> {
        let Some((head, _)) = bytes.split_first_chunk::<HEAD_BYTES>() else {
            return Err(if bytes.iter().all(|byte| *byte == 0) {
                RecordError::Empty
            } else {
                RecordError::Cut { bytes: bytes.len() as u64, needed: (HEAD_BYTES + CHECKSUM_BYTES) as u64 }
            });
        };
        if head[..8] != MAGIC {
            // A first write that reached the disk in part may have left its end there, and not its beginning.
            let is_empty = bytes.iter().all(|byte| *byte == 0);
            return Err(if is_empty { RecordError::Empty } else { RecordError::NotARecord });
        }
        let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let version = number(8);
        if !(OLDEST_VERSION..=FORMAT_VERSION).contains(&version) {
            return Err(RecordError::Version { found: version });
        }
        let [codec, vectors] = [head[12], head[13]];
        let payload = match codec {
            NO_PAYLOAD => None,
            id => {
                let known = Codec::ALL.into_iter().find(|codec| codec.id() == id);
                Some(known.ok_or(RecordError::Head { field: "codec", value: u32::from(id) })?)
            }
        };
        let bases = if version < WITH_BASES { 0 } else { BASE };
        let remainders = if version < WITH_REMAINDERS { 0 } else { REMAINDER };
        let is_whole_f32 = payload == Some(Codec::F32) && vectors & BASE == 0;
        let known = RATIO | HELD_BACK | bases | remainders;
        let is_odd = (payload.is_none() && vectors & BASE != 0) || (!is_whole_f32 && vectors & REMAINDER != 0);
        if vectors & !known != 0 || is_odd {
            return Err(RecordError::Head { field: "vectors", value: u32::from(vectors) });
        }
        let reserved = u16::from_le_bytes([head[14], head[15]]);
        if reserved != 0 {
            return Err(RecordError::Head { field: "reserved", value: u32::from(reserved) });
        }
        let books_bytes = number(16) as usize;
        let dimension = number(20) as usize;
        if dimension > MAX_DIMENSION {
            return Err(RecordError::TooManyCoordinates { dimension });
        }
        if books_bytes > most_books_bytes(dimension) {
            return Err(RecordError::BooksTooLong { bytes: books_bytes as u64 });
        }
        let [has_ratio, has_held_back, has_base, has_remainder] =
            [RATIO, HELD_BACK, BASE, REMAINDER].map(|bit| vectors & bit != 0);
        let remainder_bytes = has_remainder.then(|| remainder_bytes(bytes, dimension)).transpose()?;
        Ok(Self { version, payload, has_ratio, has_held_back, has_base, remainder_bytes, books_bytes, dimension })
    }

    /// The length of the head.
    pub(super) fn bytes(&self) -> usize {
        HEAD_BYTES + self.remainder_bytes.map_or(0, |_| LENGTH_BYTES)
    }

    /// The length of the numerator.
    pub(super) fn numerator_bytes(&self) -> usize {
        self.remainder_bytes.unwrap_or(4 * self.dimension)
    }

    /// The length of the whole record. At most 4 GiB of vectors and some: no overflow.
    pub(super) fn record_bytes(&self) -> u64 {
        let vector = 4 * self.dimension as u64;
        let vectors = [self.has_ratio, self.has_held_back, self.has_base].map(u64::from).iter().sum::<u64>();
        let payload = self.payload.map_or(0, |codec| codec.encoded_len(self.dimension) as u64);
        let own = (self.bytes() + self.books_bytes + self.numerator_bytes() + CHECKSUM_BYTES) as u64;
        own + vectors * vector + payload
    }

    pub(super) fn read_books(&self, bytes: &[u8]) -> Result<Books, RecordError> {
        if self.version < WITH_EVIDENCE { read_books::<Books3>(bytes).map(Books::from) } else { read_books(bytes) }
    }
}

/// The length of a remainder, which must be below that of the vector that it stands for.
fn remainder_bytes(bytes: &[u8], dimension: usize) -> Result<usize, RecordError> {
    let length = bytes[HEAD_BYTES..].first_chunk::<LENGTH_BYTES>();
    let cut =
        RecordError::Cut { bytes: bytes.len() as u64, needed: (HEAD_BYTES + LENGTH_BYTES + CHECKSUM_BYTES) as u64 };
    let length = u32::from_le_bytes(*length.ok_or(cut)?);
    let is_shorter = remainder::most_bytes(dimension).is_some_and(|most| length as usize <= most);
    if is_shorter { Ok(length as usize) } else { Err(RecordError::Head { field: "remainder", value: length }) }
}

/// The length of the record whose first 28 bytes or more are here.
///
/// # Errors
/// [`RecordError`] for bytes that no record begins with.
pub fn record_length(front: &[u8]) -> Result<u64, RecordError> {
    Head::read(front).map(|head| head.record_bytes())
}
