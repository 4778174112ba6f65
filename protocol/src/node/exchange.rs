//! Handlers of messages from neighbours: greetings and acknowledgements. Contradictions are handled in `contradiction`.

use super::Node;
use super::contradiction::Said;
use super::peer::Neighbour;
use super::processes::MOST_LIVES;
use crate::config::{Durability, NodeConfig};
use crate::effect::{InputFault, Mismatch, NodeEvent, Suspension};
use crate::evidence::{Applied, Evidence};
use crate::injected_bug::InjectedBug;
use crate::link::{InLink, Returned};
use crate::message::{Ack, Hello, Incarnation, LinkPositions, Message, PROTOCOL_VERSION};
use crate::reference::KnownReferences;
use crate::schedule::NodeId;
use crate::statement::SignedIdentity;

impl Node {
    pub(super) fn on_message(&mut self, from: NodeId, message: Message) {
        let is_parcel = matches!(message, Message::Parcel(_));
        let generation = message.generation().filter(|generation| *generation != self.config.generation);
        let generation = generation.filter(|_| !is_parcel || !self.has(InjectedBug::IgnoresGenerations));
        if generation.is_some() && !is_parcel && self.has(InjectedBug::HearsParcelsOnly) {
            return;
        }
        if generation.is_some_and(|theirs| self.on_other_generation(from, theirs).is_some()) {
            return;
        }
        if !self.peers.contains_key(&from) {
            self.ignore(from, InputFault::NotANeighbour);
            return;
        }
        let outcome = match message {
            Message::Hello(hello) => self.on_hello(from, &hello),
            Message::Ack(ack) => self.on_ack(from, &ack),
            Message::Parcel(_) if self.peers.get(&from).is_some_and(Neighbour::contradicts) => {
                self.note_refusal(InputFault::Contradiction);
                Ok(())
            }
            Message::Parcel(parcel) => self.on_parcel(from, parcel),
            Message::Left(certificate) => self.on_certificate(certificate),
            Message::Process(statement) => self.on_process(from, statement),
            Message::Collective(_) => Ok(()),
        };
        if let Err(fault) = outcome {
            self.ignore(from, fault);
        }
    }

    fn on_hello(&mut self, from: NodeId, hello: &Hello) -> Result<(), InputFault> {
        if let Some(mismatch) = self.mismatch(from, hello) {
            self.note_refusal(InputFault::UnfitHello);
            let is_behind = matches!(mismatch, Mismatch::Outdated { .. } | Mismatch::Forgetful { .. });
            self.refuse(from, mismatch);
            if is_behind {
                // The neighbour may have been rolled back without knowing; a Hello shows it.
                self.send_hello(from);
            }
            return Ok(());
        }
        self.check_signature(from, &hello.identity)?;
        if let Some(seen) = hello.seen.filter(|seen| self.is_later_life(seen.identity)) {
            self.on_later_life(&seen)?;
        }
        let identity = hello.identity.identity;
        self.on_evidence(from, identity.incarnation, &hello.evidence);
        let seen = hello.seen.map(|seen| seen.identity);
        let is_understood =
            self.peers.get(&from).is_some_and(|peer| peer.mutual && peer.greeted && peer.identity == Some(identity));
        self.recognise(from, hello.identity);
        self.on_vouched(from);
        if seen == Some(self.config.identity) {
            self.on_link_state(from, &hello.link, Said::InGreeting)?;
        }
        let me = self.config.identity;
        // A neighbour that greets repeatedly, although its Hello shows that it was answered, does not receive the
        // answers.
        if is_understood && seen == Some(me) {
            self.note_in_vain(from);
        }
        if let Some(peer) = self.peers.get_mut(&from) {
            peer.ack_owed = true;
            if !peer.greeted || seen != Some(me) {
                self.send_hello(from);
            }
        }
        self.resend(from);
        Ok(())
    }

