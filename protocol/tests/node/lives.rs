//! Successive processes of a node.

use std::collections::BTreeMap;

use super::*;

#[test]
fn a_second_process_with_the_same_incarnation_is_refused_once_mass_has_moved() {
    let (mut node, _) = greeted(1);
    node.handle(AT, from_peer(Message::Parcel(parcel_from_peer(1, 0, 5.0))));
    let effects = node.handle(AT, from_peer(hello_from_peer(1, 999)));
    let mismatch = Mismatch::IdentityInUse { incarnation: 1 };
    assert_eq!(reports(&effects), [NodeEvent::Refused { peer: PEER, mismatch }]);
}

#[test]
fn a_neighbour_that_restarts_before_it_took_anything_gets_the_same_parcels_again() {
    let (mut node, effects) = greeted(0);
    let first = parcels(&effects);
    assert_eq!(first.len(), 1);
    let effects = node.handle(AT, from_peer(hello_from_peer(1, 999)));
    assert_eq!(parcels(&effects), first);
}

#[test]
fn parcels_an_earlier_life_may_have_applied_are_written_off_and_never_sent_again() {
    let (mut node, effects) = greeted(0);
    let mass = parcels(&effects)[0].header.mass;
    let effects = node.handle(AT, from_peer(hello_from_peer(2, 999)));
    assert_eq!(parcels(&effects).len(), 0);
    let expected = [
        NodeEvent::NewIncarnation { peer: PEER, incarnation: 2 },
        NodeEvent::MassWrittenOff { peer: PEER, mass, parcels: 1 },
    ];
    assert_eq!(reports(&effects), expected);
    let books = &node.ledger().outgoing[&PEER];
    assert_eq!((books.written_off, books.outbox.len()), (u128::from(mass.units()), 0));
    assert!(audit(&[(ME, node.ledger())], 2).is_exact());
    // The old life is over for good.
    let effects = node.handle(AT, from_peer(hello_from_peer(1, 101)));
    let mismatch = Mismatch::Outdated { incarnation: 1, known: 2 };
    assert_eq!(reports(&effects), [NodeEvent::Refused { peer: PEER, mismatch }]);
}

/// The Hello of a neighbour with records, from its process with this nonce.
fn hello_from_resumed(boot_nonce: u64) -> Message {
    let Message::Hello(mut hello) = hello_from_peer(1, boot_nonce) else { unreachable!() };
    hello.resumed = true;
    hello.link.next_seq = 2;
    Message::Hello(hello)
}

#[test]
fn a_process_that_is_gone_is_not_kept_alive_by_parcels_that_the_next_one_sends_again() {
    let mut config = config(ME, 0);
    config.durability = Durability::On;
    let mut node = Node::new(config).unwrap();
    let mut handle = |at: Time, input: Input| {
        let mut all = Vec::new();
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let effects = node.handle(at, input);
            for effect in &effects {
                if let Effect::Persist(record) = effect {
                    inputs.push_back(Input::Persisted { number: record.books.number });
                }
            }
            all.extend(effects);
        }
        all
    };
    handle(AT, Input::Start);
    handle(AT, Input::LinkUp { peer: PEER });
    handle(AT, from_peer(hello_from_resumed(101)));
    handle(AT, from_peer(Message::Parcel(parcel_from_peer(1, 0, 8.0))));

    // The next process greets too early, and sends again the parcels of the last one.
    let other = NodeEvent::Refused { peer: PEER, mismatch: Mismatch::IdentityInUse { incarnation: 1 } };
    let second = |seconds: u64| Time::from_millis(seconds * 1000);
    let effects = handle(second(2), from_peer(hello_from_resumed(102)));
    assert!(reports(&effects).contains(&other), "{effects:?}");
    for seconds in 3..11 {
        handle(second(seconds), from_peer(Message::Parcel(parcel_from_peer(1, 0, 8.0))));
    }
    let answers = messages(&handle(second(11), from_peer(hello_from_resumed(102))));
    let seen = answers.iter().find_map(|message| if let Message::Hello(hello) = message { hello.seen } else { None });
    assert_eq!(seen.map(|seen| seen.identity), Some(Incarnation { incarnation: 1, boot_nonce: 102 }), "{answers:?}");
}

