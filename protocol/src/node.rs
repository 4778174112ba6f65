//! One node of a push-sum swarm, as a state machine without clock, network, threads or randomness.
//!
//! ```text
//!   Gathering --all neighbours greeted--> Running --last round, or Stop--> Draining --> Drained
//!
//!   Running, one step:   [train, at the start of a round]
//!                        wait for window room -> split and send -> wait for in-parcels -> absorb
//! ```
//!
//! [`Node::handle`] dispatches an input to its handler, then lets the node advance as far as it can. The handlers live
//! beside this file:
//!
//! - steps: `phase` (what the node waits for), `round` (the parts of a step), `pace` (neighbours it waits for),
//!   `progress` (how far neighbours are), `patience` (late neighbours it waits for again), `exchange` (messages),
//!   `parcels`, `liveness` (links and timers);
//! - training: `training` (ordered and awaited), `overlap` (while the round before is mixed), `own_pace` (its time
//!   limit), `step_guard` (the part of a local step that is applied), `held_back` (the part that waits for weight),
//!   `norm_guard` (the largest norm);
//! - coding: `references` (differences to vectors that neighbours have too);
//! - defence: `robust_receiving` (clipped ratios), `credit` (the weight a neighbour may hold), `weight_floor` (the weight
//!   that a node keeps), `room` (the weight that there can be), `mass_watch` (alarms about mass), `processes` (one process
//!   per key), `contradiction` (neighbours whose books differ);
//! - state: `membership` (generations), `departure`, `drain`, `commit` (records).

mod account;
mod belief;
mod commit;
mod contradiction;
mod credit;
mod departure;
mod drain;
mod exchange;
mod held_back;
mod in_distances;
mod ledger;
mod liveness;
mod mass_watch;
mod membership;
mod neighbour_view;
mod norm_guard;
mod overlap;
mod own_pace;
mod pace;
mod parcels;
mod patience;
mod peer;
mod phase;
mod processes;
mod progress;
mod recent_flow;
mod references;
mod refusals;
mod robust_receiving;
mod room;
mod round;
mod send_gate;
mod step_guard;
mod training;
mod weight_floor;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::config::{NodeConfig, NodeError, WaitPolicy};
use crate::effect::{Effect, NodeEvent};
use crate::injected_bug::InjectedBug;
use crate::input::Input;
use crate::mass::Mass;
use crate::message::Message;
use crate::push_sum::PushSum;
use crate::round_clock::RoundClock;
use crate::schedule::NodeId;
use crate::time::Time;
use account::{Account, Flows};
use belief::Belief;
use commit::Commits;
use credit::Credit;
use departure::Departures;
use held_back::HeldBack;
use in_distances::InDistances;
use mass_watch::MassWatch;
use membership::Asked;
pub use membership::STALEST_ROUNDS;
pub use neighbour_view::{AccountView, IncomingView, NeighbourView, OutgoingView};
use norm_guard::NormGuard;
use own_pace::OthersPace;
use patience::{NeighbourPatience, Renewal};
use peer::{Neighbour, neighbours};
pub use phase::NodeState;
use phase::{Phase, Wait};
use processes::{Processes, ToldProcesses};
use refusals::Refusals;
use room::Part;
use round::RoundTally;
use send_gate::SendGate;
use step_guard::UsualSteps;
pub use step_guard::pace_factor;
use training::{TrainedChange, TrainingState};
use weight_floor::WeightFloor;

