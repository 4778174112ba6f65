#![allow(clippy::unwrap_used)]
use super::inbound::Acceptance;
use super::*;
use crate::mass::Mass;
use crate::message::{Generation, LinkState, ParcelHeader};
use crate::payload::Payload;

fn payload(value: f32) -> Payload {
    Payload::new(&[value]).unwrap()
}

/// What the sender puts on the wire for one of its outstanding parcels.
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
        step: parcel.step,
        mass: parcel.mass,
    };
    (header, parcel.payload.clone())
}

/// What the receiver says of a link of which it has applied and written everything.
fn word_of(link: &InLink) -> LinkState {
    let (applied, applied_chain) = link.confirmed();
    LinkState { received: link.received(), applied, applied_chain, ..LinkState::default() }
}

fn deliver(receiver: &mut InLink, sender: &OutLink, seq: u64) -> Acceptance {
    let (header, payload) = header(sender, seq);
    let acceptance = receiver.accept(&header, payload).unwrap();
    while receiver.pop().is_some() {}
    receiver.confirm_applied();
    acceptance
}

/// A sender is set back to before its second parcel, whose receiver has it, and numbers another parcel so before it hears
/// of that.
fn forked() -> (OutLink, InLink) {
    let (mut sender, mut receiver) = (OutLink::new(), InLink::default());
    sender.push(0, Mass::from_units(8), payload(1.0), 1);
    assert_eq!(deliver(&mut receiver, &sender, 1), Acceptance::Queued);
    let copy = sender.clone();
    sender.push(1, Mass::from_units(4), payload(2.0), 2);
    assert_eq!(deliver(&mut receiver, &sender, 2), Acceptance::Queued);
    let mut sender = copy;
    sender.push(1, Mass::from_units(4), payload(3.0), 2);
    assert_eq!(deliver(&mut receiver, &sender, 2), Acceptance::Duplicate);
    (sender, receiver)
}

#[test]
fn a_sender_that_used_a_number_twice_is_told_so_by_the_chain_of_the_next_acknowledgement() {
    let (mut sender, receiver) = forked();
    let outstanding = sender.undelivered();
    assert!(sender.on_ack(&word_of(&receiver), true).is_err());
    assert_eq!(sender.undelivered(), outstanding, "nothing counts as arrived");
    // The planted bug that compares numbers alone takes the other parcel for its own.
    assert_eq!(sender.on_ack(&word_of(&receiver), false).ok(), Some(true));
    assert!(sender.is_settled());
}

#[test]
fn a_receiver_takes_nothing_that_follows_a_parcel_it_does_not_have() {
    let (mut sender, mut receiver) = forked();
    sender.push(2, Mass::from_units(2), payload(4.0), 3);
    assert_eq!(deliver(&mut receiver, &sender, 3), Acceptance::Fork);
    assert_eq!(receiver.received(), 2);
    // Where numbers are all that is compared it would be taken.
    let (mut header, payload) = header(&sender, 3);
    header.previous = receiver.received_chain();
    assert_eq!(receiver.accept(&header, payload).unwrap(), Acceptance::Queued);
}
