//! Input of nodes and execution of their effects: messages sent, local steps taken, records written.

use std::sync::Arc;
use std::time::Duration;

use super::{Happening, Lie, SimulatedSwarm};
use crate::config::Durability;
use crate::effect::{Effect, NodeEvent};
use crate::input::Input;
use crate::mass::Mass;
use crate::message::{Generation, Message, ParcelHeader};
use crate::node::Node;
use crate::schedule::NodeId;
use crate::sim::error::SimError;
use crate::sim::hostile::{burst, garbled, tampered};
use crate::sim::learning::waiting_changes;
use crate::sim::trace::Entry;
use crate::wire::encode;

/// Events at one instant after which a simulation is considered stuck.
const MOST_EVENTS_PER_INSTANT: u32 = 100_000;

impl SimulatedSwarm {
    /// Serves one input, carries out its effects and checks the mass.
    pub(super) fn input(&mut self, id: NodeId, input: Input, entry: Entry, content: &[u8]) -> Result<(), SimError> {
        self.trace.record(self.now, id, entry, content);
        if self.events_now > MOST_EVENTS_PER_INSTANT {
            return Err(SimError::Livelock { now: self.now, id });
        }
        let Some(node) = self.nodes.get_mut(&id) else {
            return Ok(());
        };
        let change = if let Input::Trained { delta, .. } = &input { Some(delta.clone()) } else { None };
        let waiting = waiting_changes(node);
        let ready = node.ready_change().map(<[f32]>::to_vec);
        let effects = node.handle(self.now, input);
        self.learning.watch(node, change.as_deref(), waiting.as_deref(), &effects);
        // A record that is made before a change is taken does not have it, though both happen at one input.
        let mut ready = ready.or_else(|| change.filter(|_| node.ready_change().is_some() || takes_ready(&effects)));
        let (generation, books) = (node.config().generation, self.conservation.ledger_now(node));
        let has_left = node.has_left();
        self.set_alarm(id);
        let (mut sent, mut renewed, mut ended) = (Vec::<(NodeId, ParcelHeader)>::new(), Vec::new(), false);
        for effect in effects {
            match effect {
                Effect::Send { to, message } => {
                    if let Message::Parcel(parcel) = &message {
                        sent.push((to, parcel.header));
                    }
                    self.transmit(id, to, message);
                }
                Effect::Train { round, from, local_steps, time_box, .. } => {
                    self.train(id, round, &from, local_steps, time_box);
                }
                Effect::Persist(record) => {
                    self.conservation.check_record(self.now, id, &record.books)?;
                    self.learning.recorded(id, record.books.number, ready.as_deref());
                    self.begin_write(id, record)?;
                }
                Effect::Renew { peer } => renewed.push(peer),
                Effect::Reserve(room) => self.reserve(id, room),
                Effect::Report(event) => {
                    ready = ready.filter(|_| !matches!(event, NodeEvent::ReadyChangeTaken { .. }));
                    self.reported(id, event, generation)?;
                }
                Effect::Drained => {
                    self.drained.insert(id, true);
                    ended |= has_left;
                    self.check_leaver(id)?;
                }
            }
        }
        self.conservation.check(self.now, id, generation, books, &sent)?;
        if ended && self.config.durability == Durability::On {
            self.end(id)?;
        }
        renewed.into_iter().try_for_each(|peer| self.break_stream(id, peer))
    }

    /// Checks what a node reports, and keeps it.
    fn reported(&mut self, id: NodeId, event: NodeEvent, generation: Generation) -> Result<(), SimError> {
        match event {
            NodeEvent::NewerPlan { generation, .. } => self.fetch_plan(id, generation),
            NodeEvent::CaughtUp { to, .. } => self.check_jump(id, to)?,
            NodeEvent::ParcelRefused { peer, mass } => self.check_refusal(id, peer, mass)?,
            NodeEvent::RollbackDetected { .. } => {
                self.rolled_back_in.insert(generation.counter);
            }
            _ => {}
        }
        self.trace.record(self.now, id, Entry::Reported, format!("{event:?}").as_bytes());
        self.events.push((self.now, id, event));
        Ok(())
    }

