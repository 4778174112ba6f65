//! The event loop around one node: the only clock, and the only place where the node's effects become deeds.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use libp2p::PeerId;
use mingle_models::Evaluation;
use mingle_protocol::{Effect, Event as NodeEvent, Input, Message, Node, NodeId, RoundReport, Suspension, Time};
use tokio::sync::mpsc;

use crate::edge::{EdgeEvent, Refusal};
use crate::events::{Event, EventLog};
use crate::failure::{Failure, Kind, Outcome};
use crate::links::{LinkChange, Links};
use crate::signals::StopRequests;
use crate::trainer::{Answer, TrainingThread};
use crate::transport::NetworkEvent;

/// How long a neighbour may refuse this peer's identity before it is final: a crashed process of this peer is noticed
/// within this time, and its place is free again.
const IDENTITY_PATIENCE: Duration = Duration::from_secs(12);
/// While neighbours are missing, the user hears so this often.
const WAITING_NOTICE: Duration = Duration::from_secs(5);
/// A drained peer goes on answering its neighbours for so long at most.
const LINGER: Duration = Duration::from_secs(5);
/// Reasons that a node refused or ignored something are told this many times, then only counted.
const MAX_WARNINGS: u32 = 20;

/// Everything that can happen to the loop, by where it comes from.
pub(crate) struct Sources {
    pub(crate) edges: mpsc::Receiver<EdgeEvent>,
    pub(crate) network: mpsc::Receiver<NetworkEvent>,
    pub(crate) answers: mpsc::Receiver<Answer>,
    pub(crate) stop: StopRequests,
}

/// How the run ended.
pub(crate) struct Finished {
    /// The test evaluation of the final model.
    pub(crate) evaluation: Evaluation,
    /// Rounds completed.
    pub(crate) rounds: u64,
    /// Bytes written to all links.
    pub(crate) sent_bytes: u64,
}

/// The event loop and what it works with.
pub(crate) struct Driver<'a> {
    node: Node,
    links: Links,
    training: TrainingThread,
    log: &'a mut EventLog,
    /// Stores that this incarnation takes part, before the first mass moves.
    spend_incarnation: Box<dyn Fn() -> Outcome + Send + 'a>,
    evaluate_every: u64,
    rounds_wanted: u64,
    peers: BTreeMap<NodeId, PeerId>,
    /// Whom this peer sends to.
    receivers: Vec<NodeId>,
    started: Instant,
    rounds: u64,
    train_loss: Option<f64>,
    /// Rounds whose evaluation is under way.
    evaluating: BTreeMap<u64, RoundReport>,
    last_evaluation: Option<(u64, Evaluation)>,
    objections: BTreeMap<NodeId, Objection>,
    warnings: u32,
    joined: bool,
    stopping: bool,
    drained: bool,
}

/// Since when a neighbour does not want this peer, and how long that may be a misunderstanding.
struct Objection {
    since: Instant,
    patience: Duration,
}

/// What a driver is built from.
pub(crate) struct DriverParts<'a> {
    pub(crate) node: Node,
    pub(crate) links: Links,
    pub(crate) training: TrainingThread,
    pub(crate) log: &'a mut EventLog,
    pub(crate) spend_incarnation: Box<dyn Fn() -> Outcome + Send + 'a>,
    pub(crate) evaluate_every: u64,
    pub(crate) rounds_wanted: u64,
    pub(crate) peers: BTreeMap<NodeId, PeerId>,
    pub(crate) receivers: Vec<NodeId>,
    pub(crate) started: Instant,
}

impl<'a> Driver<'a> {
    /// A driver that has not begun.
    pub(crate) fn new(parts: DriverParts<'a>) -> Self {
        Self {
            node: parts.node,
            links: parts.links,
            training: parts.training,
            log: parts.log,
            spend_incarnation: parts.spend_incarnation,
            evaluate_every: parts.evaluate_every,
            rounds_wanted: parts.rounds_wanted,
            peers: parts.peers,
            receivers: parts.receivers,
            started: parts.started,
            rounds: 0,
            train_loss: None,
            evaluating: BTreeMap::new(),
            last_evaluation: None,
            objections: BTreeMap::new(),
            warnings: 0,
            joined: false,
            stopping: false,
            drained: false,
        }
    }

