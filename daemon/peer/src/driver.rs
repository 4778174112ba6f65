//! The event loop around one node: the only clock, and the only place where the node's effects become deeds.

mod divergence;
mod encodings;
mod ending;
mod neighbours;
mod replanning;
mod reports;
mod steering;
mod watching;
mod words;

pub(crate) use replanning::borrow_model;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use libp2p::PeerId;
use mingle_net::edge::EdgeEvent;
use mingle_net::neighbour_table::LinkChange;
use mingle_net::traffic::Traffic;
use mingle_net::transport::{Network, NetworkEvent};
use mingle_protocol::record::Recovered;
use mingle_protocol::{
    Durability, Effect, Event as NodeEvent, Input, Node, NodeConfig, NodeId, RoundReport, State as NodeState, Time,
};
use tokio::sync::mpsc;

use crate::api::{Interface, Request};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::events::Watchdog;
use crate::events::{Event, EventLog};
use crate::home::Home;
use crate::membership::{Hall, Swarm, Wanted};
use crate::objections::Objections;
use crate::place::Place;
use crate::records::{Ending, RecordWriter, Room, Written};
use crate::status::StatusBoard;
use crate::stop::StopRequests;
use crate::timeline::{Timeline, Waits};
use crate::training::thread::{Answer, TrainingOrder, TrainingOrders, TrainingThread};
use crate::training::{Evaluation, Layout, Trained};
use crate::wiring::Wiring;
use divergence::Divergence;
use ending::FINAL;
use watching::Watching;

/// While neighbours are missing, the user hears so this often.
const WAITING_NOTICE: Duration = Duration::from_secs(5);
/// So many warnings are told, then only logged.
const MAX_WARNINGS: u32 = 20;

/// Everything that can happen to the loop, by where it comes from.
pub(crate) struct Sources {
    pub edges: mpsc::Receiver<EdgeEvent>,
    pub network: mpsc::Receiver<NetworkEvent>,
    pub answers: mpsc::Receiver<Answer>,
    /// `None` without records.
    pub written: Option<mpsc::Receiver<Written>>,
    /// What others ask that only the loop can answer.
    pub wanted: mpsc::Receiver<Wanted>,
    pub stop: StopRequests,
    /// What is asked through the local interface.
    pub requests: mpsc::Receiver<Request>,
}

/// How the run ended.
pub(crate) struct Finished {
    /// The node, for its model and its books.
    pub node: Node,
    /// Its place in the last plan that it followed.
    pub place: Place,
    /// The test evaluation of the final model.
    pub evaluation: Evaluation,
    /// Rounds completed.
    pub rounds: u64,
    /// What went over all links, of all plans that this process followed.
    pub traffic: Traffic,
    /// How the run ended, for a later start; `None` where the records are still needed.
    pub ending: Option<Ending>,
    /// None where it does not answer.
    training: Option<TrainingThread>,
    layout: Layout,
    /// What this process wrote down of what it did when.
    pub(crate) timeline: Timeline,
}

/// What a driver is built from.
pub(crate) struct DriverParts<'a> {
    /// The node's configuration; its incarnation may grow when neighbours remember an earlier life of this peer.
    pub config: NodeConfig,
    pub home: &'a Home,
    pub wiring: Wiring,
    /// What others may ask of this process.
    pub hall: Arc<Hall>,
    /// The swarm, where it has an operator: then its plan can change.
    pub swarm: Option<Swarm>,
    pub network: &'a Network,
    /// This peer.
    pub local: PeerId,
    /// It only comes to leave.
    pub leaves: bool,
    /// Rounds of the whole training; the plan may begin later than with the first.
    pub rounds: u64,
    pub training: TrainingThread,
    /// What its vectors are.
    pub layout: Layout,
    /// The most bytes that it keeps in a record.
    pub largest_state: usize,
    /// `None` without records.
    pub records: Option<RecordWriter>,
    pub log: &'a mut EventLog,
    pub board: &'a StatusBoard,
    pub interface: &'a Interface,
    pub evaluate_every: u64,
    pub timeline: Timeline,
    pub started: Instant,
}

/// The event loop and what it works with.
pub(crate) struct Driver<'a> {
    parts: DriverParts<'a>,
    node: Node,
    rounds: u64,
    train_loss: Option<f64>,
    /// The training under way.
    training: TrainingOrders,
    /// The evaluation under way: the rounds that were over, and the report of the last.
    evaluating: Option<(u64, RoundReport)>,
    final_evaluation: Option<Evaluation>,
    /// The last one before, and after how many rounds.
    last_evaluation: Option<(u64, Evaluation)>,
    watching: Watching,
    waits: Waits,
    divergence: Divergence,
    objections: Objections,
    dial_failures: BTreeSet<String>,
    warnings: u32,
    joined: bool,
    stopping: bool,
    drained: bool,
    /// Neighbours did not answer at the end, and may still need this peer.
    gave_up: bool,
    /// The number of the last record that the node asked for.
    last_record: u64,
    /// Rounds that were over when the present plan began.
    first_round: u64,
    /// What went over the links of earlier plans.
    past: Traffic,
    /// Rounds that this peer never did, since its neighbours were too far ahead.
    skipped_rounds: u64,
    watchdog: Watchdog,
}

