#![allow(clippy::unwrap_used)]
use super::*;
use crate::mass::UNITS_PER_ONE;
use crate::record::tests::books;
use crate::record::{Chain, InBooks, OutBooks, Owed};
use crate::statement::Mac;

const NOW: Time = Time::from_millis(1);
const A: NodeId = NodeId(1);
const B: NodeId = NodeId(2);
const SENT: u64 = UNITS_PER_ONE / 4;

/// Record `number` of a node that holds so much, with nothing on its links.
fn holding(id: NodeId, number: u64, units: u64) -> Books {
    let (brought, mass) = (Mass::ONE, Mass::from_units(units));
    Books { id, incarnation: 1, brought, mass, incoming: BTreeMap::new(), outgoing: BTreeMap::new(), ..books(number) }
}

/// The books that A hands in when it gives the first parcel to B.
fn gives() -> Books {
    let parcel = Owed { seq: 1, step: 0, mass: Mass::from_units(SENT), chain: Chain::default(), record: 2 };
    let link = OutBooks { receiver_incarnation: 1, next_seq: 2, outbox: vec![parcel], ..OutBooks::default() };
    Books { outgoing: [(B, link)].into(), ..holding(A, 2, UNITS_PER_ONE - SENT) }
}

/// The books that B hands in when it has applied that parcel.
fn takes(units: u64) -> Books {
    let link = InBooks { sender_incarnation: gives().incarnation, applied: 1, ..InBooks::default() };
    Books { incoming: [(A, link)].into(), ..holding(B, 2, units) }
}

/// Both nodes of life 1 have a record, and A has given the parcel away.
fn given() -> Conservation {
    let mut auditor = Conservation::new(true);
    for id in [A, B] {
        let books = holding(id, 1, UNITS_PER_ONE);
        auditor.born(id, books.generation, books.ledger());
        auditor.check_record(NOW, id, &books).unwrap();
        auditor.written(id, 1);
    }
    auditor.check_record(NOW, A, &gives()).unwrap();
    assert_eq!(auditor.outstanding(), u128::from(SENT));
    auditor
}

fn header(seq: u64, units: u64) -> ParcelHeader {
    ParcelHeader {
        generation: gives().generation,
        sender_incarnation: gives().incarnation,
        receiver_incarnation: 1,
        base: 0,
        acked: 0,
        seq,
        previous: Chain::default(),
        chain: Chain::default(),
        step: 0,
        mass: Mass::from_units(units),
        mac: Mac::default(),
    }
}

fn check(auditor: &mut Conservation, books: &Books, sent: &[(NodeId, ParcelHeader)]) -> Result<(), SimError> {
    auditor.check(NOW, books.id, books.generation, books.ledger(), sent)
}

#[test]
fn a_parcel_that_is_given_once_is_taken_once() {
    let mut auditor = given();
    check(&mut auditor, &gives(), &[(B, header(1, SENT))]).unwrap();
    check(&mut auditor, &takes(UNITS_PER_ONE + SENT), &[]).unwrap();
    assert_eq!(auditor.outstanding(), 0);
    let twice = check(&mut auditor, &takes(UNITS_PER_ONE + 2 * SENT), &[]);
    assert!(matches!(twice, Err(SimError::NodeMass { id: B, .. })), "{twice:?}");
}

#[test]
fn a_parcel_that_was_not_recorded_so_does_not_go_on_the_wire() {
    for other in [header(2, SENT), header(1, SENT + 1)] {
        let sent = check(&mut given(), &gives(), &[(B, other)]);
        assert_eq!(sent, Err(SimError::UnrecordedParcel { now: NOW, from: A, to: B, seq: other.seq }));
    }
}

#[test]
fn what_a_node_did_after_the_record_it_starts_from_never_happened() {
    let mut auditor = given();
    check(&mut auditor, &takes(UNITS_PER_ONE + SENT), &[]).unwrap();
    let first = holding(B, 1, UNITS_PER_ONE);
    auditor.resumed(NOW, B, &first, first.ledger()).unwrap();
    assert_eq!(auditor.outstanding(), u128::from(SENT), "it is under way again");
    check(&mut auditor, &takes(UNITS_PER_ONE + SENT), &[]).unwrap();
    auditor.resumed(NOW, A, &holding(A, 1, UNITS_PER_ONE), holding(A, 1, UNITS_PER_ONE).ledger()).unwrap();
    // It gave what only its memory held, and B has it.
    assert!(check(&mut auditor, &holding(A, 1, UNITS_PER_ONE), &[]).is_err());
}

#[test]
fn a_node_starts_with_what_its_record_holds() {
    let (mut auditor, mut more) = (given(), gives());
    more.mass = Mass::ONE;
    auditor.written(A, 2);
    assert!(matches!(auditor.resumed(NOW, A, &gives(), more.ledger()), Err(SimError::NodeMass { id: A, .. })));
}

#[test]
fn a_newcomer_that_dies_before_its_first_record_and_starts_from_an_old_one_was_never_there() {
    let mut auditor = given();
    let mut other = holding(NodeId(3), 1, UNITS_PER_ONE);
    auditor.born(other.id, other.generation, other.ledger());
    other.generation.counter -= 1;
    auditor.resumed(NOW, other.id, &other, other.ledger()).unwrap();
    check(&mut auditor, &takes(UNITS_PER_ONE + SENT), &[]).unwrap();
}

#[test]
fn nothing_is_checked_in_a_generation_that_was_given_up() {
    let mut auditor = given();
    auditor.give_up(gives().generation);
    let before = auditor.checks();
    check(&mut auditor, &takes(0), &[(A, header(9, 1))]).unwrap();
    assert_eq!(auditor.checks(), before);
    let mut next = holding(B, 3, UNITS_PER_ONE);
    next.generation.counter += 1;
    check(&mut auditor, &next, &[]).unwrap();
    assert_eq!(auditor.checks(), before + 1);
    next.mass = Mass::ZERO;
    assert!(check(&mut auditor, &next, &[]).is_err());
}
