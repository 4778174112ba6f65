//! The host of a simulation.

mod disks;
mod membership;
mod views;

use disks::slot_bytes;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::config::SwarmConfig;
use super::conservation::Conservation;
use super::disk::Disk;
use super::durable_ledger::DurableLedger;
use super::error::SimError;
use super::fault::Fault;
use super::hostile::{burst, garbled, tampered};
use super::network::{Agenda, Alarms, Network};
use super::plans::{Change, Plans};
use super::trace::{Entry, Trace};
use crate::config::{Durability, NodeConfig};
use crate::effect::{Effect, Event, RecordRoom};
use crate::input::Input;
use crate::message::{Generation, Identity, Message, ParcelHeader};
use crate::node::Node;
use crate::record::Recovered;
use crate::schedule::NodeId;
use crate::time::Time;
use crate::wire::{MessageReader, encode};

/// Events at one instant after which a simulation is considered stuck.
const MOST_EVENTS_PER_INSTANT: u32 = 100_000;

enum Happening {
    Delivery { from: NodeId, to: NodeId, connection: u64, sending: u64, bytes: Arc<[u8]> },
    Trained { id: NodeId, process: u64, round: u64, delta: Vec<f32>, steps: u32 },
    Written { id: NodeId, process: u64 },
    Persisted { id: NodeId, process: u64, number: u64 },
    Reserved { id: NodeId, process: u64 },
    PlanFetched { id: NodeId, process: u64, generation: Generation },
    Fault(Fault),
}

/// A swarm under simulation.
pub struct Swarm {
    config: SwarmConfig,
    now: Time,
    nodes: BTreeMap<NodeId, Node>,
    /// How many processes each node has had.
    processes: BTreeMap<NodeId, u64>,
    paused_until: BTreeMap<NodeId, Time>,
    alarms: Alarms,
    /// Messages sent so far.
    sendings: u64,
    disks: BTreeMap<NodeId, Disk>,
    durable_ledger: DurableLedger,
    disk_checks: u64,
    /// In this generation, and in those before it, a disk has lost something or a member lies: nothing adds up.
    void: Option<Generation>,
    /// The generations in which nodes found out that they had been set back.
    set_back_in: BTreeSet<u64>,
    unreadable: u64,
    /// Members that send whatever they like.
    hostile: BTreeSet<NodeId>,
    plans: Plans,
    leavers: BTreeSet<NodeId>,
    /// Those who left, or were left out of a plan.
    gone: BTreeSet<NodeId>,
    replanned: bool,
    drained: BTreeMap<NodeId, bool>,
    agenda: Agenda<Happening>,
    network: Network,
    conservation: Conservation,
    trace: Trace,
    events: Vec<(Time, NodeId, Event)>,
    events_now: u32,
    crashes: u64,
}

impl fmt::Debug for Swarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Swarm").field("config", &self.config).field("now", &self.now).finish_non_exhaustive()
    }
}

impl Swarm {
    /// A swarm of founders, all of whose links come up at time zero.
    ///
    /// # Errors
    /// [`SimError::Node`] when the configuration makes no node.
    pub fn new(config: SwarmConfig) -> Result<Self, SimError> {
        let nodes = config.schedule.nodes();
        let mut swarm = Self {
            now: Time::default(),
            nodes: BTreeMap::new(),
            processes: BTreeMap::new(),
            paused_until: BTreeMap::new(),
            alarms: Alarms::default(),
            sendings: 0,
            disks: BTreeMap::new(),
            durable_ledger: DurableLedger::default(),
            disk_checks: 0,
            void: None,
            set_back_in: BTreeSet::new(),
            unreadable: 0,
            hostile: BTreeSet::new(),
            plans: Plans::new(Arc::clone(&config.schedule)),
            leavers: BTreeSet::new(),
            gone: BTreeSet::new(),
            replanned: false,
            drained: BTreeMap::new(),
            agenda: Agenda::new(),
            network: Network::new(config.network.clone(), config.seed),
            conservation: Conservation::new(config.durability == Durability::On),
            trace: Trace::default(),
            events: Vec::new(),
            events_now: 0,
            crashes: 0,
            config,
        };
        let ids = || (0..nodes as u32).map(NodeId);
        for id in ids() {
            swarm.make(id, None)?;
        }
        for id in ids() {
            swarm.connect(id)?;
        }
        Ok(swarm)
    }

