//! The host of a simulated swarm: every node is the production state machine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mingle_planner::Plan;
use mingle_protocol::record::HostState;
use mingle_protocol::sim::Agenda;
use mingle_protocol::{
    Effect, Input, Message, MomentumState, MomentumStep, Node, NodeConfig, NodeId, NodeState, Payload, Schedule, Time,
    TrainedRound, TrainingOverlap,
};

use super::attack::{self, Lie};
use super::courier::Courier;
use super::learners::NodeWork;
use super::{Conditions, NodeTraining, Received, RoundLengths, Rounds, SimulationError, Tally, Workers};

/// A slot in virtual time. A message takes the shortest time there is, a millionth of it.
const SLOT: Duration = Duration::from_secs(1);
const DELIVERY: Duration = Duration::from_micros(1);
/// The time after which the messages of a round's end have arrived or are lost: long before the next training ends.
const SETTLED: Duration = Duration::from_millis(500);
/// Later than all events.
const NEVER: Time = Time(u64::MAX);
/// The fewest parameters for which handling an input is worth a thread.
const WORTH_A_THREAD: usize = 1 << 16;
/// The most rounds for which a node waits for a neighbour.
const PATIENCE_ROUNDS: u32 = 4;

enum Happening {
    Arrival { from: NodeId, to: NodeId, message: Box<Message> },
    TrainingEnds(NodeId),
}

/// Training under way on a node, and its result once it was computed.
struct PendingTraining {
    round: u64,
    ends: Time,
    job: NodeWork,
    momentum: MomentumStep,
    delta: Option<Vec<f32>>,
}

/// A swarm of production nodes.
pub(crate) struct VirtualSwarm {
    nodes: Vec<Node>,
    lengths: RoundLengths,
    /// Rounds that train; later ones only mix.
    training_rounds: u64,
    /// The time at which the slowest node had done them.
    training_over: Option<Time>,
    /// Rounds to which the swarm goes on now. Parcels of later rounds that only mix are held back, since only training
    /// takes virtual time.
    target: u64,
    held_back: Vec<(NodeId, NodeId, Message)>,
    now: Time,
    agenda: Agenda<Happening>,
    /// The momentum across rounds, and its state on each node.
    momentum: f64,
    movements: Vec<MomentumState>,
    orders: BTreeMap<NodeId, PendingTraining>,
    courier: Courier,
    attackers: BTreeSet<NodeId>,
    lie: Option<Lie>,
    /// The last lie of each attacker, with its step: all parcels of a step carry the same.
    said: BTreeMap<NodeId, (u64, Payload)>,
}

impl VirtualSwarm {
    /// A swarm whose nodes all begin with `initial`, and are all connected from the start.
    ///
    /// # Errors
    /// The plan cannot be run.
    pub(crate) fn new(plan: &Plan, initial: &[f32], conditions: Conditions) -> Result<Self, SimulationError> {
        let schedule = Arc::new(mingle_solving::schedule(plan).map_err(SimulationError::Schedule)?);
        if conditions.overlap != TrainingOverlap::Off && !schedule.agrees_in_every_round() {
            return Err(SimulationError::NothingToOverlap);
        }
        let lengths = RoundLengths::of(plan);
        let nodes = (0..schedule.nodes()).map(|node| {
            let config = configure(NodeId(node as u32), &schedule, initial, &lengths, conditions);
            Node::new(config).map_err(SimulationError::Node)
        });
        let attackers = conditions.attack.map_or(0, |attack| attack.attackers);
        let training_rounds = |rounds| conditions.policy().training_rounds(&schedule, rounds);
        let mut swarm = Self {
            attackers: attack::attackers(schedule.nodes(), attackers, conditions.seed),
            lie: conditions.attack.map(|attack| attack.lie),
            said: BTreeMap::new(),
            nodes: nodes.collect::<Result<_, _>>()?,
            lengths,
            training_rounds: conditions.rounds.map_or(u64::MAX, training_rounds),
            training_over: None,
            target: 0,
            held_back: Vec::new(),
            now: Time::default(),
            agenda: Agenda::default(),
            momentum: conditions.momentum,
            movements: vec![MomentumState::default(); schedule.nodes()],
            orders: BTreeMap::new(),
            courier: Courier::new(conditions.loss, conditions.seed),
        };
        for id in swarm.ids() {
            let neighbours: Vec<NodeId> = swarm.nodes[id.index()].neighbours().collect();
            neighbours.into_iter().for_each(|peer| swarm.input(id, Input::LinkUp { peer }));
        }
        swarm.ids().for_each(|id| swarm.input(id, Input::Start));
        Ok(swarm)
    }

    fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// Rounds that the slowest node has done.
    fn rounds(&self) -> u64 {
        self.nodes.iter().map(Node::round).min().unwrap_or_default()
    }

