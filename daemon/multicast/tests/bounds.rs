//! Bounds and refusals: strangers, forgers and senders that lie.
#![allow(clippy::unwrap_used)]

use mingle_multicast::*;

const SYMBOL: u16 = 1_166;

fn packet(key: &SenderKey, object: u32, object_bytes: u32, symbol: u32, bytes: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    key.seal(PacketHead { key: key.number(), object, object_bytes, symbol }, bytes, &mut packet);
    packet
}

fn store(total_bytes: usize) -> ObjectStore {
    ObjectStore::new(StoreLimits { object_bytes: 1_000_000, total_bytes })
}

#[test]
fn a_packet_of_a_stranger_costs_nothing_but_its_count() {
    let mut store = store(usize::MAX);
    store.admit(1, &[1; 32], SYMBOL);
    let mut sealed = packet(&SenderKey::new(&[2; 32]), 1, 100, 0, &[5; 100]);
    assert_eq!(store.receive(&mut sealed), PacketMeaning::Strange);
    // The same number of the key, and another secret.
    let ours = SenderKey::new(&[1; 32]);
    let mut forged = Vec::new();
    let head = PacketHead { key: ours.number(), object: 1, object_bytes: 100, symbol: 0 };
    SenderKey::new(&[2; 32]).seal(head, &[5; 100], &mut forged);
    assert_eq!(store.receive(&mut forged), PacketMeaning::Strange);
    assert_eq!(store.receive(&mut []), PacketMeaning::Strange);
    assert_eq!((store.counts().strange, store.used_bytes()), (3, 0));
}

#[test]
fn each_changed_bit_of_a_packet_is_noticed() {
    let mut store = store(usize::MAX);
    store.admit(1, &[1; 32], SYMBOL);
    let mut sealed = packet(&SenderKey::new(&[1; 32]), 1, 100, 0, &[5; 100]);
    for bit in 0..sealed.len() * 8 {
        let mut changed = sealed.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(store.receive(&mut changed), PacketMeaning::Strange, "bit {bit}");
    }
    let whole = store.receive(&mut sealed);
    assert!(matches!(whole, PacketMeaning::Symbol { sender: 1, completes: true, .. }), "{whole:?}");
}

#[test]
fn a_sender_that_begins_objects_without_end_has_memory_for_three() {
    let mut store = store(20_000_000);
    for sender in [1, 2] {
        store.admit(sender, &[sender as u8; 32], SYMBOL);
    }
    let keys = [1, 2].map(|secret| SenderKey::new(&[secret; 32]));
    let symbol = vec![0; usize::from(SYMBOL)];
    store.receive(&mut packet(&keys[1], 1, 1_000_000, 0, &symbol));
    for object in 1..1_000 {
        store.receive(&mut packet(&keys[0], object, 1_000_000, 0, &symbol));
        assert!(store.used_bytes() <= 4 * 2_010_000, "{}", store.used_bytes());
    }
    let other = ObjectName { key: keys[1].number(), object: 1 };
    assert!(store.missing(2, other).is_some(), "the other sender keeps its own");
    store.dismiss(1);
    store.dismiss(2);
    assert_eq!(store.used_bytes(), 0);
}

#[test]
fn all_senders_together_have_bounded_memory() {
    let mut store = store(5_000_000);
    let symbol = vec![0; usize::from(SYMBOL)];
    for sender in 0..100_u8 {
        store.admit(u32::from(sender), &[sender; 32], SYMBOL);
        store.receive(&mut packet(&SenderKey::new(&[sender; 32]), 1, 1_000_000, 0, &symbol));
        assert!(store.used_bytes() <= 5_000_000);
    }
    assert_eq!(store.counts().refused, 98);
}

#[test]
fn symbols_that_contradict_their_object_are_refused() {
    let mut store = store(usize::MAX);
    store.admit(1, &[1; 32], SYMBOL);
    let key = SenderKey::new(&[1; 32]);
    let full = vec![9; usize::from(SYMBOL)];
    for (object_bytes, symbol, bytes) in [
        (0, 0, &full[..0]),
        (1_000_001, 0, &full[..]),
        (u32::MAX, 0, &full[..]),
        (2_000, 4, &full[..]),
        (2_000, 0, &full[..5]),
        (2_000, 1, &full[..]),
    ] {
        assert_eq!(store.receive(&mut packet(&key, 1, object_bytes, symbol, bytes)), PacketMeaning::Useless);
    }
    // An object keeps the length of its first symbol.
    let mut first = packet(&key, 2, 2_000, 0, &full);
    assert!(matches!(store.receive(&mut first), PacketMeaning::Symbol { .. }));
    assert_eq!(store.receive(&mut packet(&key, 2, 3_000, 1, &full)), PacketMeaning::Useless);
}

#[test]
fn late_symbols_of_an_object_that_is_over_do_not_begin_it_anew() {
    let mut store = store(usize::MAX);
    store.admit(1, &[1; 32], SYMBOL);
    let key = SenderKey::new(&[1; 32]);
    let name = ObjectName { key: key.number(), object: 1 };
    store.receive(&mut packet(&key, 1, 100, 0, &[5; 100]));
    assert_eq!(store.take(1, name), Some(vec![5; 100]));
    assert_eq!(store.receive(&mut packet(&key, 1, 100, 0, &[5; 100])), PacketMeaning::Useless);
    assert_eq!((store.take(1, name), store.used_bytes()), (None, 0));
}

