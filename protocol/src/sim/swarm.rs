//! The host of a simulation.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::config::SwarmConfig;
use super::conservation::Conservation;
use super::disk::Disk;
use super::durable_ledger::DurableLedger;
use super::error::SimError;
use super::hostile::{garbled, tampered};
use super::network::{Agenda, Alarms, Network};
use super::plans::Plans;
use super::trace::{Entry, Trace};
use crate::audit::{AuditReport, audit};
use crate::config::{Durability, NodeConfig};
use crate::effect::{Effect, Event};
use crate::input::{Input, NewGeneration, Rewiring};
use crate::ledger::LedgerSummary;
use crate::message::{Generation, Identity, Message, ParcelHeader};
use crate::node::Node;
use crate::record::Record;
use crate::schedule::NodeId;
use crate::time::Time;
use crate::wire::{MessageReader, encode};

/// Events at one instant after which a simulation is considered stuck.
const MOST_EVENTS_PER_INSTANT: u32 = 100_000;

/// Something that goes wrong, or that someone does. Written in a journal as one key that names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// A process is killed. What it held is gone, except for what is on its disk.
    Crash(NodeId),
    /// A crashed node starts again: from its disk, or without its state where nodes keep none.
    Restart(NodeId),
    /// A process stands still for a while, with everything that reaches it waiting.
    #[serde(rename = "pause_us")]
    Pause(NodeId, #[serde(with = "super::fault::micros")] Duration),
    /// A disk takes nothing any more.
    FillDisk(NodeId),
    /// It takes what was to be written, and goes on.
    FreeDisk(NodeId),
    /// Writes to a disk take this many times as long as usual from now on.
    SlowDisk(NodeId, u32),
    /// A copy of a disk is put aside.
    BackUpDisk(NodeId),
    /// The copy is put back; only a crashed node notices.
    RestoreDisk(NodeId),
    /// A disk loses all it holds; only a crashed node notices.
    WipeDisk(NodeId),
    /// The planner makes a plan for a new generation, with members and links drawn from a seed, and tells one member.
    Replan(u64),
    /// The planner makes other links for the present members, drawn from a seed, and tells one member.
    Rewire(u64),
    /// Those who are not members any more and have not heard of it are told so.
    DismissRemoved,
    /// A node is asked to hand over its mass and leave for good.
    Leave(NodeId),
    /// The next write of a node to its disk may or may not survive, and nobody can find out: the process ends.
    FailSync(NodeId),
    /// A member sends whatever it likes from now on: impossible numbers, forged certificates, garbage.
    Corrupt(NodeId),
    /// The planner begins a new generation without a member, with links drawn from a seed.
    Expel(NodeId, u64),
    /// What the first node sends does not reach the second any more, and neither of them is told.
    Mute(NodeId, NodeId),
    /// Two nodes lose each other.
    LinkDown(NodeId, NodeId),
    /// They find each other again, and hear each other.
    LinkUp(NodeId, NodeId),
    /// A node is asked to stop.
    Stop(NodeId),
}

enum Happening {
    Delivery { from: NodeId, to: NodeId, connection: u64, sending: u64, bytes: Arc<[u8]> },
    Trained { id: NodeId, process: u64, round: u64, delta: Vec<f32>, steps: u32 },
    Written { id: NodeId, process: u64 },
    Persisted { id: NodeId, process: u64, number: u64 },
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
    /// No disk has lost anything: what is on all of them adds up.
    disks_are_whole: bool,
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
            disks_are_whole: true,
            hostile: BTreeSet::new(),
            plans: Plans::new(Arc::clone(&config.schedule)),
            leavers: BTreeSet::new(),
            gone: BTreeSet::new(),
            replanned: false,
            drained: BTreeMap::new(),
            agenda: Agenda::new(),
            network: Network::new(config.network.clone(), config.seed),
            conservation: Conservation::new(),
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

