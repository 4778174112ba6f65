//! The transmitter's part in offers: one transmission for all links that offer the same payload at a time.

use std::sync::atomic::Ordering;
use std::time::Duration;

use mingle_multicast::ObjectName;
use mingle_protocol::Payload;

use super::active::Active;
use super::offers::{Gathering, LinkSlot, PayloadOffer};
use super::transmitter::Transmitter;

/// Time in which several links may offer the same payload. Without slots, what one link alone offers goes by
/// its stream.
const GATHER: Duration = Duration::from_millis(5);
/// Payloads in transmission at a time; more go by stream.
const MAX_ACTIVE: usize = 8;
/// Payloads in transmission or waiting for slots at a time.
const MAX_WAITING: usize = 64;

impl Transmitter {
    /// Takes the offer of a link. One that packets do not reach is answered at once.
    pub(super) fn offer(&mut self, PayloadOffer { link, step, payload, answer }: PayloadOffer, now: Duration) {
        if !self.audience.hears(link) {
            let _ = answer.send(None);
            return;
        }
        let slot = self.slot_of(link, step);
        let is_alike = |other: &Payload, of: Option<LinkSlot>| {
            other.hash() == payload.hash() && of.map(LinkSlot::number) == slot.map(LinkSlot::number)
        };
        if let Some(active) = self
            .active
            .iter_mut()
            .find(|active| is_alike(&active.payload, active.slot) && !active.transmission.has_receiver(link))
            && active.transmission.add(link)
        {
            let _ = answer.send(Some(active.name));
            return;
        }
        match self.gathering.iter_mut().find(|gathering| is_alike(&gathering.payload, gathering.slot)) {
            Some(gathering) => gathering.offers.push((link, answer)),
            None => self.gathering.push(Gathering { payload, slot, offers: vec![(link, answer)], until: now + GATHER }),
        }
    }

    /// Begins the transmission of payloads that several links have offered. Returns the time until the next one is
    /// decided.
    pub(super) fn close_gatherings(&mut self, now: Duration) -> Option<Duration> {
        let hearing = self.audience.hearing();
        let is_due = |gathering: &mut Gathering| gathering.until <= now || gathering.offers.len() >= hearing;
        let due: Vec<Gathering> = self.gathering.extract_if(.., is_due).collect();
        due.into_iter().for_each(|gathering| self.begin(gathering, now));
        self.gathering.iter().map(|gathering| gathering.until.saturating_sub(now)).min()
    }

    fn begin(&mut self, Gathering { payload, slot, offers, .. }: Gathering, now: Duration) {
        let is_worth_it = (offers.len() >= 2 || slot.is_some())
            && self.active.len() < if slot.is_some() { MAX_WAITING } else { MAX_ACTIVE }
            && !self.is_broken
            && self.next_object < u32::MAX;
        let name = ObjectName { key: self.key.number(), object: self.next_object };
        let active = Active::new(name, &self.key, payload, now).filter(|_| is_worth_it);
        let Some(mut active) = active else {
            for (_, answer) in offers {
                let _ = answer.send(None);
            }
            return;
        };
        let length = self.shared.slots().filter(|_| slot.is_some()).map(|slots| slots.rhythm.slot());
        length.into_iter().for_each(|length| active.transmission.in_slots(self.rate.repair_ahead(), length));
        active.slot = slot;
        active.window = slot.and_then(|slot| self.take_window(slot, now));
        self.next_object += 1;
        self.shared.objects.fetch_add(1, Ordering::Relaxed);
        for (link, answer) in offers {
            if answer.send(Some(name)).is_ok() {
                active.transmission.add(link);
            }
        }
        self.active.push(active);
    }
}