impl<'a> Driver<'a> {
    /// A driver that has not begun; its node goes on from what was recovered, if anything was.
    pub(crate) fn new(parts: DriverParts<'a>, recovered: Option<Recovered>) -> Result<Self> {
        let last_record = recovered.as_ref().map_or(0, |recovered| recovered.record.books.number);
        let node = match recovered {
            None => build(&parts.config)?,
            Some(Recovered { record, payloads, .. }) => Node::resume(parts.config.clone(), record, &payloads)
                .context(ErrorKind::Refused, "this peer cannot go on from its records")?,
        };
        let first_round = parts.wiring.place.plan.first_round();
        Ok(Self {
            watching: Watching::new(&parts.wiring.place.peers),
            parts,
            rounds: first_round + node.round(),
            node,
            train_loss: None,
            training: TrainingOrders::default(),
            evaluating: None,
            waits: Waits::default(),
            divergence: Divergence::default(),
            final_evaluation: None,
            last_evaluation: None,
            objections: Objections::default(),
            dial_failures: BTreeSet::new(),
            warnings: 0,
            joined: false,
            stopping: false,
            drained: false,
            gave_up: false,
            last_record,
            first_round,
            past: Traffic::default(),
            skipped_rounds: 0,
            watchdog: Watchdog::of_environment(),
        })
    }

    /// Runs until the node has drained and its final model is evaluated.
    ///
    /// # Errors
    /// The neighbours refused this peer for good, training failed, the swarm holds no weight, or the user insisted on
    /// stopping at once.
    pub(crate) async fn run(mut self, sources: &mut Sources) -> Result<Finished> {
        if let Err(failure) = self.take_part(sources).await {
            if failure.is(ErrorKind::Refused) {
                self.take_leave(sources).await;
            }
            return Err(failure);
        }
        self.show();
        self.linger(sources).await?;
        if self.node.has_left() {
            self.parts.log.tell(Event::Left);
        }
        let evaluation = self.evaluate_final(sources).await?;
        self.show_end(&evaluation);
        let ending = self.close_books(sources)?;
        let traffic = self.past + self.parts.wiring.end().await;
        let DriverParts { wiring, training, timeline, layout, .. } = self.parts;
        let training = (!self.training.is_under_way()).then_some(training);
        let place = wiring.place;
        Ok(Finished {
            node: self.node,
            place,
            evaluation,
            rounds: self.rounds,
            traffic,
            ending,
            training,
            layout,
            timeline,
        })
    }

    /// Goes along with the swarm until the node has drained.
    async fn take_part(&mut self, sources: &mut Sources) -> Result {
        self.tell_encodings();
        self.feed(Input::Start)?;
        let mut notice = tokio::time::interval(WAITING_NOTICE);
        notice.tick().await;
        while !self.drained {
            self.show();
            tokio::select! {
                Some(event) = sources.edges.recv() => self.on_edge(event)?,
                Some(event) = sources.network.recv() => self.on_network(&event),
                answer = sources.answers.recv() => self.on_answer(alive(answer)?)?,
                written = next_written(&mut sources.written) => self.on_written(written?)?,
                Some(wanted) = sources.wanted.recv() => self.on_wanted(wanted, sources).await?,
                () = sleep_until(self.wake_at()) => self.feed(Input::Tick)?,
                reason = sources.stop.next() => self.on_stop(&reason)?,
                Some(request) = sources.requests.recv() => self.on_request(request)?,
                _ = notice.tick() => self.notice_waiting(),
                () = self.watchdog.turn() => {}
            }
        }
        Ok(())
    }

