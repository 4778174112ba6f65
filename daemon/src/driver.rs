//! The event loop around one node: the only clock, and the only place where the node's effects become deeds.

mod words;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use libp2p::PeerId;
use mingle_models::Evaluation;
use mingle_protocol::record::Recovered;
use mingle_protocol::{
    Durability, Effect, Event as NodeEvent, Fault, Hello, Identity, Input, LinkState, Message, Node, NodeConfig,
    NodeId, RoundReport, Time,
};
use tokio::sync::mpsc;

use crate::edge::{EdgeEvent, EdgeHandle};
use crate::events::{Event, EventLog};
use crate::failure::{Failure, Kind, OrFail, Outcome};
use crate::home::Home;
use crate::links::{LinkChange, Links};
use crate::objections::{Objection, Objections};
use crate::records::{Ending, RecordWriter, Written};
use crate::signals::StopRequests;
use crate::trainer::{Answer, TrainingThread};
use crate::transport::NetworkEvent;
use words::{in_words, warning};

/// While neighbours are missing, the user hears so this often.
const WAITING_NOTICE: Duration = Duration::from_secs(5);
/// A drained peer goes on answering its neighbours for so long at most.
const LINGER: Duration = Duration::from_millis(1500);
/// So many warnings are told, then only logged.
const MAX_WARNINGS: u32 = 20;
/// The round under which the final model is evaluated.
const FINAL: u64 = u64::MAX;

/// Everything that can happen to the loop, by where it comes from.
pub(crate) struct Sources {
    pub(crate) edges: mpsc::Receiver<EdgeEvent>,
    pub(crate) network: mpsc::Receiver<NetworkEvent>,
    pub(crate) answers: mpsc::Receiver<Answer>,
    /// `None` without records.
    pub(crate) written: Option<mpsc::Receiver<Written>>,
    pub(crate) stop: StopRequests,
}

/// How the run ended.
pub(crate) struct Finished {
    /// The node, for its model and its books.
    pub(crate) node: Node,
    /// The test evaluation of the final model.
    pub(crate) evaluation: Evaluation,
    /// Rounds completed.
    pub(crate) rounds: u64,
    /// Bytes written to all links.
    pub(crate) sent_bytes: u64,
    /// How the run ended, for a later start; `None` where the records are still needed.
    pub(crate) ending: Option<Ending>,
}

/// What a driver is built from.
pub(crate) struct DriverParts<'a> {
    /// The node's configuration; its incarnation may grow when neighbours remember an earlier life of this peer.
    pub(crate) config: NodeConfig,
    /// The plan's hash, under which the home counts incarnations.
    pub(crate) plan_hash: String,
    pub(crate) home: &'a Home,
    pub(crate) links: Links,
    pub(crate) training: TrainingThread,
    /// `None` without records.
    pub(crate) records: Option<RecordWriter>,
    pub(crate) log: &'a mut EventLog,
    pub(crate) evaluate_every: u64,
    pub(crate) peers: BTreeMap<NodeId, PeerId>,
    /// Whom this peer sends to.
    pub(crate) receivers: Vec<NodeId>,
    pub(crate) started: Instant,
}

/// The event loop and what it works with.
pub(crate) struct Driver<'a> {
    parts: DriverParts<'a>,
    node: Node,
    rounds: u64,
    train_loss: Option<f64>,
    /// The round whose evaluation is under way.
    evaluating: Option<RoundReport>,
    final_evaluation: Option<Evaluation>,
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
}

impl<'a> Driver<'a> {
    /// A driver that has not begun; its node goes on from what was recovered, if anything was.
    pub(crate) fn new(parts: DriverParts<'a>, recovered: Option<Recovered>) -> Outcome<Self> {
        let last_record = recovered.as_ref().map_or(0, |recovered| recovered.record.books.number);
        let node = match recovered {
            None => build(&parts.config)?,
            Some(Recovered { record, payloads, .. }) => Node::resume(parts.config.clone(), record, &payloads)
                .or_fail(Kind::Refused, "this peer cannot go on from its records")?,
        };
        Ok(Self {
            parts,
            rounds: node.round(),
            node,
            train_loss: None,
            evaluating: None,
            final_evaluation: None,
            objections: Objections::default(),
            dial_failures: BTreeSet::new(),
            warnings: 0,
            joined: false,
            stopping: false,
            drained: false,
            gave_up: false,
            last_record,
        })
    }