    /// Arranges for a fault at a time to come.
    pub fn at(&mut self, time: Time, fault: Fault) {
        self.agenda.add(time, Happening::Fault(fault));
    }

    /// Runs until every living node has drained and no fault is left to happen.
    ///
    /// # Errors
    /// [`SimError`]: a broken invariant, or `limit` reached before that.
    pub fn run_until_drained(&mut self, limit: Time) -> Result<(), SimError> {
        while !self.drained.values().all(|drained| *drained) {
            if !self.step(limit)? {
                let waiting = self.drained.iter().filter(|(_, drained)| !**drained).map(|(id, _)| *id).collect();
                return Err(SimError::NotDrained { now: self.now, waiting });
            }
        }
        Ok(())
    }

    /// Runs until `time`.
    ///
    /// # Errors
    /// [`SimError`]: a broken invariant.
    pub fn run_until(&mut self, time: Time) -> Result<(), SimError> {
        while self.step(time)? {}
        self.now = self.now.max(time);
        Ok(())
    }

    /// Lets the next thing happen, unless it lies beyond `limit`.
    fn step(&mut self, limit: Time) -> Result<bool, SimError> {
        let tick = self.alarms.next().map(|(at, id)| (at.max(self.now), id));
        let happening = self.agenda.next_at();
        let is_tick = tick.is_some_and(|(at, _)| happening.is_none_or(|happening| at < happening));
        let Some(at) = tick.filter(|_| is_tick).map(|(at, _)| at).or(happening).filter(|at| *at <= limit) else {
            return Ok(false);
        };
        self.events_now = if at > self.now { 0 } else { self.events_now + 1 };
        self.now = at;
        match tick.filter(|_| is_tick) {
            Some((_, id)) => self.input(id, Input::Tick, Entry::Ticked, &[])?,
            None => {
                if let Some(next) = self.agenda.pop() {
                    self.happen(next.what)?;
                }
            }
        }
        Ok(true)
    }

    fn happen(&mut self, what: Happening) -> Result<(), SimError> {
        if let Some(awake) = self.sleeper_of(&what) {
            self.agenda.add(awake, what);
            return Ok(());
        }
        match what {
            Happening::Delivery { from, to, connection, sending, bytes } => {
                if self.network.connection(from, to) != connection || !self.nodes.contains_key(&to) {
                    return Ok(());
                }
                let now = self.now;
                let mut reader = MessageReader::new(self.config.initial[to.index()].len());
                let messages = match reader.feed(&bytes) {
                    Ok(messages) => messages,
                    Err(_) if self.hostile.contains(&from) => return self.break_stream(from, to),
                    Err(error) => return Err(SimError::Wire { now, from, to, error }),
                };
                for message in messages {
                    // The bytes are part of the trace since they were sent.
                    self.input(to, Input::Received { from, message }, Entry::Delivered, &sending.to_le_bytes())?;
                }
                Ok(())
            }
            Happening::Trained { id, process, round, delta, steps } => {
                if !self.is_alive(id, process) {
                    return Ok(());
                }
                self.input(id, Input::Trained { round, delta, steps }, Entry::Trained, &round.to_le_bytes())
            }
            Happening::Written { id, process } => {
                if !self.is_alive(id, process) {
                    return Ok(());
                }
                self.complete_write(id, process)
            }
            Happening::Persisted { id, process, number } => {
                if !self.is_alive(id, process) {
                    return Ok(());
                }
                self.input(id, Input::Persisted { number }, Entry::Persisted, &number.to_le_bytes())
            }
            Happening::Reserved { id, process } => {
                if !self.is_alive(id, process) {
                    return Ok(());
                }
                self.grow_slots(id)
            }
            Happening::PlanFetched { id, process, generation } => {
                if !self.is_alive(id, process) {
                    return Ok(());
                }
                self.hand_in_plan(id, generation)
            }
            Happening::Fault(fault) => self.inflict(fault),
        }
    }

