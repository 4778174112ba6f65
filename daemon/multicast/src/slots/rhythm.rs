//! The times of slots, which neighbours keep in common.

use std::cmp::Ordering;
use std::time::Duration;

use super::SlotBeacon;
use super::layout::SlotLayout;
use super::length::SlotLength;
use super::pauses::{NeededPauses, Pauses};
use super::table::SlotTable;

/// Rounds of an epoch. Pauses change at its end alone, so that all nodes know of them before.
const LEAST_EPOCH: u64 = 8;
const LONGEST_EPOCH: u64 = 64;
/// Own rounds without news of the root after which a node no longer follows it.
const ROOT_LASTS: u64 = 64;
/// Steps that no run has: a number as large as this is a lie.
const STEPS_OF_NO_RUN: u64 = 1 << 48;
/// A beacon is never early, but may be late: of a lateness a node follows this part at each beacon.
const FOLLOWED_PART: i64 = 8;

/// The time in which a payload may be sent. Times are since any fixed point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotWindow {
    /// The start of the slot.
    pub start: Duration,
    /// Its end, less the guard.
    pub end: Duration,
    /// `true` if an earlier slot of this node, that of the payload's own step, was missed.
    pub is_late: bool,
    place: SlotPlace,
}

/// The slot of a link in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SlotPlace {
    step: u64,
    slot: u32,
    receiver: u32,
}

/// The consequence of a beacon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeaconOutcome {
    /// Its times are as good as this node's, or no better.
    Kept,
    /// This node's times follow it now.
    Followed,
    /// The sender's slots have another length.
    OtherLength(Duration),
    /// It makes no sense.
    Refused,
}

/// The times of a node's slots, and what it says of them.
///
/// Nodes follow the times of the node with the lowest number, over those between. If it falls silent, they keep its
/// times, and after 64 rounds follow another. A payload that is ready after its slot gets the same place of the next round;
/// the pauses grow so that this is rare. A node that needs more than another round of slots does not lengthen them: it
/// sends in a later round, and others are not slowed down.
#[derive(Clone, Debug)]
pub struct Rhythm {
    pub(super) layout: SlotLayout,
    node: u32,
    guard: i64,
    epoch_steps: u64,
    pub(super) times: Option<SlotTimes>,
    needed: NeededPauses,
    /// A root that fell silent, and its newest round that was known.
    silent: Option<(u32, u64)>,
    /// The step of the last offer.
    pub(super) last_step: u64,
}

/// Times are in microseconds since the fixed point.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotTimes {
    /// A step of the present epoch, and the start of its slots.
    pub(super) step: u64,
    start: i64,
    pub(super) pauses: Pauses,
    next_pauses: Pauses,
    root: u32,
    hops: u16,
    beat: u64,
    /// The own round in which the beat came.
    heard_in: u64,
}

impl Rhythm {
    /// The rhythm of a node of a plan with so many nodes.
    pub fn new(table: SlotTable, nodes: usize, node: u32, length: SlotLength) -> Self {
        // Where rounds differ, few nodes transmit in each.
        let epochs = if table.has_equal_rounds() { 1 } else { 4 };
        let epoch_rounds = epochs * (nodes as u64 / 2).clamp(LEAST_EPOCH, LONGEST_EPOCH);
        let epoch_steps = epoch_rounds * table.round_steps();
        let slot = micros(length.slot()).clamp(1, i64::from(u32::MAX));
        let guard = micros(length.guard()).min(slot);
        let needed = NeededPauses::default();
        let layout = SlotLayout { table, slot };
        Self { layout, node, guard, epoch_steps, times: None, needed, silent: None, last_step: 0 }
    }

