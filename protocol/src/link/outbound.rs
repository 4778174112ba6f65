//! The sending end of a link.

use std::collections::VecDeque;
use std::time::Duration;

use super::{RolledBack, WINDOW};
use crate::chain::Chain;
use crate::ledger::OutLinkLedger;
use crate::mass::{Mass, UNITS_PER_ONE};
use crate::message::{LinkEnd, LinkPositions};
use crate::payload::Payload;
use crate::record::{OutBooks, Owed};
use crate::time::Time;

/// Retransmission timeouts double up to this power of two.
const MAX_BACKOFF: u32 = 4;

/// A parcel that the receiver has not applied, as far as the sender knows.
#[derive(Clone, Debug)]
pub(crate) struct Outstanding {
    pub(crate) seq: u64,
    pub(crate) step: u64,
    pub(crate) mass: Mass,
    pub(crate) payload: Payload,
    pub(crate) previous: Chain,
    pub(crate) chain: Chain,
    /// The record that holds it; it must not leave before that is on disk.
    pub(crate) record: u64,
}

/// Parcels given up because the life of the receiver they were meant for is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WrittenOff {
    pub(crate) parcels: usize,
    pub(crate) mass: Mass,
}

/// Parcels whose mass is the sender's again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Returned {
    pub(crate) parcels: Vec<(Mass, Payload)>,
}

impl Returned {
    pub(crate) fn mass(&self) -> Mass {
        Mass::from_units(self.parcels.iter().map(|(mass, _)| mass.units()).sum())
    }
}

/// Sender state of one link.
#[derive(Clone, Debug)]
pub(crate) struct OutLink {
    outbox: VecDeque<Outstanding>,
    base: u64,
    next_seq: u64,
    received: u64,
    acked: u64,
    acked_chain: Chain,
    chain: Chain,
    final_seq: Option<u64>,
    sent_total: u128,
    applied_total: u128,
    applied_by_earlier_lives: u128,
    written_off: u128,
    returned: u128,
    resend_at: Option<Time>,
    backoff: u32,
}

impl OutLink {
    pub(crate) fn new() -> Self {
        Self {
            outbox: VecDeque::new(),
            base: 0,
            next_seq: 1,
            received: 0,
            acked: 0,
            acked_chain: Chain::default(),
            chain: Chain::default(),
            final_seq: None,
            sent_total: 0,
            applied_total: 0,
            applied_by_earlier_lives: 0,
            written_off: 0,
            returned: 0,
            resend_at: None,
            backoff: 0,
        }
    }

    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    pub(crate) fn next_seq(&self) -> u64 {
        self.next_seq
    }

    pub(crate) fn acked(&self) -> u64 {
        self.acked
    }

    pub(crate) fn final_seq(&self) -> Option<u64> {
        self.final_seq
    }

    pub(crate) fn is_open(&self) -> bool {
        self.final_seq.is_none()
    }

    pub(crate) fn has_room(&self) -> bool {
        self.outbox.len() < WINDOW
    }

    /// Returns `true` if no parcel is outstanding: each has been applied, written off or returned.
    pub(crate) fn is_settled(&self) -> bool {
        self.outbox.is_empty()
    }

    /// Returns `true` if the present life of the receiver has taken a parcel, which it cannot give back.
    pub(crate) fn has_applied(&self) -> bool {
        self.acked > self.base
    }

    /// Parcels that may or may not have arrived.
    pub(crate) fn outstanding_parcels(&self) -> usize {
        self.outbox.len()
    }

    /// The records that hold the payloads of outstanding parcels.
    pub(crate) fn owed_records(&self) -> impl Iterator<Item = u64> {
        self.outbox.iter().map(|parcel| parcel.record)
    }

    /// Mass that may or may not have arrived.
    pub(crate) fn undelivered(&self) -> Mass {
        Mass::from_units(self.outbox.iter().map(|parcel| parcel.mass.units()).sum())
    }

    /// The weight that was sent and did not come back.
    pub(crate) fn given(&self) -> f64 {
        self.given_units() as f64 / UNITS_PER_ONE as f64
    }

    /// The same in units.
    pub(crate) fn given_units(&self) -> u128 {
        self.sent_total.saturating_sub(self.returned)
    }

    /// Numbers a parcel and books it as sent.
    pub(crate) fn push(&mut self, step: u64, mass: Mass, payload: Payload, record: u64, boot_nonce: u64) {
        let seq = self.next_seq;
        self.next_seq += 1;
        self.sent_total += u128::from(mass.units());
        let previous = self.chain;
        self.chain = previous.with(seq, step, mass, boot_nonce);
        self.outbox.push_back(Outstanding { seq, step, mass, payload, previous, chain: self.chain, record });
    }

