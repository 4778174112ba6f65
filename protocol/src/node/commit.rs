//! Durable states: when a node writes a record, and what waits until it is on disk.
//!
//! ```text
//!   split -> record n -> Effect::Persist -> ... Input::Persisted { n } -> parcels of n leave, what n applied is confirmed
//! ```
//!
//! One record is under way at a time; the next split waits for it. A slow or full disk therefore stops only its own
//! node: neighbours suspend it at a full window and go on.
//!
//! A record that still owes payloads keeps their slots from being overwritten, so the number of slots follows from the
//! number of receivers. When a new generation adds receivers, the node requests more slots ([`Effect::Reserve`]). Until
//! they exist it splits only as far as the present slots allow.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::held_back::HeldBack;
use super::peer::Neighbour;
use super::{Node, Phase};
use crate::config::{Durability, NodeConfig, NodeError, WaitPolicy};
use crate::effect::{Effect, NodeEvent, RecordRoom, Suspension};
use crate::evidence::Evidence;
use crate::injected_bug::InjectedBug;
use crate::link::{InLink, OutLink};
use crate::mass::Mass;
use crate::message::Incarnation;
use crate::payload::Payload;
use crate::push_sum::PushSum;
use crate::record::{Books, HostState, Record};

/// The records of a node: numbers, the one being written, and slots.
#[derive(Clone, Debug, Default)]
pub(super) struct Commits {
    /// The number of the newest record.
    last: u64,
    /// The number of the newest record known to be on disk.
    durable: u64,
    pending: Option<Arc<Record>>,
    /// Set when the node holds something that no record has.
    dirty: bool,
    /// State of the host, kept in every record.
    host: HostState,
    /// Number of the host's slots; `None` if it has no limit.
    slots: Option<usize>,
    /// The room that was last requested.
    reserved: Option<RecordRoom>,
}

impl Commits {
    /// No records yet, and this number of slots.
    pub(super) fn with_slots(slots: Option<usize>) -> Self {
        Self { slots, ..Self::default() }
    }

    pub(super) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    pub(super) fn is_settled(&self) -> bool {
        self.pending.is_none() && !self.dirty
    }

    pub(super) fn soil(&mut self) {
        self.dirty = true;
    }
}

impl Node {
    /// A node that continues the life of an earlier process from its files: the newest record, and the payloads of the
    /// records that [`Books::owed_records`] names, by record number.
    ///
    /// It greets all neighbours before it moves any mass: if one of them remembers more than the record holds, the
    /// record is an old copy, and the node discards it ([`NodeEvent::RollbackDetected`]).
    ///
    /// # Errors
    /// [`NodeError`] if the configuration is wrong, or the record is of another swarm.
    pub fn resume(
        mut config: NodeConfig,
        record: Record,
        payloads: &BTreeMap<u64, Payload>,
    ) -> Result<Self, NodeError> {
        let Record { mut books, numerator, ratio, held_back, .. } = record;
        if config.injected.is(InjectedBug::ForgetsOutboxes) {
            books.outgoing.values_mut().for_each(|link| link.outbox.clear());
        }
        config.identity.incarnation = books.incarnation;
        let belongs = books.generation == config.generation
            && books.task == config.task.hash
            && books.id == config.id
            && numerator.len() == config.initial.len()
            && config.durability == Durability::On;
        if !belongs {
            return Err(NodeError::ForeignRecord);
        }
        let mut node = Self::new(config)?;
        node.push_sum = PushSum::restored(&numerator, books.mass, ratio);
        let held_back = held_back.as_ref().filter(|_| !node.has(InjectedBug::ForgetsHeldBack));
        node.held_back = HeldBack::restored(held_back);
        for (&from, link) in &books.incoming {
            let planned = node.peers.get_mut(&from).and_then(|peer| peer.incoming.as_mut());
            *planned.ok_or(NodeError::ForeignRecord)? = InLink::restored(link);
        }
        for (&to, link) in &books.outgoing {
            let planned = node.peers.get_mut(&to).and_then(|peer| peer.outgoing.as_mut());
            let restored = OutLink::restored(link, |record| payloads.get(&record).cloned());
            *planned.ok_or(NodeError::ForeignRecord)? = restored.ok_or(NodeError::ForeignRecord)?;
        }
        for (id, known) in &books.neighbours {
            if let Some(peer) = node.peers.get_mut(id) {
                peer.identity = Some(known.identity);
                peer.signature = known.signature;
            }
        }
        for (id, known) in &books.evidence {
            node.peers.entry(*id).and_modify(|peer| peer.evidence = *known);
        }
        node.restore_credit();
        node.restore_departures(std::mem::take(&mut books.left));
        node.brought = books.brought;
        node.step = books.step;
        node.split_done = books.split_done;
        node.resumed = true;
        node.commits.last = books.number;
        node.commits.durable = books.number;
        node.commits.host = books.host;
        Ok(node)
    }

