//! The event loop around one node: the only clock, and the only place where the node's effects are carried out.

mod divergence;
mod encodings;
mod ending;
mod missing;
mod neighbours;
mod ordering;
mod replanning;
mod reports;
mod steering;
mod waking;
mod watching;

pub(crate) use ending::before_the_model;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use libp2p::identity::Keypair;
use mingle_net::neighbour_table::LinkChange;
use mingle_net::traffic::Traffic;
use mingle_protocol::record::{HostState, Recovered};
use mingle_protocol::{Effect, Generation, Input, Node, NodeConfig, NodeEvent, NodeId, NodeState, RoundReport, Time};
use mingle_status::warnings::Source;

use crate::error::{Context, ErrorKind, Result};
use crate::event_loop::{EventReceivers, LoopEvent};
use crate::events::Event;
use crate::follow::serving::Followers;
use crate::member::Member;
use crate::membership::{EndWish, NoiseOfPeer};
use crate::place::Place;
use crate::records::{Ending, RecordWriter, Room, Written};
use crate::results::MetricsOf;
use crate::task::Advice;
use crate::timeline::{IdleTime, Timeline};
use crate::training::thread::{TrainingOrders, TrainingThread};
use crate::training::{BestModel, Evaluation, MomentumOfPeer, PrivacySpending};
use divergence::Divergence;
use ending::FinalEvaluation;
use missing::MissingNeighbours;
use waking::sleep_until;
use watching::Watching;

/// Interval between checks for missing neighbours.
const LOOK_FOR_MISSING: Duration = Duration::from_secs(1);
/// Interval of notices to the user while neighbours are missing.
const WAITING_NOTICE: Duration = Duration::from_secs(5);

/// The result of a run.
pub(crate) struct Finished {
    /// The node, with its model and its ledger.
    pub node: Node,
    /// Its place in the last plan that it followed.
    pub place: Place,
    /// The test evaluation of the final model, unless `metrics_of` names another.
    pub evaluation: Evaluation,
    /// Subject of the evaluation, where it was not the final model on all samples.
    pub metrics_of: Option<MetricsOf>,
    /// The keeper of the best model, where one is kept.
    pub best: Option<BestModel>,
    /// Privacy spent so far, where changes are private.
    pub privacy: Option<PrivacySpending>,
    /// The momentum across rounds.
    pub momentum: MomentumOfPeer,
    /// `true` if the user stopped it, and it goes on when it is started again.
    pub was_stopped: bool,
    /// Rounds completed.
    pub rounds: u64,
    /// Rounds of these that this peer skipped.
    pub skipped: u64,
    /// Traffic over all links of all plans that this process followed.
    pub traffic: Traffic,
    /// The end of the run, for a later start; `None` where the records are still needed.
    pub ending: Option<Ending>,
    /// The timeline that this process recorded.
    pub(crate) timeline: Timeline,
    /// Those who follow this peer's model.
    pub(crate) followers: Followers,
}

/// The parts of a driver, besides those of every member of a plan.
pub(crate) struct DriverParts {
    /// The node's configuration, without the initial model once the node has it; neighbours may raise its incarnation.
    pub config: NodeConfig,
    /// This peer's key, for plans to come.
    pub keypair: Keypair,
    /// Set when the peer starts only to leave.
    pub leaves: bool,
    /// Rounds of the task. A plan may begin after the first round, and end at another number of rounds.
    pub rounds: u64,
    pub training: TrainingThread,
    /// The momentum across rounds.
    pub momentum: MomentumOfPeer,
    /// The training's state of an earlier run; empty if it begins without one.
    pub taken_along: HostState,
    /// The largest training state in a record, in bytes.
    pub largest_state: usize,
    /// `None` without records.
    pub records: Option<RecordWriter>,
    pub evaluate_every: u64,
    /// Privacy spent before, where changes are private.
    pub privacy: Option<PrivacySpending>,
    /// `true` if the initial model is a model of the swarm, as of its records or its members: others that need one get it,
    /// also before this peer has met a neighbour.
    pub begins_with_a_model_of_the_swarm: bool,
    /// Hints for a user whose peer does not fit the swarm, or diverges.
    pub advice: Advice,
    /// The keeper of the best model, where one is kept.
    pub best: Option<BestModel>,
    /// The wish of this peer's user for the end of the swarm's training.
    pub end_wish: EndWish,
}

/// A model under evaluation while the rounds go on.
struct UnderEvaluation {
    /// Rounds over at that model.
    rounds: u64,
    /// Report of the last of these rounds.
    report: RoundReport,
    /// `[dimension]`.
    model: Arc<[f32]>,
}