    /// Takes the receiver's acknowledgement. Returns whether it moved, and the parcels that the receiver refused.
    ///
    /// # Errors
    /// [`RolledBack`] when it has taken parcels that this end does not remember, or remembers otherwise.
    pub(crate) fn on_ack(
        &mut self,
        state: &LinkPositions,
        compares_chains: bool,
    ) -> Result<(bool, Returned), RolledBack> {
        if state.received.max(state.applied) >= self.next_seq {
            return Err(RolledBack);
        }
        if compares_chains && self.chain_at(state.applied).is_some_and(|chain| chain != state.applied_chain) {
            return Err(RolledBack);
        }
        let moved = state.received > self.received || state.applied > self.acked;
        self.received = self.received.max(state.received);
        let returned = self.settle(state.applied, |seq| state.rejected.contains(state.applied, seq));
        if moved {
            self.backoff = 0;
            self.resend_at = None;
        }
        Ok((moved, returned))
    }

    /// Drops all parcels up to `last`; returns those that `comes_back` names.
    fn settle(&mut self, last: u64, comes_back: impl Fn(u64) -> bool) -> Returned {
        let mut returned = Returned::default();
        while let Some(parcel) = self.outbox.pop_front_if(|parcel| parcel.seq <= last) {
            self.acked = parcel.seq;
            self.acked_chain = parcel.chain;
            let units = u128::from(parcel.mass.units());
            if comes_back(parcel.seq) {
                self.returned += units;
                returned.parcels.push((parcel.mass, parcel.payload));
            } else {
                self.applied_total += units;
            }
        }
        returned
    }

    /// Closes the link to a receiver that has left. Parcels that it did not apply by its certificate come back; nothing
    /// is sent any more. It cannot have applied more than was sent.
    pub(crate) fn on_left(&mut self, end: Option<&LinkEnd>) -> Returned {
        let applied = end.map_or(self.base, |end| end.applied).max(self.acked).min(self.next_seq - 1);
        let mut returned = self.settle(applied, |seq| end.is_some_and(|end| end.rejected.contains(end.applied, seq)));
        for parcel in self.outbox.drain(..) {
            self.returned += u128::from(parcel.mass.units());
            returned.parcels.push((parcel.mass, parcel.payload));
        }
        // As if the parcels after `applied` had never been sent.
        self.next_seq = applied + 1;
        self.chain = self.acked_chain;
        self.received = applied;
        self.final_seq = Some(applied);
        self.disarm();
        returned
    }

    /// Returns `true` if this end has sent parcel `seq`, with this chain where both are known: chains of parcels
    /// acknowledged long ago are not.
    pub(crate) fn has_sent(&self, seq: u64, chain: Option<Chain>) -> bool {
        let fits = |known: Chain| chain.is_none_or(|chain| chain == known);
        seq < self.next_seq && self.chain_at(seq).is_none_or(fits)
    }

    /// The chain at a number that is not below the last acknowledgement.
    fn chain_at(&self, seq: u64) -> Option<Chain> {
        if seq == self.acked {
            return Some(self.acked_chain);
        }
        self.parcel(seq).map(|parcel| parcel.chain)
    }

    /// Writes off what an earlier life of the receiver, which lost its state, may have applied. It is never sent again:
    /// sending it could double mass, giving it up only loses a bounded amount. Numbers are never used again.
    pub(crate) fn on_new_life(&mut self) -> WrittenOff {
        let written_off = WrittenOff { parcels: self.outbox.len(), mass: self.undelivered() };
        self.written_off += u128::from(written_off.mass.units());
        self.applied_by_earlier_lives += std::mem::take(&mut self.applied_total);
        self.outbox.clear();
        self.base = self.next_seq - 1;
        self.acked = self.base;
        self.received = self.base;
        self.acked_chain = Chain::default();
        self.chain = Chain::default();
        self.final_seq = self.final_seq.map(|_| self.base);
        self.resend_at = None;
        self.backoff = 0;
        written_off
    }

    /// An injected bug: parcels that an earlier life may have applied are sent to the present one as if they were new.
    pub(crate) fn renumber(&mut self) {
        self.base = self.acked;
        self.received = self.acked;
        self.acked_chain = Chain::default();
        self.chain = Chain::default();
        for parcel in &mut self.outbox {
            parcel.previous = self.chain;
            self.chain = self.chain.with(parcel.seq, parcel.step, parcel.mass, 0);
            parcel.chain = self.chain;
        }
    }

