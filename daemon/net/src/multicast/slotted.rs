//! The transmitter's part in slots: which one a payload has, and the beacon before it.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mingle_multicast::{PacketHead, SlotWindow};

use super::offers::LinkSlot;
use super::transmitter::Transmitter;

/// Packets of a payload for each beacon.
const PACKETS_PER_BEACON: u32 = 16;

impl Transmitter {
    /// The slot of a link in a step, if payloads keep slots.
    pub(super) fn slot_of(&self, link: u64, step: u64) -> Option<LinkSlot> {
        let receiver = self.audience.node(link)?.0;
        let slot = self.shared.slots()?.rhythm.slot_to(receiver, step)?;
        Some(LinkSlot { step, slot, receiver })
    }

    /// The window of a payload that is ready.
    pub(super) fn take_window(&self, LinkSlot { step, receiver, .. }: LinkSlot, now: Duration) -> Option<SlotWindow> {
        let mut slots = self.shared.slots()?;
        let since = slots.busy_until;
        let window = slots.rhythm.offer(step, receiver, since, now)?;
        if window.is_late {
            slots.traffic.late += 1;
        } else {
            slots.traffic.on_time += 1;
        }
        Some(window)
    }

    /// Gives payloads of which symbols are left at the end of their window, repair or not, the next one.
    pub(super) fn renew_windows(&mut self, now: Duration) {
        for active in self.active.iter_mut().filter(|active| active.transmission.has_symbols()) {
            let Some(window) = active.window.filter(|window| window.end <= now) else { continue };
            if active.transmission.drop_ahead() {
                continue;
            }
            let Some(mut slots) = self.shared.slots() else { continue };
            active.window = slots.rhythm.next_window(window, now);
            slots.traffic.split += 1;
            active.to_beacon = 0;
        }
    }

    /// Returns `true` if a payload's window is over.
    pub(super) fn is_slot_over(&self, place: usize) -> bool {
        let active = &self.active[place];
        active.window.is_some_and(|window| window.end <= self.shared.now())
    }

    /// Sends a beacon before the first packet of a payload, and before every sixteenth after that: any of them may collide
    /// as long as neighbours have other times. One that cannot be sent is left out.
    pub(super) fn send_beacon_if_due(&mut self, place: usize) {
        let active = &mut self.active[place];
        let Some(window) = active.window else { return };
        if active.to_beacon > 0 {
            active.to_beacon -= 1;
            return;
        }
        active.to_beacon = PACKETS_PER_BEACON - 1;
        let now = self.shared.now();
        let Some(beacon) = self.shared.slots().and_then(|slots| slots.rhythm.beacon(&window, now)) else { return };
        self.last_beacon += 1;
        let head = PacketHead::beacon(self.key.number(), self.last_beacon);
        self.key.seal(head, &beacon.encode(), &mut self.packet);
        if let Ok(bytes) = self.socket.send_to(&self.packet, SocketAddr::from(self.group)) {
            self.shared.packet_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// Reports in-neighbours whose slots have another length, each once.
    pub(super) fn report_other_slots(&mut self) {
        let others = self.shared.slots().map(|mut slots| (std::mem::take(&mut slots.others), slots.rhythm.slot()));
        let Some((others, own)) = others else { return };
        for (node, length) in others {
            if self.reported_slots.insert(node) {
                self.say(format!(
                    "node {node} has slots of {:.1} ms, and this peer of {:.1} ms: they keep no time in common until both \
                     have the same --air-rate and --codec",
                    1e3 * length.as_secs_f64(),
                    1e3 * own.as_secs_f64(),
                ));
            }
        }
    }
}