    /// Hands one input to the node and carries out what it wants, in its order; what follows from that comes after.
    fn feed(&mut self, input: Input) -> Result {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            for effect in self.node.handle(self.now(), input) {
                inputs.extend(self.carry_out(effect)?);
            }
        }
        let is_waiting = matches!(self.node.state(), NodeState::AwaitingParcels | NodeState::AwaitingRoom);
        self.waits.look(is_waiting, &self.parts.timeline);
        Ok(())
    }

    /// Does what the node wants; returns what the node must hear of it.
    fn carry_out(&mut self, effect: Effect) -> Result<Option<Input>> {
        match effect {
            Effect::Send { to, message } => {
                if !self.parts.wiring.links.send(to, message) {
                    self.warn(format!("node {to} does not keep up: its streams are opened anew"));
                    return Ok(link_input(to, self.parts.wiring.links.drop_streams(to)));
                }
            }
            Effect::Train { round, from, local_steps, time_box, last_factor } => {
                let order = TrainingOrder { round, from, local_steps, time_box, last_factor };
                self.training.order(order, &self.parts.training)?;
            }
            Effect::Persist(record) => {
                self.last_record = record.books.number;
                if let Some(records) = &self.parts.records {
                    records.write(record)?;
                }
            }
            Effect::Renew { peer } => {
                tracing::debug!(%peer, "the streams carry no understanding: they are opened anew");
                return Ok(link_input(peer, self.parts.wiring.links.drop_streams(peer)));
            }
            Effect::Reserve(links) => {
                let room = Room::new(self.parts.config.initial.len(), links)?.with_state(self.parts.largest_state);
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

    fn on_answer(&mut self, answer: Answer) -> Result {
        match answer {
            Answer::Trained { round, trained, state } => {
                let counts = self.training.end(&self.parts.training)?;
                let Trained { change: delta, steps, loss } = trained;
                self.train_loss = Some(loss);
                // The record that has the steps in its model also says where the training stood after them.
                self.node.set_host_state(state);
                if counts { self.feed(Input::Trained { round, delta, steps }) } else { Ok(()) }
            }
            Answer::Evaluated { round: FINAL, evaluation } => {
                self.check_divergence(&evaluation, true)?;
                self.final_evaluation =
                    Some(if evaluation.is_whole { evaluation } else { self.best_known(evaluation) });
                Ok(())
            }
            Answer::Evaluated { evaluation, .. } => {
                if let Some((rounds, report)) = self.evaluating.take().filter(|_| evaluation.is_whole) {
                    self.tell_evaluation(rounds, &report, &evaluation);
                    self.last_evaluation = Some((rounds, evaluation.clone()));
                }
                self.check_divergence(&evaluation, false)
            }
            // Ordered only once this loop has ended.
            Answer::Saved(_) => Ok(()),
            Answer::Failed(failure) => Err(failure),
        }
    }

    fn on_written(&mut self, written: Written) -> Result {
        match written {
            Written::Record { number } => self.feed(Input::Persisted { number })?,
            Written::Reserved { slots } => self.feed(Input::Reserved { slots })?,
            Written::DiskFull { message } => self.parts.log.tell(Event::Warning {
                message: format!("the disk is full: {message}; this peer goes on when there is room"),
            }),
            Written::RoomAgain => self
                .parts
                .log
                .tell(Event::Warning { message: "there is room on the disk again: this peer goes on".to_owned() }),
            Written::Failed(failure) => return Err(failure),
        }
        Ok(())
    }

    fn on_stop(&mut self, reason: &str) -> Result {
        if self.stopping {
            let mass = self.node.mass();
            let consequence = match self.parts.config.durability {
                Durability::On => {
                    format!("this peer keeps its weight {mass} on disk, and goes on when it is started again")
                }
                Durability::Off => format!("this peer's weight {mass} is lost to the swarm"),
            };
            let rounds = self.rounds;
            return Err(Error::new(ErrorKind::Forced, format!("stopped at once, after round {rounds}: {consequence}")));
        }
        self.stopping = true;
        self.parts.training.interrupt(true);
        self.watching.note();
        self.parts.log.tell(Event::Stopping { round: self.rounds, reason: reason.to_owned() });
        self.feed(Input::Stop)
    }

    /// What makes the node hand over all it holds, and end.
    fn leave(&mut self) -> Input {
        self.stopping = true;
        self.parts.log.tell(Event::Leaving { weight_units: self.node.mass().units() });
        Input::Leave
    }

    fn notice_waiting(&mut self) {
        let missing: Vec<usize> = self.node.missing_neighbours().iter().map(|node| node.index()).collect();
        if !self.joined && !missing.is_empty() {
            self.parts.log.tell(Event::Waiting { missing });
        }
    }

    fn warn(&mut self, message: String) {
        self.warnings += 1;
        if self.warnings <= MAX_WARNINGS {
            self.parts.log.tell(Event::Warning { message });
        } else {
            tracing::warn!(message);
        }
    }

    fn now(&self) -> Time {
        Time(u64::try_from(self.parts.started.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    /// When the node wants to be woken.
    fn wake_at(&self) -> Option<Instant> {
        let deadline = self.node.next_deadline()?;
        self.parts.started.checked_add(Duration::from_micros(deadline.micros()))
    }
}

fn build(config: &NodeConfig) -> Result<Node> {
    Node::new(config.clone()).context(ErrorKind::BadInput, "this peer cannot run its plan")
}

/// The training thread never ends before the driver does.
fn alive(answer: Option<Answer>) -> Result<Answer> {
    answer.ok_or_else(|| Error::new(ErrorKind::Training, "the training thread has stopped; the log says why"))
}

/// The next word of the thread that writes records; never, without one.
async fn next_written(written: &mut Option<mpsc::Receiver<Written>>) -> Result<Written> {
    let Some(written) = written else { return std::future::pending().await };
    let next = written.recv().await;
    next.ok_or_else(|| Error::new(ErrorKind::Unexpected, "the thread that writes records has stopped"))
}

fn link_input(peer: NodeId, change: LinkChange) -> Option<Input> {
    match change {
        LinkChange::None => None,
        LinkChange::Up => Some(Input::LinkUp { peer }),
        LinkChange::Down => Some(Input::LinkDown { peer }),
    }
}

async fn sleep_until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant.into()).await,
        None => std::future::pending().await,
    }
}
