//! The host of a simulation: its nodes, their agenda, and virtual time.

mod disks;
mod effects;
mod faults;
mod links;
mod membership;
mod processes;
mod views;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use super::agenda::Agenda;
use super::config::SwarmConfig;
use super::conservation::Conservation;
use super::disk::Disk;
use super::durable_ledger::DurableLedger;
use super::error::SimError;
use super::fault::Fault;
use super::learning::Learning;
use super::misconduct::Misconduct;
use super::network::SimulatedNetwork;
use super::plans::Plans;
use super::trace::{Entry, Trace};
use crate::config::Durability;
use crate::effect::NodeEvent;
use crate::injected_bug::InjectedBug;
use crate::input::Input;
use crate::message::Generation;
use crate::node::Node;
use crate::record::HostState;
use crate::schedule::NodeId;
use crate::time::Time;
use crate::wire::MessageReader;

enum Happening {
    Delivery { from: NodeId, to: NodeId, connection: u64, sending: u64, bytes: Arc<[u8]> },
    Trained { id: NodeId, process: u64, round: u64, delta: Vec<f32>, steps: u32 },
    Written { id: NodeId, process: u64 },
    Persisted { id: NodeId, process: u64, number: u64 },
    Reserved { id: NodeId, process: u64 },
    PlanFetched { id: NodeId, process: u64, generation: Generation },
    Fault(Fault),
}

/// A way to lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    /// Arbitrary messages.
    Anything,
    /// Messages that pass every check.
    Within(Misconduct),
}

/// A swarm under simulation.
pub struct SimulatedSwarm {
    config: SwarmConfig,
    now: Time,
    nodes: BTreeMap<NodeId, Node>,
    /// The number of processes that each node has had.
    processes: BTreeMap<NodeId, u64>,
    paused_until: BTreeMap<NodeId, Time>,
    /// Messages sent so far.
    sendings: u64,
    /// Their bytes.
    sent_bytes: u64,
    disks: BTreeMap<NodeId, Disk>,
    durable_ledger: DurableLedger,
    disk_checks: u64,
    /// This generation and those before it do not add up: a disk has lost something in them, or a member lies.
    void: Option<Generation>,
    /// The generations in which nodes found out that they had been rolled back.
    rolled_back_in: BTreeSet<u64>,
    unreadable: u64,
    /// Members that lie, and how.
    hostile: BTreeMap<NodeId, Lie>,
    plans: Plans,
    leavers: BTreeSet<NodeId>,
    /// Nodes that left, or were left out of a plan.
    gone: BTreeSet<NodeId>,
    drained: BTreeMap<NodeId, bool>,
    agenda: Agenda<Happening>,
    network: SimulatedNetwork,
    conservation: Conservation,
    learning: Learning,
    trace: Trace,
    events: Vec<(Time, NodeId, NodeEvent)>,
    events_now: u32,
    crashes: u64,
}

impl fmt::Debug for SimulatedSwarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Swarm").field("config", &self.config).field("now", &self.now).finish_non_exhaustive()
    }
}

impl SimulatedSwarm {
    /// A swarm of founders, all of whose links come up at time zero.
    ///
    /// # Errors
    /// [`SimError::Node`] when the configuration makes no node, [`SimError::Injection`] when it wants a bug that is not
    /// built in.
    pub fn new(config: SwarmConfig) -> Result<Self, SimError> {
        let bugs = config.injected_in.values().copied().chain(config.injected_bug);
        InjectedBug::check_built_in(bugs.last())?;
        let nodes = config.schedule.nodes();
        let mut swarm = Self {
            now: Time::default(),
            nodes: BTreeMap::new(),
            processes: BTreeMap::new(),
            paused_until: BTreeMap::new(),
            sendings: 0,
            sent_bytes: 0,
            disks: BTreeMap::new(),
            durable_ledger: DurableLedger::default(),
            disk_checks: 0,
            void: None,
            rolled_back_in: BTreeSet::new(),
            unreadable: 0,
            hostile: BTreeMap::new(),
            plans: Plans::new(Arc::clone(&config.schedule)),
            leavers: BTreeSet::new(),
            gone: BTreeSet::new(),
            drained: BTreeMap::new(),
            agenda: Agenda::default(),
            network: SimulatedNetwork::new(config.network.clone(), config.seed),
            conservation: Conservation::new(config.durability == Durability::On),
            learning: Learning::default(),
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

    /// Schedules a fault at a time to come.
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

    /// Serves the next event or alarm and returns `true`, unless it lies beyond `limit`.
    fn step(&mut self, limit: Time) -> Result<bool, SimError> {
        let Some((at, alarm)) = self.agenda.next(self.now).filter(|(at, _)| *at <= limit) else {
            return Ok(false);
        };
        self.events_now = if at > self.now { 0 } else { self.events_now + 1 };
        self.now = at;
        match alarm {
            Some(id) => self.input(id, Input::Tick, Entry::Ticked, &[])?,
            None => {
                if let Some(what) = self.agenda.pop(at) {
                    self.happen(what)?;
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
                self.deliver(from, to, sending, &bytes)
            }
            Happening::Trained { id, process, round, delta, steps } => {
                if !self.is_alive(id, process) {
                    return Ok(());
                }
                self.input(
                    id,
                    Input::Trained { round, delta, steps, state: HostState::default() },
                    Entry::Trained,
                    &round.to_le_bytes(),
                )
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

    /// Hands a node the messages in these bytes of another.
    fn deliver(&mut self, from: NodeId, to: NodeId, sending: u64, bytes: &[u8]) -> Result<(), SimError> {
        let now = self.now;
        let mut reader = MessageReader::new(self.config.initial[to.index()].len());
        let messages = match reader.feed(bytes) {
            Ok(messages) => messages,
            Err(_) if self.hostile.contains_key(&from) => return self.break_stream(from, to),
            Err(error) => return Err(SimError::Wire { now, from, to, error }),
        };
        for message in messages {
            // The bytes are part of the trace since they were sent.
            self.input(to, Input::Received { from, message }, Entry::Delivered, &sending.to_le_bytes())?;
        }
        Ok(())
    }

    /// The time when a paused process can take an event; a disk does not need its process.
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
}
