//! The speed of one core: sealing and sending symbols, repair symbols, opening and assembling.
#![allow(clippy::unwrap_used)]

use std::time::Instant;

use mingle_multicast::*;

const SECRET: [u8; 32] = [3; 32];

#[test]
#[ignore = "a measurement: cargo test --release -p mingle-multicast --test speed -- --ignored --nocapture"]
fn megabytes_a_second_of_a_sender_and_a_receiver() {
    let bytes = 20_000_000;
    let object: Vec<u8> = (0..bytes as u32).map(|number| (number.wrapping_mul(number) >> 5) as u8).collect();
    let key = SenderKey::new(&SECRET);
    let symbol_bytes = symbol_bytes(DEFAULT_PACKET_BYTES);
    for lost_in_hundred in [0, 5, 20] {
        let mut encoder = Encoder::new(&object, symbol_bytes).unwrap();
        let geometry = encoder.geometry();
        // In each block so many source symbols are lost, and as many repair symbols are sent.
        let symbols: Vec<u32> = (0..geometry.blocks())
            .flat_map(|block| {
                let lost = geometry.block_len(block) * lost_in_hundred / 100;
                let kept = geometry.block(block).skip(lost as usize);
                kept.chain((0..lost).map(move |index| geometry.repair(block, index)))
            })
            .collect();
        let began = Instant::now();
        let packets: Vec<Vec<u8>> = symbols
            .into_iter()
            .map(|symbol| {
                let mut packet = Vec::new();
                let head = PacketHead { key: key.number(), object: 1, object_bytes: bytes as u32, symbol };
                key.seal(head, encoder.symbol(symbol).unwrap(), &mut packet);
                packet
            })
            .collect();
        let sending = began.elapsed().as_secs_f64();
        let mut store = ObjectStore::new(StoreLimits { object_bytes: bytes, total_bytes: usize::MAX });
        store.admit(1, &SECRET, symbol_bytes);
        let began = Instant::now();
        for mut packet in packets {
            store.receive(&mut packet);
        }
        let name = ObjectName { key: key.number(), object: 1 };
        assert!(store.take(1, name).unwrap() == object);
        let receiving = began.elapsed().as_secs_f64();
        let mb_s = |seconds: f64| bytes as f64 / 1e6 / seconds;
        println!("{lost_in_hundred} % lost: {:.0} MB/s sent, {:.0} MB/s received", mb_s(sending), mb_s(receiving));
    }
}