    /// The window of a payload for a receiver that is ready now, after work since the last payload came or was sent. `None`
    /// if the step has no slot for it.
    pub fn offer(&mut self, step: u64, receiver: u32, since: Option<Duration>, now: Duration) -> Option<SlotWindow> {
        let now = micros(now);
        let place = SlotPlace { step, slot: self.layout.table.slot_to(receiver, step)?, receiver };
        self.last_step = step;
        let round = self.round_of(step);
        let node = self.node;
        let times = self.times.get_or_insert(SlotTimes {
            step: step - step % self.layout.table.round_steps(),
            start: now,
            pauses: Pauses::default(),
            next_pauses: Pauses::default(),
            root: node,
            hops: 0,
            beat: round,
            heard_in: round,
        });
        if times.root == node {
            times.beat = round;
        } else if round > times.heard_in.saturating_add(ROOT_LASTS) {
            self.silent = Some((times.root, times.beat));
            times.root = node;
            times.hops = 0;
            times.beat = round;
        }
        self.begin_epoch_of(step);
        self.leave_epoch_beyond(step);
        since.into_iter().for_each(|since| self.measure(place, now.saturating_sub(micros(since))));
        let shift = self.shift(place, now)?;
        let times = self.times.as_mut()?;
        times.start = times.start.saturating_add(shift);
        let is_late = shift > 0;
        Some(SlotWindow { is_late, ..self.window(place, 0)? })
    }

    /// The next window at or after a time for the rest of a payload that did not fit into its slot.
    pub fn next_window(&self, window: SlotWindow, after: Duration) -> Option<SlotWindow> {
        let shift = self.shift(window.place, micros(after))?;
        self.window(window.place, shift)
    }

    /// The beacon before a payload. `None` before the first offer.
    pub fn beacon(&self, window: &SlotWindow, now: Duration) -> Option<SlotBeacon> {
        let times = self.times?;
        // What is left of a payload is sent in later rounds, and pauses are those of the present epoch.
        let has_equal_rounds = self.layout.table.has_equal_rounds();
        let step = if has_equal_rounds { self.last_step } else { window.place.step };
        if self.epoch(step) != self.epoch(times.step) {
            return None;
        }
        let elapsed = micros(now).saturating_sub(self.start_of(step)?);
        let elapsed = if has_equal_rounds { elapsed.rem_euclid(self.mean_round()) } else { elapsed };
        Some(SlotBeacon {
            step,
            elapsed: u64::try_from(elapsed).unwrap_or(0),
            slot: self.layout.slot as u32,
            pauses: times.pauses,
            wanted: times.next_pauses,
            root: times.root,
            hops: times.hops,
            beat: times.beat,
        })
    }

    /// Takes a neighbour's beacon.
    pub fn hear(&mut self, sender: u32, beacon: &SlotBeacon, now: Duration) -> BeaconOutcome {
        if i64::from(beacon.slot) != self.layout.slot {
            return BeaconOutcome::OtherLength(time(i64::from(beacon.slot)));
        }
        let most_elapsed = 2 * self.layout.period(self.layout.longest());
        let elapsed = i64::try_from(beacon.elapsed).unwrap_or(i64::MAX);
        let is_root_right = beacon.root <= sender && (beacon.root == sender) == (beacon.hops == 0);
        let is_bounded = |pauses: Pauses| pauses.max(self.layout.longest()) == self.layout.longest();
        let latest_beat = self.round_of(beacon.step).saturating_add(2 * ROOT_LASTS);
        let is_possible = elapsed <= most_elapsed && beacon.step < STEPS_OF_NO_RUN && beacon.beat <= latest_beat;
        if !is_possible || !is_root_right || !is_bounded(beacon.pauses) || !is_bounded(beacon.wanted) {
            return BeaconOutcome::Refused;
        }
        let start = micros(now).saturating_sub(elapsed);
        let epoch = self.epoch(beacon.step);
        let Some(times) = self.times else {
            self.times = Some(SlotTimes {
                step: beacon.step,
                start,
                pauses: beacon.pauses,
                next_pauses: beacon.wanted,
                root: beacon.root.min(self.node),
                hops: if beacon.root < self.node { beacon.hops.saturating_add(1) } else { 0 },
                beat: beacon.beat,
                heard_in: self.round_of(beacon.step),
            });
            return BeaconOutcome::Followed;
        };
        if epoch.abs_diff(self.epoch(times.step)) > 1 {
            return BeaconOutcome::Kept;
        }
        self.take_pauses(beacon, times, epoch);
        if self.layout.table.has_equal_rounds() {
            self.follow_root(beacon, times, start)
        } else {
            self.follow_later(beacon, start, micros(now))
        }
    }

