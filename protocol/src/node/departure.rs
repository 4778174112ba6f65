//! Departure for good, without loss of mass.
//!
//! ```text
//!   Leave -> training ends; neighbours hear of it and send no more
//!         -> all mass goes to neighbours, in parcels of sound weight        until nothing is held and all is confirmed
//!         -> certificate: which parcels of every link were applied         on disk
//!         -> everyone who is there has it on disk: the node ends
//! ```
//!
//! A neighbour that reads the certificate takes back the parcels that were sent and not applied. Certificates are
//! passed on: two nodes whose digests of them differ exchange them. So a neighbour that was away for the whole
//! departure settles its link when it is back, exact to the unit. Each certificate is signed by its leaver, so that no
//! other node can forge it.
//!
//! A leaver waits for an absent neighbour if it owes that neighbour parcels: only the neighbour knows what became of
//! them.

use std::collections::BTreeMap;

use super::Node;
use super::peer::Neighbour;
use super::processes::MOST_LIVES;
use crate::codec::Dither;
use crate::config::Durability;
use crate::effect::{InputFault, NodeEvent, SkippedDelta};
use crate::injected_bug::InjectedBug;
use crate::link::{InLink, OutLink, Returned};
use crate::message::{Incarnation, LeaveCertificate, LinkEnd, Message};
use crate::push_sum::RatioForm;
use crate::schedule::NodeId;
use crate::statement::{Signature, SignedIdentity};

/// Most lives of one node whose departure this process accepts in a generation. Each is passed on to all neighbours.
const MOST_DEPARTURES: u32 = 8;

/// The certificates of one generation that a node knows.
#[derive(Clone, Debug, Default)]
pub(super) struct Departures {
    certificates: BTreeMap<NodeId, LeaveCertificate>,
    /// Certificates accepted of each leaver.
    times: BTreeMap<NodeId, u32>,
    digest: u64,
    /// The digest that others may rely on: of the certificates on disk, where records are kept.
    durable: u64,
}

impl Departures {
    /// The certificates in a record.
    pub(super) fn restored(certificates: Vec<LeaveCertificate>) -> Self {
        let digest = digest_of(&certificates);
        let certificates = certificates.into_iter().map(|certificate| (certificate.leaver, certificate)).collect();
        Self { certificates, times: BTreeMap::new(), digest, durable: digest }
    }

    /// The certificates, for a record.
    pub(super) fn to_vec(&self) -> Vec<LeaveCertificate> {
        self.certificates.values().cloned().collect()
    }

    /// The number of nodes that have left.
    pub(super) fn len(&self) -> usize {
        self.certificates.len()
    }

    /// The digest of certificates that others may rely on.
    pub(super) fn durable(&self) -> u64 {
        self.durable
    }

    /// Notes that a record with these certificates is on disk. Returns `true` if that changed the durable digest.
    pub(super) fn confirm(&mut self, certificates: &[LeaveCertificate]) -> bool {
        let before = std::mem::replace(&mut self.durable, digest_of(certificates));
        before != self.durable
    }

    /// Notes that all certificates may be relied on. Returns `true` if that changed the durable digest.
    pub(super) fn confirm_all(&mut self) -> bool {
        let before = std::mem::replace(&mut self.durable, self.digest);
        before != self.durable
    }

    /// Returns `true` if this life of a node, or a later one, is known to have left.
    fn has(&self, leaver: NodeId, incarnation: u64) -> bool {
        self.certificates.get(&leaver).is_some_and(|known| known.incarnation >= incarnation)
    }

    fn times(&self, leaver: NodeId) -> u32 {
        self.times.get(&leaver).copied().unwrap_or(0)
    }

    fn insert(&mut self, certificate: LeaveCertificate) {
        *self.times.entry(certificate.leaver).or_default() += 1;
        self.digest ^= certificate.digest();
        if let Some(before) = self.certificates.insert(certificate.leaver, certificate) {
            self.digest ^= before.digest();
        }
    }
}