    /// The node, for its model and its books.
    pub(crate) fn into_node(self) -> Node {
        self.node
    }

    /// Runs until the node has drained and its final model is evaluated.
    ///
    /// # Errors
    /// A neighbour refused this peer for good, training failed, or the user insisted on stopping at once.
    pub(crate) async fn run(&mut self, sources: &mut Sources) -> Outcome<Finished> {
        self.feed(Input::Start)?;
        let mut notice = tokio::time::interval(WAITING_NOTICE);
        notice.tick().await;
        while !self.drained {
            tokio::select! {
                Some(event) = sources.edges.recv() => self.on_edge(event)?,
                Some(event) = sources.network.recv() => self.on_network(&event),
                Some(answer) = sources.answers.recv() => self.on_answer(answer)?,
                () = sleep_until(self.wake_at()) => self.feed(Input::Tick)?,
                reason = sources.stop.next() => self.on_stop(reason)?,
                _ = notice.tick() => self.notice_waiting(),
            }
        }
        let rounds = self.rounds;
        self.training.evaluate(u64::MAX, self.node.ratio())?;
        self.linger(sources).await?;
        let evaluation = self.final_evaluation(sources).await?;
        Ok(Finished { evaluation, rounds, sent_bytes: self.links.sent_bytes() })
    }

    /// Closes this peer's own streams and answers the others until they have closed theirs.
    async fn linger(&mut self, sources: &mut Sources) -> Outcome {
        let until = Instant::now() + LINGER;
        for handle in self.links.take_outgoing() {
            tokio::spawn(handle.finish());
        }
        while self.links.any_incoming() {
            tokio::select! {
                Some(event) = sources.edges.recv() => self.on_edge(event)?,
                Some(answer) = sources.answers.recv() => self.on_answer(answer)?,
                () = sleep_until(self.wake_at()) => self.feed(Input::Tick)?,
                _ = sources.stop.next() => break,
                () = tokio::time::sleep_until(until.into()) => break,
            }
        }
        let finishing =
            futures::future::join_all(self.links.take_all().into_iter().map(crate::edge::EdgeHandle::finish));
        // A neighbour that reads nothing any more must not hold this peer up.
        let _ = tokio::time::timeout_at(until.into(), finishing).await;
        Ok(())
    }

    async fn final_evaluation(&mut self, sources: &mut Sources) -> Outcome<Evaluation> {
        loop {
            if let Some((u64::MAX, evaluation)) = self.last_evaluation {
                return Ok(evaluation);
            }
            match sources.answers.recv().await {
                Some(answer) => self.on_answer(answer)?,
                None => return Err(Failure::new(Kind::Training, "the training thread has stopped")),
            }
        }
    }

    fn feed(&mut self, input: Input) -> Outcome {
        for effect in self.node.handle(self.now(), input) {
            self.carry_out(effect)?;
        }
        Ok(())
    }

    fn carry_out(&mut self, effect: Effect) -> Outcome {
        match effect {
            Effect::Send { to, message } => {
                if !self.links.send(to, message) {
                    self.warn(format!("node {to} does not keep up: its streams are opened anew"));
                    let change = self.links.drop_streams(to);
                    self.on_link_change(to, change)?;
                }
            }
            Effect::Train { round, from, local_steps } => self.training.train(round, from, local_steps)?,
            Effect::Report(event) => self.on_node_event(event)?,
            Effect::Drained => self.drained = true,
        }
        Ok(())
    }

    fn on_edge(&mut self, event: EdgeEvent) -> Outcome {
        match event {
            EdgeEvent::Up { node, direction, handle } => {
                let change = self.links.attach(node, direction, handle);
                self.on_link_change(node, change)
            }
            EdgeEvent::Message { node, message } => {
                self.note_last_parcel(node, &message);
                self.feed(Input::Received { from: node, message })
            }
            EdgeEvent::Down { node, direction, stream, error } => {
                if let Some(error) = error {
                    tracing::debug!(%node, ?direction, error, "a stream broke");
                }
                let change = self.links.detach(node, direction, stream);
                self.on_link_change(node, change)
            }
            EdgeEvent::Refused { node, refusal } => self.on_refused(node, &refusal),
        }
    }