    /// Runs until the node has drained and its final model is evaluated.
    ///
    /// # Errors
    /// The neighbours refused this peer for good, training failed, the swarm holds no weight, or the user insisted on
    /// stopping at once.
    pub(crate) async fn run(mut self, sources: &mut Sources) -> Outcome<Finished> {
        if let Err(failure) = self.take_part(sources).await {
            if failure.is(Kind::Refused) {
                self.take_leave(sources).await;
            }
            return Err(failure);
        }
        self.linger(sources).await?;
        let evaluation = self.evaluate_final(sources).await?;
        let ending = self.close_books(sources)?;
        let sent_bytes = self.parts.links.sent_bytes();
        Ok(Finished { node: self.node, evaluation, rounds: self.rounds, sent_bytes, ending })
    }

    /// Goes along with the swarm until the node has drained.
    async fn take_part(&mut self, sources: &mut Sources) -> Outcome {
        self.feed(Input::Start)?;
        let mut notice = tokio::time::interval(WAITING_NOTICE);
        notice.tick().await;
        while !self.drained {
            tokio::select! {
                Some(event) = sources.edges.recv() => self.on_edge(event)?,
                Some(event) = sources.network.recv() => self.on_network(&event),
                answer = sources.answers.recv() => self.on_answer(alive(answer)?)?,
                written = next_written(&mut sources.written) => self.on_written(written?)?,
                () = sleep_until(self.wake_at()) => self.feed(Input::Tick)?,
                reason = sources.stop.next() => self.on_stop(reason)?,
                _ = notice.tick() => self.notice_waiting(),
            }
        }
        Ok(())
    }

    /// Lets the neighbours that this peer does not fit hear its greeting before it goes: they would wait for it in vain,
    /// and never learn why.
    async fn take_leave(&mut self, sources: &mut Sources) {
        let until = Instant::now() + LINGER;
        while self.parts.links.any_open() {
            tokio::select! {
                Some(event) = sources.edges.recv() => {
                    // The failure that it leaves with is known already.
                    let _ = self.on_edge(event);
                }
                _ = sources.stop.next() => break,
                () = tokio::time::sleep_until(until.into()) => break,
            }
        }
        // A neighbour that reads nothing must not hold this peer up.
        let _ = tokio::time::timeout(LINGER, finish_all(self.parts.links.take_all())).await;
    }

    /// Closes this peer's own streams and answers the others until they have closed theirs.
    async fn linger(&mut self, sources: &mut Sources) -> Outcome {
        let until = Instant::now() + LINGER;
        let outgoing = finish_all(self.parts.links.take_outgoing());
        tokio::pin!(outgoing);
        let mut written = false;
        while !written || self.parts.links.any_incoming() {
            tokio::select! {
                () = &mut outgoing, if !written => written = true,
                Some(event) = sources.edges.recv() => self.on_edge(event)?,
                written = next_written(&mut sources.written) => self.on_written(written?)?,
                () = sleep_until(self.wake_at()) => self.feed(Input::Tick)?,
                _ = sources.stop.next() => break,
                () = tokio::time::sleep_until(until.into()) => break,
            }
        }
        // A neighbour that reads nothing any more must not hold this peer up.
        let _ = tokio::time::timeout_at(until.into(), finish_all(self.parts.links.take_all())).await;
        Ok(())
    }

    async fn evaluate_final(&mut self, sources: &mut Sources) -> Outcome<Evaluation> {
        let model = self.node.ratio();
        // The queue has room once the evaluation under way, if any, is answered.
        while self.evaluating.is_some() {
            self.next_answer(sources).await?;
        }
        self.parts.training.evaluate(FINAL, model)?;
        loop {
            if let Some(evaluation) = self.final_evaluation {
                return Ok(evaluation);
            }
            self.next_answer(sources).await?;
        }
    }