fn digest_of(certificates: &[LeaveCertificate]) -> u64 {
    certificates.iter().fold(0, |digest, certificate| digest ^ certificate.digest())
}

impl Node {
    pub(super) fn on_leave(&mut self) {
        self.quitting = true;
        self.on_stop();
    }

    /// Returns `true` if this life of the node has left the generation for good.
    pub fn has_left(&self) -> bool {
        self.departures.has(self.config.id, self.config.identity.incarnation)
    }

    /// Continues the departure. Returns `true` once every present neighbour has the certificate.
    pub(super) fn try_depart(&mut self) -> bool {
        if self.has_left() {
            let known = self.departures.durable;
            let knows = |peer: &Neighbour| peer.known_left == Some(known);
            let everyone_knows = self.peers.values().filter(|peer| peer.is_active()).all(knows);
            let goes_unheard = self.has(InjectedBug::LeavesUnheard);
            return goes_unheard || known == self.departures.digest && everyone_knows && self.peers.values().any(knows);
        }
        let is_sending = |peer: &Neighbour| peer.is_active() && !peer.is_done_sending();
        if self.commits.is_pending() || self.peers.values().any(is_sending) {
            return false;
        }
        if !self.mass().is_zero() && !self.has(InjectedBug::LeavesWithMass) {
            if self.push_sum.has_working_mass() && !self.has(InjectedBug::LeavesWithLearning) {
                self.take_up_all_held_back();
            }
            if !self.has_record_room() {
                // The node goes on when some of what it owes is acknowledged.
            } else if let Some((heir, step)) = self.heir() {
                self.hand_over(heir, step);
            } else if !self.peers.values().any(|peer| peer.identity.is_some() && !peer.left && !peer.leaving) {
                return self.stay();
            }
        } else if self.peers.values().filter_map(|peer| peer.outgoing.as_ref()).all(OutLink::is_settled) {
            self.certify();
        }
        false
    }

    /// The first neighbour that can take all mass, and the next step in which the plan has a link to it.
    fn heir(&self) -> Option<(NodeId, u64)> {
        let schedule = &self.config.schedule;
        let can_take = |peer: &&Neighbour| !peer.leaving && peer.can_take_parcel();
        self.peers.values().filter(can_take).find_map(|peer| {
            let used = peer.outgoing.as_ref().and_then(OutLink::last_step).map_or(0, |last| last + 1);
            let first = self.passed().max(used);
            let mut steps = first..(first + schedule.period()).min(self.last_step);
            Some((peer.id, steps.find(|&step| schedule.has_link(self.config.id, peer.id, step))?))
        })
    }

    /// Gives all mass, or as much as a parcel may weigh, to one neighbour in a later step.
    fn hand_over(&mut self, heir: NodeId, step: u64) {
        let codec = self.codec().codec.of_wholes();
        let mass = self.mass().min(self.config.schedule.heaviest_parcel(self.config.id, heir, step));
        let mut dither = Dither::of(self.config.id, step);
        let payload = if mass == self.mass() {
            self.push_sum.split_all(&mut dither)
        } else {
            self.push_sum.split(mass, &RatioForm::Whole(codec), &mut dither)
        };
        let Some(payload) = payload else {
            return;
        };
        let record = self.next_record();
        self.step = step;
        self.promise(heir, mass, &payload, record);
        // A link takes one parcel in a step.
        self.step = step + 1;
        self.split_done = false;
        self.commit(Some(payload));
        if self.may_send(record) {
            self.send_parcels_of(record);
        }
    }

    /// Stops without giving up the mass: all others have stopped or left, and none will ever take it.
    fn stay(&mut self) -> bool {
        self.quitting = false;
        self.peers.values_mut().filter_map(|peer| peer.outgoing.as_mut()).for_each(OutLink::close);
        self.report(NodeEvent::NobodyToGiveTo { mass: self.mass() });
        true
    }