    fn on_link_change(&mut self, node: NodeId, change: LinkChange) -> Outcome {
        match change {
            LinkChange::None => Ok(()),
            LinkChange::Up => self.feed(Input::LinkUp { peer: node }),
            LinkChange::Down => self.feed(Input::LinkDown { peer: node }),
        }
    }

    fn note_last_parcel(&mut self, node: NodeId, message: &Message) {
        let link = match message {
            Message::Hello(hello) => &hello.link,
            Message::Ack(ack) => &ack.link,
            _ => return,
        };
        if link.final_seq.is_some() {
            self.links.note_last_parcel(node);
        }
    }

    fn on_refused(&mut self, node: NodeId, refusal: &Refusal) -> Outcome {
        let (patience, hint) = match refusal {
            // Another process with the same identity may be the ghost of a crash, whose end a timeout will show.
            Refusal::IdentityInUse => (
                IDENTITY_PATIENCE,
                "stop the other process; a copied home is the usual cause: give this peer a home and a key of its own",
            ),
            Refusal::OtherPlan { .. } | Refusal::NotANeighbour => {
                (Duration::ZERO, "give all peers the same plan file, or let them fetch it with --bootstrap")
            }
        };
        self.object(node, &format!("refuses this peer: {refusal}"), patience, hint)
    }

    /// A neighbour and this peer do not fit together. One odd neighbour is its own problem: this peer gives up only
    /// when it has not begun and everyone it would send to objects.
    fn object(&mut self, node: NodeId, what: &str, patience: Duration, hint: &str) -> Outcome {
        let sentence = format!("node {node} ({}) {what}", self.name(node));
        let known = self.objections.contains_key(&node);
        let since = self.objections.entry(node).or_insert_with(|| Objection { since: Instant::now(), patience }).since;
        if !known && patience.is_zero() {
            self.warn(sentence.clone());
        }
        let lasting = |node: &NodeId| {
            self.objections.get(node).is_some_and(|objection| objection.since.elapsed() >= objection.patience)
        };
        if !self.joined && since.elapsed() >= patience && self.receivers.iter().all(lasting) {
            return Err(Failure::new(Kind::Refused, sentence).hint(hint));
        }
        Ok(())
    }

    fn on_network(&mut self, event: &NetworkEvent) {
        if let NetworkEvent::DialFailed { peer, attempts } = event
            && !self.joined
        {
            self.log.tell(Event::DialFailed {
                peer: peer.map(|peer| peer.to_string()),
                attempts: attempts.iter().map(ToString::to_string).collect(),
            });
        }
    }

    fn on_answer(&mut self, answer: Answer) -> Outcome {
        match answer {
            Answer::Trained { round, delta, loss } => {
                self.train_loss = Some(loss);
                self.feed(Input::Trained { round, delta })
            }
            Answer::Evaluated { round, evaluation } => {
                self.last_evaluation = Some((round, evaluation));
                if let Some(report) = self.evaluating.remove(&round) {
                    self.tell_evaluation(&report, &evaluation);
                }
                Ok(())
            }
            Answer::Failed(failure) => Err(failure),
        }
    }

    fn tell_evaluation(&mut self, report: &RoundReport, evaluation: &Evaluation) {
        self.log.tell(Event::Evaluated {
            round: report.round + 1,
            accuracy: evaluation.accuracy,
            loss: evaluation.loss,
            train_loss: self.train_loss,
            weight_units: report.mass.units(),
            disagreement: report.disagreement,
            sent_bytes: self.links.sent_bytes(),
        });
    }

