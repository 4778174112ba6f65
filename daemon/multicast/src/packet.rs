//! The packet of a symbol.
//!
//! ```text
//!   version: u8   key: u32   object: u32   object bytes: u32   symbol: u32   (little endian, authenticated)
//!   symbol, sealed, with the 16 bytes of its tag
//! ```
//!
//! Object 0 is no object: its packets are probes, whose symbol number counts them, and from number 2^31 on beacons of slots.

/// Length of a packet, unless another is chosen: it fits each path on which IPv6 works.
pub const DEFAULT_PACKET_BYTES: u16 = 1_200;
/// Bytes of a packet besides the symbol.
pub const PACKET_OVERHEAD: usize = HEAD_BYTES + TAG_BYTES;
pub(crate) const HEAD_BYTES: usize = 17;
pub(crate) const TAG_BYTES: usize = 16;
const VERSION: u8 = 1;
/// The first number of a beacon.
pub(crate) const FIRST_BEACON: u32 = 1 << 31;

/// The head of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketHead {
    /// Number of the key that the packet is sealed with.
    pub key: u32,
    /// Number of the object under that key; 0 for a probe.
    pub object: u32,
    /// Length of the object.
    pub object_bytes: u32,
    /// Number of the symbol.
    pub symbol: u32,
}

/// Bytes of a symbol in packets of this length: the rest, rounded to an even number as the code needs it.
pub fn symbol_bytes(packet_bytes: u16) -> u16 {
    packet_bytes.saturating_sub(PACKET_OVERHEAD as u16) & !1
}

impl PacketHead {
    /// A probe.
    pub fn probe(key: u32, number: u32) -> Self {
        Self { key, object: 0, object_bytes: 0, symbol: number }
    }

    /// A beacon of slots. Numbers begin again after 2^31 of them, more than a key lasts.
    pub fn beacon(key: u32, number: u32) -> Self {
        Self { key, object: 0, object_bytes: 0, symbol: FIRST_BEACON | number }
    }

    /// The bytes of the head.
    pub(crate) fn encode(self) -> [u8; HEAD_BYTES] {
        let mut bytes = [VERSION; HEAD_BYTES];
        let numbers = [self.key, self.object, self.object_bytes, self.symbol];
        for (place, number) in bytes[1..].chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// The head of a packet of this version that has room for a tag.
    pub fn decode(packet: &[u8]) -> Option<Self> {
        let (&[version, ref numbers @ ..], sealed) = packet.split_first_chunk::<HEAD_BYTES>()?;
        if version != VERSION || sealed.len() < TAG_BYTES {
            return None;
        }
        let mut numbers = numbers.chunks_exact(4).filter_map(|number| number.try_into().ok().map(u32::from_le_bytes));
        Some(Self {
            key: numbers.next()?,
            object: numbers.next()?,
            object_bytes: numbers.next()?,
            symbol: numbers.next()?,
        })
    }
}