    /// The same node with a state of the host from an earlier run, which its first record keeps.
    #[must_use]
    pub fn with_host_state(mut self, state: HostState) -> Self {
        self.keep_host_state(state);
        self
    }

    /// Sets the host's state, which every later record keeps.
    pub(super) fn keep_host_state(&mut self, state: HostState) {
        self.commits.host = state;
    }

    /// Returns `true` if every split is followed by a record of what is left.
    pub(super) fn is_durable(&self) -> bool {
        self.config.durability == Durability::On
    }

    /// The number of the record that will hold the payload of a parcel split off now.
    pub(super) fn next_record(&self) -> u64 {
        match self.config.durability {
            Durability::On => self.commits.last + 1,
            Durability::Off => 0,
        }
    }

    /// Writes a record of the present state, with the payload that has just been split off.
    pub(super) fn commit(&mut self, payload: Option<Payload>) {
        if self.config.durability == Durability::Off {
            return;
        }
        self.commits.last += 1;
        self.commits.dirty = false;
        let forms_its_ratio = self.push_sum.forms_its_ratio();
        let record = Arc::new(Record {
            books: self.books(),
            numerator: self.push_sum.snapshot(),
            ratio: (!forms_its_ratio).then(|| self.push_sum.ratio()),
            held_back: self.held_back.snapshot(),
            payload,
        });
        self.commits.pending = Some(Arc::clone(&record));
        self.effects.push(Effect::Persist(record));
    }

    /// Writes a record of a new state that replaces the one before it, even if that one is not on disk yet.
    pub(super) fn commit_anew(&mut self) {
        self.commits.pending = None;
        self.commit(None);
    }

    fn books(&self) -> Books {
        let incoming = |peer: &Neighbour| Some((peer.id, peer.incoming.as_ref()?.books(peer.incarnation())));
        let outgoing = |peer: &Neighbour| Some((peer.id, peer.outgoing.as_ref()?.books(peer.incarnation())));
        let evidence = |peer: &Neighbour| (peer.id, peer.evidence);
        Books {
            number: self.commits.last,
            generation: self.config.generation,
            task: self.config.task.hash,
            id: self.config.id,
            incarnation: self.config.identity.incarnation,
            brought: self.brought,
            mass: self.mass(),
            step: self.step,
            split_done: self.split_done,
            neighbours: self.peers.values().filter_map(|peer| Some((peer.id, peer.signed_identity()?))).collect(),
            incoming: self.peers.values().filter_map(incoming).collect(),
            outgoing: self.peers.values().filter_map(outgoing).collect(),
            left: self.departures.to_vec(),
            evidence: self.peers.values().filter(|peer| !peer.evidence.is_empty()).map(evidence).collect(),
            host: self.commits.host.clone(),
        }
    }

    /// Handles a record that is now on disk: its parcels may leave, and what it applied may be confirmed.
    pub(super) fn on_persisted(&mut self, number: u64) {
        let Some(record) = self.commits.pending.take_if(|record| record.books.number == number) else {
            return;
        };
        self.commits.durable = number;
        for peer in self.peers.values_mut() {
            let incarnation = peer.incarnation();
            let Some(link) = &mut peer.incoming else {
                continue;
            };
            let books = record.books.incoming.get(&peer.id);
            if let Some(books) = books.filter(|books| books.sender_incarnation == incarnation) {
                link.confirm(books);
                peer.ack_owed = true;
            }
        }
        if self.departures.confirm(&record.books.left) {
            self.state_departures();
        }
        self.send_parcels_of(number);
    }

    /// Between splits, writes a record of what was absorbed since the last one. Without records, confirms it at once.
    pub(super) fn settle(&mut self) {
        let is_off = self.config.durability == Durability::Off;
        if is_off || self.has(InjectedBug::ConfirmsBeforeWriting) {
            self.peers.values_mut().filter_map(|peer| peer.incoming.as_mut()).for_each(InLink::confirm_applied);
        }
        if is_off {
            self.confirm_departures();
            self.commits.dirty = false;
        } else if self.is_between_splits() || self.waits_with_all() {
            self.commit_if_due();
        }
    }