    /// When a paused process can take what happens to it; a disk does not need its process.
    fn sleeper_of(&self, what: &Happening) -> Option<Time> {
        let id = match what {
            Happening::Delivery { to, .. } => to,
            Happening::Trained { id, .. } | Happening::Persisted { id, .. } | Happening::PlanFetched { id, .. } => id,
            Happening::Written { .. } | Happening::Reserved { .. } | Happening::Fault(_) => return None,
        };
        self.paused_until.get(id).copied().filter(|awake| *awake > self.now)
    }

    fn is_alive(&self, id: NodeId, process: u64) -> bool {
        self.nodes.contains_key(&id) && self.processes.get(&id) == Some(&process)
    }

    fn inflict(&mut self, fault: Fault) -> Result<(), SimError> {
        self.trace.record(self.now, NodeId(0), Entry::Faulted, format!("{fault:?}").as_bytes());
        match fault {
            Fault::Crash(id) => self.crash(id),
            Fault::Restart(id) if !self.nodes.contains_key(&id) && !self.gone.contains(&id) => {
                self.make(id, None)?;
                self.connect(id)
            }
            Fault::Restart(_) => Ok(()),
            Fault::Pause(id, span) => {
                self.paused_until.insert(id, self.now + span);
                self.set_alarm(id);
                Ok(())
            }
            Fault::FillDisk(_)
            | Fault::FreeDisk(_)
            | Fault::SlowDisk(..)
            | Fault::BackUpDisk(_)
            | Fault::RestoreDisk(_)
            | Fault::WipeDisk(_)
            | Fault::FlipBit(..)
            | Fault::TruncateSlot(..)
            | Fault::LoseSectors(..) => {
                self.harm_disk(fault);
                Ok(())
            }
            Fault::Replan(seed) => self.replan(Change::Draw { seed, without: None }),
            Fault::Resize(members, seed) => self.replan(Change::Resize { members, seed }),
            Fault::Rewire(seed) => self.rewire(seed),
            Fault::Leave(id) => self.leave(id),
            Fault::DismissRemoved => self.dismiss_removed(),
            Fault::Stop(id) => self.input(id, Input::Stop, Entry::Faulted, &[]),
            Fault::LinkDown(a, b) => {
                self.network.cut(a, b);
                self.input(a, Input::LinkDown { peer: b }, Entry::Faulted, &[])?;
                self.input(b, Input::LinkDown { peer: a }, Entry::Faulted, &[])
            }
            Fault::FailSync(id) => {
                self.disks.entry(id).or_default().fails_sync = true;
                Ok(())
            }
            Fault::Corrupt(id) => {
                self.hostile.insert(id);
                self.give_up(self.plans.newest().generation);
                Ok(())
            }
            Fault::Expel(id, seed) => self.replan(Change::Draw { seed, without: Some(id) }),
            Fault::Mute(from, to) => {
                self.network.mute(from, to);
                Ok(())
            }
            Fault::LinkUp(a, b) => {
                self.network.mend(a, b);
                if self.network.unmute(a, b) {
                    self.break_stream(a, b)?;
                }
                self.link_up(a, b)
            }
        }
    }

