//! The unfinished objects of all senders of a receiver, with bounded memory.

use std::collections::{BTreeMap, VecDeque};

use crate::assembly::{Assembly, Placed};
use crate::geometry::Geometry;
use crate::packet::{FIRST_BEACON, PacketHead};
use crate::seal::{SECRET_BYTES, SenderKey};
use crate::slots::SlotBeacon;
use crate::word::ObjectName;

/// Bounds of a symbol. Shorter ones would cost more memory than they hold, longer ones fit no jumbo frame.
const LEAST_SYMBOL_BYTES: u16 = 512;
const MOST_SYMBOL_BYTES: u16 = 8_800;
/// Keys of one sender: the present one, and the one before for packets under way.
const KEYS_PER_SENDER: usize = 2;
/// Objects of one sender at a time: the one under way, the next one, and one that was not announced here.
const OBJECTS_PER_SENDER: usize = 3;
/// Objects of one sender that are over, whose late symbols are recognised.
const REMEMBERED: usize = 32;

/// Limits of a store.
#[derive(Clone, Copy, Debug)]
pub struct StoreLimits {
    /// Length of the largest object.
    pub object_bytes: usize,
    /// Memory of all objects.
    pub total_bytes: usize,
}

/// Counts of packets since the store was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreCounts {
    /// Bytes of packets of senders.
    pub bytes: u64,
    /// Packets that no known key opens: of other swarms, strangers and present keys of old plans.
    pub strange: u64,
    /// Packets of senders that make no sense, or are beyond the limits.
    pub refused: u64,
    /// Symbols that were there already.
    pub surplus: u64,
}

/// The meaning of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketMeaning {
    /// No known key opens it.
    Strange,
    /// It makes no sense, is beyond the limits, or came too late.
    Useless,
    /// A probe of a sender.
    Probe {
        /// The sender.
        sender: u32,
        /// Number of the key.
        key: u32,
        /// Number of the probe.
        probe: u32,
    },
    /// A beacon of a sender's slots.
    Beacon {
        /// The sender.
        sender: u32,
        /// Number of the key.
        key: u32,
        /// Number of the beacon under that key.
        number: u32,
        /// Its times.
        beacon: SlotBeacon,
    },
    /// A symbol of a sender's object.
    Symbol {
        /// The sender.
        sender: u32,
        /// The object.
        object: ObjectName,
        /// `true` if the object is complete with it.
        completes: bool,
    },
}

/// The objects of all senders. Senders are those whose keys were handed over on their streams.
#[derive(Debug)]
pub struct ObjectStore {
    limits: StoreLimits,
    senders: BTreeMap<u32, Sender>,
    used_bytes: usize,
    counts: StoreCounts,
}

#[derive(Debug, Default)]
struct Sender {
    keys: VecDeque<(SenderKey, u16)>,
    /// By the order of their first symbols, oldest first.
    objects: VecDeque<(ObjectName, Assembly)>,
    over: VecDeque<ObjectName>,
}

impl ObjectStore {
    /// A store without senders.
    pub fn new(limits: StoreLimits) -> Self {
        Self { limits, senders: BTreeMap::new(), used_bytes: 0, counts: StoreCounts::default() }
    }

    /// Adds a sender's key, with the length of the symbols under it. `false` if that is out of bounds.
    pub fn admit(&mut self, sender: u32, secret: &[u8; SECRET_BYTES], symbol_bytes: u16) -> bool {
        if !(LEAST_SYMBOL_BYTES..=MOST_SYMBOL_BYTES).contains(&symbol_bytes) {
            return false;
        }
        let key = SenderKey::new(secret);
        let keys = &mut self.senders.entry(sender).or_default().keys;
        keys.retain(|(known, _)| known.number() != key.number());
        keys.push_front((key, symbol_bytes));
        keys.truncate(KEYS_PER_SENDER);
        true
    }

    /// Removes a sender, with its objects.
    pub fn dismiss(&mut self, sender: u32) {
        if let Some(gone) = self.senders.remove(&sender) {
            self.used_bytes -= gone.objects.iter().map(|(_, object)| memory_of(object.geometry())).sum::<usize>();
        }
    }