/// The event loop and its state.
pub(crate) struct Driver<'a> {
    member: Member<'a>,
    parts: DriverParts,
    node: Node,
    rounds: u64,
    train_loss: Option<f64>,
    /// The training under way.
    training: TrainingOrders,
    evaluating: Option<UnderEvaluation>,
    final_evaluation: Option<FinalEvaluation>,
    /// The last evaluation of an earlier model, and the rounds before it.
    last_evaluation: Option<(u64, Evaluation)>,
    watching: Watching,
    waits: IdleTime,
    divergence: Divergence,
    joined: bool,
    missing: MissingNeighbours,
    stopping: bool,
    drained: bool,
    /// The generation of the plan for which a model is being fetched.
    fetching: Option<Generation>,
    /// Set when neighbours did not answer at the end, and may still need this peer.
    gave_up: bool,
    /// The number of the last record that the node ordered.
    last_record: u64,
    /// Rounds over when the present plan began.
    first_round: u64,
    /// The model with which the run began, during its first round.
    first_model: Option<Arc<[f32]>>,
    /// The noise that members share under the present plan.
    noise: NoiseOfPeer,
}

impl<'a> Driver<'a> {
    /// A driver that has not begun. Its node goes on from the recovered state, if there is one.
    pub(crate) fn new(member: Member<'a>, mut parts: DriverParts, recovered: Option<Recovered>) -> Result<Self> {
        let last_record = recovered.as_ref().map_or(0, |recovered| recovered.record.books.number);
        // The node has the model from here on: it is large, and not kept twice.
        let initial = std::mem::take(&mut parts.config.initial);
        let node = match recovered {
            None => build(&parts.config, initial)?.with_host_state(parts.taken_along.clone()),
            Some(Recovered { record, payloads, .. }) => {
                Node::resume(with_model(&parts.config, initial), record, &payloads)
                    .context(ErrorKind::Refused, "this peer cannot go on from its records")?
            }
        };
        let first_round = member.connections.place.plan.first_round();
        let mut driver = Self {
            watching: Watching::new(&member.connections.place.peers),
            missing: MissingNeighbours::new(member.started.elapsed()),
            member,
            parts,
            rounds: first_round + node.round(),
            node,
            train_loss: None,
            training: TrainingOrders::default(),
            evaluating: None,
            waits: IdleTime::default(),
            divergence: Divergence::default(),
            final_evaluation: None,
            last_evaluation: None,
            joined: false,
            stopping: false,
            drained: false,
            fetching: None,
            gave_up: false,
            last_record,
            first_round,
            first_model: None,
            noise: NoiseOfPeer::default(),
        };
        driver.renew_noise();
        Ok(driver)
    }

    /// Runs until the node has drained and its final model is evaluated.
    ///
    /// # Errors
    /// The neighbours refused this peer for good, training failed, the swarm holds no weight, or the user insisted on
    /// stopping at once.
    pub(crate) async fn run(mut self, receivers: &mut EventReceivers) -> Result<Finished> {
        if let Err(failure) = self.take_part(receivers).await {
            self.show_now();
            if failure.is(ErrorKind::Refused) {
                self.take_leave(receivers).await;
            }
            return Err(failure);
        }
        self.show();
        self.linger(receivers).await?;
        if self.node.has_left() {
            self.member.log.tell(Event::Left);
        }
        let (evaluation, metrics_of) = self.evaluate_final(receivers).await?;
        self.show_end(&evaluation);
        let best = self.parts.best.take();
        let ending = self.close_books(receivers)?;
        self.member.connections.end().await;
        let traffic = self.member.traffic();
        let skipped = self.member.skipped_rounds.total;
        let Member { connections, timeline, followers, .. } = self.member;
        Ok(Finished {
            was_stopped: self.stopping && !self.node.has_left(),
            node: self.node,
            place: connections.place,
            evaluation,
            metrics_of,
            best,
            privacy: self.parts.privacy,
            momentum: self.parts.momentum,
            rounds: self.rounds,
            skipped,
            traffic,
            ending,
            timeline,
            followers,
        })
    }

    /// Number of rounds at which training is done.
    fn last_round(&self) -> u64 {
        self.member.connections.place.plan.last_round(self.parts.rounds)
    }

    /// Takes part in the swarm until the node has drained.
    async fn take_part(&mut self, receivers: &mut EventReceivers) -> Result {
        self.tell_encodings();
        self.feed(Input::Start)?;
        let mut notice = tokio::time::interval(WAITING_NOTICE);
        let mut look = tokio::time::interval(LOOK_FOR_MISSING);
        notice.tick().await;
        look.tick().await;
        while !self.drained {
            self.show();
            tokio::select! {
                event = receivers.next() => self.on_event(event?, receivers).await?,
                () = sleep_until(self.wake_at()) => self.feed(Input::Tick)?,
                () = sleep_until(self.shows_again_at()) => {}
                _ = notice.tick() => self.notice_waiting(),
                _ = look.tick(), if !self.joined => self.look_for_the_missing(),
            }
        }
        Ok(())
    }