    fn mismatch(&self, from: NodeId, hello: &Hello) -> Option<Mismatch> {
        let NodeConfig { generation, task, .. } = &self.config;
        if hello.version != PROTOCOL_VERSION {
            return Some(Mismatch::Version { ours: PROTOCOL_VERSION, theirs: hello.version });
        }
        if hello.generation != *generation {
            return Some(Mismatch::Generation { ours: *generation, theirs: hello.generation });
        }
        if hello.task.hash != task.hash {
            let (ours, theirs) = (task.description.clone(), hello.task.description.clone());
            return Some(Mismatch::Task { ours, theirs });
        }
        let peer = self.peers.get(&from)?;
        let known = peer.identity?;
        let Incarnation { incarnation, boot_nonce } = hello.identity.identity;
        if incarnation < known.incarnation {
            return Some(Mismatch::Outdated { incarnation, known: known.incarnation });
        }
        let is_other_process = incarnation == known.incarnation && boot_nonce != known.boot_nonce;
        if !is_other_process || !peer.has_exchanged_mass() {
            return None;
        }
        if self.config.durability == Durability::Off || self.is_talking_to(peer) {
            return Some(Mismatch::IdentityInUse { incarnation });
        }
        (!hello.resumed).then_some(Mismatch::Forgetful { incarnation })
    }

    /// Returns `true` if the known process of a neighbour is still there. Parcels are no evidence of that: the next
    /// process of the neighbour sends those of the last one again.
    fn is_talking_to(&self, peer: &Neighbour) -> bool {
        peer.link_up && peer.heard_since_up && peer.mutual && self.now < peer.vouched_at + 2 * self.config.heartbeat
    }

    /// Checks that a neighbour signed its identity: an unsigned one is neither kept nor shown to others.
    fn check_signature(&self, from: NodeId, identity: &SignedIdentity) -> Result<(), InputFault> {
        let is_known = self.peers.get(&from).is_some_and(|peer| peer.signed_identity() == Some(*identity));
        let NodeConfig { generation, keys, .. } = &self.config;
        if is_known || identity.is_of(from, generation, &**keys) { Ok(()) } else { Err(InputFault::Unsigned) }
    }

    /// Returns `true` if a neighbour reports a later life of this node than the present one.
    fn is_later_life(&self, seen: Incarnation) -> bool {
        self.config.durability == Durability::On && seen.incarnation > self.config.identity.incarnation
    }

    /// Handles this node's own statement of a later life, shown by a neighbour: the node was started from an old copy
    /// of its records, or without them. Only the node itself can have signed it.
    fn on_later_life(&mut self, seen: &SignedIdentity) -> Result<(), InputFault> {
        let NodeConfig { id, generation, keys, .. } = &self.config;
        if !seen.is_of(*id, generation, &**keys) && !self.has(InjectedBug::BelievesAnyone) {
            return Err(InputFault::Unsigned);
        }
        if seen.identity.incarnation > MOST_LIVES {
            return Err(InputFault::ImpossibleLife);
        }
        self.discard(seen.identity.incarnation);
        Ok(())
    }

    fn refuse(&mut self, from: NodeId, mismatch: Mismatch) {
        if let Some(peer) = self.peers.get_mut(&from)
            && peer.refused.as_ref() != Some(&mismatch)
        {
            peer.refused = Some(mismatch.clone());
            self.report(NodeEvent::Refused { peer: from, mismatch });
        }
    }

    /// Records a neighbour's present identity, and settles what its earlier life or process left behind.
    pub(super) fn recognise(&mut self, from: NodeId, signed: SignedIdentity) {
        let SignedIdentity { identity, signature } = signed;
        let leaving = self.is_leaving();
        let Some(peer) = self.peers.get_mut(&from) else {
            return;
        };
        peer.refused = None;
        let known = peer.identity.replace(identity);
        peer.signature = signature;
        if known == Some(identity) {
            return;
        }
        peer.references = KnownReferences::default();
        peer.mutual = false;
        peer.greeted = false;
        (peer.leaving, peer.passed) = (false, 0);
        match known {
            None => {}
            Some(known) if known.incarnation == identity.incarnation => {
                peer.outgoing.iter_mut().for_each(|link| link.on_same_life());
                peer.incoming.iter_mut().for_each(|link| link.on_same_life());
                if !leaving {
                    peer.outgoing.iter_mut().for_each(|link| link.reopen());
                }
            }
            Some(_) => {
                peer.left = false;
                peer.offences.begin_life();
                peer.suspended.take_if(|reason| *reason >= Suspension::Refused);
                self.on_new_life(from, identity.incarnation);
            }
        }
    }

