//! Ideal senders in slots: each transmits its payload once in each slot that the plan gives it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mingle_planner::{Link, Plan};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{PlayError, Played, RoundPayload, played};
use crate::{
    air::Air,
    frame::{AirFrame, FrameOutcome, Recipient, SendError},
    settings::AirSettings,
};

/// The length of slots, and the clocks of those who keep them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Slotting {
    /// Time in each slot beside that of the payload, half of it before and half behind.
    pub guard: Duration,
    /// The largest error of a node's clock, either way.
    pub clock_error: Duration,
}

impl Slotting {
    /// The length of a slot.
    #[must_use]
    pub fn slot(&self, payload: &RoundPayload, settings: &AirSettings) -> Duration {
        payload.airtime(settings) + self.guard
    }
}

/// Plays the period of a plan in its slots. Carrier sense is off: the plan replaces it. Nothing is repeated: a payload
/// of which a packet is lost counts as undelivered.
///
/// # Errors
///
/// A plan without slots, an empty payload, or settings that make no medium.
pub fn play_slots(
    plan: &Plan,
    settings: &AirSettings,
    payload: &RoundPayload,
    slotting: Slotting,
) -> Result<Played, PlayError> {
    payload.check()?;
    let slots: Vec<&[Link]> = plan.steps().iter().flat_map(|step| step.slots()).map(Vec::as_slice).collect();
    if slots.is_empty() {
        return Err(PlayError::NoSlots);
    }
    let packets = payload.packets();
    let settings = AirSettings {
        carrier_sense: None,
        acknowledgements: None,
        queue_frames: settings.queue_frames.max(slots.len().saturating_mul(packets)),
        ..settings.clone()
    };
    let slot = slotting.slot(payload, &settings);
    let mut air = Air::new(plan.base(), &settings)?;
    let errors = clock_errors(plan.node_count(), slotting.clock_error, settings.seed);
    let mut starts = BTreeMap::new();
    for (number, links) in (0_u32..).zip(&slots) {
        let begin = slot * number + slotting.guard / 2;
        let senders: BTreeSet<usize> = links.iter().map(|link| link.from).collect();
        for sender in senders {
            // The first slot of a clock that is ahead would begin before the air does.
            let start = (begin + errors[sender]).saturating_sub(slotting.clock_error);
            starts.insert((start, number, sender), links);
        }
    }
    let mut arrived: BTreeMap<(u32, usize, usize), usize> = BTreeMap::new();
    let mut last = Duration::ZERO;
    let mut take = |outcomes: Vec<FrameOutcome<u32>>| {
        for outcome in outcomes {
            if let FrameOutcome::Received { at, node, from, frame } = outcome {
                *arrived.entry((frame.payload, from, node)).or_default() += 1;
                last = last.max(at);
            }
        }
    };
    for &(start, number, sender) in starts.keys() {
        take(air.advance(start));
        send_all(&mut air, start, sender, number, payload)?;
    }
    while let Some(next) = air.next_event() {
        take(air.advance(next));
    }
    let links = (0_u32..).zip(&slots).flat_map(|(number, links)| links.iter().map(move |link| (number, link)));
    let is_missing = |&(number, link): &(u32, &Link)| arrived.get(&(number, link.from, link.to)) != Some(&packets);
    let undelivered = links.filter(is_missing).count();
    Ok(Played { elapsed: last, ..played(&air, undelivered) })
}

/// Twice the largest error at most, and at least nothing: the error of each clock, counted from the earliest one.
fn clock_errors(nodes: usize, largest: Duration, seed: u64) -> Vec<Duration> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    (0..nodes).map(|_| largest.mul_f64(2.0 * random.random::<f64>())).collect()
}

fn send_all(
    air: &mut Air<u32>,
    at: Duration,
    node: usize,
    number: u32,
    payload: &RoundPayload,
) -> Result<(), SendError> {
    for packet in 0..payload.packets() {
        let frame = AirFrame { recipient: Recipient::All, bytes: payload.packet(packet), payload: number };
        air.send(at, node, frame)?;
    }
    Ok(())
}
