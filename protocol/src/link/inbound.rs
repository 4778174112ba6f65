//! The receiving end of a link.

use std::collections::VecDeque;

use super::{Rejections, RolledBack, WINDOW};
use crate::chain::Chain;
use crate::effect::InputFault;
use crate::ledger::InLinkLedger;
use crate::mass::{Mass, UNITS_PER_ONE};
use crate::message::{LinkEnd, LinkPositions, ParcelHeader};
use crate::payload::Payload;
use crate::record::InBooks;
use crate::schedule::NodeId;

/// A parcel that has arrived and waits for its step.
#[derive(Clone, Debug)]
pub(crate) struct QueuedParcel {
    pub(crate) seq: u64,
    pub(crate) step: u64,
    pub(crate) mass: Mass,
    pub(crate) payload: Payload,
    /// Set when it counts as taken, but goes back to the sender.
    pub(crate) is_refused: bool,
    chain: Chain,
}

/// The fate of a parcel that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acceptance {
    /// It is the next one, and queued.
    Queued,
    /// It is the next one, but nothing of it will be applied.
    Refused,
    /// It was here before.
    Duplicate,
    /// An earlier one is missing; the sender will send both again.
    Gap,
    /// It follows other parcels than those that came before: the sender does not remember what it sent.
    Fork,
}

/// The progress of the sender's present life.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    base: u64,
    received: u64,
    received_chain: Chain,
    applied: u64,
    applied_chain: Chain,
    rejected: Rejections,
    last_step: Option<u64>,
    last_applied_step: Option<u64>,
    /// The number up to which the sender may rely on its parcels: applied, and on disk where that is asked for.
    confirmed: u64,
    confirmed_chain: Chain,
    confirmed_rejected: Rejections,
}

impl Cursor {
    fn starting_after(base: u64) -> Self {
        let chain = Chain::default();
        Self {
            base,
            received: base,
            received_chain: chain,
            applied: base,
            applied_chain: chain,
            rejected: Rejections::default(),
            last_step: None,
            last_applied_step: None,
            confirmed: base,
            confirmed_chain: chain,
            confirmed_rejected: Rejections::default(),
        }
    }

    fn confirm_applied(&mut self) {
        (self.confirmed, self.confirmed_chain, self.confirmed_rejected) =
            (self.applied, self.applied_chain, self.rejected);
    }
}

/// Receiver state of one link.
#[derive(Clone, Debug, Default)]
pub(crate) struct InLink {
    cursor: Option<Cursor>,
    queue: VecDeque<QueuedParcel>,
    /// Steps that the sender is through with, and its next number at that time.
    passed: u64,
    passed_next_seq: u64,
    final_seq: Option<u64>,
    /// Set when the sender has left: nothing more will come.
    has_left: bool,
    applied_total: u128,
    applied_from_earlier_lives: u128,
}

impl InLink {
    pub(crate) fn received(&self) -> u64 {
        self.cursor.map_or(0, |cursor| cursor.received)
    }

    /// Writes the numbers up to which parcels have arrived, and up to which the sender may drop them.
    pub(crate) fn state_confirmed(&self, state: &mut LinkPositions) {
        if let Some(cursor) = self.cursor {
            state.received = cursor.received;
            state.applied = cursor.confirmed;
            state.applied_chain = cursor.confirmed_chain;
            state.rejected = cursor.confirmed_rejected;
        }
    }

    /// Confirms all that was applied so far.
    pub(crate) fn confirm_applied(&mut self) {
        self.cursor.iter_mut().for_each(Cursor::confirm_applied);
    }

    /// Confirms what a record holds of this link.
    pub(crate) fn confirm(&mut self, books: &InBooks) {
        if let Some(cursor) = self.cursor.as_mut().filter(|cursor| cursor.confirmed < books.applied) {
            cursor.confirmed = books.applied;
            cursor.confirmed_chain = books.chain;
            cursor.confirmed_rejected = books.rejected;
        }
    }

    /// Compares the cumulative acknowledgement that the sender echoes with what this end has applied.
    pub(crate) fn check_ack_echo(&self, base: u64, acked: u64) -> Result<(), RolledBack> {
        let known = self.cursor.map_or(base, |cursor| cursor.applied);
        if acked > known { Err(RolledBack) } else { Ok(()) }
    }

    /// Returns `true` if this end has applied the parcels of the sender's present life up to `seq`.
    pub(crate) fn has_applied(&self, seq: u64) -> bool {
        self.cursor.is_some_and(|cursor| seq <= cursor.applied)
    }

    /// The number up to which the sender may rely on its parcels, if any of its present life are among them.
    pub(crate) fn confirmed(&self) -> Option<u64> {
        self.cursor.filter(|cursor| cursor.confirmed > cursor.base).map(|cursor| cursor.confirmed)
    }

