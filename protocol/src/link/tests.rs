#![allow(clippy::unwrap_used)]
use super::inbound::Acceptance;
use super::*;
use crate::ledger::{InLinkLedger, OutLinkLedger};
use crate::mass::Mass;
use crate::message::{Generation, LinkEnd, LinkPositions, ParcelHeader};
use crate::payload::Payload;
use crate::schedule::NodeId;

/// Nonces of two processes of one life.
const FIRST: u64 = 11;
const SECOND: u64 = 12;

fn payload(value: f32) -> Payload {
    Payload::new(&[value]).unwrap()
}

/// The header and payload that the sender transmits for one of its outstanding parcels.
fn header(link: &OutLink, seq: u64) -> (ParcelHeader, Payload) {
    let parcel = link.parcel(seq).unwrap();
    let header = ParcelHeader {
        generation: Generation { counter: 0, plan_hash: [0; 32] },
        sender_incarnation: 1,
        receiver_incarnation: 1,
        base: link.base(),
        acked: link.acked(),
        seq,
        previous: parcel.previous,
        chain: parcel.chain,
        step: parcel.step,
        mass: parcel.mass,
        mac: crate::Mac::default(),
    };
    (header, parcel.payload.clone())
}

/// The receiver's acknowledgement of a link.
fn word_of(link: &InLink) -> LinkPositions {
    let mut word = LinkPositions::default();
    link.state_confirmed(&mut word);
    word
}

fn deliver(receiver: &mut InLink, sender: &OutLink, seq: u64) -> Acceptance {
    deliver_unless(receiver, sender, seq, |_| false)
}

fn deliver_unless(
    receiver: &mut InLink,
    sender: &OutLink,
    seq: u64,
    refuses: impl FnOnce(&Payload) -> bool,
) -> Acceptance {
    let (header, payload) = header(sender, seq);
    let acceptance = receiver.accept(&header, payload, refuses).unwrap();
    while receiver.pop().is_some() {}
    receiver.confirm_applied();
    acceptance
}

/// A sender that was rolled back to before its second parcel, and its receiver, which has that parcel. The sender has
/// numbered another parcel so before it learnt of that.
fn forked() -> (OutLink, InLink) {
    let (mut sender, mut receiver) = (OutLink::new(), InLink::default());
    sender.push(0, Mass::from_units(8), payload(1.0), 1, FIRST);
    assert_eq!(deliver(&mut receiver, &sender, 1), Acceptance::Queued);
    let copy = sender.clone();
    sender.push(1, Mass::from_units(4), payload(2.0), 2, FIRST);
    assert_eq!(deliver(&mut receiver, &sender, 2), Acceptance::Queued);
    let mut sender = copy;
    sender.push(1, Mass::from_units(4), payload(3.0), 2, SECOND);
    assert_eq!(deliver(&mut receiver, &sender, 2), Acceptance::Duplicate);
    (sender, receiver)
}

#[test]
fn a_sender_that_used_a_number_twice_is_told_so_by_the_chain_of_the_next_acknowledgement() {
    let (mut sender, receiver) = forked();
    let outstanding = sender.undelivered();
    assert!(sender.on_ack(&word_of(&receiver), true).is_err());
    assert_eq!(sender.undelivered(), outstanding, "nothing counts as arrived");
    // The injected bug that compares numbers alone takes the other parcel for its own.
    assert!(sender.on_ack(&word_of(&receiver), false).is_ok_and(|(moved, _)| moved));
    assert!(sender.is_settled());
}

#[test]
fn a_receiver_takes_nothing_that_follows_a_parcel_it_does_not_have() {
    let (mut sender, mut receiver) = forked();
    sender.push(2, Mass::from_units(2), payload(4.0), 3, SECOND);
    assert_eq!(deliver(&mut receiver, &sender, 3), Acceptance::Fork);
    assert_eq!(receiver.received(), 2);
    // Where numbers are all that is compared it would be taken.
    let (mut header, payload) = header(&sender, 3);
    header.previous = receiver.received_chain();
    assert_eq!(receiver.accept(&header, payload, |_| false).unwrap(), Acceptance::Queued);
}

/// A sender of five parcels, of 1, 2, 4, 8 and 16 units, and a receiver that refused the second and the fourth.
fn refused() -> (OutLink, InLink) {
    let (mut sender, mut receiver) = (OutLink::new(), InLink::default());
    for seq in 1..=5 {
        sender.push(seq, Mass::from_units(1 << (seq - 1)), payload(seq as f32), seq, FIRST);
        let refuses = seq % 2 == 0;
        let expected = if refuses { Acceptance::Refused } else { Acceptance::Queued };
        assert_eq!(deliver_unless(&mut receiver, &sender, seq, |_| refuses), expected);
        if seq == 1 {
            sender.on_ack(&word_of(&receiver), true).unwrap();
        }
    }
    (sender, receiver)
}

