#![allow(clippy::unwrap_used)]
use super::*;
use crate::record::tests::{books, chain, owing};

const FROM: NodeId = NodeId(0);
const TO: NodeId = NodeId(1);

/// Node 0 has sent node 1 parcels up to 7, of which 4 are confirmed and 5 are applied.
fn two_nodes() -> BTreeMap<NodeId, Books> {
    let mut sender = books(9);
    sender.outgoing.insert(TO, OutBooks { receiver_incarnation: 2, base: 1, ..owing(4, &[5, 6, 7]) });
    let mut receiver = Books { id: TO, ..books(8) };
    let end = InBooks { sender_incarnation: 2, base: 1, applied: 5, chain: chain(5), ..InBooks::default() };
    receiver.incoming.insert(FROM, end);
    [(FROM, sender), (TO, receiver)].into()
}

fn breaks(change: impl Fn(&mut OutBooks, &mut InBooks)) -> Vec<LinkBreak> {
    let mut books = two_nodes();
    let mut out = books.get_mut(&FROM).unwrap().outgoing.remove(&TO).unwrap();
    let mut end = books.get_mut(&TO).unwrap().incoming.remove(&FROM).unwrap();
    change(&mut out, &mut end);
    books.get_mut(&FROM).unwrap().outgoing.insert(TO, out);
    books.get_mut(&TO).unwrap().incoming.insert(FROM, end);
    compare_links(&books)
}

#[test]
fn ends_that_agree_are_not_reported_wherever_the_receiver_is() {
    for applied in 4..=7 {
        assert_eq!(breaks(|_, end| (end.applied, end.chain) = (applied, chain(applied))), []);
    }
}

#[test]
fn a_receiver_that_forgot_what_it_confirmed_is_found() {
    let behind = |applied| LinkBreak::ReceiverBehind { from: FROM, to: TO, acked: 4, applied };
    assert_eq!(breaks(|_, end| (end.applied, end.chain) = (3, chain(3))), [behind(3)]);
    let mut forgotten = two_nodes();
    forgotten.get_mut(&TO).unwrap().incoming.clear();
    assert_eq!(compare_links(&forgotten), [behind(1)]);
    let link = forgotten.get_mut(&FROM).unwrap().outgoing.get_mut(&TO).unwrap();
    *link = OutBooks { receiver_incarnation: 2, base: 4, ..owing(4, &[5]) };
    assert_eq!(compare_links(&forgotten), [], "nothing was confirmed yet");
}

#[test]
fn a_sender_that_forgot_what_it_sent_is_found() {
    let found = breaks(|_, end| (end.applied, end.chain) = (8, chain(8)));
    assert_eq!(found, [LinkBreak::SenderBehind { from: FROM, to: TO, next_seq: 8, applied: 8 }]);
}

#[test]
fn other_parcels_under_the_same_numbers_are_found() {
    let fork = [LinkBreak::Fork { from: FROM, to: TO, seq: 5 }];
    assert_eq!(breaks(|_, end| end.chain = chain(77)), fork);
    assert_eq!(breaks(|out, _| out.outbox[0].chain = chain(77)), fork);
    assert_eq!(breaks(|out, end| (end.applied, end.chain, out.acked_chain) = (4, chain(4), chain(77))).len(), 1);
}

#[test]
fn a_neighbour_that_knows_a_later_life_proves_a_record_old() {
    let id = |id, neighbour| LinkBreak::EarlierLife { id, incarnation: 2, neighbour, known: 3 };
    assert_eq!(breaks(|out, _| out.receiver_incarnation = 3), [id(TO, FROM)]);
    assert_eq!(breaks(|_, end| end.sender_incarnation = 3)[0..], [id(FROM, TO)]);
}

#[test]
fn lives_that_have_not_met_are_not_compared() {
    assert_eq!(breaks(|out, end| (out.receiver_incarnation, end.applied) = (1, 3)), []);
    assert_eq!(breaks(|out, end| (end.sender_incarnation, out.acked) = (1, 1)), []);
    let only_one: BTreeMap<_, _> = two_nodes().into_iter().take(1).collect();
    assert_eq!(compare_links(&only_one), []);
}

#[test]
fn every_break_is_a_sentence_that_names_the_nodes() {
    let all = [
        LinkBreak::ReceiverBehind { from: NodeId(3), to: NodeId(4), acked: 9, applied: 8 },
        LinkBreak::SenderBehind { from: NodeId(3), to: NodeId(4), next_seq: 9, applied: 9 },
        LinkBreak::Fork { from: NodeId(3), to: NodeId(4), seq: 9 },
        LinkBreak::EarlierLife { id: NodeId(3), incarnation: 1, neighbour: NodeId(4), known: 9 },
    ];
    for found in all {
        let sentence = found.to_string();
        assert!(["3", "4", "9"].iter().all(|word| sentence.contains(word)), "{sentence}");
    }
}
