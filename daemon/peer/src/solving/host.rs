//! A solver's node among real peers: the event loop that gives it streams and a clock.

mod ending;
mod showing;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mingle_net::edge::{EdgeEvent, Refusal};
use mingle_net::neighbour_table::LinkChange;
use mingle_net::transport::NetworkEvent;
use mingle_protocol::{Envelope, Message, NodeId};
use mingle_solving::{Problem, Reception, Solution, SolverPeer, Ways};
use tokio::sync::mpsc;

use super::attempt::AttemptFile;
use crate::api::{Request, Stopping};
use crate::error::{Error, ErrorKind, Result};
use crate::events::{Event, EventLog};
use crate::home::Home;
use crate::membership::{CheckedPlan, Standing, Verdict, Wanted};
use crate::objections::{Objection, Objections};
use crate::status::StatusBoard;
use crate::stop::StopRequests;
use crate::wiring::Wiring;

/// A node that has got nowhere for so long says again what may be lost.
const PATIENCE: Duration = Duration::from_secs(1);
/// While neighbours are missing, the user hears so this often.
const WAITING_NOTICE: Duration = Duration::from_secs(5);
/// While a stream has no room, so long until it is looked at again.
const ROOM_PAUSE: Duration = Duration::from_millis(1);

/// Everything that can happen to the loop, by where it comes from.
pub(crate) struct Ears {
    pub edges: mpsc::Receiver<EdgeEvent>,
    pub network: mpsc::Receiver<NetworkEvent>,
    pub wanted: mpsc::Receiver<Wanted>,
    pub stop: StopRequests,
    pub requests: mpsc::Receiver<Request>,
}

/// What a host is built from.
pub(crate) struct HostParts<'a> {
    pub problem: &'a Problem,
    pub ways: Arc<Ways>,
    /// Whether its plans come from an operator.
    pub has_operator: bool,
    pub wiring: Wiring,
    pub home: &'a Home,
    pub log: &'a mut EventLog,
    pub board: &'a StatusBoard,
    pub started: Instant,
}

/// The event loop and what it works with.
struct Host<'a> {
    parts: HostParts<'a>,
    peer: SolverPeer,
    attempts: AttemptFile,
    /// What waits for room on a stream, by neighbour.
    backlog: BTreeMap<NodeId, VecDeque<Envelope>>,
    objections: Objections,
    /// Neighbours that a person was told of.
    named: BTreeSet<NodeId>,
    /// Neighbours to whom all streams were open once.
    met: BTreeSet<NodeId>,
    joined: bool,
    /// The operator's newer plan.
    newer: Option<Box<CheckedPlan>>,
    /// The collectives begun when patience began.
    turns: u64,
    told: f64,
}

/// How a peer's part ended.
pub(crate) enum End {
    /// The solution is there, in files in the home, and all neighbours have what they need of this peer.
    Solved,
    /// The operator has another plan: all begin anew along that.
    Replanned(Box<CheckedPlan>),
}

/// Takes part in solving the problem along one plan.
///
/// # Errors
/// The problem cannot be solved, neighbours refuse this peer, or it is stopped.
pub(crate) async fn take_part(parts: HostParts<'_>, ears: &mut Ears) -> Result<End> {
    let place = &parts.wiring.place;
    let part = parts.problem.part(place.node.index())?;
    let attempts = AttemptFile::of(parts.home, &place.hash, parts.problem)?;
    let attempt = attempts.begin()?;
    let peer = SolverPeer::new(place.node.index(), parts.problem, part, Arc::clone(&parts.ways), attempt);
    let mut host = Host {
        parts,
        peer,
        attempts,
        backlog: BTreeMap::new(),
        objections: Objections::default(),
        named: BTreeSet::new(),
        met: BTreeSet::new(),
        joined: false,
        newer: None,
        turns: 0,
        told: f64::INFINITY,
    };
    host.run(ears).await
}