#[test]
fn refused_parcels_come_back_once_however_often_the_receiver_says_so() {
    let (mut sender, receiver) = refused();
    let (_, returned) = sender.on_ack(&word_of(&receiver), true).unwrap();
    let masses: Vec<u64> = returned.parcels.iter().map(|(mass, _)| mass.units()).collect();
    assert_eq!((masses, sender.is_settled()), (vec![2, 8], true));
    let (_, again) = sender.on_ack(&word_of(&receiver), true).unwrap();
    assert!(again.parcels.is_empty());
    let (mut ours, mut theirs) = (OutLinkLedger::default(), InLinkLedger::default());
    sender.ledger_into(&mut ours, 1);
    receiver.ledger_into(&mut theirs, 1);
    assert_eq!((ours.sent_total, ours.acked_total, ours.returned), (31, 21, 10));
    assert_eq!(theirs.applied_total, 21);
}

#[test]
fn what_was_refused_is_remembered_by_records_of_both_ends() {
    let (sender, receiver) = refused();
    // The sender dies before it receives this, and the receiver before it sends it.
    let payloads = |record: u64| Some(payload(record as f32));
    let mut sender = OutLink::restored(&sender.books(1), payloads).unwrap();
    let receiver = InLink::restored(&receiver.books(1));
    let (_, returned) = sender.on_ack(&word_of(&receiver), true).unwrap();
    assert_eq!(returned.mass(), Mass::from_units(10));
}

#[test]
fn what_a_receiver_did_not_apply_before_it_left_comes_back() {
    for last in 1..=5 {
        let (mut sender, receiver) = refused();
        let end = receiver.end(NodeId(0), 1).map(|end| LinkEnd { applied: last, ..end });
        // The marks of a shorter link are those of its own last parcels.
        let rejected = (1..=last).fold(Rejections::default(), |marks, seq| marks.next(seq % 2 == 0));
        let end = end.map(|end| LinkEnd { rejected, ..end });
        let returned = sender.on_left(end.as_ref());
        let applied: u64 = (1..=last).filter(|seq| seq % 2 == 1).map(|seq| 1 << (seq - 1)).sum();
        assert_eq!(returned.mass().units(), 31 - applied, "left after parcel {last}");
        assert!(sender.is_settled() && !sender.is_open());
        let mut books = OutLinkLedger::default();
        sender.ledger_into(&mut books, 1);
        assert_eq!(books.acked_total + books.returned, books.sent_total);
        // A late acknowledgement changes nothing, and is no sign of a rollback.
        assert_eq!(sender.acked(), last);
        assert_eq!(sender.next_seq(), last + 1);
    }
}

#[test]
fn everything_comes_back_from_a_receiver_that_never_took_anything() {
    let mut sender = OutLink::new();
    sender.push(0, Mass::from_units(7), payload(1.0), 1, FIRST);
    assert_eq!(sender.on_left(None).mass(), Mass::from_units(7));
}

#[test]
fn a_certificate_of_parcels_that_were_never_sent_counts_for_those_that_were() {
    let mut sender = OutLink::new();
    sender.push(0, Mass::from_units(7), payload(1.0), 1, FIRST);
    let end = LinkEnd { from: NodeId(0), sender_incarnation: 1, applied: u64::MAX, rejected: Rejections::default() };
    assert!(sender.on_left(Some(&end)).parcels.is_empty());
    assert_eq!((sender.acked(), sender.next_seq(), sender.is_settled()), (1, 2, true));
}

#[test]
fn the_largest_numbers_that_a_sender_can_name_overflow_nothing() {
    let mut sender = OutLink::new();
    sender.push(0, Mass::ONE, payload(1.0), 1, FIRST);
    let (header, parcel) = header(&sender, 1);
    for (base, seq) in [(u64::MAX, u64::MAX), (u64::MAX, 1), (u64::MAX - 1, u64::MAX)] {
        let mut link = InLink::default();
        let header = ParcelHeader { base, seq, ..header };
        let _ = link.accept(&header, parcel.clone(), |_| false);
        let (next_seq, passed) = (u64::MAX, u64::MAX);
        let _ = link.on_state(&LinkPositions { base, next_seq, passed, ..LinkPositions::default() });
        let is_last = seq > base;
        assert_eq!((link.received(), link.is_settled_for(1)), (if is_last { seq } else { base }, is_last));
    }
}