    /// Certifies finally which parcels of every link were applied. No parcel is applied after this.
    fn certify(&mut self) {
        self.give_up_held_back();
        self.give_up_training(SkippedDelta::LeftMeanwhile);
        let end = |peer: &Neighbour| peer.incoming.as_ref()?.end(peer.id, peer.incarnation());
        let sent = |peer: &Neighbour| Some((peer.id, peer.evidence.sent?));
        let certificate = LeaveCertificate {
            generation: self.config.generation,
            leaver: self.config.id,
            incarnation: self.config.identity.incarnation,
            ends: self.peers.values().filter_map(end).collect(),
            evidence: self.peers.values().filter_map(sent).collect(),
            signature: Signature::default(),
        };
        let certificate = certificate.signed(&*self.config.keys);
        self.departures.insert(certificate);
        self.peers.values_mut().filter_map(|peer| peer.outgoing.as_mut()).for_each(OutLink::close);
        self.commits.soil();
    }

    /// Handles a certificate of departure, which may come from a neighbour other than the leaver.
    pub(super) fn on_certificate(&mut self, certificate: LeaveCertificate) -> Result<(), InputFault> {
        let LeaveCertificate { leaver, incarnation, .. } = certificate;
        let schedule = &self.config.schedule;
        let nodes = schedule.nodes();
        // A leaver can certify only links that the plan gives it.
        let can_send = |from: &NodeId| leaver.index() < nodes && schedule.all_in_neighbours(leaver).contains(from);
        let is_sound = certificate.generation == self.config.generation
            && leaver.index() < nodes
            && incarnation > 0
            && certificate.ends.is_sorted_by(|a, b| a.from < b.from)
            && certificate.ends.iter().all(|end| can_send(&end.from) && end.rejected.is_sound())
            && certificate.evidence.is_sorted_by(|a, b| a.0 < b.0)
            && certificate.evidence.iter().all(|(from, _)| can_send(from));
        if !is_sound {
            return Err(InputFault::ImpossibleCertificate);
        }
        if self.departures.has(leaver, incarnation) {
            return Ok(());
        }
        if self.departures.times(leaver) >= MOST_DEPARTURES {
            return Err(InputFault::ImpossibleCertificate);
        }
        if !certificate.is_signed(&*self.config.keys) && !self.has(InjectedBug::BelievesAnyone) {
            return Err(InputFault::Unsigned);
        }
        if leaver == self.config.id && incarnation >= self.config.identity.incarnation {
            // The node's own certificate, which it does not remember.
            self.discard(incarnation.min(MOST_LIVES));
            return Ok(());
        }
        self.settle_with(&certificate);
        self.departures.insert(certificate);
        self.commits.soil();
        let peers: Vec<NodeId> = self.peers.values().filter(|peer| peer.is_active()).map(|peer| peer.id).collect();
        peers.into_iter().for_each(|peer| self.tell_departures(peer));
        Ok(())
    }

    /// Ends the links with a node that left, and takes back what it did not apply.
    fn settle_with(&mut self, certificate: &LeaveCertificate) {
        let leaver = certificate.leaver;
        let incarnation = certificate.incarnation;
        let Some(peer) = self.peers.get(&leaver).filter(|peer| peer.incarnation() <= incarnation) else {
            return;
        };
        let is_new_life = peer.incarnation() < incarnation;
        let end = certificate.ends.iter().find(|end| end.from == self.config.id);
        self.learn_from(certificate, end);
        if is_new_life {
            self.recognise(leaver, SignedIdentity::unsigned(Incarnation { incarnation, boot_nonce: 0 }));
        }
        let end = end.filter(|end| end.sender_incarnation == self.config.identity.incarnation);
        self.absorb_from(leaver, u64::MAX);
        let Some(peer) = self.peers.get_mut(&leaver) else {
            return;
        };
        let returned = peer.outgoing.as_mut().map(|link| link.on_left(end));
        peer.left = true;
        peer.incoming.iter_mut().for_each(|link| link.on_left());
        self.send_gate.grant_permit();
        self.report(NodeEvent::MemberLeft { peer: leaver });
        self.take_back(leaver, &returned.unwrap_or_default());
    }