    pub(crate) fn received_chain(&self) -> Chain {
        self.cursor.map_or_else(Chain::default, |cursor| cursor.received_chain)
    }

    /// Returns `true` if a parcel of the sender's present life has arrived.
    pub(crate) fn has_received(&self) -> bool {
        self.cursor.is_some_and(|cursor| cursor.received > cursor.base)
    }

    /// Parcels that wait for their step.
    pub(crate) fn queued_parcels(&self) -> usize {
        self.queue.len()
    }

    /// Steps the sender is known to be through with.
    pub(crate) fn passed(&self) -> u64 {
        let by_parcel = self.cursor.and_then(|cursor| cursor.last_step).map_or(0, |step| step.saturating_add(1));
        self.passed.max(by_parcel)
    }

    /// Queues a parcel if it is the next one. Everything that does not depend on this link is already checked, except
    /// for `refuses`, which is asked about the next one only.
    pub(crate) fn accept(
        &mut self,
        header: &ParcelHeader,
        payload: Payload,
        refuses: impl FnOnce(&Payload) -> bool,
    ) -> Result<Acceptance, InputFault> {
        let cursor = self.cursor_from(header.base);
        if header.seq <= cursor.received {
            return Ok(Acceptance::Duplicate);
        }
        if header.seq > cursor.received.saturating_add(1) {
            return Ok(Acceptance::Gap);
        }
        if header.previous != cursor.received_chain {
            return Ok(Acceptance::Fork);
        }
        if cursor.last_step.is_some_and(|last| header.step <= last) {
            return Err(InputFault::ImpossibleStep);
        }
        if self.queue.len() >= WINDOW {
            return Err(InputFault::WindowExceeded);
        }
        let cursor = self.cursor_from(header.base);
        let chain = header.chain;
        cursor.received = header.seq;
        cursor.received_chain = chain;
        cursor.last_step = Some(header.step);
        let seq = header.seq;
        let step = header.step;
        let mass = header.mass;
        let is_refused = refuses(&payload);
        self.queue.push_back(QueuedParcel { seq, step, mass, payload, is_refused, chain });
        Ok(if is_refused { Acceptance::Refused } else { Acceptance::Queued })
    }

