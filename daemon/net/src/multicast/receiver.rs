//! The receiving thread: packets into the object store.

use std::io;
use std::net::UdpSocket;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use mingle_multicast::{BeaconOutcome, PacketHead, PacketMeaning, SlotBeacon};

use super::Shared;

/// Largest packet that is read; a longer one is cut, and then refused.
const LARGEST_PACKET: usize = 9_216;
/// Pause after an error of the socket.
const PAUSE: Duration = Duration::from_millis(50);

pub(super) struct Receiver {
    pub(super) socket: UdpSocket,
    pub(super) shared: Arc<Shared>,
}

impl Receiver {
    pub(super) fn run(self) {
        let mut buffer = vec![0; LARGEST_PACKET];
        while !self.shared.is_over.load(Ordering::Relaxed) {
            match self.socket.recv(&mut buffer) {
                Ok(bytes) => self.take(&mut buffer[..bytes]),
                Err(error) if is_no_packet(&error) => {}
                Err(error) => {
                    tracing::debug!(%error, "cannot receive a packet");
                    std::thread::sleep(PAUSE);
                }
            }
        }
    }

    fn take(&self, packet: &mut [u8]) {
        let is_own = |head: PacketHead| head.key == self.shared.own_key.load(Ordering::Relaxed);
        if PacketHead::decode(packet).is_some_and(is_own) {
            return;
        }
        let received = self.shared.store().receive(packet);
        match received {
            PacketMeaning::Probe { sender, key, probe } => {
                let mut heard = self.shared.heard.lock().unwrap_or_else(PoisonError::into_inner);
                heard.insert(sender, (key, probe));
            }
            PacketMeaning::Beacon { sender, key, number, beacon } => return self.hear(sender, (key, number), &beacon),
            PacketMeaning::Symbol { completes: true, .. } => {
                self.shared.note_busy();
            }
            PacketMeaning::Symbol { .. } | PacketMeaning::Strange | PacketMeaning::Useless => return,
        }
        self.shared.progress.send_modify(|changes| *changes = changes.wrapping_add(1));
    }
}

impl Receiver {
    /// Takes a beacon of an in-neighbour's slots.
    fn hear(&self, sender: u32, name: (u32, u32), beacon: &SlotBeacon) {
        let now = self.shared.now();
        let Some(mut slots) = self.shared.slots() else { return };
        let known = slots.beacons.insert(sender, name);
        if known.is_some_and(|known| known.0 == name.0 && known.1 >= name.1) {
            // A copy of an old one, whose time is over.
            slots.beacons.extend(known.map(|known| (sender, known)));
            slots.traffic.refused_beacons += 1;
            return;
        }
        match slots.rhythm.hear(sender, beacon, now) {
            BeaconOutcome::OtherLength(length) => {
                slots.others.insert(sender, length);
            }
            BeaconOutcome::Refused => slots.traffic.refused_beacons += 1,
            BeaconOutcome::Kept | BeaconOutcome::Followed => {}
        }
    }
}

fn is_no_packet(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}