    /// Takes over longer pauses than this node knows of.
    fn take_pauses(&mut self, beacon: &SlotBeacon, known: SlotTimes, epoch: u64) {
        let own_epoch = self.epoch(known.step);
        let Some(times) = &mut self.times else { return };
        let (present, next) = match epoch.cmp(&own_epoch) {
            Ordering::Less => (beacon.wanted, Pauses::default()),
            Ordering::Equal => (beacon.pauses, beacon.wanted),
            Ordering::Greater => (Pauses::default(), beacon.pauses),
        };
        times.pauses = known.pauses.max(present);
        times.next_pauses = known.next_pauses.max(next);
    }

    /// Follows a sender whose slots are later, unless it has fallen behind: for rounds that differ.
    fn follow_later(&mut self, beacon: &SlotBeacon, start: i64, now: i64) -> BeaconOutcome {
        let is_behind = beacon.step.saturating_add(2 * self.layout.table.round_steps()) <= self.last_step;
        let Some(own) = self.start_of(beacon.step).filter(|_| !is_behind) else { return BeaconOutcome::Kept };
        let difference = start.saturating_sub(own);
        let next = self.start_of(self.last_step).unwrap_or(own).saturating_add(difference);
        let latest = now.saturating_add(i64::from(self.layout.longest().round));
        let is_later = difference > self.guard / 4 && next < latest;
        let Some(times) = self.times.as_mut().filter(|_| is_later) else { return BeaconOutcome::Kept };
        times.start = times.start.saturating_add(difference);
        BeaconOutcome::Followed
    }

    /// Follows a sender that is nearer to a root with a lower number, or to the same one: for rounds that are equal.
    fn follow_root(&mut self, beacon: &SlotBeacon, known: SlotTimes, start: i64) -> BeaconOutcome {
        let is_silent = self.silent.is_some_and(|(root, beat)| beacon.root == root && beacon.beat <= beat);
        let is_nearer = beacon.root < known.root || beacon.root == known.root && beacon.hops < known.hops;
        if !is_nearer || is_silent || beacon.root >= self.node {
            return BeaconOutcome::Kept;
        }
        let Some(own) = self.start_of(beacon.step) else { return BeaconOutcome::Kept };
        let round = self.mean_round();
        let difference = (start.saturating_sub(own) + round / 2).rem_euclid(round) - round / 2;
        let is_small = beacon.root == known.root && difference.abs() < self.layout.slot / 4;
        let part = if is_small && difference > 0 { FOLLOWED_PART } else { 1 };
        let Some(times) = &mut self.times else { return BeaconOutcome::Kept };
        times.start = times.start.saturating_add(difference / part);
        if beacon.beat > times.beat || beacon.root != times.root {
            times.beat = beacon.beat;
            times.heard_in = times.heard_in.max(beacon.step / self.layout.table.round_steps());
        }
        times.root = beacon.root;
        times.hops = beacon.hops.saturating_add(1);
        BeaconOutcome::Followed
    }

    /// Counts from a step on, if the first beacon was of a far later one: its sender was ahead by epochs, or lied.
    fn leave_epoch_beyond(&mut self, step: u64) {
        let steps = self.layout.table.round_steps();
        let is_beyond = |times: &SlotTimes| self.epoch(times.step) > self.epoch(step) + 1;
        let Some(known) = self.times.filter(is_beyond) else { return };
        let start = self.start_by(known.step - known.step % steps, known.pauses, known);
        let heard_in = self.round_of(step);
        self.times = Some(SlotTimes { step: step - step % steps, start, heard_in, beat: heard_in, ..known });
    }

    /// Begins the epoch of a step, if the present one is over: with the pauses that were agreed in it.
    fn begin_epoch_of(&mut self, step: u64) {
        let first = step - step % self.epoch_steps;
        let Some(known) = self.times.filter(|times| self.epoch(times.step) < self.epoch(step)) else { return };
        let start = self.start_by(first, known.pauses, known);
        let next_pauses = self.needed.get().min(self.layout.longest());
        self.needed = NeededPauses::default();
        self.times = Some(SlotTimes {
            step: first,
            start,
            pauses: known.pauses.towards(known.next_pauses),
            next_pauses,
            ..known
        });
    }