/// One node of a swarm: a function from inputs to effects.
///
/// A host keeps one rule: carry out the effects in order, and hand in what happens. The smallest host wires two nodes
/// back to back, and they agree on the average of 0 and 8:
///
/// ```
/// use std::{collections::VecDeque, sync::Arc};
/// use mingle_protocol::{Effect, Input, Node, NodeConfig, NodeId, Schedule, Step, Time};
///
/// let (a, b) = (NodeId(0), NodeId(1));
/// let step = Step { keep: vec![0.5, 0.5], links: vec![(a, b, 0.5), (b, a, 0.5)] };
/// let schedule = Arc::new(Schedule::new(2, &[step], 0)?);
/// let mut nodes = [
///     Node::new(NodeConfig::new(a, Arc::clone(&schedule), vec![0.0], 10))?,
///     Node::new(NodeConfig::new(b, schedule, vec![8.0], 10))?,
/// ];
/// let mut inputs = VecDeque::from([
///     (a, Input::Start),
///     (b, Input::Start),
///     (a, Input::LinkUp { peer: b }),
///     (b, Input::LinkUp { peer: a }),
/// ]);
/// while let Some((id, input)) = inputs.pop_front() {
///     for effect in nodes[id.index()].handle(Time::default(), input) {
///         if let Effect::Send { to, message } = effect {
///             inputs.push_back((to, Input::Received { from: id, message }));
///         }
///     }
/// }
/// assert_eq!(*nodes[0].ratio(), [4.0]);
/// assert_eq!(*nodes[1].ratio(), [4.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Node {
    config: NodeConfig,
    push_sum: PushSum,
    peers: BTreeMap<NodeId, Neighbour>,
    phase: Phase,
    /// Steps completed, which is the global number of the present one.
    step: u64,
    /// Set when the present step's sends are done.
    split_done: bool,
    /// Set when the node has skipped steps of its present plan.
    has_skipped_steps: bool,
    last_step: u64,
    /// The latest instant at which a step was completed, and the number of steps completed then.
    steps_now: (Time, u32),
    started: bool,
    stopping: bool,
    clock: RoundClock,
    tally: RoundTally,
    training: TrainingState,
    send_gate: SendGate,
    usual_steps: UsualSteps,
    held_back: HeldBack,
    norm_guard: NormGuard,
    others_pace: OthersPace,
    rounds_trained_ahead: u64,
    mass_watch: MassWatch,
    credit: Credit,
    weight_floor: WeightFloor,
    refusals: Refusals,
    /// Mass this life brought into the swarm.
    brought: Mass,
    /// Set when the node was resumed from a record.
    resumed: bool,
    commits: Commits,
    /// The generation whose plan was last requested.
    asked: Option<Asked>,
    /// Set when the node gives all its mass away before it ends.
    quitting: bool,
    departures: Departures,
    processes: Processes,
    now: Time,
    effects: Vec<Effect>,
}

impl Node {
    /// A node that has not started. A founder (incarnation 1) holds mass 1 at the initial ratio; a later incarnation
    /// holds none and takes part again once its neighbours send it some.
    ///
    /// # Errors
    /// [`NodeError`] names the part of the configuration that is wrong.
    pub fn new(mut config: NodeConfig) -> Result<Self, NodeError> {
        config.check()?;
        let brought = if config.identity.incarnation == 1 { Mass::ONE } else { Mass::ZERO };
        let initial = std::mem::take(&mut config.initial);
        let last_step = config.rounds * config.schedule.round_length();
        let peers = neighbours(&config);
        let mut node = Self {
            push_sum: PushSum::new(initial, brought),
            credit: Credit::default(),
            weight_floor: WeightFloor::default(),
            peers,
            phase: Phase::Gathering { give_up_at: None },
            step: 0,
            split_done: false,
            has_skipped_steps: false,
            last_step,
            steps_now: (Time::default(), 0),
            started: false,
            stopping: false,
            clock: RoundClock::new(config.deadline_floor),
            tally: RoundTally::default(),
            training: TrainingState::default(),
            send_gate: SendGate::new(config.policy),
            usual_steps: UsualSteps::default(),
            held_back: HeldBack::default(),
            norm_guard: NormGuard::default(),
            others_pace: OthersPace::default(),
            rounds_trained_ahead: 0,
            mass_watch: MassWatch::default(),
            refusals: Refusals::default(),
            brought,
            resumed: false,
            commits: Commits::with_slots(config.record_slots),
            asked: None,
            quitting: false,
            departures: Departures::default(),
            processes: Processes::default(),
            now: Time::default(),
            effects: Vec::new(),
            config,
        };
        if node.keeps_references() {
            // Members of one task mostly begin with one model.
            node.push_sum.refer_to_ratio();
        }
        Ok(node)
    }

    /// Handles one input at `now` and returns the effects to carry out, in order.
    ///
    /// Time never runs backwards: an earlier `now` counts as the latest one seen.
    pub fn handle(&mut self, now: Time, input: Input) -> Vec<Effect> {
        self.note_standstill(now);
        self.now = self.now.max(now);
        match input {
            Input::Start => self.on_start(),
            Input::LinkUp { peer } => self.on_link_up(peer),
            Input::LinkDown { peer } => self.on_link_down(peer),
            Input::Gone { peer } => self.on_gone(peer),
            Input::Received { from, message } => self.on_message(from, message),
            Input::Trained { round, delta, steps, state } => {
                self.on_trained(round, TrainedChange { delta, steps, state });
            }
            Input::Untrained { round } => self.on_untrained(round),
            Input::Persisted { number } => self.on_persisted(number),
            Input::Reserved { slots } => self.on_reserved(slots),
            Input::Tick => self.on_tick(),
            Input::Enter(new) => self.on_enter(*new),
            Input::Stop => self.on_stop(),
            Input::Leave => self.on_leave(),
        }
        self.advance();
        self.settle();
        self.send_owed_acks();
        std::mem::take(&mut self.effects)
    }

