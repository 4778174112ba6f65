#![allow(clippy::unwrap_used)]
use super::*;
use crate::record::tests::{books, owing, record};
use crate::record::{Outline, Record, SlotContent, SlotError, SlotMap, survey};

/// Record `number`, which owes the payloads of these records on one link after so many acknowledgements.
fn owing_record(number: u64, acked: u64, owed: &[u64]) -> Record {
    let mut record = record(number);
    record.books.outgoing = [(NodeId(1), owing(acked, owed))].into();
    record
}

fn encoded(record: &Record) -> Vec<u8> {
    let mut bytes = Vec::new();
    record.encode(&mut bytes).unwrap();
    bytes
}

/// A slot with a record and a postscript, and the bytes of the latter.
fn with_postscript(record: &Record, postscript: &Postscript) -> (Vec<u8>, usize) {
    let mut slot = encoded(record);
    let script = postscript.encode(&slot[slot.len() - CHECKSUM_BYTES..]);
    slot.resize(Postscript::offset(slot.len() as u64) as usize, 0xee);
    slot.extend_from_slice(&script);
    (slot, script.len())
}

#[test]
fn a_record_with_its_postscript_is_the_state_in_which_the_acknowledgements_came() {
    let newest = owing_record(9, 6, &[7, 8, 9]);
    let next = owing_record(10, 8, &[9, 10]);
    let postscript = Postscript::between(&newest.books, &next.books).unwrap();
    let (slot, _) = with_postscript(&newest, &postscript);
    let read = Record::decode(&slot).unwrap();
    let mut expected = owing_record(9, 8, &[9]);
    expected.books.outgoing.get_mut(&NodeId(1)).unwrap().clone_from(&read.books.outgoing[&NodeId(1)]);
    assert_eq!(read, expected, "nothing else has changed");
    let (before, after) = (&newest.books.outgoing[&NodeId(1)], &read.books.outgoing[&NodeId(1)]);
    assert_eq!((after.acked, after.acked_chain, &after.outbox[..]), (8, before.outbox[1].chain, &before.outbox[2..]));
    let settled: u64 = before.outbox[..2].iter().map(|parcel| parcel.mass.units()).sum();
    assert_eq!(after.acked_total, before.acked_total + u128::from(settled));
    assert_eq!(
        (after.sent_total, after.next_seq, after.returned),
        (before.sent_total, before.next_seq, before.returned)
    );
    let outline = Outline::read(&slot).unwrap();
    assert!(outline.has_postscript && outline.books == read.books);
}

#[test]
fn a_postscript_that_was_cut_off_or_changed_or_is_of_another_record_counts_as_none() {
    let newest = owing_record(9, 6, &[7, 8, 9]);
    let postscript = Postscript::between(&newest.books, &owing_record(10, 8, &[9, 10]).books).unwrap();
    let (slot, length) = with_postscript(&newest, &postscript);
    for cut in slot.len() - length..slot.len() {
        assert_eq!(Record::decode(&slot[..cut]).unwrap(), newest, "cut to {cut} bytes");
        let mut changed = slot.clone();
        changed[cut] ^= 4;
        assert_eq!(Record::decode(&changed).unwrap(), newest, "byte {cut}");
    }
    // The same postscript behind a record of the same number with other content.
    let mut other = encoded(&Record { numerator: [2.0, 3.0, 4.0].into(), ..newest.clone() });
    let at = other.len();
    other.extend_from_slice(&slot[at..]);
    assert!(!Outline::read(&other).unwrap().has_postscript);
    // Acknowledgements that the books cannot have, under a checksum that fits.
    for (to, last) in [(1, 6), (1, 10), (2, 8)] {
        let odd = Postscript { number: 9, acked: [(NodeId(to), last)].into() };
        assert!(!Outline::read(&with_postscript(&newest, &odd).0).unwrap().has_postscript, "{last} of {to}");
    }
    let odd = Postscript { number: 8, ..postscript };
    assert!(!Outline::read(&with_postscript(&newest, &odd).0).unwrap().has_postscript);
}

#[test]
fn nothing_but_acknowledgements_of_the_same_life_is_in_a_postscript() {
    let newest = books_of(6, &[7, 8, 9]);
    assert_eq!(Postscript::between(&newest, &books_of(6, &[7, 8, 9, 10])), None, "none came");
    let changes: [fn(&mut Books); 6] = [
        |books| link(books).returned = 5,
        |books| link(books).written_off = 5,
        |books| link(books).receiver_incarnation = 2,
        |books| link(books).base = 1,
        |books| books.incarnation += 1,
        |books| books.generation.counter += 1,
    ];
    for (index, change) in changes.into_iter().enumerate() {
        let mut next = books_of(8, &[9, 10]);
        assert!(Postscript::between(&newest, &next).is_some());
        change(&mut next);
        assert_eq!(Postscript::between(&newest, &next), None, "change {index}");
    }
    // A later parcel that was acknowledged too is none of the record's.
    let mut ahead = newest.clone();
    Postscript::between(&newest, &books_of(20, &[])).unwrap().apply(&mut ahead);
    assert_eq!((link(&mut ahead).acked, link(&mut ahead).outbox.len()), (9, 0));
}

fn books_of(acked: u64, owed: &[u64]) -> Books {
    Books { outgoing: [(NodeId(1), owing(acked, owed))].into(), ..books(9) }
}

fn link(books: &mut Books) -> &mut crate::record::OutBooks {
    books.outgoing.get_mut(&NodeId(1)).unwrap()
}

#[test]
fn with_postscripts_two_slots_are_enough_for_a_node_whose_parcels_are_acknowledged_a_record_later() {
    let mut slots = SlotMap::new(2);
    let mut files = [Vec::new(), Vec::new()];
    let mut scripts = 0;
    for number in 1..=20_u64 {
        let owed: Vec<u64> = (number.saturating_sub(1).max(1)..=number).collect();
        let next = owing_record(number, number.saturating_sub(2), &owed);
        let slot = slots.claim(&next.books).or_else(|error| {
            assert_eq!(error, SlotError::NoneFree { slots: 2 });
            let (slot, postscript) = slots.postscript(&next.books).unwrap();
            let record = Record::decode(&files[slot]).unwrap();
            files[slot] = with_postscript(&record, &postscript).0;
            slots.add_postscript(&postscript);
            assert_eq!(slots.postscript(&next.books), None, "a record has one postscript");
            scripts += 1;
            // A process that ends here finds the same slots.
            let contents: Vec<SlotContent> = files.iter().map(|file| Outline::read(file).into()).collect();
            assert_eq!(SlotMap::found(&contents, survey(&contents).unwrap().as_ref()), slots);
            slots.claim(&next.books)
        });
        let slot = slot.unwrap();
        files[slot] = encoded(&next);
        slots.complete(slot, &next.books);
    }
    assert!(scripts >= 17, "{scripts} postscripts");
}
