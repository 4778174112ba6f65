//! Parcels: checks on arrival, and when those of this node are sent.

use super::Node;
use super::contradiction::Said;
use super::peer::Neighbour;
use crate::effect::{InputFault, NodeEvent, Suspension};
use crate::evidence::Sent;
use crate::injected_bug::InjectedBug;
use crate::link::{Acceptance, InLink};
use crate::mass::Mass;
use crate::message::{Message, Parcel, ParcelHeader};
use crate::payload::Payload;
use crate::schedule::NodeId;

/// Periods by which a parcel may be early in a tree. A neighbour that is further ahead has gone on without this node.
const MOST_PERIODS_EARLY_IN_TREES: u64 = 2;

impl Node {
    pub(super) fn on_parcel(&mut self, from: NodeId, parcel: Parcel) -> Result<(), InputFault> {
        let Parcel { mut header, mut payload } = parcel;
        self.check_parcel(from, &header, payload.dimension())?;
        payload.resolve(self.push_sum.references());
        let [ignores_ack_echoes, applies_twice, ignores_chains, ignores_lives] = [
            InjectedBug::IgnoresAckEchoes,
            InjectedBug::AppliesTwice,
            InjectedBug::IgnoresChains,
            InjectedBug::IgnoresLives,
        ]
        .map(|bug| self.has(bug));
        let me = self.config.identity.incarnation;
        let has_left = self.has_left();
        let is_too_heavy = self.is_too_heavy(from, &header);
        let (has_no_room, bound) = (self.has_no_room_for(from, header.mass), self.config.largest_norm);
        let is_decodable = payload.is_resolved();
        let Some(peer) = self.peers.get_mut(&from) else {
            return Err(InputFault::NotANeighbour);
        };
        if peer.left || has_left {
            // One of the two has left: nothing more is applied, and the leave certificate lists what was.
            peer.ack_owed = true;
            return Ok(());
        }
        let is_for_me = (header.receiver_incarnation == me && peer.mutual) || ignores_lives;
        // A parcel does not name the process of a life that sent it. A process that has not greeted this one may be
        // another than the known one, and would seem to have lost what it gave and took.
        if peer.incarnation() != header.sender_incarnation || !is_for_me {
            self.on_other_life(from);
            return Ok(());
        }
        peer.renewal.succeed();
        let Some(link) = &mut peer.incoming else {
            return Err(InputFault::NoSuchLink);
        };
        if link.check_ack_echo(header.base, header.acked).is_err() && !ignores_ack_echoes {
            return self.on_contradiction(from, Said::Elsewhere);
        }
        header.previous = if ignores_chains { link.received_chain() } else { header.previous };
        peer.ack_owed = true;
        let copy = applies_twice.then(|| payload.clone());
        let mut is_offence = false;
        let refuses = |payload: &Payload| {
            is_offence = is_too_heavy || bound.is_some_and(|bound| payload.exceeds(bound));
            is_offence || has_no_room
        };
        let acceptance = link.accept(&header, payload, refuses)?;
        peer.offences.note(is_offence, acceptance == Acceptance::Queued && is_decodable);
        self.on_heard(from);
        if let Some(payload) = copy.filter(|_| acceptance == Acceptance::Duplicate) {
            let _ = self.push_sum.absorb(header.mass, &payload);
        }
        match acceptance {
            Acceptance::Queued | Acceptance::Refused => self.on_taken(from, &header, acceptance, is_decodable),
            Acceptance::Duplicate => self.note_refusal(InputFault::Repeated),
            Acceptance::Gap => self.note_refusal(InputFault::OutOfOrder),
            Acceptance::Fork => self.note_refusal(InputFault::Forked),
        }
        Ok(())
    }

    /// Answers a parcel of or for another life with a greeting.
    fn on_other_life(&mut self, from: NodeId) {
        self.note_refusal(InputFault::OtherLife);
        self.send_hello(from);
        self.note_in_vain(from);
    }

    /// Handles the next parcel of a link, queued or refused, and keeps its code as evidence against its sender. A parcel
    /// that cannot be decoded yet counts as received once it can.
    fn on_taken(&mut self, from: NodeId, header: &ParcelHeader, acceptance: Acceptance, is_decodable: bool) {
        let now = self.now;
        if let Some(peer) = self.peers.get_mut(&from) {
            peer.arrivals.note(header.step, now);
            peer.evidence.note_sent(Sent { seq: header.seq, chain: header.chain, mac: header.mac });
        }
        match acceptance {
            Acceptance::Refused => self.on_refusal(from, header.mass),
            _ if is_decodable && !self.books_in_step() => self.note_received(from, header.mass),
            _ => {}
        }
        self.on_progress(from);
        self.send_gate.hear();
        self.absorb_on_arrival();
    }

    /// Handles a refused parcel, which goes back to its sender. A sender with too many offences is suspended: neither
    /// waited for nor sent anything.
    pub(super) fn on_refusal(&mut self, from: NodeId, mass: Mass) {
        self.report(NodeEvent::ParcelRefused { peer: from, mass });
        if self.peers.get(&from).is_some_and(|peer| peer.offences.are_too_many()) {
            self.suspend(from, Suspension::Refused);
        }
    }