    async fn next_answer(&mut self, sources: &mut Sources) -> Outcome {
        tokio::select! {
            answer = sources.answers.recv() => self.on_answer(alive(answer)?),
            reason = sources.stop.next() => {
                Err(Failure::new(Kind::Forced, format!("{reason} before the final model was written")))
            }
        }
    }

    /// The process ends in good order. Without records the next one in this home begins anew, unless its neighbours
    /// remember better. With records it goes on from them, or has nothing left to do.
    fn close_books(&mut self, sources: &mut Sources) -> Outcome<Option<Ending>> {
        // When the writer is dropped, the last records are on the disk, or it has said why not.
        let keeps_records = self.parts.records.take().is_some();
        while let Some(written) = sources.written.as_mut().and_then(|written| written.try_recv().ok()) {
            if let Written::Failed(failure) = written {
                return Err(failure);
            }
        }
        self.parts.home.forget_incarnations(&self.parts.plan_hash)?;
        let ledger = self.node.ledger();
        let never_held = ledger.initial.units() == 0 && ledger.incoming.values().all(|link| link.applied_in_all() == 0);
        if never_held {
            return Err(Failure::new(
                Kind::Training,
                "this peer was restarted without weight, and no neighbour sent it any: nothing was trained",
            )
            .hint("if all peers were restarted, start them again with --fresh: they begin anew"));
        }
        // A peer that caught up with the others at the end has not been in every round.
        let is_over = keeps_records && !self.gave_up && self.node.round() >= self.parts.config.rounds;
        Ok(is_over.then(|| Ending::new(self.last_record, self.node.round())))
    }