    fn on_new_life(&mut self, from: NodeId, incarnation: u64) {
        self.report(NodeEvent::NewIncarnation { peer: from, incarnation });
        // Parcels that the earlier life sent and this node holds are real mass.
        self.absorb_from(from, u64::MAX);
        let renumbers = self.has(InjectedBug::RenumbersForNewLives);
        let Some(peer) = self.peers.get_mut(&from) else {
            return;
        };
        peer.evidence = Evidence::default();
        peer.incoming.iter_mut().for_each(|link| link.on_new_life());
        let written_off = if renumbers {
            peer.outgoing.iter_mut().for_each(|link| link.renumber());
            None
        } else {
            peer.outgoing.as_mut().map(|link| link.on_new_life())
        };
        self.send_gate.grant_permit();
        if let Some(lost) = written_off.filter(|lost| lost.parcels > 0) {
            self.report(NodeEvent::MassWrittenOff { peer: from, mass: lost.mass, parcels: lost.parcels });
        }
    }

    fn on_ack(&mut self, from: NodeId, ack: &Ack) -> Result<(), InputFault> {
        if ack.generation != self.config.generation {
            return Err(InputFault::OtherGeneration);
        }
        let Some(peer) = self.peers.get(&from) else {
            return Err(InputFault::NotANeighbour);
        };
        if peer.incarnation() > ack.identity.incarnation {
            self.note_refusal(InputFault::OtherLife);
            self.send_hello(from);
            return Ok(());
        }
        // The neighbour may know a later life of this node. Then it has this node's signed statement of it, and answers
        // the Hello with that.
        if peer.identity != Some(ack.identity) || ack.seen != self.config.identity {
            self.note_refusal(InputFault::OtherLife);
            self.send_hello(from);
            self.note_in_vain(from);
            return Ok(());
        }
        self.peers.entry(from).and_modify(|peer| peer.renewal.succeed());
        self.on_vouched(from);
        self.on_link_state(from, &ack.link, Said::Elsewhere)
    }

    /// Applies a neighbour's report of the state of the links. The neighbour knows this node's present identity.
    fn on_link_state(&mut self, from: NodeId, state: &LinkPositions, said: Said) -> Result<(), InputFault> {
        let now = self.now;
        let after = self.config.retransmit_after;
        if state.applied > state.received || !state.rejected.is_sound() {
            return Err(InputFault::ImpossibleAck);
        }
        self.compare_departures(from, state.left);
        self.compare_processes(from, state.processes);
        self.note_references(from, state.references);
        if !self.uses_links_with(from) {
            return Ok(());
        }
        let (ignores_ack_echoes, ignores_chains) =
            (self.has(InjectedBug::IgnoresAckEchoes), self.has(InjectedBug::IgnoresChains));
        let Some(peer) = self.peers.get_mut(&from) else {
            return Err(InputFault::NotANeighbour);
        };
        let contradicts = |link: &InLink| link.check_ack_echo(state.base, state.acked).is_err();
        if !ignores_ack_echoes && peer.incoming.as_ref().is_some_and(contradicts) {
            return self.on_contradiction(from, said);
        }
        peer.mutual = true;
        let mut returned = Returned::default();
        // No neighbour can have passed more steps than there are.
        let passed = state.passed.min(self.last_step);
        let mut progress = passed > peer.passed;
        peer.passed = peer.passed.max(passed);
        if progress && self.config.schedule.in_neighbours(self.config.id, passed - 1).is_empty() {
            // No parcel shows when it came to that step.
            peer.arrivals.note(passed - 1, now);
        }
        peer.was_met = true;
        if let Some(link) = &mut peer.incoming
            && link.on_state(state)?
        {
            progress = true;
            self.send_gate.hear();
        }
        if let Some(link) = &mut peer.outgoing {
            // A neighbour that has received nothing on this link yet reports zeros.
            if state.received >= link.base() {
                let Ok((moved, back)) = link.on_ack(state, !ignores_chains) else {
                    return self.on_contradiction(from, said);
                };
                if link.acked() > link.base() {
                    peer.evidence.note_applied(Applied { seq: state.applied, mac: state.applied_mac });
                }
                progress |= moved;
                link.arm(now, after);
                returned = back;
            }
        }
        progress |= state.leaving && self.note_stopping(from);
        self.take_back(from, &returned);
        self.weigh_claim(from);
        if progress {
            self.on_progress(from);
        }
        Ok(())
    }