    /// Returns `true` if a parcel weighs more than any sound sender puts into one. The weights of a settled swarm are
    /// computed in floating point, so a sixteenth more is tolerated.
    fn is_too_heavy(&self, from: NodeId, header: &ParcelHeader) -> bool {
        let bound = self.config.schedule.heaviest_parcel(from, self.config.id, header.step).units();
        header.mass.units() > bound.saturating_add(bound / 16)
    }

    /// Checks what every parcel must satisfy, from any sender.
    pub(super) fn check_parcel(&self, from: NodeId, header: &ParcelHeader, dimension: usize) -> Result<(), InputFault> {
        let schedule = &self.config.schedule;
        if header.generation != self.config.generation && !self.has(InjectedBug::IgnoresGenerations) {
            return Err(InputFault::OtherGeneration);
        }
        if header.step >= self.last_step {
            return Err(InputFault::ImpossibleStep);
        }
        if header.seq <= header.base || !schedule.has_link(from, self.config.id, header.step) {
            return Err(InputFault::NoSuchLink);
        }
        if dimension != self.dimension() {
            return Err(InputFault::WrongDimension);
        }
        if header.mass.is_zero() || u128::from(header.mass.units()) > self.whole() {
            return Err(InputFault::ImpossibleMass);
        }
        Ok(())
    }

    /// Absorbs the parcels of neighbours that are further ahead than waits allow: their steps may be long in coming, and the
    /// weight would be with nobody until then.
    pub(super) fn absorb_from_far_ahead(&mut self) {
        let schedule = &self.config.schedule;
        let lead = if schedule.hands_ratios_down() {
            MOST_PERIODS_EARLY_IN_TREES.saturating_mul(schedule.period())
        } else {
            self.longest_lead_in_steps()
        };
        let horizon = self.step.saturating_add(lead);
        let is_far_ahead = |peer: &Neighbour| {
            peer.incoming.as_ref().and_then(InLink::oldest_step).is_some_and(|oldest| oldest > horizon)
        };
        let far_ahead: Vec<NodeId> =
            self.peers.values().filter(|peer| is_far_ahead(peer)).map(|peer| peer.id).collect();
        far_ahead.into_iter().for_each(|peer| self.absorb_from(peer, u64::MAX));
    }

    /// Sends all outstanding parcels that have not arrived, as far as their records are on disk where that is needed.
    pub(super) fn resend(&mut self, to: NodeId) {
        let (now, after) = (self.now, self.config.retransmit_after);
        let Some(peer) = self.peers.get_mut(&to).filter(|peer| peer.link_up && peer.mutual) else {
            return;
        };
        let Some(link) = &mut peer.outgoing else {
            return;
        };
        link.arm(now, after);
        let due: Vec<(u64, u64)> = link.unreceived().map(|parcel| (parcel.seq, parcel.record)).collect();
        for (seq, record) in due {
            if self.may_send(record) {
                self.send_parcel(to, seq);
            }
        }
    }

    /// Sends the parcels split off in a record for the first time: those of one step. Nodes without records have one
    /// number for all of them, of which earlier steps were sent before; where messages are lost, those go along again.
    pub(super) fn send_parcels_of(&mut self, record: u64) {
        let newest = |peer: &Neighbour| Some(peer.outgoing.as_ref()?.of_record(record)?.step);
        let newest = self.peers.values().filter_map(newest).max();
        let is_sent_again = self.config.retransmit_after.is_some();
        let due = |peer: &Neighbour| {
            let parcel = peer.outgoing.as_ref()?.of_record(record).filter(|_| peer.link_up && peer.mutual)?;
            (is_sent_again || Some(parcel.step) == newest).then_some((peer.id, parcel.seq))
        };
        let due: Vec<(NodeId, u64)> = self.peers.values().filter_map(due).collect();
        for (to, seq) in due {
            self.send_parcel(to, seq);
        }
    }

    pub(super) fn send_parcel(&mut self, to: NodeId, seq: u64) {
        let generation = self.config.generation;
        let sender_incarnation = self.config.identity.incarnation;
        let Some(peer) = self.peers.get(&to) else {
            return;
        };
        let Some((link, parcel)) = peer.outgoing.as_ref().and_then(|link| Some((link, link.parcel(seq)?))) else {
            return;
        };
        let header = ParcelHeader {
            generation,
            sender_incarnation,
            receiver_incarnation: peer.incarnation(),
            base: link.base(),
            acked: link.acked(),
            seq,
            previous: parcel.previous,
            chain: parcel.chain,
            step: parcel.step,
            mass: parcel.mass,
            mac: self.sent(peer, parcel.seq, parcel.chain).mac,
        };
        let payload = parcel.payload.clone();
        self.send(to, Message::Parcel(Parcel { header, payload }));
    }
}