    /// Notes the pause that so much work needs between the last payload, in or out, and this one. What is needed in the first
    /// half of an epoch may still reach all nodes in its second half.
    fn measure(&mut self, place: SlotPlace, work: i64) {
        let Some(distance) = self.layout.table.since_busy(place.step) else { return };
        let slots = i64::try_from(distance.slots).unwrap_or(i64::MAX).saturating_add(i64::from(place.slot));
        let needed = work.saturating_add(self.guard).saturating_sub(slots.saturating_mul(self.layout.slot));
        let pauses = if distance.round_pauses > 0 { distance.round_pauses } else { distance.step_pauses };
        let needed = u32::try_from(needed.max(0)).unwrap_or(u32::MAX).div_ceil(pauses.max(1) as u32);
        let needed = if distance.round_pauses > 0 {
            Pauses { round: needed, step: 0 }
        } else {
            Pauses { round: 0, step: needed }
        };
        if needed.max(self.layout.longest()) != self.layout.longest() {
            return;
        }
        self.needed.add(needed);
        let is_first_half = place.step % self.epoch_steps < self.epoch_steps / 2;
        let needed = self.needed.get();
        if let Some(times) = self.times.as_mut().filter(|_| is_first_half) {
            times.next_pauses = times.next_pauses.max(needed);
        }
    }

    /// The time from a slot in the own count of rounds to the first such slot that has not begun: that of another round where
    /// rounds are equal, else the same one, later.
    fn shift(&self, place: SlotPlace, now: i64) -> Option<i64> {
        let start = self.slot_start(place)?;
        let earliest = now - self.guard.min(self.layout.slot - self.guard) / 4;
        let round = self.mean_round();
        if self.layout.table.has_equal_rounds() {
            return Some(-(start - earliest).div_euclid(round) * round);
        }
        // The place of a round cannot be taken by another one. Neighbours learn that all is later. A node does not wait long for a
        // time that neighbours claim.
        let late = earliest - start;
        let longest = 2 * i64::from(self.layout.longest().round);
        Some(if (-longest..=0).contains(&late) { 0 } else { now - start })
    }

    fn window(&self, place: SlotPlace, shift: i64) -> Option<SlotWindow> {
        let start = self.slot_start(place)?.saturating_add(shift);
        let end = time(start + self.layout.slot - self.guard);
        Some(SlotWindow { start: time(start), end, is_late: false, place })
    }

    fn slot_start(&self, place: SlotPlace) -> Option<i64> {
        Some(self.start_of(place.step)? + self.layout.slot * i64::from(place.slot))
    }

    /// The start of a step's slots. `None` if the pauses are not known: that far in the future.
    fn start_of(&self, step: u64) -> Option<i64> {
        let times = self.times?;
        let epoch = self.epoch(step);
        let own = self.epoch(times.step);
        if epoch <= own {
            return Some(self.start_by(step, times.pauses, times));
        }
        let first = step - step % self.epoch_steps;
        let times = SlotTimes { step: first, start: self.start_by(first, times.pauses, times), ..times };
        (epoch == own + 1).then(|| self.start_by(step, times.pauses.towards(times.next_pauses), times))
    }

    /// The start of a step's slots with these pauses, counted from a known one.
    pub(super) fn start_by(&self, step: u64, pauses: Pauses, known: SlotTimes) -> i64 {
        let distance = self.layout.place(step, pauses) - self.layout.place(known.step, pauses);
        let start = i128::from(known.start) + distance;
        start.clamp(i128::from(i64::MIN / 4), i128::from(i64::MAX / 4)) as i64
    }

    pub(super) fn mean_round(&self) -> i64 {
        self.layout.mean_round(self.pauses())
    }

    /// The present pauses.
    pub(super) fn pauses(&self) -> Pauses {
        self.times.map(|times| times.pauses).unwrap_or_default()
    }

    fn round_of(&self, step: u64) -> u64 {
        step / self.layout.table.round_steps()
    }

    fn epoch(&self, step: u64) -> u64 {
        step / self.epoch_steps
    }
}

pub(super) fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX / 4).min(i64::MAX / 4)
}

pub(super) fn time(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}