    /// Returns `true` if the node waits for parcels where all wait for all. What it has absorbed since its split is of steps
    /// that it had skipped, and senders may wait until it is acknowledged.
    fn waits_with_all(&self) -> bool {
        self.config.policy == WaitPolicy::Sync && matches!(self.phase, Phase::AwaitingParcels(_))
    }

    /// Returns `true` if the parcels of a record may leave.
    pub(super) fn may_send(&self, record: u64) -> bool {
        record <= self.commits.durable || self.has(InjectedBug::SendsBeforeWriting)
    }

    /// Writes what was absorbed since the last record, unless one is under way.
    pub(super) fn commit_if_due(&mut self) {
        if self.commits.dirty && !self.commits.is_pending() {
            self.commit(None);
        }
    }

    /// The largest size of records and number of slots that the present links can need.
    pub fn record_room(&self) -> RecordRoom {
        let receivers = self.peers.values().filter(|peer| peer.outgoing.is_some()).count();
        let senders = self.peers.values().filter(|peer| peer.incoming.is_some()).count();
        RecordRoom::for_links(senders, receivers)
    }

    /// Requests from the host the slots that the present links need, if they differ from the last request.
    pub(super) fn reserve(&mut self) {
        let Some(slots) = self.commits.slots.filter(|_| self.is_durable() && !self.has(InjectedBug::NeverReserves))
        else {
            return;
        };
        let room = self.record_room();
        if self.commits.reserved.replace(room) == Some(room) {
            return;
        }
        // Slots that are no longer needed may be removed from now on.
        self.commits.slots = Some(slots.min(room.slots));
        self.effects.push(Effect::Reserve(room));
    }

    /// Handles the number of slots that now exist.
    pub(super) fn on_reserved(&mut self, slots: usize) {
        let needed = self.commits.reserved.map_or(slots, |room| room.slots);
        self.commits.slots = self.commits.slots.map(|_| slots.min(needed));
    }

    /// Returns `true` if another split would leave a slot for the records after it. With fewer slots than the links can
    /// need in the worst case, the node waits, with its mass, until what it owes is acknowledged.
    pub(super) fn has_record_room(&self) -> bool {
        let Some(slots) = self.commits.slots.filter(|_| self.is_durable() && !self.has(InjectedBug::NeverReserves))
        else {
            return true;
        };
        if slots >= self.record_room().slots {
            return true;
        }
        let links = self.peers.values().filter_map(|peer| peer.outgoing.as_ref());
        let owed: BTreeSet<u64> = links.flat_map(OutLink::owed_records).collect();
        // The payload split off now, a record after it without a payload, and a slot for the record after that.
        owed.len() + 3 <= slots
    }

    fn is_between_splits(&self) -> bool {
        matches!(self.phase, Phase::Gathering { .. } | Phase::Draining { .. } | Phase::Drained)
    }

    /// Discards the state of a node that was started from an old copy, or without its records: others have seen a later
    /// state. It begins a new life without mass, since its mass may have been passed on already and would count twice.
    pub(super) fn discard(&mut self, seen_incarnation: u64) {
        if self.has(InjectedBug::NeverDiscards) {
            return;
        }
        let identity = self.config.identity;
        let incarnation = identity.incarnation.max(seen_incarnation).saturating_add(1);
        self.report(NodeEvent::RollbackDetected { incarnation, discarded: self.mass() });
        self.config.identity = Incarnation { incarnation, ..identity };
        self.brought = Mass::ZERO;
        self.resumed = false;
        if !self.has(InjectedBug::KeepsMassAfterRollback) {
            self.push_sum.discard();
            self.held_back.clear();
            self.training.ready = None;
        }
        self.send_gate = super::SendGate::new(self.config.policy);
        self.mass_watch = super::MassWatch::default();
        for peer in self.peers.values_mut() {
            peer.incoming.iter_mut().for_each(|link| *link = InLink::default());
            peer.outgoing.iter_mut().for_each(|link| *link = OutLink::new());
            peer.mutual = false;
            peer.greeted = false;
            peer.leaving = false;
            peer.passed = 0;
            // The evidence was for the life that ends, as the numbers of the links were.
            peer.evidence = Evidence::default();
            peer.suspended.take_if(|reason| *reason == Suspension::Contradicts);
            peer.account.begin_anew();
        }
        self.mark_departed();
        let patience = self.patience_from_now();
        if let Phase::Gathering { give_up_at } = &mut self.phase {
            *give_up_at = give_up_at.or(Some(patience));
        }
        self.commit_anew();
        let peers: Vec<_> = self.peers.keys().copied().collect();
        for peer in peers {
            self.send_hello(peer);
        }
    }
}