impl Host<'_> {
    async fn run(&mut self, ears: &mut Ears) -> Result<End> {
        loop {
            let found = self.solve(ears).await;
            if let Some(newer) = self.newer.take() {
                self.attempts.end()?;
                self.parts.wiring.end().await;
                return Ok(End::Replanned(newer));
            }
            let solution = match found {
                Ok(Some(solution)) => solution,
                // Only a newer plan ends it without.
                Ok(None) => continue,
                // The others cannot go on without a peer that is stopped: there is nothing to wait for.
                Err(failure) if failure.is(ErrorKind::Forced) => return Err(failure),
                Err(failure) => {
                    // What went wrong first is what to tell.
                    let _ = self.linger(ears).await;
                    return Err(failure);
                }
            };
            let written = self.write(&solution);
            match self.linger(ears).await {
                Ok(true) => {}
                // A neighbour that was started again needs another attempt.
                Ok(false) => continue,
                // It has its solution: what the others do now is no reason to lose it.
                Err(failure) => self.parts.log.tell(Event::Warning { message: format!("{failure:#}") }),
            }
            if let Err(failure) = written {
                self.write_when_possible(&solution, failure, ears).await?;
            }
            self.attempts.end()?;
            let traffic = self.parts.wiring.end().await;
            self.tell_end(&solution, traffic);
            return solution.not_solved().map_or(Ok(End::Solved), |failure| Err(failure.into()));
        }
    }

    /// Goes along until there is an outcome, or another plan.
    async fn solve(&mut self, ears: &mut Ears) -> Result<Option<Solution>> {
        let (mut patience, mut notice) = (tokio::time::interval(PATIENCE), tokio::time::interval(WAITING_NOTICE));
        patience.tick().await;
        notice.tick().await;
        self.send();
        loop {
            match self.peer.outcome() {
                Some(Ok(solution)) => return Ok(Some(solution.clone())),
                Some(Err(failure)) => return Err(failure.clone().into()),
                None if self.newer.is_some() => return Ok(None),
                None => {}
            }
            self.show();
            tokio::select! {
                Some(event) = ears.edges.recv() => self.on_edge(event)?,
                Some(event) = ears.network.recv() => self.on_network(&event),
                Some(wanted) = ears.wanted.recv() => self.on_wanted(wanted),
                Some(request) = ears.requests.recv() => {
                    if self.answer(request) {
                        return Err(stopped("asked to stop"));
                    }
                }
                reason = ears.stop.next() => return Err(stopped(&reason)),
                () = tokio::time::sleep(ROOM_PAUSE), if !self.backlog.is_empty() => {}
                _ = patience.tick() => self.be_patient(),
                _ = notice.tick() => self.notice_waiting(),
            }
            self.send();
        }
    }

    fn on_edge(&mut self, event: EdgeEvent) -> Result {
        match event {
            EdgeEvent::Up { node, direction, handle } => {
                self.objections.withdraw(node);
                if self.parts.wiring.links.attach(node, direction, handle) == LinkChange::Up {
                    self.on_link_up(node);
                }
                Ok(())
            }
            EdgeEvent::Message { node, message: Message::Collective(envelope) } => self.on_envelope(node, &envelope),
            EdgeEvent::Message { node, message: Message::Hello(_) } => self.object(node, Objection::trains()),
            EdgeEvent::Message { .. } => Ok(()),
            EdgeEvent::Down { node, direction, stream, error } => {
                if let Some(error) = &error {
                    tracing::debug!(%node, ?direction, error, "a stream broke");
                }
                self.parts.wiring.links.detach(node, direction, stream, error.is_none());
                Ok(())
            }
            // Where there is an operator, one of the two has not heard of the newest plan yet.
            EdgeEvent::Refused { refusal, .. } if self.parts.has_operator && is_about_plans(&refusal) => Ok(()),
            EdgeEvent::Refused { node, refusal } => self.object(node, Objection::refusal(&refusal)),
        }
    }

    /// Neighbours that were never there.
    fn missing(&self) -> Vec<usize> {
        let (out, inward) = self.parts.wiring.place.neighbours();
        let all: BTreeSet<NodeId> = out.into_keys().chain(inward.into_keys()).collect();
        all.difference(&self.met).map(|node| node.index()).collect()
    }

    fn notice_waiting(&mut self) {
        let missing = self.missing();
        if !missing.is_empty() {
            self.parts.log.tell(Event::Waiting { missing });
        }
    }

    fn on_link_up(&mut self, node: NodeId) {
        self.backlog.remove(&node);
        self.met.insert(node);
        self.peer.resend();
        if !self.joined && self.missing().is_empty() {
            self.joined = true;
            self.parts.log.tell(Event::Met { neighbours: self.met.len() });
        }
    }

    fn on_envelope(&mut self, from: NodeId, envelope: &Envelope) -> Result {
        match self.peer.handle(from, envelope) {
            Ok(Reception::Taken) => Ok(()),
            Ok(Reception::OtherProblem) => self.object(from, Objection::other_problem()),
            Ok(Reception::NewAttempt(attempt)) => {
                // Before anybody hears of this peer in that attempt.
                self.attempts.note(attempt)?;
                self.backlog.clear();
                self.told = f64::INFINITY;
                let message = format!("a peer was started again and has lost its part: all begin attempt {attempt}");
                self.parts.log.tell(Event::Warning { message });
                Ok(())
            }
            Err(fault) => {
                if self.named.insert(from) {
                    let message = format!("node {from} sent what no sound peer sends: {fault}");
                    self.parts.log.tell(Event::Warning { message });
                }
                self.parts.wiring.links.drop_streams(from);
                Ok(())
            }
        }
    }

    fn object(&mut self, node: NodeId, objection: Objection) -> Result {
        let sentence = format!("node {node} {}", objection.what);
        let hint = objection.hint;
        if self.objections.raise(node, objection) {
            self.parts.log.tell(Event::Warning { message: sentence.clone() });
        }
        if self.objections.are_final(self.parts.wiring.receivers()) {
            return Err(Error::new(ErrorKind::Refused, sentence).hint(hint));
        }
        Ok(())
    }

    fn on_network(&mut self, event: &NetworkEvent) {
        if let NetworkEvent::DialFailed { peer, attempts } = event
            && !self.joined
        {
            tracing::debug!(?peer, ?attempts, "cannot be dialled");
        }
    }

    /// Answers what others want of a peer that does not train.
    fn on_wanted(&mut self, wanted: Wanted) {
        match wanted {
            // Whoever asked may be gone.
            Wanted::Model(answer) => drop(answer.send(None)),
            Wanted::Standing(answer) => drop(answer.send(Standing::default())),
            Wanted::Plan(plan, answer) => drop(answer.send(self.on_plan(plan))),
            Wanted::PlanWithModel(..) | Wanted::OtherTask(..) => {}
            Wanted::Knocked(peer) => self.parts.log.tell(Event::Knocked { peer: peer.to_string() }),
            Wanted::Warning(message) => self.parts.log.tell(Event::Warning { message }),
        }
    }

    fn on_plan(&mut self, plan: Box<CheckedPlan>) -> Verdict {
        let (ours, theirs) = (self.parts.wiring.place.plan.generation(), plan.generation());
        if theirs == ours {
            return Verdict::Known;
        }
        if !theirs.replaces(&ours) {
            return Verdict::Older(self.parts.wiring.place.plan.offer.clone());
        }
        if self.peer.outcome().is_some() {
            return Verdict::Refused("this peer has solved its problem by the old plan, and is going".to_owned());
        }
        self.newer = Some(plan);
        Verdict::Taken
    }

    /// Answers what is asked through the local interface; returns whether it is to stop.
    fn answer(&mut self, request: Request) -> bool {
        match request {
            Request::Stop(answer) => {
                let round = self.peer.journal().read().iterations;
                let rounds = self.parts.problem.limits.iterations;
                // Whoever asked may have gone.
                let _ = answer.send(Stopping { round, rounds, weight_units: 0, durable: false });
                true
            }
            Request::Leave(answer) => {
                let _ = answer.send(None);
                false
            }
        }
    }

    /// Puts all that the node has to say into the streams, as far as there is room.
    fn send(&mut self) {
        while let Some((to, envelope)) = self.peer.poll() {
            self.backlog.entry(to).or_default().push_back(envelope);
        }
        let links = &self.parts.wiring.links;
        self.backlog.retain(|to, waiting| {
            while links.has_room(*to)
                && let Some(envelope) = waiting.pop_front()
            {
                links.send(*to, Message::Collective(envelope));
            }
            !waiting.is_empty()
        });
    }

    /// Says again what may be lost, if nothing has moved since the last time.
    fn be_patient(&mut self) {
        self.show_links();
        let turns = self.peer.turns();
        if turns == self.turns && self.peer.is_owed() && self.backlog.is_empty() {
            self.peer.resend();
        }
        self.turns = turns;
    }
}

fn is_about_plans(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::OtherPlan { .. } | Refusal::NotANeighbour)
}

fn stopped(reason: &str) -> Error {
    Error::new(ErrorKind::Forced, format!("{reason} before the problem was solved"))
        .hint("started again, this peer makes all others begin a new attempt, from where they are")
}