    /// The time at which the node needs the next [`Input::Tick`], if no input comes before.
    pub fn next_deadline(&self) -> Option<Time> {
        let phase = match self.phase {
            Phase::Gathering { give_up_at } => give_up_at.filter(|at| self.started && *at > self.now),
            // Only the disk can end this wait.
            Phase::AwaitingRoom(_) if self.commits.is_pending() => None,
            Phase::AwaitingRoom(wait) => Some(wait.deadline),
            Phase::AwaitingParcels(wait) => {
                let pace = Some(self.pace_of_the_others()).filter(|at| *at > self.now);
                let grace = Some(self.grace_ends(wait)).filter(|at| *at > self.now);
                let may_go_on = self.config.policy != WaitPolicy::Sync;
                let step = Some(self.usual_step_ends(wait)).filter(|at| may_go_on && *at > self.now);
                pace.into_iter().chain(grace).chain(step).chain([wait.deadline]).min()
            }
            // Once past, only a neighbour's message or the disk can still end the draining.
            Phase::Draining { give_up_at, end_at } => [give_up_at, end_at].into_iter().find(|at| *at > self.now),
            Phase::Training { give_up_at } => give_up_at.into_iter().chain(self.keeps_up_until()).min(),
            Phase::BeforeStep | Phase::Drained => None,
        };
        phase.into_iter().chain(self.link_deadlines()).min()
    }

    /// This node's index in the plan.
    pub fn id(&self) -> NodeId {
        self.config.id
    }

    /// The configuration given to `Node::new`, with `initial` empty.
    pub fn config(&self) -> &NodeConfig {
        &self.config
    }

    /// The mass the node holds.
    pub fn mass(&self) -> Mass {
        self.push_sum.mass()
    }

    /// The weight w the node holds; 1 on average over the swarm.
    pub fn w(&self) -> f64 {
        self.mass().to_f64()
    }

    /// The ratio z = x / w, `[dimension]`; the last one formed while the node holds no mass.
    pub fn ratio(&mut self) -> Arc<[f32]> {
        self.push_sum.ratio()
    }

    /// The numerator x, `[dimension]`: summed over the swarm and its parcels it is conserved up to rounding.
    pub fn numerator(&self) -> &[f32] {
        self.push_sum.numerator()
    }

    /// The number of coordinates.
    pub fn dimension(&self) -> usize {
        self.push_sum.dimension()
    }

    /// The present round, from 0.
    pub fn round(&self) -> u64 {
        self.step / self.config.schedule.round_length()
    }

    /// Global steps completed.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// The stage of the node's life.
    pub fn state(&self) -> NodeState {
        self.phase.state()
    }

    /// Neighbours without greetings in both directions that have not left, ascending.
    pub fn missing_neighbours(&self) -> Vec<NodeId> {
        self.peers.values().filter(|peer| !peer.mutual && !peer.left).map(|peer| peer.id).collect()
    }

    /// All neighbours in the plan, ascending.
    pub fn neighbours(&self) -> impl Iterator<Item = NodeId> {
        self.peers.keys().copied()
    }

    fn report(&mut self, event: NodeEvent) {
        self.effects.push(Effect::Report(event));
    }

    fn send(&mut self, to: NodeId, message: Message) {
        if let Some(peer) = self.peers.get_mut(&to) {
            peer.sent_at = self.now;
        }
        self.effects.push(Effect::Send { to, message });
    }

    fn has(&self, bug: InjectedBug) -> bool {
        self.config.injected.is(bug)
    }

    /// Returns `true` if the present round is one of the last, which mix without training.
    fn is_closing(&self) -> bool {
        self.round() >= self.training_rounds()
    }

    /// Rounds of the plan that train: all but the last ones.
    fn training_rounds(&self) -> u64 {
        let NodeConfig { closes, rounds, schedule, policy, .. } = &self.config;
        if *closes { policy.training_rounds(schedule, *rounds) } else { *rounds }
    }

    /// Steps whose sends are done.
    fn passed(&self) -> u64 {
        self.step + u64::from(self.split_done)
    }

    fn is_leaving(&self) -> bool {
        matches!(self.phase, Phase::Draining { .. } | Phase::Drained)
    }
}