    /// Continues the receiver's life with another process: parcels that it has not confirmed are sent again.
    pub(crate) fn on_same_life(&mut self) {
        self.received = self.acked;
    }

    /// Opens the link again for a receiver that takes part after all.
    pub(crate) fn reopen(&mut self) {
        self.final_seq = None;
    }

    /// The end of a link as a record has it; `payload` finds the payload of a record.
    pub(crate) fn restored(books: &OutBooks, payload: impl Fn(u64) -> Option<Payload>) -> Option<Self> {
        let mut previous = books.acked_chain;
        let mut outbox = VecDeque::new();
        for &Owed { seq, step, mass, chain, record } in &books.outbox {
            outbox.push_back(Outstanding { seq, step, mass, payload: payload(record)?, previous, chain, record });
            previous = chain;
        }
        Some(Self {
            outbox,
            base: books.base,
            next_seq: books.next_seq,
            received: books.acked,
            acked: books.acked,
            acked_chain: books.acked_chain,
            chain: previous,
            sent_total: books.sent_total,
            applied_total: books.acked_total,
            applied_by_earlier_lives: books.acked_by_earlier_lives,
            written_off: books.written_off,
            returned: books.returned,
            ..Self::new()
        })
    }

    /// The books of this end that a record keeps.
    pub(crate) fn books(&self, receiver_incarnation: u64) -> OutBooks {
        let owed = |parcel: &Outstanding| Owed {
            seq: parcel.seq,
            step: parcel.step,
            mass: parcel.mass,
            chain: parcel.chain,
            record: parcel.record,
        };
        OutBooks {
            receiver_incarnation,
            base: self.base,
            next_seq: self.next_seq,
            acked: self.acked,
            acked_chain: self.acked_chain,
            outbox: self.outbox.iter().map(owed).collect(),
            sent_total: self.sent_total,
            acked_total: self.applied_total,
            acked_by_earlier_lives: self.applied_by_earlier_lives,
            written_off: self.written_off,
            returned: self.returned,
        }
    }

    /// Promises to send nothing more.
    pub(crate) fn close(&mut self) {
        self.final_seq.get_or_insert(self.next_seq - 1);
    }

    /// The step of the last parcel, if it is still outstanding.
    pub(crate) fn last_step(&self) -> Option<u64> {
        self.outbox.back().map(|parcel| parcel.step)
    }

    /// The step of the first parcel that is outstanding.
    pub(crate) fn oldest_step(&self) -> Option<u64> {
        self.outbox.front().map(|parcel| parcel.step)
    }

    /// Parcels that have not arrived as far as the sender knows.
    pub(crate) fn unreceived(&self) -> impl Iterator<Item = &Outstanding> {
        self.outbox.iter().filter(|parcel| parcel.seq > self.received)
    }

    /// An outstanding parcel by its number.
    pub(crate) fn parcel(&self, seq: u64) -> Option<&Outstanding> {
        self.outbox.iter().find(|parcel| parcel.seq == seq)
    }

    /// The parcel that a record holds.
    pub(crate) fn of_record(&self, record: u64) -> Option<&Outstanding> {
        self.outbox.iter().rev().find(|parcel| parcel.record == record)
    }

    /// The time to send unreceived parcels again, on a link that may lose them.
    pub(crate) fn resend_at(&self) -> Option<Time> {
        self.resend_at
    }

    /// Sets the retransmission timer, if anything is outstanding and it is not running.
    pub(crate) fn arm(&mut self, now: Time, after: Option<Duration>) {
        if self.resend_at.is_none() && self.unreceived().next().is_some() {
            self.resend_at = after.map(|after| now + after * (1 << self.backoff));
        }
    }

    /// Doubles the next timeout, up to `MAX_BACKOFF` times, after the timer ran out.
    pub(crate) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
        self.resend_at = None;
    }

    pub(crate) fn disarm(&mut self) {
        self.resend_at = None;
    }

    /// Writes the books of this link over others, whose memory is used again.
    pub(crate) fn ledger_into(&self, books: &mut OutLinkLedger, receiver_incarnation: u64) {
        let mut outbox = std::mem::take(&mut books.outbox);
        outbox.clear();
        outbox.extend(self.outbox.iter().map(|parcel| (parcel.seq, parcel.mass)));
        *books = OutLinkLedger {
            receiver_incarnation,
            base: self.base,
            next_seq: self.next_seq,
            acked_seq: self.acked,
            outbox,
            sent_total: self.sent_total,
            acked_total: self.applied_total,
            acked_by_earlier_lives: self.applied_by_earlier_lives,
            written_off: self.written_off,
            returned: self.returned,
        };
    }
}