#[test]
fn a_key_before_the_last_one_opens_nothing() {
    let mut store = store(usize::MAX);
    (1..=3).for_each(|secret| assert!(store.admit(1, &[secret; 32], SYMBOL)));
    assert!(!store.admit(2, &[9; 32], 2), "symbols of two bytes cost more memory than they hold");
    let probe = |secret: u8| {
        let key = SenderKey::new(&[secret; 32]);
        let mut packet = Vec::new();
        key.seal(PacketHead::probe(key.number(), 9), &[0; 20], &mut packet);
        packet
    };
    assert_eq!(store.receive(&mut probe(1)), PacketMeaning::Strange);
    assert!(matches!(store.receive(&mut probe(2)), PacketMeaning::Probe { sender: 1, probe: 9, .. }));
    assert!(matches!(store.receive(&mut probe(3)), PacketMeaning::Probe { sender: 1, probe: 9, .. }));
}

#[test]
fn mutated_packets_are_dropped_or_make_sense() {
    let keys = [1, 2].map(|secret| SenderKey::new(&[secret; 32]));
    let mut store = store(10_000_000);
    (1..=2).for_each(|sender| assert!(store.admit(sender, &[sender as u8; 32], SYMBOL)));
    let seeds = [
        packet(&keys[0], 1, 3_000, 0, &[1; 1_166]),
        packet(&keys[0], 1, 3_000, 5, &[1; 1_166]),
        packet(&keys[1], 7, 10, 0, &[1; 10]),
        packet(&keys[1], 0, 0, 3, &[]),
    ];
    mingle_mutations::for_each_input("multicast packet", &seeds, |input| {
        store.receive(&mut input.to_vec());
        assert!(store.used_bytes() <= 10_000_000);
    });
}

#[test]
fn mutated_symbols_under_the_right_key_do_no_harm() {
    // A neighbour that holds the key can seal what it likes.
    let key = SenderKey::new(&[1; 32]);
    let mut store = store(10_000_000);
    store.admit(1, &[1; 32], SYMBOL);
    let seeds = [
        vec![1, 0, 0, 0, 184, 11, 0, 0, 0, 0, 0, 0],
        [vec![2, 0, 0, 0, 100, 0, 0, 0, 0, 0, 0, 0], vec![1; 100]].concat(),
    ];
    mingle_mutations::for_each_input("multicast symbol", &seeds, |input| {
        let number = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| input.get(at + i).copied().unwrap_or(0)));
        let bytes = input.get(12..).unwrap_or_default();
        store.receive(&mut packet(&key, number(0), number(4), number(8), bytes));
        assert!(store.used_bytes() <= 10_000_000);
    });
}

#[test]
fn mutated_words_are_refused_or_make_sense() {
    let object = ObjectName { key: 7, object: 9 };
    let seeds = [
        Word::Key { secret: [3; 32], symbol_bytes: SYMBOL },
        Word::Sent { object, pass: 3, last: true },
        Word::Coming { object },
        Word::Heard { key: 7, probe: 8 },
        Word::Got { object },
        Word::Lacks { object, pass: 1, missing: vec![0, 5, 1024] },
        Word::Rest { object },
    ];
    let seeds = seeds.map(|word| word.encode());
    for seed in &seeds {
        assert_eq!(Word::decode(seed).unwrap().encode(), *seed);
    }
    mingle_mutations::for_each_input("multicast word", &seeds, |input| {
        if let Some(word) = Word::decode(input) {
            assert!(word.encode().len() <= 16_384);
        }
    });
    assert_eq!(Word::decode(&Word::Lacks { object, pass: 1, missing: vec![1; 4_097] }.encode()), None);
}

/// The bytes of each word and of a packet. Other bytes need another number: of the packet's version, or in the name of
/// the stream protocol.
#[test]
fn words_and_packets_have_the_bytes_that_they_had() {
    let object = ObjectName { key: 7, object: 9 };
    assert_eq!(Word::Sent { object, pass: 3, last: true }.encode(), [1, 7, 9, 3, 1]);
    assert_eq!(Word::Heard { key: 7, probe: 8 }.encode(), [3, 7, 8]);
    assert_eq!(Word::Lacks { object, pass: 1, missing: vec![5] }.encode(), [5, 7, 9, 1, 1, 5]);
    let sealed = packet(&SenderKey::new(&[1; 32]), 2, 3, 0, &[1, 2, 3]);
    assert_eq!(sealed.len(), 3 + PACKET_OVERHEAD);
    assert_eq!((sealed[0], &sealed[5..17]), (1, &[2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0][..]));
    assert_eq!(sealed, GOLDEN_PACKET);
}

const GOLDEN_PACKET: [u8; 36] = [
    1, 16, 104, 53, 136, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 189, 58, 98, 19, 242, 86, 80, 220, 118, 140, 188, 63, 83,
    34, 96, 83, 245, 53, 159,
];