    /// Compares a certificate with what this node remembers. Where the leaver applied parcels that the node does not
    /// remember, the certificate either contains evidence in this node's own code, or is false.
    fn learn_from(&mut self, certificate: &LeaveCertificate, end: Option<&LinkEnd>) {
        let me = self.config.identity.incarnation;
        let Some(end) = end.filter(|end| end.sender_incarnation >= me && end.sender_incarnation <= MOST_LIVES) else {
            return;
        };
        let shown = certificate.evidence.iter().find(|(from, _)| *from == self.config.id);
        if shown.is_some_and(|(_, sent)| self.has_forgotten(certificate, end.sender_incarnation, sent)) {
            self.discard(end.sender_incarnation);
        }
    }

    /// Takes back parcels that were not applied and never will be.
    pub(super) fn take_back(&mut self, from: NodeId, returned: &Returned) {
        if returned.parcels.is_empty() {
            return;
        }
        for (mass, payload) in &returned.parcels {
            // It fits: the node held it before.
            let _ = self.push_sum.absorb(*mass, payload);
        }
        self.note_taken_back(from, returned.mass());
        // What comes back can be given again, but not in any step of a plan that averages exactly.
        if !self.config.schedule.hands_ratios_down() {
            self.send_gate.grant_permit();
        }
        self.note_undecoded(from, returned);
        self.commits.soil();
        self.report(NodeEvent::MassReturned { peer: from, mass: returned.mass(), parcels: returned.parcels.len() });
    }

    /// Notes which certificates a neighbour has, by their digest, and sends this node's if they differ.
    pub(super) fn compare_departures(&mut self, with: NodeId, theirs: u64) {
        let now = self.now;
        let heartbeat = self.config.heartbeat;
        let Some(peer) = self.peers.get_mut(&with) else {
            return;
        };
        peer.known_left = Some(theirs);
        let is_due = peer.told_left_at.is_none_or(|at| now >= at + heartbeat);
        if theirs != self.departures.digest && is_due {
            self.tell_departures(with);
        }
    }

    fn tell_departures(&mut self, to: NodeId) {
        // The node's own certificate binds it, and is not sent before it is on disk.
        let me = self.config.id;
        let is_durable = self.departures.durable == self.departures.digest;
        let mut certificates = self.departures.to_vec();
        certificates.retain(|certificate| is_durable || certificate.leaver != me);
        if let Some(peer) = self.peers.get_mut(&to).filter(|_| !certificates.is_empty()) {
            peer.told_left_at = Some(self.now);
        }
        for certificate in certificates {
            self.send(to, Message::Left(certificate));
        }
    }

    /// Announces the present certificates to neighbours: in the next Acks, and at once where this node has left.
    pub(super) fn state_departures(&mut self) {
        self.peers.values_mut().for_each(|peer| peer.ack_owed = true);
        if self.has_left() {
            let peers: Vec<NodeId> = self.peers.keys().copied().collect();
            peers.into_iter().for_each(|peer| self.tell_departures(peer));
        }
    }

    /// Restores the certificates of a record; a node that had left continues its departure.
    pub(super) fn restore_departures(&mut self, certificates: Vec<LeaveCertificate>) {
        self.departures = Departures::restored(certificates);
        self.mark_departed();
        if self.has_left() {
            self.quitting = true;
            self.stopping = true;
        }
    }

    /// Ends the links with neighbours that are known to have left.
    pub(super) fn mark_departed(&mut self) {
        for peer in self.peers.values_mut() {
            if self.departures.has(peer.id, peer.incarnation()) {
                peer.left = true;
                peer.incoming.iter_mut().for_each(InLink::on_left);
                peer.outgoing.iter_mut().for_each(OutLink::close);
            }
        }
    }

    /// Where no records are written, all certificates may be relied on at once.
    pub(super) fn confirm_departures(&mut self) {
        if self.config.durability == Durability::Off && self.departures.confirm_all() {
            self.state_departures();
        }
    }
}
