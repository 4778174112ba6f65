//! The receiving end of a link.

use std::collections::VecDeque;

use super::WINDOW;
use crate::effect::Fault;
use crate::ledger::InLinkLedger;
use crate::mass::Mass;
use crate::message::{LinkState, ParcelHeader};
use crate::payload::Payload;

/// A parcel that has arrived and waits for its step.
#[derive(Clone, Debug)]
pub(crate) struct QueuedParcel {
    pub(crate) seq: u64,
    pub(crate) step: u64,
    pub(crate) mass: Mass,
    pub(crate) payload: Payload,
}

/// What became of a parcel that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acceptance {
    /// It is the next one, and queued.
    Queued,
    /// It was here before.
    Duplicate,
    /// An earlier one is missing; the sender will send both again.
    Gap,
}

/// How far the present life of the sender has come.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    base: u64,
    received: u64,
    applied: u64,
    last_step: Option<u64>,
}

/// Receiver state of one link.
#[derive(Clone, Debug, Default)]
pub(crate) struct InLink {
    cursor: Option<Cursor>,
    queue: VecDeque<QueuedParcel>,
    /// The sender is through with this many steps, and this was its next number then.
    passed: u64,
    passed_next_seq: u64,
    final_seq: Option<u64>,
    applied_total: u128,
    applied_from_earlier_lives: u128,
}

impl InLink {
    pub(crate) fn received(&self) -> u64 {
        self.cursor.map_or(0, |cursor| cursor.received)
    }

    pub(crate) fn applied(&self) -> u64 {
        self.cursor.map_or(0, |cursor| cursor.applied)
    }

    /// Whether the present life of the sender has given us anything.
    pub(crate) fn has_received(&self) -> bool {
        self.cursor.is_some_and(|cursor| cursor.received > cursor.base)
    }

    /// Steps the sender is known to be through with.
    pub(crate) fn passed(&self) -> u64 {
        let by_parcel = self.cursor.and_then(|cursor| cursor.last_step).map_or(0, |step| step + 1);
        self.passed.max(by_parcel)
    }

    /// Queues a parcel if it is the next one. Everything that does not depend on this link is already checked.
    pub(crate) fn accept(&mut self, header: &ParcelHeader, payload: Payload) -> Result<Acceptance, Fault> {
        let cursor = self.cursor_from(header.base);
        if header.seq <= cursor.received {
            return Ok(Acceptance::Duplicate);
        }
        if header.seq > cursor.received + 1 {
            return Ok(Acceptance::Gap);
        }
        if cursor.last_step.is_some_and(|last| header.step <= last) {
            return Err(Fault::ImpossibleStep);
        }
        if self.queue.len() >= WINDOW {
            return Err(Fault::WindowExceeded);
        }
        let cursor = self.cursor_from(header.base);
        cursor.received = header.seq;
        cursor.last_step = Some(header.step);
        self.queue.push_back(QueuedParcel { seq: header.seq, step: header.step, mass: header.mass, payload });
        Ok(Acceptance::Queued)
    }

    /// Takes the sender's word for where it stands. Returns whether it moved.
    pub(crate) fn on_state(&mut self, state: &LinkState) -> Result<bool, Fault> {
        if state.base >= state.next_seq || state.final_seq.is_some_and(|last| last >= state.next_seq) {
            return Err(Fault::ImpossibleAck);
        }
        self.cursor_from(state.base);
        let moved = state.passed > self.passed() || (state.final_seq.is_some() && self.final_seq.is_none());
        if state.passed > self.passed {
            self.passed = state.passed;
            self.passed_next_seq = state.next_seq;
        }
        self.final_seq = self.final_seq.or(state.final_seq);
        Ok(moved)
    }

    /// Whether nothing more will come for `step` or any before it.
    pub(crate) fn is_settled_for(&self, step: u64) -> bool {
        let Some(cursor) = self.cursor else {
            return false;
        };
        cursor.last_step.is_some_and(|last| last >= step)
            || (self.passed > step && cursor.received + 1 >= self.passed_next_seq)
            || self.final_seq.is_some_and(|last| cursor.received >= last)
    }

    /// Whether the sender closed the link and all it sent is applied.
    pub(crate) fn is_complete(&self) -> bool {
        self.final_seq.is_some_and(|last| self.cursor.is_some_and(|cursor| cursor.applied >= last))
    }

    /// Mass that has arrived and waits, in units.
    pub(crate) fn queued_mass(&self) -> u128 {
        self.queue.iter().map(|parcel| u128::from(parcel.mass.units())).sum()
    }

    /// The step of the oldest parcel that waits.
    pub(crate) fn oldest_step(&self) -> Option<u64> {
        self.queue.front().map(|parcel| parcel.step)
    }

    /// Takes the oldest parcel that waits, to be absorbed now.
    pub(crate) fn pop(&mut self) -> Option<QueuedParcel> {
        let parcel = self.queue.pop_front()?;
        self.applied_total += u128::from(parcel.mass.units());
        if let Some(cursor) = &mut self.cursor {
            cursor.applied = parcel.seq;
        }
        Some(parcel)
    }

    /// The sender lost its state. The caller has absorbed what was queued: that mass is real.
    pub(crate) fn on_new_life(&mut self) {
        let applied = self.applied_from_earlier_lives + self.applied_total;
        *self = Self { applied_from_earlier_lives: applied, ..Self::default() };
    }

    /// The sender restarted before it gave us anything.
    pub(crate) fn on_same_life(&mut self) {
        self.cursor = None;
    }

    pub(crate) fn ledger(&self, sender_incarnation: u64) -> InLinkLedger {
        InLinkLedger {
            sender_incarnation,
            received_seq: self.received(),
            applied_seq: self.applied(),
            queued: self.queue.iter().map(|parcel| (parcel.seq, parcel.mass)).collect(),
            applied_total: self.applied_total,
            applied_from_earlier_lives: self.applied_from_earlier_lives,
        }
    }

    fn cursor_from(&mut self, base: u64) -> &mut Cursor {
        self.cursor.get_or_insert(Cursor { base, received: base, applied: base, last_step: None })
    }
}