    fn on_node_event(&mut self, event: NodeEvent) -> Outcome {
        match event {
            NodeEvent::Started { .. } => {
                (self.spend_incarnation)()?;
                self.joined = true;
                self.log.tell(Event::Joined { neighbours: self.links.neighbours().count() });
            }
            NodeEvent::RoundFinished(report) => self.on_round(&report)?,
            NodeEvent::NeighbourSuspended { peer, reason } => {
                // Neighbours that are done before this peer may leave.
                if self.rounds < self.rounds_wanted {
                    self.log.tell(Event::Suspended { node: peer.index(), reason: in_words(reason).to_owned() });
                }
            }
            NodeEvent::NeighbourBack { peer } => self.log.tell(Event::Resumed { node: peer.index() }),
            NodeEvent::Refused { peer, mismatch } => {
                let hint = "all peers of a swarm need the same --model, --rounds, --seed, kind of data and plan";
                self.object(peer, &format!("does not fit: {mismatch}"), Duration::ZERO, hint)?;
            }
            NodeEvent::MassWrittenOff { peer, mass, parcels } => {
                self.warn(format!(
                    "node {peer} restarted without its state: {parcels} parcels with weight {mass} are given up"
                ));
            }
            NodeEvent::DrainGaveUp { undelivered } => {
                let list: Vec<String> =
                    undelivered.iter().map(|(peer, mass)| format!("{mass} to node {peer}")).collect();
                self.warn(format!("neighbours did not answer at the end; weight under way: {}", list.join(", ")));
            }
            NodeEvent::DeltaSkipped { round, reason } => {
                self.warn(format!("the local steps of round {round} were not taken: {reason:?}"))
            }
            NodeEvent::Ignored { peer, fault } => self.warn(format!("a message of node {peer} was ignored: {fault:?}")),
            NodeEvent::OwnRatioUnusable { step } => {
                self.warn(format!(
                    "the model is no longer finite at step {step}: nothing more is sent; lower the learning rate"
                ));
            }
            other => tracing::debug!(?other, "node"),
        }
        Ok(())
    }

    fn on_round(&mut self, report: &RoundReport) -> Outcome {
        self.rounds = report.round + 1;
        self.log.tell(Event::Round { round: self.rounds, weight_units: report.mass.units() });
        if self.rounds % self.evaluate_every == 0 || self.rounds == self.rounds_wanted {
            self.evaluating.insert(report.round, *report);
            self.training.evaluate(report.round, self.node.ratio())?;
        }
        Ok(())
    }

    fn on_stop(&mut self, reason: &str) -> Outcome {
        if self.stopping {
            return Err(Failure::new(
                Kind::Forced,
                format!(
                    "stopped at once, after round {}: this peer's weight {} is lost to the swarm",
                    self.rounds,
                    self.node.w()
                ),
            ));
        }
        self.stopping = true;
        self.log.tell(Event::Stopping { round: self.rounds, reason: reason.to_owned() });
        self.feed(Input::Stop)
    }

    fn notice_waiting(&mut self) {
        let missing: Vec<usize> = self.node.missing_neighbours().iter().map(|node| node.index()).collect();
        if !self.joined && !missing.is_empty() {
            self.log.tell(Event::Waiting { missing });
        }
    }

    fn warn(&mut self, message: String) {
        self.warnings += 1;
        if self.warnings <= MAX_WARNINGS {
            self.log.tell(Event::Warning { message });
        } else {
            tracing::warn!(message);
        }
    }

    fn name(&self, node: NodeId) -> String {
        self.peers.get(&node).map_or_else(|| "unknown".to_owned(), PeerId::to_string)
    }

    fn now(&self) -> Time {
        Time(u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    /// When the node wants to be woken.
    fn wake_at(&self) -> Option<Instant> {
        let deadline = self.node.next_deadline()?;
        self.started.checked_add(Duration::from_micros(deadline.micros()))
    }
}

fn in_words(reason: Suspension) -> &'static str {
    match reason {
        Suspension::Late => "it let a deadline pass",
        Suspension::Silent => "it has said nothing for three heartbeats",
        Suspension::LinkDown => "its link is down",
    }
}

async fn sleep_until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant.into()).await,
        None => std::future::pending().await,
    }
}
