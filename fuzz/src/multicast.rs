//! Packets and words of multicast, as an out-neighbour that has the sender's key could forge them.

use std::time::Duration;

use mingle_multicast::{
    Encoder, ObjectName, ObjectStore, PacketHead, PacketMeaning, Pauses, Rhythm, SenderKey, SlotBeacon, SlotLength,
    SlotTable, StepSlots, StoreLimits, Word,
};

use crate::seeds::Seed;

/// Bytes of a symbol: the fewest that a receiver takes.
const SYMBOL_BYTES: u16 = 512;
/// Senders whose keys the receiver has.
const SENDERS: u8 = 3;
const LIMITS: StoreLimits = StoreLimits { object_bytes: 8_192, total_bytes: 40_000 };
/// The time from one packet to the next.
const BETWEEN: Duration = Duration::from_millis(7);
/// The first number of a beacon.
const FIRST_BEACON: u32 = 1 << 31;
/// Bytes of an entry before its content.
const HEAD: usize = 12;

/// The kinds of entries: sealed by a sender with this number, or one of these.
const RAW: u8 = 3;
const WORD: u8 = 4;
const DISMISSED: u8 = 5;
const NEW_KEY: u8 = 6;
const KINDS: u8 = 7;

/// Checks a series of entries: their kind, the number of the object, both in a byte, its length, the number of the symbol, the
/// length of what follows, and so many bytes.
///
/// Memory stays within its limit, an object is complete once and has its length, and beacons leave a node with a rhythm
/// that finds windows for its payloads.
///
/// # Panics
/// If any of that does not hold.
pub fn check(input: &[u8]) {
    let mut receiver = Receiver::new();
    let mut rest = input;
    while let Some((entry, after)) = Entry::split(rest) {
        receiver.take(&entry);
        rest = after;
    }
}

/// One entry of the input.
struct Entry<'a> {
    kind: u8,
    object: u8,
    object_bytes: u32,
    symbol: u32,
    content: &'a [u8],
}

impl<'a> Entry<'a> {
    fn split(input: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (head, rest) = input.split_first_chunk::<HEAD>()?;
        let number = |from: usize| u32::from_le_bytes([head[from], head[from + 1], head[from + 2], head[from + 3]]);
        let length = usize::from(u16::from_le_bytes([head[10], head[11]])).min(rest.len());
        let (content, after) = rest.split_at(length);
        let entry =
            Self { kind: head[0] % KINDS, object: head[1], object_bytes: number(2), symbol: number(6), content };
        Some((entry, after))
    }

    fn to_bytes(&self) -> Vec<u8> {
        let length = (self.content.len() as u16).to_le_bytes();
        let numbers = [self.object_bytes.to_le_bytes(), self.symbol.to_le_bytes()].concat();
        [&[self.kind, self.object], &numbers[..], &length, self.content].concat()
    }
}

/// A node that receives packets, and keeps slots.
struct Receiver {
    store: ObjectStore,
    rhythm: Rhythm,
    now: Duration,
    step: u64,
}

impl Receiver {
    fn new() -> Self {
        let mut store = ObjectStore::new(LIMITS);
        (0..SENDERS).for_each(|sender| assert!(store.admit(sender.into(), &secret(sender, 0), SYMBOL_BYTES)));
        let step = StepSlots { slots: 3, own: vec![(1, 0)], last_busy: Some(2), quiet: vec![(2, 1)] };
        let table = SlotTable::new(1, vec![step]).expect("the table is sound");
        Self { store, rhythm: Rhythm::new(table, 4, 3, slot_length()), now: Duration::ZERO, step: 0 }
    }

    fn take(&mut self, entry: &Entry<'_>) {
        self.now += BETWEEN;
        match entry.kind {
            WORD => {
                if let Some(word) = Word::decode(entry.content) {
                    assert_eq!(Word::decode(&word.encode()).as_ref(), Some(&word));
                }
            }
            DISMISSED => self.store.dismiss(entry.object.into()),
            NEW_KEY => {
                self.store.admit(u32::from(entry.object % SENDERS), &secret(entry.object % SENDERS, 1), SYMBOL_BYTES);
            }
            RAW => self.receive(&mut entry.content.to_vec()),
            sender => self.receive(&mut sealed(sender, entry)),
        }
        assert!(self.store.used_bytes() <= LIMITS.total_bytes, "{} bytes", self.store.used_bytes());
    }

    fn receive(&mut self, packet: &mut [u8]) {
        let object_bytes = PacketHead::decode(packet).map_or(0, |head| head.object_bytes);
        match self.store.receive(packet) {
            PacketMeaning::Symbol { sender, object, completes } => {
                self.check_object(sender, object, completes, object_bytes)
            }
            PacketMeaning::Beacon { sender, beacon, .. } => {
                self.rhythm.hear(sender, &beacon, self.now);
                self.transmit();
            }
            PacketMeaning::Probe { sender, .. } => assert!(sender < SENDERS.into()),
            PacketMeaning::Strange | PacketMeaning::Useless => {}
        }
    }

