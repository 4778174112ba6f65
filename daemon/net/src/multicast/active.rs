//! One payload in transmission: its passes, its symbols, and the key that seals them.

use std::io;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::atomic::Ordering;
use std::time::Duration;

use mingle_multicast::{Encoder, ObjectName, PacketHead, SenderKey, SlotWindow, Transmission, symbol_bytes};
use mingle_protocol::Payload;

use super::offers::LinkSlot;
use super::{PACKET_BYTES, Shared};

/// Interval at which receivers are reminded of a payload that waits for others.
pub(super) const REMIND_EVERY: Duration = Duration::from_secs(2);

/// A payload in transmission.
pub(super) struct Active {
    pub(super) name: ObjectName,
    pub(super) payload: Payload,
    pub(super) transmission: Transmission,
    pub(super) remind_at: Duration,
    pub(super) has_lost: bool,
    /// The slot of its links, if payloads keep slots.
    pub(super) slot: Option<LinkSlot>,
    /// The window in which its symbols may be sent.
    pub(super) window: Option<SlotWindow>,
    /// Packets until the next beacon.
    pub(super) to_beacon: u32,
    key: SenderKey,
    encoder: Encoder<PayloadBytes>,
}

struct PayloadBytes(Payload);

impl AsRef<[u8]> for PayloadBytes {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl Active {
    /// A payload of which nothing is sent. `None` if it cannot be divided into symbols.
    pub(super) fn new(name: ObjectName, key: &SenderKey, payload: Payload, now: Duration) -> Option<Self> {
        let encoder = Encoder::new(PayloadBytes(payload.clone()), symbol_bytes(PACKET_BYTES))?;
        let transmission = Transmission::new(encoder.geometry());
        let remind_at = now + REMIND_EVERY;
        Some(Self {
            name,
            payload,
            transmission,
            remind_at,
            has_lost: false,
            slot: None,
            window: None,
            to_beacon: 0,
            key: key.clone(),
            encoder,
        })
    }

    /// The time until its next symbol may be sent; `None` if it has none.
    pub(super) fn opens_in(&self, now: Duration) -> Option<Duration> {
        let wait = self.window.map_or(Duration::ZERO, |window| window.start.saturating_sub(now));
        self.transmission.has_symbols().then_some(wait)
    }

    /// Sends one symbol. Returns the bytes of the packet.
    pub(super) fn send(
        &mut self,
        symbol: u32,
        socket: &UdpSocket,
        group: SocketAddrV4,
        packet: &mut Vec<u8>,
        shared: &Shared,
    ) -> io::Result<usize> {
        let geometry = self.encoder.geometry();
        let ObjectName { key, object } = self.name;
        let head = PacketHead { key, object, object_bytes: geometry.object_bytes() as u32, symbol };
        self.key.seal(head, self.encoder.symbol(symbol).map_err(io::Error::other)?, packet);
        let sent = socket.send_to(packet, SocketAddr::from(group))?;
        shared.packet_bytes.fetch_add(sent as u64, Ordering::Relaxed);
        if symbol >= geometry.sources() {
            shared.repair_bytes.fetch_add(sent as u64, Ordering::Relaxed);
        }
        Ok(sent)
    }
}