#[test]
fn a_record_with_links_that_the_plan_does_not_have_is_foreign() {
    let durable = || {
        let mut config = config(ME, 0);
        config.durability = Durability::On;
        config
    };
    let effects = Node::new(durable()).unwrap().handle(AT, Input::Start);
    let written = effects.into_iter().find_map(|effect| match effect {
        Effect::Persist(record) => Some(Arc::unwrap_or_clone(record)),
        _ => None,
    });
    let (record, none_owed) = (written.unwrap(), BTreeMap::new());
    assert!(Node::resume(durable(), record.clone(), &none_owed).is_ok());
    let step = Step { keep: vec![0.5, 1.0], links: vec![(ME, PEER, 0.5)] };
    let mut one_way = durable();
    one_way.schedule = Arc::new(Schedule::new(2, &[step], 0).unwrap());
    assert_eq!(Node::resume(one_way, record, &none_owed).err(), Some(NodeError::ForeignRecord));
}

fn renewals(effects: &[Effect]) -> usize {
    effects.iter().filter(|effect| matches!(effect, Effect::Renew { peer: PEER })).count()
}

#[test]
fn parcels_that_no_greeting_makes_acceptable_lead_to_new_streams_and_ever_more_seldom() {
    let (mut node, _) = greeted(0);
    let mut parcel = parcel_from_peer(1, 0, 1.0);
    parcel.header.sender_incarnation = 2;
    let mut refuse = |now: Time| {
        let effects = node.handle(now, from_peer(Message::Parcel(parcel.clone())));
        assert!(!effects.iter().any(|effect| matches!(effect, Effect::Report(NodeEvent::ParcelRefused { .. }))));
        renewals(&effects)
    };
    assert_eq!((0..15).map(|_| refuse(AT)).sum::<usize>(), 0, "restarts and broken streams cause a few");
    assert_eq!(refuse(AT), 1);
    assert_eq!((0..1_000).map(|_| refuse(AT)).sum::<usize>(), 0, "at most one in a heartbeat");
    let hour = (0..3_600).map(|second| refuse(AT + Duration::from_secs(second))).sum::<usize>();
    assert!((8..=18).contains(&hour), "{hour} times");
}

#[test]
fn a_neighbour_that_greets_again_and_again_does_not_hear_the_answers_and_gets_new_streams() {
    let (mut node, _) = greeted(0);
    let hello = || from_peer(hello_from_peer(1, 101));
    let greet = |node: &mut Node| renewals(&node.handle(AT, hello()));
    assert_eq!((0..16).map(|_| greet(&mut node)).sum::<usize>(), 1);
    // On new streams the count begins anew.
    node.handle(AT, Input::LinkDown { peer: PEER });
    node.handle(AT, Input::LinkUp { peer: PEER });
    assert_eq!((0..15).map(|_| greet(&mut node)).sum::<usize>(), 0);
}

#[test]
fn nobody_has_had_so_many_lives_whoever_signed_it() {
    let mut config = config(ME, 0);
    config.durability = Durability::On;
    let mut node = Node::new(config).unwrap();
    node.handle(AT, Input::Start);
    node.handle(AT, Input::LinkUp { peer: PEER });
    let Message::Hello(mut hello) = hello_from_peer(1, 101) else { unreachable!() };
    node.handle(AT, from_peer(Message::Hello(hello.clone())));
    hello.seen = Some(SignedIdentity::unsigned(Incarnation { incarnation: u64::MAX, boot_nonce: 100 }));
    let effects = node.handle(AT, from_peer(Message::Hello(hello)));
    assert_eq!(reports(&effects), [NodeEvent::Ignored { peer: PEER, fault: InputFault::ImpossibleLife }]);
    assert!(records(&effects).is_empty());
}