    fn check_object(&mut self, sender: u32, name: ObjectName, completes: bool, object_bytes: u32) {
        if !completes {
            assert!(
                self.store
                    .missing(sender, name)
                    .is_some_and(|(missing, taken)| missing.iter().any(|n| *n > 0) && taken > 0)
            );
            assert!(self.store.take(sender, name).is_none(), "it is not complete");
            return;
        }
        let object = self.store.take(sender, name).expect("it is complete");
        assert_eq!(object.len(), object_bytes as usize);
        assert!(self.store.is_over(sender, name) && self.store.take(sender, name).is_none(), "it is complete once");
    }

    /// Offers the payload of the next step, as a node does that has received times.
    fn transmit(&mut self) {
        self.step += 1;
        if let Some(window) = self.rhythm.offer(self.step, 1, Some(BETWEEN), self.now) {
            let beacon = self.rhythm.beacon(&window, self.now);
            assert_eq!(beacon, beacon.and_then(|beacon| SlotBeacon::decode(&beacon.encode())));
            self.rhythm.next_window(window, self.now + BETWEEN);
        }
    }
}

fn secret(sender: u8, generation: u8) -> [u8; 32] {
    let mut secret = [sender; 32];
    secret[31] = generation;
    secret
}

fn slot_length() -> SlotLength {
    SlotLength::of(4_096, SYMBOL_BYTES, "10mbit".parse().expect("it is a rate"))
}

/// The packet of an entry, sealed by a sender with its first key, or its second one for objects from 128 on.
fn sealed(sender: u8, entry: &Entry<'_>) -> Vec<u8> {
    let key = SenderKey::new(&secret(sender, entry.object / 128));
    let head = PacketHead {
        key: key.number(),
        object: u32::from(entry.object % 128),
        object_bytes: entry.object_bytes,
        symbol: entry.symbol,
    };
    let mut packet = Vec::new();
    key.seal(head, entry.content, &mut packet);
    packet
}

/// Series that get past the checks: an object, one that is repaired, beacons, and all other entries.
///
/// # Panics
/// Never: the object can be divided.
pub fn seeds() -> Vec<Seed<Vec<u8>>> {
    vec![
        ("object", object(1, &[0, 1, 2])),
        ("repaired", object(2, &[2, 3, 4])),
        ("beacons", (0..4).flat_map(beacon).collect()),
        ("others", [entry(RAW, 0, &[1; 40]), entry(NEW_KEY, 1, &[]), entry(DISMISSED, 2, &[]), word()].concat()),
    ]
}

/// An object of three symbols, by the symbols with these numbers; those from 3 on are repair.
fn object(number: u8, symbols: &[u32]) -> Vec<u8> {
    let bytes: Vec<u8> = (0..1_300_u32).map(|byte| byte as u8).collect();
    let mut encoder = Encoder::new(&bytes, SYMBOL_BYTES).expect("it can be divided");
    let mut series = Vec::new();
    for symbol in symbols {
        let content = encoder.symbol(*symbol).expect("it can be coded");
        let object_bytes = bytes.len() as u32;
        series.extend(Entry { kind: 0, object: number, object_bytes, symbol: *symbol, content }.to_bytes());
    }
    series
}

fn beacon(number: u32) -> Vec<u8> {
    let pauses = Pauses { round: 1_000, step: 0 };
    let slot = slot_length().slot().as_micros() as u32;
    let beacon = SlotBeacon {
        step: number.into(),
        elapsed: 50,
        slot,
        pauses,
        wanted: pauses,
        root: 0,
        hops: 0,
        beat: number.into(),
    };
    Entry { kind: 0, object: 0, object_bytes: 0, symbol: FIRST_BEACON | number, content: &beacon.encode() }.to_bytes()
}

fn word() -> Vec<u8> {
    entry(WORD, 0, &Word::Heard { key: 7, probe: 3 }.encode())
}

fn entry(kind: u8, object: u8, content: &[u8]) -> Vec<u8> {
    Entry { kind, object, object_bytes: 0, symbol: 0, content }.to_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The meanings of the packets of a series, for a new receiver.
    fn meanings(series: &[u8]) -> Vec<PacketMeaning> {
        let mut receiver = Receiver::new();
        let mut meanings = Vec::new();
        let mut rest = series;
        while let Some((entry, after)) = Entry::split(rest) {
            meanings.push(receiver.store.receive(&mut sealed(entry.kind, &entry)));
            rest = after;
        }
        meanings
    }

    #[test]
    fn seeds_are_objects_and_beacons() {
        let completes = |meaning: &PacketMeaning| matches!(meaning, PacketMeaning::Symbol { completes: true, .. });
        assert!(meanings(&object(1, &[0, 1, 2])).last().is_some_and(completes));
        assert!(meanings(&object(2, &[2, 3, 4])).last().is_some_and(completes));
        let beacons = meanings(&(0..4).flat_map(beacon).collect::<Vec<_>>());
        assert!(beacons.iter().all(|meaning| matches!(meaning, PacketMeaning::Beacon { .. })), "{beacons:?}");
        seeds().iter().for_each(|(_, seed)| check(seed));
    }
}