    /// Checks that a parcel was refused only where a member is hostile or norms are bounded: no other parcel is too
    /// heavy.
    fn check_refusal(&self, id: NodeId, from: NodeId, mass: Mass) -> Result<(), SimError> {
        let is_explained = !self.hostile.is_empty() || self.config.largest_norm.is_some();
        if is_explained { Ok(()) } else { Err(SimError::SoundParcelRefused { now: self.now, id, from, mass }) }
    }

    /// Sets the alarm of a node to its next deadline.
    pub(super) fn set_alarm(&mut self, id: NodeId) {
        let awake = self.paused_until.get(&id).copied().unwrap_or_default();
        let at = self.nodes.get(&id).and_then(Node::next_deadline).map(|at| at.max(awake));
        self.agenda.set_alarm(id, at);
    }

    fn transmit(&mut self, from: NodeId, to: NodeId, message: Message) {
        match self.hostile.get(&from) {
            None => self.put_on_the_way(from, to, flattened(message)),
            Some(Lie::Within(attack)) => {
                let messages = attack.messages(message);
                messages.into_iter().for_each(|message| self.put_on_the_way(from, to, flattened(message)));
            }
            Some(Lie::Anything) => self.transmit_anything(from, to, message),
        }
    }

    fn transmit_anything(&mut self, from: NodeId, to: NodeId, message: Message) {
        let nodes = self.config.schedule.nodes() as u32;
        for lie in burst(&message, self.network.rng()) {
            self.put_on_the_way(from, to, flattened(lie));
        }
        let mut bytes = flattened(tampered(message, from, nodes, self.network.rng()));
        garbled(&mut bytes, self.network.rng());
        self.put_on_the_way(from, to, bytes);
    }

    fn put_on_the_way(&mut self, from: NodeId, to: NodeId, bytes: Vec<u8>) {
        let bytes: Arc<[u8]> = bytes.into();
        self.sendings += 1;
        self.sent_bytes += bytes.len() as u64;
        let sending = self.sendings;
        self.trace.record(self.now, from, Entry::Sent, &bytes);
        let connection = self.network.connection(from, to);
        for at in self.network.route(self.now, from, to) {
            self.agenda.add(at, Happening::Delivery { from, to, connection, sending, bytes: Arc::clone(&bytes) });
        }
    }

    fn train(&mut self, id: NodeId, round: u64, from: &[f32], local_steps: u32, time_box: Option<Duration>) {
        let local_steps = local_steps.max(1);
        let slowness = self.config.slowness.get(&id).copied().unwrap_or(1);
        let whole = self.network.draw_between(self.config.training_time) * slowness;
        let fitting = time_box.map(|time_box| time_box.as_nanos() * u128::from(local_steps) / whole.as_nanos().max(1));
        let fitting = fitting.and_then(|steps| u32::try_from(steps).ok()).unwrap_or(local_steps);
        let steps = fitting.clamp(1, local_steps);
        let attack = self.attack_of(id).and_then(|attack| attack.delta(from, self.config.largest_norm));
        let delta = attack.unwrap_or_else(|| (self.config.trainer)(id, round, from, steps));
        let process = self.processes.get(&id).copied().unwrap_or(0);
        self.agenda
            .add(self.now + whole * steps / local_steps, Happening::Trained { id, process, round, delta, steps });
    }
}

/// The bytes of a message on the wire.
fn flattened(message: Message) -> Vec<u8> {
    let encoded = encode(message);
    let mut bytes = Vec::with_capacity(encoded.total_bytes());
    encoded.slices().for_each(|slice| bytes.extend_from_slice(slice));
    bytes
}

/// Returns `true` if a change that was ready is taken.
fn takes_ready(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Report(NodeEvent::ReadyChangeTaken { .. })))
}