    /// Processes the next alarm, or all events of the next instant. Returns `false` if there is none, or none before
    /// `limit`.
    fn happen(&mut self, training: &mut dyn NodeTraining, limit: Time) -> Result<bool, SimulationError> {
        let Some((at, alarm)) = self.agenda.next(self.now).filter(|(at, _)| *at < limit) else { return Ok(false) };
        self.now = at;
        if let Some(id) = alarm {
            self.input(id, Input::Tick);
            return Ok(true);
        }
        let mut inputs = Vec::new();
        while let Some(happening) = self.agenda.pop(at) {
            match happening {
                Happening::Arrival { from, to, message } => {
                    inputs.push((to, Input::Received { from, message: *message }));
                }
                Happening::TrainingEnds(id) => {
                    inputs.extend(self.end_training(id, training)?.map(|input| (id, input)));
                }
            }
        }
        self.input_all(inputs, training.workers())?;
        Ok(true)
    }

    fn end_training(&mut self, id: NodeId, training: &mut dyn NodeTraining) -> Result<Option<Input>, SimulationError> {
        if self.orders.get(&id).is_some_and(|order| order.delta.is_none()) {
            self.compute(training)?;
        }
        Ok(match self.orders.remove(&id) {
            Some(PendingTraining { round, job, momentum, delta: Some(mut delta), .. }) => {
                let trained = TrainedRound { number: round, pace: 1.0 };
                self.movements[id.index()].add_to(&mut delta, &job.from, trained, momentum);
                Some(Input::Trained { round, delta, steps: job.steps, state: HostState::default() })
            }
            _ => None,
        })
    }

    /// Passes all inputs of one instant to their nodes. Nodes do not see each other before the next instant, so each
    /// can work on a thread of its own; the effects are carried out in the order of the inputs.
    fn input_all(&mut self, inputs: Vec<(NodeId, Input)>, workers: Option<&Workers>) -> Result<(), SimulationError> {
        let Some(workers) = workers.filter(|_| self.nodes[0].dimension() >= WORTH_A_THREAD) else {
            inputs.into_iter().for_each(|(id, input)| self.input(id, input));
            return Ok(());
        };
        let now = self.now;
        let mut queues: Vec<Vec<(usize, Input)>> = self.nodes.iter().map(|_| Vec::new()).collect();
        for (place, (id, input)) in inputs.into_iter().enumerate() {
            queues[id.index()].push((place, input));
        }
        let busy = self.ids().zip(&mut self.nodes).zip(queues).filter(|(_, queue)| !queue.is_empty()).collect();
        let handled = workers.map(busy, |((id, node), queue)| {
            let handle = |(place, input)| (place, id, node.handle(now, input));
            Ok(queue.into_iter().map(handle).collect::<Vec<_>>())
        })?;
        let mut handled: Vec<_> = handled.into_iter().flatten().collect();
        handled.sort_unstable_by_key(|(place, ..)| *place);
        for (_, id, effects) in handled {
            let alarm = self.nodes[id.index()].next_deadline();
            self.agenda.set_alarm(id, alarm);
            effects.into_iter().for_each(|effect| self.carry_out(id, effect));
        }
        Ok(())
    }

    /// Computes all training that ends now, in parallel.
    fn compute(&mut self, training: &mut dyn NodeTraining) -> Result<(), SimulationError> {
        let now = self.now;
        let due = || move |order: &&mut PendingTraining| order.ends == now && order.delta.is_none();
        let jobs: Vec<NodeWork> = self
            .orders
            .values_mut()
            .filter(due())
            .map(|order| NodeWork { from: Arc::clone(&order.job.from), ..order.job })
            .collect();
        let deltas = training.train(&jobs)?;
        for (order, delta) in self.orders.values_mut().filter(due()).zip(deltas) {
            order.delta = Some(delta);
        }
        Ok(())
    }

    fn input(&mut self, id: NodeId, input: Input) {
        let node = &mut self.nodes[id.index()];
        let effects = node.handle(self.now, input);
        let alarm = node.next_deadline();
        self.agenda.set_alarm(id, alarm);
        for effect in effects {
            self.carry_out(id, effect);
        }
    }

    /// The parcel of an attacker: its weight is that of its books, its ratio is the lie.
    fn falsified(&mut self, id: NodeId, message: Message) -> Message {
        let (Message::Parcel(mut parcel), Some(lie)) = (message.clone(), self.lie) else { return message };
        let step = parcel.header.step;
        if self.said.get(&id).is_none_or(|(said, _)| *said != step) {
            let honest = if matches!(lie, Lie::Little(_)) { self.models() } else { Vec::new() };
            if let Some(payload) = attack::lie(lie, &parcel.payload.values(), &honest) {
                self.said.insert(id, (step, payload));
            }
        }
        if let Some((_, payload)) = self.said.get(&id).filter(|(said, _)| *said == step) {
            parcel.payload = payload.clone();
        }
        Message::Parcel(parcel)
    }

    /// Slots that have passed. Only training takes virtual time, so those of the rounds that only mix are added.
    fn slots(&self) -> u64 {
        let closing: u64 = (self.training_rounds..self.rounds()).map(|round| self.lengths.of_round(round)).sum();
        self.training_over.unwrap_or(self.now).micros() / SLOT.as_micros() as u64 + closing
    }