    fn crash(&mut self, id: NodeId) -> Result<(), SimError> {
        let Some(node) = self.nodes.remove(&id) else {
            return Ok(());
        };
        self.crashes += 1;
        self.paused_until.remove(&id);
        self.set_alarm(id);
        match self.config.durability {
            Durability::Off => self.conservation.died(id),
            Durability::On => self.end_writes(id)?,
        }
        self.drained.remove(&id);
        for peer in node.neighbours() {
            self.network.reconnect(id, peer);
            if self.network.is_stream() {
                self.input(peer, Input::LinkDown { peer: id }, Entry::Faulted, &[])?;
            }
        }
        Ok(())
    }

    /// Starts a process: from its disk, or with the ratio of a donor, or as the founder it was.
    fn make(&mut self, id: NodeId, donated: Option<Vec<f32>>) -> Result<(), SimError> {
        let process = self.processes.entry(id).or_insert(0);
        *process += 1;
        let process = *process;
        let config = &self.config;
        let initial = config.initial.get(id.index()).cloned().unwrap_or_default();
        let initial = donated.unwrap_or(initial);
        let planted = config.planted_in.get(&id).copied().or(config.planted);
        let recovered = self.recover(id, planted)?;
        let config = &self.config;
        let newest = self.plans.newest();
        let recorded = recovered.as_ref().map(|found| (found.record.books.generation, found.record.books.plan_version));
        let plan = recorded.and_then(|(generation, version)| self.plans.find(generation, version)).unwrap_or(newest);
        let mut node_config = NodeConfig::new(id, Arc::clone(&plan.schedule), initial, config.rounds);
        let incarnation = if config.durability == Durability::Off { process } else { 1 };
        node_config.identity = Identity { incarnation, boot_nonce: process };
        node_config.generation = plan.generation;
        node_config.codec = config.codec;
        node_config.largest_norm = config.largest_norm;
        node_config.durability = config.durability;
        node_config.planted = planted;
        node_config.clip = config.clip;
        node_config.time_box = config.time_box;
        node_config.policy = config.policy;
        node_config.retransmit_after = config.retransmit_after;
        node_config.heartbeat = config.heartbeat;
        node_config.drain_deadline = config.drain_deadline;
        if config.durability == Durability::On {
            // Like the daemon, which makes room for the links of the plan before it starts a node.
            let disk = self.disks.entry(id).or_default();
            let room = RecordRoom::of(&plan.schedule, id);
            disk.make_room(room.slots.max(disk.wanted_slots()), slot_bytes(node_config.initial.len(), room));
            node_config.record_slots = Some(disk.slots());
        }
        let generation = node_config.generation;
        let node = match recovered {
            Some(Recovered { record, payloads, .. }) => {
                let books = record.books.clone();
                let node = Node::resume(node_config, record, &payloads)?;
                self.conservation.resumed(self.now, id, &books, node.ledger())?;
                node
            }
            None => {
                let node = Node::new(node_config)?;
                self.conservation.born(id, generation, node.ledger());
                node
            }
        };
        self.nodes.insert(id, node);
        self.drained.insert(id, false);
        self.input(id, Input::Start, Entry::Faulted, &[])?;
        if self.leavers.contains(&id) { self.input(id, Input::Leave, Entry::Faulted, &[]) } else { Ok(()) }
    }

    /// Opens the links of a node: those of its own plan, and those of others whose plan has one to it.
    fn connect(&mut self, id: NodeId) -> Result<(), SimError> {
        let mut peers: BTreeSet<NodeId> =
            self.nodes.get(&id).map(|node| node.neighbours().collect()).unwrap_or_default();
        let counts_on_it = |node: &Node| node.neighbours().any(|neighbour| neighbour == id);
        peers.extend(self.nodes.iter().filter(|(_, node)| counts_on_it(node)).map(|(other, _)| *other));
        for peer in peers {
            self.link_up(id, peer)?;
        }
        Ok(())
    }

