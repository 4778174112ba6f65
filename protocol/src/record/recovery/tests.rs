#![allow(clippy::unwrap_used)]
use super::*;
use crate::record::tests::{books, owing, record};

type Slots = Vec<Result<Record, RecordError>>;

/// Record 12 is the newest; it owes the payloads of records 9 and 12 to node 1, and that of 9 to node 2.
fn slots() -> Slots {
    let mut newest = record(12);
    newest.books.outgoing = [(NodeId(1), owing(3, &[9, 12])), (NodeId(2), owing(0, &[9]))].into();
    vec![Ok(record(11)), Err(RecordError::Empty), Ok(newest), Ok(record(9)), Ok(record(10))]
}

fn payload(number: u64) -> Payload {
    record(number).payload.unwrap()
}

#[test]
fn the_newest_record_comes_back_with_the_payloads_that_it_owes() {
    let recovered = recover(slots()).unwrap().unwrap();
    assert_eq!(Ok(recovered.record), slots()[2]);
    assert_eq!(recovered.payloads, [(9, payload(9)), (12, payload(12))].into());
    assert_eq!(recovered.torn, None);
}

#[test]
fn slots_that_were_never_written_hold_no_state() {
    assert_eq!(recover(vec![Err(RecordError::Empty); 3]), Ok(None));
    assert_eq!(recover(Vec::new()), Ok(None));
    // The first write of all was cut off: nothing was promised to other nodes.
    assert_eq!(recover(vec![Err(RecordError::Empty), Err(RecordError::Torn)]), Ok(None));
}

#[test]
fn a_write_that_was_cut_off_never_happened() {
    let mut slots = slots();
    slots[2] = Err(RecordError::Torn);
    let recovered = recover(slots).unwrap().unwrap();
    assert_eq!((recovered.record, recovered.torn), (record(11), Some(2)));
    assert!(recovered.payloads.is_empty());
}

#[test]
fn a_payload_that_is_gone_is_reported_with_its_parcels_and_never_passed_over() {
    let mut damaged = slots();
    damaged[3] = Err(RecordError::Torn);
    let error = recover(damaged.clone()).unwrap_err();
    let RecoveryError::PayloadsLost { slot, books, lost, unreadable } = &error else {
        panic!("{error}");
    };
    assert_eq!((*slot, books.number, &unreadable[..]), (2, 12, &[3][..]));
    let parcel = |to, seq| LostParcel { to: NodeId(to), seq, mass: Mass::from_units(seq), record: 9 };
    assert_eq!(*lost, [parcel(1, 4), parcel(2, 1)]);
    for words in ["record 12 in slot 2", "parcel 4 to node 1", "record 9", "unreadable: slot 3"] {
        assert!(error.to_string().contains(words), "{error}");
    }
    // Not even when the slot is empty, or holds a record that cannot be the one that is meant.
    let other_ledger = |change: &dyn Fn(&mut Books)| {
        let mut other = record(9);
        change(&mut other.books);
        Ok(other)
    };
    for instead in [
        Err(RecordError::Empty),
        Ok(record(8)),
        Ok(Record { payload: None, ..record(9) }),
        Ok(Record { numerator: [0.0].into(), payload: Some(Payload::new(&[0.0]).unwrap()), ..record(9) }),
        other_ledger(&|books| books.generation.counter += 1),
        other_ledger(&|books| books.incarnation -= 1),
        other_ledger(&|books| books.task = [0; 32]),
        other_ledger(&|books| books.id = NodeId(5)),
    ] {
        damaged[3] = instead;
        assert!(matches!(recover(damaged.clone()), Err(RecoveryError::PayloadsLost { .. })), "{:?}", damaged[3]);
    }
}

#[test]
fn more_spoiled_slots_than_a_crash_leaves_are_reported_and_not_passed_over() {
    let mut damaged = slots();
    (damaged[0], damaged[4]) = (Err(RecordError::NotARecord), Err(RecordError::Torn));
    let error = recover(damaged.clone()).unwrap_err();
    let newest =
        survey(&slots().into_iter().map(|read| read.map(|record| record.outline()).into()).collect::<Vec<_>>());
    let newest = newest.unwrap().map(|survey| Box::new(Survey { torn: Some(0), ..survey }));
    assert_eq!(error, RecoveryError::Damaged { unreadable: vec![0, 4], newest });
    assert!(error.to_string().starts_with("slots 0 and 4 cannot be read"), "{error}");
    let nothing = recover(vec![Err(RecordError::Torn); 3]).unwrap_err();
    assert_eq!(nothing, RecoveryError::Damaged { unreadable: vec![0, 1, 2], newest: None });
    assert!(nothing.to_string().contains("slots 0, 1 and 2") && nothing.to_string().contains("no record is left"));
}

#[test]
fn two_slots_with_one_number_are_an_error() {
    let mut mixed = slots();
    mixed[4] = mixed[2].clone();
    let error = recover(mixed).unwrap_err();
    assert_eq!(error, RecoveryError::SameNumber { number: 12, slots: [2, 4] });
    assert!(error.to_string().contains("slots 2 and 4 both hold record 12"), "{error}");
}

#[test]
fn two_slots_with_one_number_matter_only_where_it_is_needed() {
    let mut mixed = slots();
    mixed[0] = mixed[4].clone();
    assert_eq!(recover(mixed.clone()).unwrap().unwrap().record.books.number, 12);
    mixed[0] = mixed[3].clone();
    assert_eq!(recover(mixed).unwrap_err(), RecoveryError::SameNumber { number: 9, slots: [0, 3] });
}

#[test]
fn books_that_owe_nothing_need_no_other_slot() {
    let plain = Record { books: books(40), payload: None, ..record(40) };
    let recovered = recover(vec![Err(RecordError::Torn), Ok(plain.clone())]).unwrap().unwrap();
    assert_eq!(recovered, Recovered { record: plain, payloads: BTreeMap::new(), torn: Some(0) });
}