    /// Takes a packet, which is opened in place.
    pub fn receive(&mut self, packet: &mut [u8]) -> PacketMeaning {
        let Some((sender, head, symbol_bytes)) = self.open(packet) else {
            self.counts.strange += 1;
            return PacketMeaning::Strange;
        };
        self.counts.bytes += packet.len() as u64;
        let PacketHead { key, object, object_bytes, symbol } = head;
        if object == 0 && symbol < FIRST_BEACON {
            return PacketMeaning::Probe { sender, key, probe: symbol };
        }
        let text = &packet[crate::packet::HEAD_BYTES..packet.len() - crate::packet::TAG_BYTES];
        if object == 0 {
            if let Some(beacon) = SlotBeacon::decode(text) {
                return PacketMeaning::Beacon { sender, key, number: symbol, beacon };
            }
            self.counts.refused += 1;
            return PacketMeaning::Useless;
        }
        let geometry = Geometry::new(object_bytes as usize, symbol_bytes);
        let name = ObjectName { key, object };
        match geometry.map(|geometry| self.put(sender, name, geometry, symbol, text)) {
            Some(Some((Placed::New, completes))) => return PacketMeaning::Symbol { sender, object: name, completes },
            Some(Some((Placed::Surplus, _))) => self.counts.surplus += 1,
            _ => self.counts.refused += 1,
        }
        PacketMeaning::Useless
    }

    /// Takes an object, once it is complete.
    pub fn take(&mut self, sender: u32, name: ObjectName) -> Option<Vec<u8>> {
        let objects = &self.senders.get(&sender)?.objects;
        objects.iter().find(|(known, object)| *known == name && object.is_complete())?;
        self.forget(sender, name)?.into_object()
    }

    /// Symbols that each block of an object still needs, and the number of those that have come. `None` if none has.
    pub fn missing(&self, sender: u32, name: ObjectName) -> Option<(&[u16], u64)> {
        let objects = &self.senders.get(&sender)?.objects;
        let (_, object) = objects.iter().find(|(known, _)| *known == name)?;
        Some((object.missing(), object.taken()))
    }

    /// Drops an object: later symbols of it are ignored.
    pub fn forget(&mut self, sender: u32, name: ObjectName) -> Option<Assembly> {
        let from = self.senders.get_mut(&sender)?;
        if !from.over.contains(&name) {
            from.over.push_front(name);
            from.over.truncate(REMEMBERED);
        }
        let place = from.objects.iter().position(|(known, _)| *known == name)?;
        let (_, object) = from.objects.remove(place)?;
        self.used_bytes -= memory_of(object.geometry());
        Some(object)
    }

    /// Returns `true` if an object was taken or dropped: its symbols are ignored.
    pub fn is_over(&self, sender: u32, name: ObjectName) -> bool {
        self.senders.get(&sender).is_some_and(|from| from.over.contains(&name))
    }

    /// The counts so far.
    pub fn counts(&self) -> StoreCounts {
        self.counts
    }

    /// The largest memory that the objects under way may take.
    pub fn used_bytes(&self) -> usize {
        self.used_bytes
    }

    /// Opens a packet with the key that it names. Two senders may have keys of one number: both are tried.
    fn open(&self, packet: &mut [u8]) -> Option<(u32, PacketHead, u16)> {
        let head = PacketHead::decode(packet)?;
        for (sender, from) in &self.senders {
            for (key, symbol_bytes) in from.keys.iter().filter(|(key, _)| key.number() == head.key) {
                // An attempt that fails leaves the packet as it was.
                if key.open(packet).is_some() {
                    return Some((*sender, head, *symbol_bytes));
                }
            }
        }
        None
    }

    fn put(
        &mut self,
        sender: u32,
        name: ObjectName,
        geometry: Geometry,
        symbol: u32,
        bytes: &[u8],
    ) -> Option<(Placed, bool)> {
        let from = self.senders.get_mut(&sender)?;
        if from.over.contains(&name) {
            return Some((Placed::Surplus, false));
        }
        if let Some((_, object)) = from.objects.iter_mut().find(|(known, _)| *known == name) {
            let placed = if object.geometry() == geometry { object.put(symbol, bytes) } else { Placed::Bad };
            return Some((placed, object.is_complete()));
        }
        self.make_room(sender, geometry)?;
        let mut object = Assembly::new(geometry);
        let placed = object.put(symbol, bytes);
        let completes = object.is_complete();
        self.used_bytes += memory_of(geometry);
        self.senders.get_mut(&sender)?.objects.push_back((name, object));
        Some((placed, completes))
    }

    /// Makes room for an object of a sender, at the expense of its own oldest ones. `None` if there is not enough.
    fn make_room(&mut self, sender: u32, geometry: Geometry) -> Option<()> {
        if geometry.object_bytes() > self.limits.object_bytes {
            return None;
        }
        loop {
            let objects = &self.senders.get(&sender)?.objects;
            let is_room = self.used_bytes + memory_of(geometry) <= self.limits.total_bytes;
            if is_room && objects.len() < OBJECTS_PER_SENDER {
                return Some(());
            }
            let (oldest, _) = objects.front()?;
            let oldest = *oldest;
            self.forget(sender, oldest);
        }
    }
}

fn memory_of(geometry: Geometry) -> usize {
    Assembly::most_bytes(geometry)
}