    /// Takes the sender's statement of its end of the link. Returns whether it moved.
    pub(crate) fn on_state(&mut self, state: &LinkPositions) -> Result<bool, InputFault> {
        if state.base >= state.next_seq || state.final_seq.is_some_and(|last| last >= state.next_seq) {
            return Err(InputFault::ImpossibleAck);
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

    /// Returns `true` if nothing more will come for `step` or any before it.
    pub(crate) fn is_settled_for(&self, step: u64) -> bool {
        let Some(cursor) = self.cursor.filter(|_| !self.has_left) else {
            return self.has_left;
        };
        cursor.last_step.is_some_and(|last| last >= step)
            || (self.passed > step && cursor.received.saturating_add(1) >= self.passed_next_seq)
            || self.final_seq.is_some_and(|last| cursor.received >= last)
    }

    /// Returns `true` if a parcel of `step` or a later one has come.
    pub(crate) fn has_brought(&self, step: u64) -> bool {
        self.cursor.and_then(|cursor| cursor.last_step).is_some_and(|last| last >= step)
    }

    /// Returns `true` if nothing more is expected of the link: the sender has left, or closed it and all it sent is
    /// applied.
    pub(crate) fn is_complete(&self) -> bool {
        self.has_left || self.final_seq.is_some_and(|last| self.cursor.is_some_and(|cursor| cursor.applied >= last))
    }

    /// Returns `true` if the sender has left, or closed the link and the next acknowledgement confirms all that it
    /// sent.
    pub(crate) fn is_confirmed_whole(&self) -> bool {
        self.has_left || self.final_seq.is_some_and(|last| self.cursor.is_some_and(|cursor| cursor.confirmed >= last))
    }

    /// Mass that has arrived and waits, in units.
    pub(crate) fn queued_mass(&self) -> u128 {
        let accepted = self.queue.iter().filter(|parcel| !parcel.is_refused);
        accepted.map(|parcel| u128::from(parcel.mass.units())).sum()
    }

    /// The weight that came from the sender's present life and was not refused.
    pub(crate) fn received_weight(&self) -> f64 {
        (self.applied_total + self.queued_mass()) as f64 / UNITS_PER_ONE as f64
    }

    /// The mass that came from all lives of the sender and was not refused, in units.
    pub(crate) fn received_ever(&self) -> u128 {
        self.applied_from_earlier_lives + self.applied_total + self.queued_mass()
    }

    /// Returns `true` if parcels wait for their step of the plan.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.queue.is_empty()
    }

    /// The step of the oldest parcel that waits.
    pub(crate) fn oldest_step(&self) -> Option<u64> {
        self.queue.front().map(|parcel| parcel.step)
    }

    /// The oldest parcel that waits.
    pub(crate) fn front_mut(&mut self) -> Option<&mut QueuedParcel> {
        self.queue.front_mut()
    }

    /// Takes the oldest parcel that waits, to be absorbed now.
    pub(crate) fn pop(&mut self) -> Option<QueuedParcel> {
        let parcel = self.queue.pop_front()?;
        if !parcel.is_refused {
            self.applied_total += u128::from(parcel.mass.units());
        }
        if let Some(cursor) = &mut self.cursor {
            cursor.applied = parcel.seq;
            cursor.rejected = cursor.rejected.next(parcel.is_refused);
            cursor.applied_chain = parcel.chain;
            cursor.last_applied_step = Some(parcel.step);
        }
        Some(parcel)
    }

    /// Begins a new life of the sender, which lost its state. The caller has absorbed what was queued: that mass is
    /// real.
    pub(crate) fn on_new_life(&mut self) {
        let applied = self.applied_from_earlier_lives + self.applied_total;
        *self = Self { applied_from_earlier_lives: applied, ..Self::default() };
    }

    /// The end of the link, for a certificate; `None` where there was no statement or parcel of the sender.
    pub(crate) fn end(&self, from: NodeId, sender_incarnation: u64) -> Option<LinkEnd> {
        let Cursor { applied, rejected, .. } = self.cursor?;
        Some(LinkEnd { from, sender_incarnation, applied, rejected })
    }

    /// Notes that the sender has left: nothing more will come.
    pub(crate) fn on_left(&mut self) {
        self.has_left = true;
    }

    /// Continues the sender's life with another process. Its statements of steps and of its end were not on disk, and
    /// are dropped.
    pub(crate) fn on_same_life(&mut self) {
        self.cursor = self.cursor.filter(|cursor| cursor.received > cursor.base);
        self.passed = 0;
        self.passed_next_seq = 0;
        self.final_seq = None;
        self.has_left = false;
    }

    /// The end of a link as a record has it; parcels that had only arrived will come again.
    pub(crate) fn restored(books: &InBooks) -> Self {
        let cursor = Cursor {
            base: books.base,
            received: books.applied,
            received_chain: books.chain,
            applied: books.applied,
            applied_chain: books.chain,
            rejected: books.rejected,
            last_step: books.last_step,
            last_applied_step: books.last_step,
            confirmed: books.applied,
            confirmed_chain: books.chain,
            confirmed_rejected: books.rejected,
        };
        Self {
            cursor: (books.sender_incarnation > 0).then_some(cursor),
            applied_total: books.applied_total,
            applied_from_earlier_lives: books.applied_from_earlier_lives,
            ..Self::default()
        }
    }

    /// The books of this end that a record keeps.
    pub(crate) fn books(&self, sender_incarnation: u64) -> InBooks {
        let cursor = self.cursor;
        InBooks {
            sender_incarnation: cursor.map_or(0, |_| sender_incarnation),
            base: cursor.map_or(0, |cursor| cursor.base),
            applied: cursor.map_or(0, |cursor| cursor.applied),
            rejected: cursor.map_or_else(Rejections::default, |cursor| cursor.rejected),
            chain: cursor.map_or_else(Chain::default, |cursor| cursor.applied_chain),
            last_step: cursor.and_then(|cursor| cursor.last_applied_step),
            applied_total: self.applied_total,
            applied_from_earlier_lives: self.applied_from_earlier_lives,
        }
    }

    /// Writes the books of this link over others, whose memory is used again.
    pub(crate) fn ledger_into(&self, books: &mut InLinkLedger, sender_incarnation: u64) {
        let mut queued = std::mem::take(&mut books.queued);
        queued.clear();
        queued.extend(self.queue.iter().map(|parcel| (parcel.seq, parcel.mass)));
        *books = InLinkLedger {
            sender_incarnation,
            received_seq: self.received(),
            applied_seq: self.cursor.map_or(0, |cursor| cursor.applied),
            rejected: self.cursor.map_or_else(Rejections::default, |cursor| cursor.rejected),
            queued,
            applied_total: self.applied_total,
            applied_from_earlier_lives: self.applied_from_earlier_lives,
        };
    }

    fn cursor_from(&mut self, base: u64) -> &mut Cursor {
        self.cursor.get_or_insert_with(|| Cursor::starting_after(base))
    }
}