    /// Hands one input to the node and carries out what it wants, in its order; what follows from that comes after.
    fn feed(&mut self, input: Input) -> Outcome {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            for effect in self.node.handle(self.now(), input) {
                inputs.extend(self.carry_out(effect)?);
            }
        }
        Ok(())
    }

    /// Does what the node wants; returns what the node must hear of it.
    fn carry_out(&mut self, effect: Effect) -> Outcome<Option<Input>> {
        match effect {
            Effect::Send { to, message } => {
                if !self.parts.links.send(to, message) {
                    self.warn(format!("node {to} does not keep up: its streams are opened anew"));
                    return Ok(link_input(to, self.parts.links.drop_streams(to)));
                }
            }
            Effect::Train { round, from, local_steps, time_box } => {
                self.parts.training.train(round, from, local_steps, time_box)?;
            }
            Effect::Persist(record) => {
                self.last_record = record.books.number;
                if let Some(records) = &self.parts.records {
                    records.write(record)?;
                }
            }
            Effect::Report(event) => self.on_node_event(event)?,
            Effect::Drained => self.drained = true,
        }
        Ok(None)
    }

    fn on_edge(&mut self, event: EdgeEvent) -> Outcome {
        match event {
            EdgeEvent::Up { node, direction, handle } => {
                self.objections.withdraw(node);
                let change = self.parts.links.attach(node, direction, handle);
                self.on_link_change(node, change)
            }
            EdgeEvent::Message { node, message } => self.on_message(node, message),
            EdgeEvent::Down { node, direction, stream, error } => {
                if let Some(error) = &error {
                    tracing::debug!(%node, ?direction, error, "a stream broke");
                }
                let change = self.parts.links.detach(node, direction, stream, error.is_none());
                self.on_link_change(node, change)
            }
            EdgeEvent::Refused { node, refusal } => self.object(node, Objection::refusal(&refusal)),
        }
    }

    fn on_link_change(&mut self, node: NodeId, change: LinkChange) -> Outcome {
        link_input(node, change).map_or(Ok(()), |input| self.feed(input))
    }

    fn on_message(&mut self, from: NodeId, message: Message) -> Outcome {
        if link_state(&message).is_some_and(|link| link.final_seq.is_some()) {
            self.parts.links.note_last_parcel(from);
        }
        if let Message::Hello(hello) = &message
            && let Some(incarnation) = self.later_life(hello)
        {
            self.rejoin(incarnation)?;
        }
        self.feed(Input::Received { from, message })
    }

    /// The incarnation that this process must take, where a neighbour remembers another process of this peer that took
    /// part. Only before this process has: afterwards the other one is the newcomer.
    fn later_life(&self, hello: &Hello) -> Option<u64> {
        if self.parts.config.durability == Durability::On {
            // A node with records finds out by itself, and says so.
            return None;
        }
        let mine = self.parts.config.identity;
        let seen =
            hello.seen.filter(|seen| seen.boot_nonce != mine.boot_nonce && seen.incarnation >= mine.incarnation)?;
        (!self.joined).then(|| seen.incarnation.saturating_add(1))
    }

    /// Starts over as a later life of this peer: it begins with no weight, and takes the swarm's model.
    fn rejoin(&mut self, incarnation: u64) -> Outcome {
        self.parts.config.identity = Identity { incarnation, ..self.parts.config.identity };
        self.parts.log.tell(Event::Rejoining { incarnation });
        self.node = build(&self.parts.config)?;
        self.feed(Input::Start)?;
        for peer in self.parts.links.up() {
            self.feed(Input::LinkUp { peer })?;
        }
        Ok(())
    }

    /// A neighbour and this peer do not fit together.
    fn object(&mut self, node: NodeId, objection: Objection) -> Outcome {
        let name = self.parts.peers.get(&node).map_or_else(|| "unknown".to_owned(), PeerId::to_string);
        let sentence = format!("node {node} ({name}) {}", objection.what);
        let hint = objection.hint;
        if self.objections.raise(node, objection) {
            self.warn(sentence.clone());
        }
        if !self.joined && self.objections.are_final(&self.parts.receivers) {
            return Err(Failure::new(Kind::Refused, sentence).hint(hint));
        }
        Ok(())
    }

    fn on_network(&mut self, event: &NetworkEvent) {
        let NetworkEvent::DialFailed { peer, attempts } = event else { return };
        let attempts: Vec<String> = attempts.iter().map(ToString::to_string).collect();
        let fresh: Vec<String> = attempts.into_iter().filter(|text| self.dial_failures.insert(text.clone())).collect();
        if !self.joined && !fresh.is_empty() {
            self.parts.log.tell(Event::DialFailed { peer: peer.map(|peer| peer.to_string()), attempts: fresh });
        }
    }

    fn on_answer(&mut self, answer: Answer) -> Outcome {
        match answer {
            Answer::Trained { round, delta, steps, loss, position } => {
                self.train_loss = Some(loss);
                // The record that has the steps in its model also says which batches they took.
                self.node.set_host_state(position.encode());
                self.feed(Input::Trained { round, delta, steps })
            }
            Answer::Evaluated { round: FINAL, evaluation } => {
                self.final_evaluation = Some(evaluation);
                Ok(())
            }
            Answer::Evaluated { evaluation, .. } => {
                if let Some(report) = self.evaluating.take() {
                    self.tell_evaluation(&report, &evaluation);
                }
                Ok(())
            }
            Answer::Failed(failure) => Err(failure),
        }
    }

    fn on_written(&mut self, written: Written) -> Outcome {
        match written {
            Written::Record { number } => self.feed(Input::Persisted { number })?,
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

    fn tell_evaluation(&mut self, report: &RoundReport, evaluation: &Evaluation) {
        self.parts.log.tell(Event::Evaluated {
            round: report.round + 1,
            accuracy: evaluation.accuracy,
            loss: evaluation.loss,
            train_loss: self.train_loss,
            weight_units: report.mass.units(),
            disagreement: report.disagreement,
            sent_bytes: self.parts.links.sent_bytes(),
        });
    }

    fn on_node_event(&mut self, event: NodeEvent) -> Outcome {
        match event {
            NodeEvent::Started { .. } => {
                if self.parts.config.durability == Durability::Off {
                    // On disk before the first weight moves: a crash from here on must not begin with weight again.
                    let incarnation = self.parts.config.identity.incarnation;
                    self.parts.home.spend_incarnation(&self.parts.plan_hash, incarnation)?;
                }
                self.joined = true;
                self.parts.log.tell(Event::Joined { neighbours: self.parts.links.up().len() });
            }
            NodeEvent::RoundFinished(report) => self.on_round(&report)?,
            NodeEvent::Refused { peer, mismatch } => self.object(peer, Objection::mismatch(&mismatch))?,
            // Neighbours that are done before this peer may leave.
            NodeEvent::NeighbourSuspended { peer, reason } if self.rounds < self.parts.config.rounds => {
                self.parts.log.tell(Event::Suspended { node: peer.index(), reason: in_words(reason).to_owned() });
            }
            NodeEvent::SetBack { incarnation, discarded } => {
                self.parts.log.tell(Event::SetBack { incarnation, discarded_units: discarded.units() });
            }
            NodeEvent::NeighbourBack { peer } => self.parts.log.tell(Event::Resumed { node: peer.index() }),
            // The local steps of a round that a request to stop has ended.
            NodeEvent::Ignored { fault: Fault::UnexpectedTraining, .. } if self.stopping => {}
            other => {
                self.gave_up |= matches!(other, NodeEvent::DrainGaveUp { .. });
                match warning(&other) {
                    Some(message) => self.warn(message),
                    None => tracing::debug!(?other, "node"),
                }
            }
        }
        Ok(())
    }

    fn on_round(&mut self, report: &RoundReport) -> Outcome {
        self.rounds = report.round + 1;
        self.parts.log.tell(Event::Round { round: self.rounds, weight_units: report.mass.units() });
        let due = self.rounds.is_multiple_of(self.parts.evaluate_every) || self.rounds == self.parts.config.rounds;
        // Rounds without training can outrun the evaluation; one at a time is enough.
        if due && self.evaluating.is_none() {
            self.evaluating = Some(*report);
            self.parts.training.evaluate(report.round, self.node.ratio())?;
        }
        Ok(())
    }

    fn on_stop(&mut self, reason: &str) -> Outcome {
        if self.stopping {
            let mass = self.node.mass();
            let consequence = match self.parts.config.durability {
                Durability::On => {
                    format!("this peer keeps its weight {mass} on disk, and goes on when it is started again")
                }
                Durability::Off => format!("this peer's weight {mass} is lost to the swarm"),
            };
            let rounds = self.rounds;
            return Err(Failure::new(Kind::Forced, format!("stopped at once, after round {rounds}: {consequence}")));
        }
        self.stopping = true;
        self.parts.log.tell(Event::Stopping { round: self.rounds, reason: reason.to_owned() });
        self.feed(Input::Stop)
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

fn build(config: &NodeConfig) -> Outcome<Node> {
    Node::new(config.clone()).or_fail(Kind::BadInput, "this peer cannot run its plan")
}

/// The training thread never ends before the driver does.
fn alive(answer: Option<Answer>) -> Outcome<Answer> {
    answer.ok_or_else(|| Failure::new(Kind::Training, "the training thread has stopped; the log says why"))
}

/// The next word of the thread that writes records; never, without one.
async fn next_written(written: &mut Option<mpsc::Receiver<Written>>) -> Outcome<Written> {
    let Some(written) = written else { return std::future::pending().await };
    let next = written.recv().await;
    next.ok_or_else(|| Failure::new(Kind::Unexpected, "the thread that writes records has stopped"))
}

fn link_input(peer: NodeId, change: LinkChange) -> Option<Input> {
    match change {
        LinkChange::None => None,
        LinkChange::Up => Some(Input::LinkUp { peer }),
        LinkChange::Down => Some(Input::LinkDown { peer }),
    }
}

fn link_state(message: &Message) -> Option<&LinkState> {
    match message {
        Message::Hello(hello) => Some(&hello.link),
        Message::Ack(ack) => Some(&ack.link),
        _ => None,
    }
}

async fn finish_all(handles: Vec<EdgeHandle>) {
    futures::future::join_all(handles.into_iter().map(EdgeHandle::finish)).await;
}

async fn sleep_until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant.into()).await,
        None => std::future::pending().await,
    }
}
