//! Objects over channels that lose: no byte differs, and the symbols sent are few more than any code needs.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use mingle_multicast::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Losses of one receiver's channel: independent, or in bursts of a two-state Markov chain (Gilbert 1960).
#[derive(Clone, Copy, Debug)]
struct Channel {
    loss: f64,
    mean_burst: f64,
    is_bad: bool,
}

impl Channel {
    fn new(loss: f64, mean_burst: f64) -> Self {
        Self { loss, mean_burst, is_bad: false }
    }

    fn loses(&mut self, rng: &mut ChaCha8Rng) -> bool {
        if self.mean_burst <= 1.0 {
            return rng.random_bool(self.loss);
        }
        let leaves_bad = 1.0 / self.mean_burst;
        let enters_bad = (leaves_bad * self.loss / (1.0 - self.loss)).min(1.0);
        self.is_bad = if self.is_bad { !rng.random_bool(leaves_bad) } else { rng.random_bool(enters_bad) };
        self.is_bad
    }
}

const NAME: ObjectName = ObjectName { key: 0, object: 1 };

/// Sends an object of so many bytes to receivers behind these channels, with sealed packets and words as on a network.
/// Returns the symbols sent, and those of the receiver that needed most until it was complete.
fn send(bytes: usize, channels: &[Channel], seed: u64) -> (u64, u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let object: Vec<u8> = (0..bytes).map(|_| rng.random()).collect();
    let key = SenderKey::new(&[7; 32]);
    let symbol_bytes = symbol_bytes(DEFAULT_PACKET_BYTES);
    let mut encoder = Encoder::new(&object, symbol_bytes).unwrap();
    let geometry = encoder.geometry();
    let name = ObjectName { key: key.number(), ..NAME };
    let limits = StoreLimits { object_bytes: bytes, total_bytes: usize::MAX };
    let mut receivers: Vec<_> = channels.iter().map(|channel| (*channel, ObjectStore::new(limits), None)).collect();
    let mut transmission = Transmission::new(geometry);
    for (number, (_, store, _)) in receivers.iter_mut().enumerate() {
        store.admit(3, &[7; 32], symbol_bytes);
        assert!(transmission.add(number as u64));
    }
    let (mut packet, mut now) = (Vec::new(), Duration::ZERO);
    loop {
        match transmission.next(now) {
            TransmissionStep::Symbol(symbol) => {
                let head = PacketHead { key: key.number(), object: 1, object_bytes: bytes as u32, symbol };
                key.seal(head, encoder.symbol(symbol).unwrap(), &mut packet);
                assert!(packet.len() <= usize::from(DEFAULT_PACKET_BYTES));
                for (number, (channel, store, done)) in receivers.iter_mut().enumerate() {
                    if channel.loses(&mut rng) || done.is_some() {
                        continue;
                    }
                    if let PacketMeaning::Symbol { completes: true, .. } = store.receive(&mut packet.clone()) {
                        assert!(
                            store.take(3, name).unwrap() == object,
                            "seed {seed}: receiver {number} has other bytes"
                        );
                        *done = Some(transmission.sent());
                        transmission.remove(number as u64);
                    }
                }
            }
            TransmissionStep::Ask { pass, last } => {
                assert!(!last, "seed {seed}: {} symbols and no end", transmission.sent());
                for (number, (_, store, done)) in receivers.iter().enumerate() {
                    if done.is_none() {
                        let missing =
                            store.missing(3, name).map_or(geometry.all_missing(), |(missing, _)| missing.to_vec());
                        transmission.answer(number as u64, pass, missing);
                    }
                }
            }
            TransmissionStep::WaitUntil(until) => now = until,
            TransmissionStep::Over => break,
        }
    }
    let slowest = receivers.iter().filter_map(|(_, _, done)| *done).max().unwrap();
    (transmission.sent(), slowest)
}

#[test]
fn objects_come_whole_over_losses_and_goodput_is_near_that_of_an_ideal_fountain() {
    println!("| bytes | loss | mean burst | receivers | symbols | ideal | goodput |");
    for (bytes, receivers) in [(1_000_000, 1), (1_000_000, 7), (10_000_000, 7)] {
        for (loss, burst) in [(0.0, 1.0), (0.01, 1.0), (0.05, 1.0), (0.2, 1.0), (0.05, 20.0), (0.2, 20.0)] {
            let channels = vec![Channel::new(loss, burst); receivers];
            let (sent, slowest) = send(bytes, &channels, 11);
            let sources = Geometry::new(bytes, symbol_bytes(DEFAULT_PACKET_BYTES)).unwrap().sources();
            // An ideal fountain needs as many symbols at each receiver as the object has.
            let ideal = f64::from(sources) / (1.0 - loss);
            let goodput = ideal / sent as f64;
            println!("| {bytes} | {loss} | {burst} | {receivers} | {sent} ({slowest}) | {ideal:.0} | {goodput:.3} |");
            // With bursts, the receiver that happened to lose most has lost more than the average.
            let wanted = if burst > 1.0 && bytes < 10_000_000 { 0.75 } else { 0.85 };
            assert!(goodput >= wanted, "loss {loss}, bursts of {burst}, {receivers} receivers: goodput {goodput}");
        }
    }
}

#[test]
fn small_and_uneven_objects_come_whole() {
    for bytes in [1, 2, 1_165, 1_166, 1_167, 26_000, 1_194_000, 1_195_200] {
        for seed in 0..8 {
            send(bytes, &[Channel::new(0.3, 1.0); 3], seed);
        }
    }
}

#[test]
fn each_receiver_loses_other_symbols_and_the_same_repair_symbols_serve_all() {
    // With retransmission of what each of 20 receivers lost, almost each symbol would travel twice: 1 - 0.95^20 = 64 %.
    let (sent, _) = send(1_000_000, &[Channel::new(0.05, 1.0); 20], 5);
    let sources = Geometry::new(1_000_000, symbol_bytes(DEFAULT_PACKET_BYTES)).unwrap().sources();
    assert!(sent as f64 <= 1.15 * f64::from(sources), "{sent} symbols for {sources}");
}
