//! The head of a record: the vectors that follow, and the number of bytes there must be before any of them is used.

use super::*;

/// The head of a record, checked, without the books and vectors that follow.
pub(super) struct Head {
    pub(super) version: u32,
    pub(super) payload: Option<Codec>,
    pub(super) has_ratio: bool,
    pub(super) has_held_back: bool,
    pub(super) has_base: bool,
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
        let known = RATIO | HELD_BACK | if version < WITH_BASES { 0 } else { BASE };
        if vectors & !known != 0 || (payload.is_none() && vectors & BASE != 0) {
            return Err(RecordError::Head { field: "vectors", value: u32::from(vectors) });
        }
        let reserved = u16::from_le_bytes([head[14], head[15]]);
        if reserved != 0 {
            return Err(RecordError::Head { field: "reserved", value: u32::from(reserved) });
        }
        let (books_bytes, dimension) = (number(16) as usize, number(20) as usize);
        if dimension > MAX_DIMENSION {
            return Err(RecordError::TooManyCoordinates { dimension });
        }
        if books_bytes > most_books_bytes(dimension) {
            return Err(RecordError::BooksTooLong { bytes: books_bytes as u64 });
        }
        let [has_ratio, has_held_back, has_base] = [RATIO, HELD_BACK, BASE].map(|bit| vectors & bit != 0);
        Ok(Self { version, payload, has_ratio, has_held_back, has_base, books_bytes, dimension })
    }

    /// The length of the whole record. At most 4 GiB of vectors and some: no overflow.
    pub(super) fn record_bytes(&self) -> u64 {
        let vector = 4 * self.dimension as u64;
        let vectors = 1 + [self.has_ratio, self.has_held_back, self.has_base].map(u64::from).iter().sum::<u64>();
        let payload = self.payload.map_or(0, |codec| codec.encoded_len(self.dimension) as u64);
        (HEAD_BYTES + self.books_bytes + CHECKSUM_BYTES) as u64 + vectors * vector + payload
    }

    pub(super) fn read_books(&self, bytes: &[u8]) -> Result<Books, RecordError> {
        if self.version < WITH_EVIDENCE { read_books::<Books3>(bytes).map(Books::from) } else { read_books(bytes) }
    }
}