    /// The parcels that honest nodes received.
    fn received(&self) -> Received {
        let mut received = Received::default();
        for node in self.nodes.iter().filter(|node| !self.attackers.contains(&node.id())) {
            for neighbour in node.neighbour_views() {
                let Some(link) = neighbour.incoming else { continue };
                let (parcels, clipped) = if self.attackers.contains(&neighbour.id) {
                    (&mut received.from_attackers, &mut received.clipped_from_attackers)
                } else {
                    (&mut received.from_honest, &mut received.clipped_from_honest)
                };
                *parcels += link.parcels;
                *clipped += link.clipped.parcels;
            }
        }
        received
    }

    /// Returns `true` for a parcel of a round that only mixes and is later than the one to which the swarm goes on.
    fn is_early(&self, message: &Message) -> bool {
        let Message::Parcel(parcel) = message else { return false };
        let round = parcel.header.step / self.nodes[0].config().schedule.round_length();
        round >= self.training_rounds.max(self.target)
    }

    /// Sends a message, which arrives or is lost.
    fn send(&mut self, from: NodeId, to: NodeId, message: Message) {
        if self.courier.carries(&message) {
            self.agenda.add(self.now + DELIVERY, Happening::Arrival { from, to, message: Box::new(message) });
        }
    }

    fn carry_out(&mut self, id: NodeId, effect: Effect) {
        match effect {
            Effect::Send { to, message } => {
                let message = if self.attackers.contains(&id) { self.falsified(id, message) } else { message };
                if self.is_early(&message) {
                    self.held_back.push((id, to, message));
                } else {
                    self.send(id, to, message);
                }
            }
            Effect::Train { round, from, local_steps, rounds_left, last_factor, .. } => {
                let ends = self.now + SLOT * u32::try_from(self.lengths.of_round(round)).unwrap_or(u32::MAX);
                let job = NodeWork { node: id.index(), round, from, steps: local_steps, rounds_left, last_factor };
                let node = &self.nodes[id.index()];
                let schedule = &node.config().schedule;
                let weight = schedule.stationary_weight(id, round * schedule.round_length());
                let momentum = MomentumStep { momentum: self.momentum, weight, restarts: false };
                self.orders.insert(id, PendingTraining { round, ends, job, momentum, delta: None });
                self.agenda.add(ends, Happening::TrainingEnds(id));
            }
            // There are no records, and reports are not read.
            Effect::Persist(_) | Effect::Reserve(_) | Effect::Renew { .. } | Effect::Report(_) | Effect::Drained => {}
        }
    }
}

impl Rounds for VirtualSwarm {
    fn advance(&mut self, rounds: u64, training: &mut dyn NodeTraining) -> Result<(), SimulationError> {
        self.target = rounds;
        for (from, to, message) in std::mem::take(&mut self.held_back) {
            if self.is_early(&message) {
                self.held_back.push((from, to, message));
            } else {
                self.send(from, to, message);
            }
        }
        while self.rounds() < rounds {
            let stuck = self.nodes.iter().all(|node| node.state() == NodeState::Drained);
            if stuck || !self.happen(training, NEVER)? {
                return Err(SimulationError::StandsStill { round: self.rounds() });
            }
            if self.rounds() >= self.training_rounds {
                self.training_over.get_or_insert(self.now);
            }
        }
        let settled = self.now + SETTLED;
        while self.happen(training, settled)? {}
        Ok(())
    }

    fn models(&mut self) -> Vec<Arc<[f32]>> {
        let attackers = &self.attackers;
        let honest = self.nodes.iter_mut().filter(|node| !attackers.contains(&node.id()));
        honest.map(Node::ratio).collect()
    }

    fn tally(&self) -> Tally {
        Tally {
            slots: self.slots(),
            link_bytes: self.courier.link_bytes,
            parcels: self.courier.parcels,
            lost_parcels: self.courier.lost_parcels,
            weight: self.nodes.iter().map(Node::w).sum(),
            received: self.received(),
        }
    }
}

fn configure(
    id: NodeId,
    schedule: &Arc<Schedule>,
    initial: &[f32],
    lengths: &RoundLengths,
    conditions: Conditions,
) -> NodeConfig {
    let round = SLOT * u32::try_from(lengths.of_round(0)).unwrap_or(u32::MAX);
    // Without a length the caller decides when to stop.
    let rounds = conditions.rounds.unwrap_or(u64::MAX >> 24);
    let mut config = NodeConfig::new(id, Arc::clone(schedule), initial.to_vec(), rounds);
    config.policy = conditions.policy();
    config.codec = conditions.codec;
    config.robust = conditions.robust;
    config.overlap = conditions.overlap;
    config.ends_with_mean = conditions.ends_with_mean;
    config.deadline_floor = PATIENCE_ROUNDS * round;
    config.heartbeat = 2 * round;
    // Lost messages are sent again with the next round.
    config.retransmit_after = (conditions.loss > 0.0).then_some(round);
    config
}