    /// All nodes of the plan.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.config.schedule.nodes() as u32).map(NodeId)
    }

    /// What the living nodes hold, in units.
    pub fn held(&self) -> u128 {
        self.nodes.values().map(|node| u128::from(node.mass().units())).sum()
    }

    /// What all nodes hold by their disks, what parcels under way hold, and what was brought into the generation.
    pub fn on_disk(&mut self) -> (u128, u128, u128) {
        let (held, owed) = self.durable_ledger.held_and_owed();
        (held, owed, self.durable_ledger.check().1)
    }

    /// Whether the ledger was begun anew, or members came or went.
    pub fn was_replanned(&self) -> bool {
        self.replanned
    }

    /// The sums of the numerators of all living nodes, and of the initial ratios: equal up to rounding where nothing was
    /// trained, nobody died and nothing is under way.
    pub fn numerators(&self) -> (Vec<f64>, Vec<f64>) {
        let dimension = self.config.initial.first().map_or(0, Vec::len);
        let sum = |vectors: &mut dyn Iterator<Item = &[f32]>| {
            vectors.fold(vec![0.0; dimension], |mut sum, vector| {
                sum.iter_mut().zip(vector).for_each(|(sum, x)| *sum += f64::from(*x));
                sum
            })
        };
        let numerators = sum(&mut self.nodes.values().map(Node::numerator));
        (numerators, sum(&mut self.config.initial.iter().map(Vec::as_slice)))
    }

    /// How many processes were killed.
    pub fn crashes(&self) -> u64 {
        self.crashes
    }

    /// Virtual time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// A living node.
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(&id)
    }

    /// A living node's ratio; empty for a dead one.
    pub fn ratio(&mut self, id: NodeId) -> Arc<[f32]> {
        self.nodes.get_mut(&id).map(Node::ratio).unwrap_or_default()
    }

    /// The books of all living nodes.
    pub fn books(&self) -> Vec<(NodeId, LedgerSummary)> {
        self.nodes.iter().map(|(id, node)| (*id, node.ledger())).collect()
    }

    /// The audit of those books.
    pub fn audit(&self) -> AuditReport {
        audit(&self.books(), self.config.schedule.nodes())
    }

    /// Everything the nodes reported.
    pub fn events(&self) -> &[(Time, NodeId, Event)] {
        &self.events
    }

    /// Everything the nodes reported since this was last asked for.
    pub(super) fn take_events(&mut self) -> Vec<(Time, NodeId, Event)> {
        std::mem::take(&mut self.events)
    }

    /// How often conservation was checked.
    pub fn checks(&self) -> u64 {
        self.conservation.checks() + self.durable_ledger.checks()
    }

    /// Mass that crashed nodes held when they died, in units; the simulator knows, the survivors must find out.
    pub fn lost_with_nodes(&self) -> u128 {
        self.conservation.lost_with_nodes()
    }

    /// Mass in parcels not applied by the life they are meant for, in units.
    pub fn outstanding(&self) -> u128 {
        self.conservation.outstanding()
    }

    /// A hash of all that happened; equal for equal runs.
    pub fn digest(&self) -> [u8; 32] {
        self.trace.digest()
    }

    /// How many things happened.
    pub fn trace_length(&self) -> u64 {
        self.trace.events()
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
            Happening::Written { .. } | Happening::Fault(_) => return None,
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
            | Fault::WipeDisk(_) => {
                self.harm_disk(fault);
                Ok(())
            }
            Fault::Replan(seed) => self.replan(seed, None),
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
                self.disks_are_whole = false;
                Ok(())
            }
            Fault::Expel(id, seed) => self.replan(seed, Some(id)),
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
        let recovered = self.disks.entry(id).or_default().recover();
        let newest = self.plans.newest();
        let recorded = recovered.as_ref().map(|(record, _)| (record.books.generation, record.books.plan_version));
        let plan = recorded.and_then(|(generation, version)| self.plans.find(generation, version)).unwrap_or(newest);
        let mut node_config = NodeConfig::new(id, Arc::clone(&plan.schedule), initial, config.rounds);
        let incarnation = if config.durability == Durability::Off { process } else { 1 };
        node_config.identity = Identity { incarnation, boot_nonce: process };
        node_config.generation = plan.generation;
        node_config.codec = config.codec;
        node_config.largest_norm = config.largest_norm;
        node_config.durability = config.durability;
        node_config.planted = config.planted_in.get(&id).copied().or(config.planted);
        node_config.clip = config.clip;
        node_config.time_box = config.time_box;
        node_config.policy = config.policy;
        node_config.retransmit_after = config.retransmit_after;
        node_config.heartbeat = config.heartbeat;
        node_config.drain_deadline = config.drain_deadline;
        let node = match recovered {
            Some((record, payloads)) => Node::resume(node_config, record, &payloads)?,
            None => Node::new(node_config)?,
        };
        if config.durability == Durability::Off {
            self.conservation.born(id, node.ledger());
        }
        self.nodes.insert(id, node);
        self.drained.insert(id, false);
        self.input(id, Input::Start, Entry::Faulted, &[])?;
        if self.leavers.contains(&id) { self.input(id, Input::Leave, Entry::Faulted, &[]) } else { Ok(()) }
    }

    fn connect(&mut self, id: NodeId) -> Result<(), SimError> {
        let peers: Vec<NodeId> = self.nodes.get(&id).map(|node| node.neighbours().collect()).unwrap_or_default();
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
        let books = (self.config.durability == Durability::Off).then(|| node.ledger());
        let has_left = node.has_left();
        self.set_alarm(id);
        let mut sent: Vec<(NodeId, ParcelHeader)> = Vec::new();
        let mut ended = false;
        for effect in effects {
            match effect {
                Effect::Send { to, message } => {
                    if let Message::Parcel(parcel) = &message {
                        sent.push((to, parcel.header));
                    }
                    self.transmit(id, to, message);
                }
                Effect::Train { round, from, local_steps, time_box } => {
                    self.train(id, round, &from, local_steps, time_box);
                }
                Effect::Persist(record) => self.begin_write(id, record),
                Effect::Report(event) => {
                    if let Event::NewerPlan { generation, .. } = event {
                        self.fetch_plan(id, generation);
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
        match books {
            Some(books) => self.conservation.check(self.now, id, &books, &sent),
            None if ended => self.end(id),
            None => Ok(()),
        }
    }

    /// Notes when a node wants to be woken next.
    fn set_alarm(&mut self, id: NodeId) {
        let awake = self.paused_until.get(&id).copied().unwrap_or_default();
        let at = self.nodes.get(&id).and_then(Node::next_deadline).map(|at| at.max(awake));
        self.alarms.set(id, at);
    }

    fn begin_write(&mut self, id: NodeId, record: Arc<Record>) {
        let time = self.network.draw_between(self.config.write_time);
        let process = self.processes.get(&id).copied().unwrap_or(0);
        let disk = self.disks.entry(id).or_default();
        disk.begin(record);
        if !disk.is_full {
            self.agenda.add(self.now + time * disk.slowness.max(1), Happening::Written { id, process });
        }
    }

    /// The oldest write of a node is on its disk; that the node hears of it takes another moment.
    fn complete_write(&mut self, id: NodeId, process: u64) -> Result<(), SimError> {
        if std::mem::take(&mut self.disks.entry(id).or_default().fails_sync) {
            // What became of it is found out by the next process.
            return self.crash(id);
        }
        let Some(record) = self.disks.entry(id).or_default().complete() else {
            return Ok(());
        };
        let number = record.books.number;
        self.trace.record(self.now, id, Entry::Written, &number.to_le_bytes());
        self.check_record(id, &record)?;
        let at = self.now + self.network.draw_between(self.config.write_time) / 4;
        self.agenda.add(at, Happening::Persisted { id, process, number });
        self.check_disks(id, &record)
    }

    /// A record keeps to the rules of its format, and adds up by itself.
    fn check_record(&self, id: NodeId, record: &Record) -> Result<(), SimError> {
        let now = self.now;
        record.check().map_err(|error| SimError::Record { now, id, error })?;
        let books = &record.books;
        let received = books.incoming.values().map(|link| link.applied_total + link.applied_from_earlier_lives);
        let returned = books.outgoing.values().map(|link| link.returned);
        let sent = books.outgoing.values().map(|link| link.sent_total);
        let should_hold = u128::from(books.brought.units()) + received.sum::<u128>() + returned.sum::<u128>();
        let should_hold = should_hold as i128 - sent.sum::<u128>() as i128;
        let holds = u128::from(books.mass.units());
        if holds as i128 == should_hold { Ok(()) } else { Err(SimError::NodeMass { now, id, holds, should_hold }) }
    }

    fn check_disks(&mut self, id: NodeId, record: &Arc<Record>) -> Result<(), SimError> {
        let before = self.durable_ledger.generation();
        self.durable_ledger.update(id, Some(record));
        if self.durable_ledger.generation() != before {
            // Whatever disks lost before, a new ledger begins.
            self.disks_are_whole = true;
        }
        let (total, expected) = self.durable_ledger.check();
        if !self.disks_are_whole || total == expected {
            return Ok(());
        }
        Err(SimError::DurableMass { now: self.now, id, total, expected })
    }

    /// A process died while its disk was writing: each write, in order, was complete or it was not.
    fn end_writes(&mut self, id: NodeId) -> Result<(), SimError> {
        let disk = self.disks.entry(id).or_default();
        while disk.writing() > 0 && !disk.is_full && self.network.toss() {
            if let Some(record) = disk.complete() {
                self.durable_ledger.update(id, Some(&record));
            }
        }
        disk.tear();
        match disk.newest().cloned() {
            Some(newest) => self.check_disks(id, &newest),
            None => Ok(()),
        }
    }

    fn harm_disk(&mut self, fault: Fault) {
        let (Fault::FillDisk(id)
        | Fault::FreeDisk(id)
        | Fault::SlowDisk(id, _)
        | Fault::BackUpDisk(id)
        | Fault::RestoreDisk(id)
        | Fault::WipeDisk(id)) = fault
        else {
            return;
        };
        let is_dead = !self.nodes.contains_key(&id);
        let process = self.processes.get(&id).copied().unwrap_or(0);
        let disk = self.disks.entry(id).or_default();
        match fault {
            Fault::FillDisk(_) => disk.is_full = true,
            Fault::FreeDisk(_) if disk.is_full => {
                (disk.is_full, disk.fails_sync) = (false, false);
                for _ in 0..disk.writing() {
                    self.agenda.add(self.now, Happening::Written { id, process });
                }
            }
            Fault::FreeDisk(_) => disk.fails_sync = false,
            Fault::SlowDisk(_, slowness) => disk.slowness = slowness,
            Fault::BackUpDisk(_) => disk.back_up(),
            Fault::RestoreDisk(_) if is_dead && disk.restore() => self.disks_are_whole = false,
            Fault::WipeDisk(_) if is_dead => {
                disk.wipe();
                self.disks_are_whole = false;
            }
            _ => {}
        }
        let newest = disk.newest().cloned();
        self.durable_ledger.update(id, newest.as_ref());
    }

    fn transmit(&mut self, from: NodeId, to: NodeId, message: Message) {
        let is_hostile = self.hostile.contains(&from);
        let nodes = self.config.schedule.nodes() as u32;
        let encoded = encode(if is_hostile { tampered(message, nodes, self.network.rng()) } else { message });
        let mut bytes = Vec::with_capacity(encoded.total_bytes());
        encoded.slices().for_each(|slice| bytes.extend_from_slice(slice));
        if is_hostile {
            garbled(&mut bytes, self.network.rng());
        }
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

impl Swarm {
    fn replan(&mut self, seed: u64, without: Option<NodeId>) -> Result<(), SimError> {
        self.replanned = true;
        // A planner that made a plan nobody can follow is not what is tested here.
        if self.plans.replan(seed, without).is_err() {
            return Ok(());
        }
        let members = self.plans.newest().members.clone();
        for id in members {
            if self.gone.remove(&id) && !self.nodes.contains_key(&id) {
                self.leavers.remove(&id);
                // It comes back as a stranger, with nothing.
                self.disks.entry(id).or_default().wipe();
                let donated = self.donated(id);
                self.make(id, donated)?;
                self.connect(id)?;
            }
        }
        self.tell_someone()
    }

    fn rewire(&mut self, seed: u64) -> Result<(), SimError> {
        if self.plans.rewire(seed).is_err() {
            return Ok(());
        }
        self.tell_someone()
    }

    /// The newest plan reaches the first member that is there; the others hear of it from each other.
    fn tell_someone(&mut self) -> Result<(), SimError> {
        let plan = self.plans.newest();
        let generation = plan.generation;
        match plan.members.iter().copied().find(|id| self.nodes.contains_key(id)) {
            Some(id) => self.hand_in_plan(id, generation),
            None => Ok(()),
        }
    }

    fn fetch_plan(&mut self, id: NodeId, generation: Generation) {
        let process = self.processes.get(&id).copied().unwrap_or(0);
        let at = self.now + self.network.draw_between(self.config.network.delay);
        self.agenda.add(at, Happening::PlanFetched { id, process, generation });
    }

    fn hand_in_plan(&mut self, id: NodeId, generation: Generation) -> Result<(), SimError> {
        let (Some(plan), Some(node)) = (self.plans.newest_of(generation), self.nodes.get(&id)) else {
            return Ok(());
        };
        let (mine, version) = (node.config().generation, node.plan_version());
        if generation.replaces(&mine) && !plan.members.contains(&id) {
            return self.end(id);
        }
        let schedule = Arc::clone(&plan.schedule);
        if generation.replaces(&mine) {
            let rounds = self.config.rounds;
            let first = self.plans.find(generation, 0).map_or(schedule, |plan| Arc::clone(&plan.schedule));
            let ratio = if node.is_fresh() { None } else { self.donated(id) };
            let new = NewGeneration { generation, schedule: first, id, rounds, ratio };
            self.drained.insert(id, false);
            self.input(id, Input::Enter(Box::new(new)), Entry::Replanned, &generation.plan_hash)?;
        } else if generation == mine && plan.version > version {
            let rewiring = Rewiring { version: plan.version, schedule };
            let version = rewiring.version;
            self.input(id, Input::Rewire(rewiring), Entry::Replanned, &version.to_le_bytes())?;
        } else {
            return Ok(());
        }
        self.connect(id)
    }

    /// The ratio of the member that is furthest, for one that has fallen behind or has just come; its own if it is alone.
    fn donated(&mut self, to: NodeId) -> Option<Vec<f32>> {
        let is_donor = |(id, node): &(&NodeId, &mut Node)| **id != to && node.is_fresh();
        let furthest = self
            .nodes
            .iter_mut()
            .filter(is_donor)
            .max_by_key(|(id, node)| (node.config().generation.counter, node.step(), std::cmp::Reverse(**id)));
        let donor = furthest.map(|(id, _)| *id).unwrap_or(to);
        self.nodes.get_mut(&donor).map(|node| node.ratio().to_vec())
    }

    fn leave(&mut self, id: NodeId) -> Result<(), SimError> {
        self.replanned = true;
        self.leavers.insert(id);
        self.input(id, Input::Leave, Entry::Faulted, &[])
    }

    fn dismiss_removed(&mut self) -> Result<(), SimError> {
        let plan = self.plans.newest();
        let removed: Vec<NodeId> = self.nodes.keys().filter(|id| !plan.members.contains(id)).copied().collect();
        removed.into_iter().try_for_each(|id| self.end(id))
    }

    /// A node that leaves takes nothing along.
    fn check_leaver(&self, id: NodeId) -> Result<(), SimError> {
        match self.nodes.get(&id).filter(|node| node.has_left() && !node.mass().is_zero()) {
            Some(node) => Err(SimError::LeftWithMass { now: self.now, id, mass: node.mass() }),
            None => Ok(()),
        }
    }

    /// A process that is not needed any more ends.
    fn end(&mut self, id: NodeId) -> Result<(), SimError> {
        self.gone.insert(id);
        let killed = self.crashes;
        self.crash(id)?;
        self.crashes = killed;
        Ok(())
    }
}
