//! Record files, through `Record::decode`, recovery and audit.

use std::collections::BTreeMap;

use mingle_protocol::record::{FORMAT_VERSION, MAX_HOST_BYTES, Outline, RecordError, SlotMap, compare_links, recover};
use mingle_protocol::{Codec, Record, audit};

const HEAD_BYTES: usize = 24;
const CHECKSUM_BYTES: usize = 32;
/// The position of the format version in the head.
const FORMAT: std::ops::Range<usize> = 8..12;
/// The position of the marks of vectors in the head.
const VECTORS: usize = 13;
/// The position of the length of the books in the head.
const BOOKS_LENGTH: std::ops::Range<usize> = 16..20;

/// Checks one slot. It is preceded by a byte whose lowest bit asks for a correct length of the books and a correct
/// checksum.
///
/// The two ways to read a record agree. A record that is read is written again as the same bytes, or in the present
/// format if it was in the one before. A peer can continue from it, and it can be audited.
///
/// # Panics
/// If any of that does not hold.
pub fn check(input: &[u8]) {
    let &[seal, ref slot @ ..] = input else {
        return;
    };
    let mut slot = slot.to_vec();
    if seal & 1 == 1 {
        seal_record(&mut slot);
    }
    let record = match Record::decode(&slot) {
        Ok(record) => record,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert_eq!(Outline::read(&slot), Err(error));
            return;
        }
    };
    assert_eq!(Outline::read(&slot).as_ref(), Ok(&record.outline()));
    let mut bytes = Vec::new();
    record.encode(&mut bytes).expect("what was read can be written");
    // A numerator may be written whole where its remainder is shorter.
    let is_as_written = slot[FORMAT] == FORMAT_VERSION.to_le_bytes() && slot[VECTORS] == bytes[VECTORS];
    assert!(slot.starts_with(&bytes) || !is_as_written);
    assert_eq!(Record::decode(&bytes).as_ref(), Ok(&record));
    check_use(record);
}

/// Checks the uses of a record by a peer and by an auditor.
fn check_use(record: Record) {
    let books = record.books.clone();
    let most = Record::largest_bytes(record.numerator.len(), books.incoming.len(), books.outgoing.len());
    let most = most.map(|most| most + books.host.len().saturating_sub(MAX_HOST_BYTES) as u64);
    assert!(record.encoded().is_ok_and(|encoded| most.is_some_and(|most| encoded.total_bytes() <= most)));
    let owed_elsewhere = books.owed_records().iter().any(|number| *number != books.number);
    match recover(vec![Err(RecordError::Empty), Ok(record.clone())]) {
        Ok(recovered) => assert!(!owed_elsewhere && recovered.is_some_and(|recovered| recovered.record == record)),
        Err(error) => assert!(owed_elsewhere && !error.to_string().is_empty()),
    }
    let mut slots = SlotMap::new(SlotMap::worst_case(books.outgoing.len()));
    assert_eq!(slots.claim(&books).is_ok(), !owed_elsewhere);
    let report = audit(&[(books.id, books.ledger())], 3);
    assert!(!report.to_string().is_empty());
    assert!(compare_links(&BTreeMap::from([(books.id, books)])).is_empty());
}

/// Makes the last bytes the checksum of the others, and the length of the books what the vectors leave: blind mutation
/// would find neither.
fn seal_record(slot: &mut [u8]) {
    let Some(content) = slot.len().checked_sub(CHECKSUM_BYTES).filter(|content| *content >= HEAD_BYTES) else {
        return;
    };
    let dimension = u32::from_le_bytes([slot[20], slot[21], slot[22], slot[23]]) as usize;
    let payload = Codec::ALL.into_iter().find(|codec| codec.id() == slot[12]);
    // A bit for each vector beside the numerator.
    let marked = (slot[13] & 7).count_ones() as usize;
    let vectors = 4 * dimension * (1 + marked) + payload.map_or(0, |codec| codec.encoded_len(dimension));
    let Some(books) = (content - HEAD_BYTES).checked_sub(vectors).and_then(|books| u32::try_from(books).ok()) else {
        return;
    };
    slot[BOOKS_LENGTH].copy_from_slice(&books.to_le_bytes());
    let checksum = blake3::hash(&slot[..content]);
    slot[content..].copy_from_slice(checksum.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds;

    #[test]
    fn every_seed_is_a_record() {
        for (name, seed) in seeds::record() {
            assert!(Record::decode(&seed[1..]).is_ok(), "{name}");
            check(&seed);
        }
    }

    /// Files in `seeds/record` that [`seeds::record`] does not make were written by the release before.
    #[test]
    fn records_of_the_format_before_are_read_and_written_as_the_present_one() {
        for name in ["format_3_busy", "format_3_newest_int8"] {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/seeds/record/");
            let seed = std::fs::read([path, name].concat()).expect("the seed is there");
            assert_eq!(seed[1..][FORMAT], 3_u32.to_le_bytes(), "{name}");
            assert!(Record::decode(&seed[1..]).is_ok(), "{name}");
            check(&seed);
        }
    }

    #[test]
    fn sealing_repairs_what_a_change_breaks() {
        for (name, mut seed) in seeds::record() {
            // The first byte of the books is the record's number.
            seed[1 + HEAD_BYTES] ^= 1;
            assert_eq!(Record::decode(&seed[1..]), Err(RecordError::Torn), "{name}");
            let before = seed.clone();
            seal_record(&mut seed[1..]);
            assert!(!matches!(Record::decode(&seed[1..]), Err(RecordError::Torn | RecordError::Cut { .. })), "{name}");
            assert_eq!(seed[..seed.len() - CHECKSUM_BYTES], before[..seed.len() - CHECKSUM_BYTES], "{name}");
        }
    }
}