    /// A stream that cannot be trusted any more is given up, and another one opened.
    fn break_stream(&mut self, a: NodeId, b: NodeId) -> Result<(), SimError> {
        if !self.network.is_stream() || self.network.is_cut(a, b) {
            return Ok(());
        }
        self.network.reconnect(a, b);
        self.input(a, Input::LinkDown { peer: b }, Entry::Faulted, &[])?;
        self.input(b, Input::LinkDown { peer: a }, Entry::Faulted, &[])?;
        self.link_up(a, b)
    }

    fn link_up(&mut self, a: NodeId, b: NodeId) -> Result<(), SimError> {
        if self.network.is_cut(a, b) || !self.nodes.contains_key(&a) || !self.nodes.contains_key(&b) {
            return Ok(());
        }
        self.input(a, Input::LinkUp { peer: b }, Entry::Faulted, &[])?;
        self.input(b, Input::LinkUp { peer: a }, Entry::Faulted, &[])
    }

    /// Serves one input, carries out its effects and checks the mass.
    fn input(&mut self, id: NodeId, input: Input, entry: Entry, content: &[u8]) -> Result<(), SimError> {
        self.trace.record(self.now, id, entry, content);
        if self.events_now > MOST_EVENTS_PER_INSTANT {
            return Err(SimError::Livelock { now: self.now, id });
        }
        let Some(node) = self.nodes.get_mut(&id) else {
            return Ok(());
        };
        let effects = node.handle(self.now, input);
        let (generation, books) = (node.config().generation, node.ledger());
        let has_left = node.has_left();
        self.set_alarm(id);
        let mut sent: Vec<(NodeId, ParcelHeader)> = Vec::new();
        let (mut ended, mut renewed) = (false, Vec::new());
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
                    self.begin_write(id, record)?;
                }
                Effect::Renew { peer } => renewed.push(peer),
                Effect::Reserve(room) => self.reserve(id, room),
                Effect::Report(event) => {
                    match event {
                        Event::NewerPlan { generation, .. } => self.fetch_plan(id, generation),
                        Event::CaughtUp { to, .. } => self.check_jump(id, to)?,
                        Event::SetBack { .. } => {
                            self.set_back_in.insert(generation.counter);
                        }
                        _ => {}
                    }
                    self.trace.record(self.now, id, Entry::Reported, format!("{event:?}").as_bytes());
                    self.events.push((self.now, id, event));
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

    /// Notes when a node wants to be woken next.
    fn set_alarm(&mut self, id: NodeId) {
        let awake = self.paused_until.get(&id).copied().unwrap_or_default();
        let at = self.nodes.get(&id).and_then(Node::next_deadline).map(|at| at.max(awake));
        self.alarms.set(id, at);
    }

    fn transmit(&mut self, from: NodeId, to: NodeId, message: Message) {
        if !self.hostile.contains(&from) {
            let bytes = flattened(message);
            return self.put_on_the_way(from, to, bytes);
        }
        let nodes = self.config.schedule.nodes() as u32;
        for lie in burst(&message, self.network.rng()) {
            self.put_on_the_way(from, to, flattened(lie));
        }
        let mut bytes = flattened(tampered(message, nodes, self.network.rng()));
        garbled(&mut bytes, self.network.rng());
        self.put_on_the_way(from, to, bytes);
    }

    fn put_on_the_way(&mut self, from: NodeId, to: NodeId, bytes: Vec<u8>) {
        let bytes: Arc<[u8]> = bytes.into();
        self.sendings += 1;
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
        let delta = (self.config.trainer)(id, round, from, steps);
        let process = self.processes.get(&id).copied().unwrap_or(0);
        self.agenda
            .add(self.now + whole * steps / local_steps, Happening::Trained { id, process, round, delta, steps });
    }
}

/// A message as it is on the wire.
fn flattened(message: Message) -> Vec<u8> {
    let encoded = encode(message);
    let mut bytes = Vec::with_capacity(encoded.total_bytes());
    encoded.slices().for_each(|slice| bytes.extend_from_slice(slice));
    bytes
}