    /// Notes that a neighbour stops. Returns `true` if it had not said so before.
    fn note_stopping(&mut self, from: NodeId) -> bool {
        let Some(peer) = self.peers.get_mut(&from).filter(|peer| !peer.leaving) else {
            return false;
        };
        peer.on_leaving();
        self.send_gate.grant_permit();
        true
    }

    /// Returns `true` if a neighbour's report of the links still matters: neither node has left, and the neighbour's
    /// messages are not refused.
    fn uses_links_with(&mut self, from: NodeId) -> bool {
        let has_left = self.has_left();
        let Some(peer) = self.peers.get_mut(&from) else {
            return true;
        };
        if peer.contradicts() {
            self.note_refusal(InputFault::Contradiction);
            return false;
        }
        let is_over = has_left || peer.left;
        peer.mutual |= is_over;
        !is_over
    }

    /// The part of the link state that is the same for every neighbour.
    pub(super) fn own_state(&self) -> LinkPositions {
        let left = self.departures.durable();
        let processes = self.processes.digest();
        let references = self.stated_references();
        LinkPositions {
            passed: self.passed(),
            leaving: self.is_leaving(),
            left,
            processes,
            references,
            ..LinkPositions::default()
        }
    }

    pub(super) fn send_hello(&mut self, to: NodeId) {
        let seen = self.peers.get(&to).and_then(Neighbour::signed_identity);
        if self.greet(to, seen)
            && let Some(peer) = self.peers.get_mut(&to)
        {
            peer.greeted = seen.is_some();
        }
    }

    /// Requests a greeting: a Hello that does not name the other side is answered with one that shows what it knows of
    /// this node.
    pub(super) fn ask_for_greeting(&mut self, of: NodeId) {
        self.greet(of, None);
    }

    /// Sends a Hello. Returns `false` if the link is down, or there were enough greetings for now.
    fn greet(&mut self, to: NodeId, seen: Option<SignedIdentity>) -> bool {
        let now = self.now;
        let heartbeat = self.config.heartbeat;
        let Some(peer) = self.peers.get_mut(&to).filter(|peer| peer.link_up) else {
            return false;
        };
        if !peer.may_be_greeted(now, heartbeat) {
            return false;
        }
        let evidence = peer.evidence;
        let NodeConfig { id, generation, identity, ref keys, .. } = self.config;
        let hello = Hello {
            version: PROTOCOL_VERSION,
            generation,
            task: self.config.task.clone(),
            identity: SignedIdentity::sign(id, &generation, identity, &**keys),
            seen,
            resumed: self.resumed,
            link: self.peers.get(&to).map(|peer| self.link_state(peer)).unwrap_or_default(),
            evidence,
        };
        self.send(to, Message::Hello(Box::new(hello)));
        true
    }

    /// Sends one Ack to every neighbour that is owed one, however many parcels it is for.
    pub(super) fn send_owed_acks(&mut self) {
        let generation = self.config.generation;
        let identity = self.config.identity;
        let mut acks = Vec::new();
        for peer in self.peers.values().filter(|peer| peer.ack_owed && peer.link_up) {
            if let Some(seen) = peer.identity {
                acks.push((peer.id, Ack { generation, identity, seen, link: self.link_state(peer) }));
            }
        }
        self.peers.values_mut().for_each(|peer| peer.ack_owed = false);
        for (to, ack) in acks {
            self.send(to, Message::Ack(ack));
        }
    }
}