    async fn on_event(&mut self, event: LoopEvent, receivers: &mut EventReceivers) -> Result {
        match event {
            LoopEvent::Edge(event) => self.on_edge(event),
            LoopEvent::Network(event) => {
                self.on_network(&event);
                Ok(())
            }
            LoopEvent::Wanted(wanted) => self.on_wanted(wanted, receivers).await,
            LoopEvent::Stop(reason) => self.on_stop(&reason),
            LoopEvent::Request(request) => self.on_request(request),
            LoopEvent::Answer(answer) => self.on_answer(answer),
            LoopEvent::Written(written) => self.on_written(written),
        }
    }

    /// Gives one input to the node and carries out its effects in order; inputs that result from them come after.
    fn feed(&mut self, input: Input) -> Result {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            for effect in self.node.handle(self.now(), input) {
                inputs.extend(self.carry_out(effect)?);
            }
        }
        let is_waiting = matches!(self.node.state(), NodeState::AwaitingParcels | NodeState::AwaitingRoom);
        self.waits.look(is_waiting, &self.member.timeline);
        Ok(())
    }

    /// Carries out an effect. Returns the input for the node that results from it, if any.
    fn carry_out(&mut self, effect: Effect) -> Result<Option<Input>> {
        match effect {
            Effect::Send { to, message } => {
                if !self.member.connections.links.send(to, message) {
                    let sentence = format!("node {to} does not keep up: its streams are opened anew");
                    self.member.warn_of(Source::Neighbour(to), sentence);
                    return Ok(link_input(to, self.member.connections.links.drop_streams(to)));
                }
            }
            order @ Effect::Train { .. } => self.order_training(order)?,
            Effect::Persist(record) => {
                self.last_record = record.books.number;
                if let Some(records) = &self.parts.records {
                    records.write(record)?;
                }
            }
            Effect::Renew { peer } => {
                tracing::debug!(%peer, "the streams carry no understanding: they are opened anew");
                return Ok(link_input(peer, self.member.connections.links.drop_streams(peer)));
            }
            Effect::Reserve(links) => {
                let room = Room::new(self.node.dimension(), links)?.with_state(self.parts.largest_state);
                self.parts.records.iter().for_each(|records| records.reserve(room));
            }
            Effect::Report(event) => {
                let has_started = matches!(event, NodeEvent::Started { .. });
                self.on_node_event(event)?;
                if has_started && self.parts.leaves {
                    return Ok(Some(self.leave()));
                }
            }
            Effect::Drained => self.drained = true,
        }
        Ok(None)
    }

    fn on_written(&mut self, written: Written) -> Result {
        match written {
            Written::Record { number } => self.feed(Input::Persisted { number })?,
            Written::Reserved { slots } => self.feed(Input::Reserved { slots })?,
            Written::DiskFull { message } => self.member.log.tell(Event::Warning {
                message: format!("the disk is full: {message}; this peer goes on when there is room"),
            }),
            Written::RoomAgain => self
                .member
                .log
                .tell(Event::Warning { message: "there is room on the disk again: this peer goes on".to_owned() }),
            Written::Failed(failure) => return Err(failure),
        }
        Ok(())
    }

    /// Announces the departure. Returns the input that makes the node hand over all its mass, and end.
    fn leave(&mut self) -> Input {
        self.stopping = true;
        self.member.log.tell(Event::Leaving { weight_units: self.node.mass().units() });
        Input::Leave
    }

    fn notice_waiting(&mut self) {
        let missing: Vec<usize> = self.node.missing_neighbours().iter().map(|node| node.index()).collect();
        if !self.joined && !missing.is_empty() {
            let waited_s = self.member.started.elapsed().as_secs();
            self.member.log.tell(Event::Waiting { missing, waited_s });
        }
    }

    fn now(&self) -> Time {
        Time(u64::try_from(self.member.started.elapsed().as_micros()).unwrap_or(u64::MAX))
    }
}

/// The configuration with the model that a node begins with.
fn with_model(config: &NodeConfig, initial: Vec<f32>) -> NodeConfig {
    let mut config = config.clone();
    config.initial = initial;
    config
}

fn build(config: &NodeConfig, initial: Vec<f32>) -> Result<Node> {
    Node::new(with_model(config, initial)).context(ErrorKind::BadInput, "this peer cannot run its plan")
}

fn link_input(peer: NodeId, change: LinkChange) -> Option<Input> {
    match change {
        LinkChange::None => None,
        LinkChange::Up => Some(Input::LinkUp { peer }),
        LinkChange::Down => Some(Input::LinkDown { peer }),
    }
}
