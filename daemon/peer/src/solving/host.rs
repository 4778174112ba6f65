//! A solver's node among real peers: the event loop that gives it streams and a clock.

mod ending;
mod showing;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::Explain;
use mingle_federated_training::RoundFiles;
use mingle_net::edge::EdgeEvent;
use mingle_net::neighbour_table::LinkChange;
use mingle_net::objections::Objection;
use mingle_net::token_bucket::TokenBucket;
use mingle_net::transport::NetworkEvent;
use mingle_protocol::{Envelope, Message, NodeId};
use mingle_solving::{CommunicationPlan, Finding, Problem, ProblemTask, Reception, SolverPeer, Sums};
use tokio::sync::oneshot;

use super::attempt::AttemptFile;
use crate::api::{Request, Stopping};
use crate::connections::News;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::event_loop::{EventReceivers, LoopEvent};
use crate::events::Event;
use crate::member::Member;
use crate::membership::{CheckedPlan, PlanVerdict, Standing, Wanted};

/// Time without progress after which a node repeats messages that may be lost.
const PATIENCE: Duration = Duration::from_secs(1);
/// Interval of notices to the user while neighbours are missing.
const WAITING_NOTICE: Duration = Duration::from_secs(5);
/// Interval of checks of a stream without room.
const ROOM_PAUSE: Duration = Duration::from_millis(1);

const NO_THREAD: &str = "cannot start the thread that learns";

/// The event loop and its state.
struct Host<'a, 'b> {
    member: &'a mut Member<'b>,
    problem: &'a Problem,
    peer: SolverPeer,
    attempts: AttemptFile,
    /// Messages that wait for room on a stream, by neighbour.
    backlog: BTreeMap<NodeId, VecDeque<Envelope>>,
    /// Neighbours that the user was warned about.
    named: BTreeSet<NodeId>,
    /// Neighbours to which all streams were open once.
    met: BTreeSet<NodeId>,
    joined: bool,
    /// The operator's newer plan.
    newer: Option<Box<CheckedPlan>>,
    /// Number of collectives begun at the last check for progress.
    turns: u64,
    told: showing::Reported,
    /// End of the local work under way, if there is any.
    working: Option<oneshot::Receiver<()>>,
    /// Limit on restarts that each neighbour may cause.
    restarts: BTreeMap<NodeId, TokenBucket>,
}

/// Limits on new attempts caused by one neighbour: at once, and then per second. A peer that restarts repeatedly, or
/// claims to, must not keep all others from ever finishing.
const RESTARTS_AT_ONCE: f64 = 8.0;
const RESTARTS_PER_SECOND: f64 = 1.0 / 60.0;

/// The end of a peer's part.
pub(crate) enum End {
    /// The solution is in files in the home, and all neighbours have what they need of this peer.
    Solved,
    /// The operator has another plan, along which all begin anew.
    Replanned(Box<CheckedPlan>),
}

/// Takes part in solving the problem along one plan.
///
/// # Errors
/// The problem cannot be solved, neighbours refuse this peer, or it is stopped.
pub(crate) async fn take_part(
    member: &mut Member<'_>,
    problem: &Problem,
    communication: Arc<CommunicationPlan>,
    sums: Sums,
    fresh: bool,
    receivers: &mut EventReceivers,
) -> Result<End> {
    let place = &member.connections.place;
    let part = match &problem.task {
        ProblemTask::Rounds(_) => {
            let store = Box::new(RoundFiles::open(member.home.rounds(), member.home.privacy(), fresh)?);
            problem.part_that_keeps(place.node.index(), store)
        }
        _ => problem.part(place.node.index()),
    };
    let part = part.map_err(Explain::explain)?;
    showing::tell_data(member, &part);
    let attempts = AttemptFile::of(member.home, &place.hash, problem)?;
    let attempt = attempts.begin()?;
    let process = getrandom::u32().context(ErrorKind::Unexpected, "the operating system gives no random numbers")?;
    let peer = SolverPeer::new(place.node.index(), problem, part, communication, attempt, sums).with_process(process);
    let mut host = Host {
        member,
        problem,
        peer,
        attempts,
        backlog: BTreeMap::new(),
        named: BTreeSet::new(),
        met: BTreeSet::new(),
        joined: false,
        newer: None,
        turns: 0,
        told: showing::Reported::default(),
        working: None,
        restarts: BTreeMap::new(),
    };
    host.run(receivers).await
}

impl Host<'_, '_> {
    async fn run(&mut self, receivers: &mut EventReceivers) -> Result<End> {
        loop {
            let found = self.solve(receivers).await;
            if let Some(newer) = self.newer.take() {
                self.attempts.end()?;
                return Ok(End::Replanned(newer));
            }
            let finding = match found {
                Ok(Some(finding)) => finding,
                // Only a newer plan ends it without a finding.
                Ok(None) => continue,
                // The others cannot go on without a peer that is stopped: there is nothing to wait for.
                Err(failure) if failure.is(ErrorKind::Forced) => return Err(failure),
                Err(failure) => {
                    // The first failure is the one to report.
                    let _ = self.linger(receivers).await;
                    return Err(failure);
                }
            };
            let written = self.write(&finding);
            match self.linger(receivers).await {
                Ok(true) => {}
                // A neighbour that was started again needs another attempt.
                Ok(false) => continue,
                // The peer has its solution: failures of others from now on are no reason to lose it.
                Err(failure) => self.member.log.tell(Event::Warning { message: format!("{failure:#}") }),
            }
            if let Err(failure) = written {
                self.write_when_possible(&finding, failure, receivers).await?;
            }
            self.attempts.end()?;
            self.member.connections.end().await;
            self.tell_end(&finding);
            return finding.not_solved().map_or(Ok(End::Solved), |failure| Err(failure.explain()));
        }
    }

    /// Takes part until there is an outcome, or another plan.
    async fn solve(&mut self, receivers: &mut EventReceivers) -> Result<Option<Finding>> {
        let mut patience = tokio::time::interval(PATIENCE);
        let mut notice = tokio::time::interval(WAITING_NOTICE);
        patience.tick().await;
        notice.tick().await;
        self.go_on()?;
        loop {
            match self.peer.outcome() {
                Some(Ok(finding)) => return Ok(Some(finding.clone())),
                Some(Err(failure)) => return Err(failure.clone().explain()),
                None if self.newer.is_some() => return Ok(None),
                None => {}
            }
            self.show();
            tokio::select! {
                event = receivers.next() => {
                    if let Some(reason) = self.on_event(event?)? {
                        return Err(stopped(&reason));
                    }
                }
                () = tokio::time::sleep(ROOM_PAUSE), if !self.backlog.is_empty() => {}
                _ = patience.tick() => self.be_patient(),
                _ = notice.tick() => self.notice_waiting(),
                done = ended(&mut self.working) => self.on_worked(done)?,
            }
            self.go_on()?;
        }
    }

    /// Begins the local work that is due, and sends the node's messages.
    fn go_on(&mut self) -> Result {
        if self.working.is_none()
            && let Some(work) = self.peer.local_work()
        {
            let (done, working) = oneshot::channel();
            let run = move || {
                work.run();
                // A peer that is stopped no longer waits for it.
                let _ = done.send(());
            };
            thread::Builder::new().name("learning".to_owned()).spawn(run).context(ErrorKind::Unexpected, NO_THREAD)?;
            self.working = Some(working);
        }
        self.send();
        Ok(())
    }

    fn on_worked(&mut self, done: bool) -> Result {
        self.working = None;
        if !done {
            return Err(Error::new(ErrorKind::Unexpected, "the thread that learns has died"));
        }
        self.peer.worked();
        Ok(())
    }

    /// Handles an event. Returns the reason if the peer is to stop.
    fn on_event(&mut self, event: LoopEvent) -> Result<Option<String>> {
        match event {
            LoopEvent::Edge(event) => self.on_edge(event)?,
            LoopEvent::Network(NetworkEvent::DialFailed { peer, attempts }) if !self.joined => {
                self.member.tell_dial_failure(peer, &attempts);
            }
            LoopEvent::Wanted(wanted) => self.on_wanted(wanted),
            LoopEvent::Request(request) => return Ok(self.answer(request).then(|| "asked to stop".to_owned())),
            LoopEvent::Stop(reason) => return Ok(Some(reason)),
            // This peer trains nothing, and keeps no records.
            LoopEvent::Network(_) | LoopEvent::Answer(_) | LoopEvent::Written(_) => {}
        }
        Ok(None)
    }

    fn on_edge(&mut self, event: EdgeEvent) -> Result {
        match self.member.connections.hear(event) {
            News::Link(node, LinkChange::Up) => self.on_link_up(node),
            News::Message(node, Message::Collective(envelope)) => return self.on_envelope(node, &envelope),
            News::Message(node, Message::Hello(_)) => return self.object(node, Objection::trains()),
            News::Refused(node, refusal) if refusal.is_about_plans() && self.member.compare_plans(node) => {}
            News::Refused(node, refusal) => return self.object(node, Objection::refusal(&refusal)),
            News::Notice(message) => self.member.warn(message),
            News::Link(..) | News::Message(..) => {}
        }
        Ok(())
    }

    /// Neighbours that have never been connected.
    fn missing(&self) -> Vec<usize> {
        self.neighbours_except(&self.met)
    }

    /// Names neighbours without a link to the user, those that were connected before too: none can be gone for good
    /// while the problem is unsolved.
    fn notice_waiting(&mut self) {
        let up = self.member.connections.links.up().into_iter().collect();
        let missing = self.neighbours_except(&up);
        if let Some(waited_s) = self.told.waited_s(missing.is_empty()) {
            self.member.log.tell(Event::Waiting { missing, waited_s });
        }
    }

    fn neighbours_except(&self, some: &BTreeSet<NodeId>) -> Vec<usize> {
        let (out, inward) = self.member.connections.place.neighbours();
        let all: BTreeSet<NodeId> = out.into_keys().chain(inward.into_keys()).collect();
        all.difference(some).map(|node| node.index()).collect()
    }

    fn on_link_up(&mut self, node: NodeId) {
        self.backlog.remove(&node);
        self.met.insert(node);
        self.peer.resend();
        if !self.joined && self.missing().is_empty() {
            self.joined = true;
            self.member.log.tell(Event::Met { neighbours: self.met.len() });
        }
    }

    fn may_begin_anew(&mut self, from: NodeId) -> bool {
        let full = TokenBucket::new(RESTARTS_AT_ONCE, RESTARTS_PER_SECOND);
        self.restarts.entry(from).or_insert(full).take(Instant::now())
    }

    fn on_envelope(&mut self, from: NodeId, envelope: &Envelope) -> Result {
        if self.peer.would_begin_anew(from, envelope) && !self.may_begin_anew(from) {
            // Its sender will repeat it.
            return Ok(());
        }
        match self.peer.handle(from, envelope) {
            Ok(Reception::Taken) => Ok(()),
            Ok(Reception::OtherProblem) => self.object(from, Objection::other_problem()),
            Ok(Reception::NewAttempt(attempt)) => {
                // Before this peer sends anything in that attempt.
                self.attempts.note(attempt)?;
                self.backlog.clear();
                self.told.residual = f64::INFINITY;
                self.member.warn(begins_anew(&self.problem.task, attempt));
                Ok(())
            }
            Err(fault) => {
                if self.named.insert(from) {
                    let message = format!("node {from} sent what no sound peer sends: {fault}");
                    self.member.log.tell(Event::Warning { message });
                }
                self.member.connections.links.drop_streams(from);
                Ok(())
            }
        }
    }

    fn object(&mut self, node: NodeId, objection: Objection) -> Result {
        self.member.object(node, objection).refused.map_or(Ok(()), Err)
    }

    /// Answers requests of others to a peer that does not train.
    fn on_wanted(&mut self, wanted: Wanted) {
        match self.member.answer(wanted) {
            // The receiver of the answer may be gone.
            Some(Wanted::Model(answer)) => drop(answer.send(None)),
            Some(Wanted::Standing(answer)) => drop(answer.send(Standing::default())),
            Some(Wanted::Plan(plan, answer)) => drop(answer.send(self.on_plan(plan))),
            _ => {}
        }
    }

    fn on_plan(&mut self, plan: Box<CheckedPlan>) -> PlanVerdict {
        if let Some(verdict) = self.member.verdict_on(&plan) {
            return verdict;
        }
        if self.peer.outcome().is_some() {
            return PlanVerdict::Refused("this peer has solved its problem by the old plan, and is going".to_owned());
        }
        self.newer = Some(plan);
        PlanVerdict::Taken
    }

    /// Answers a request through the local interface. Returns `true` if the peer is to stop.
    fn answer(&mut self, request: Request) -> bool {
        let Request::Stop(answer) = request else {
            request.decline();
            return false;
        };
        let round = self.peer.journal().read().iterations;
        let rounds = self.problem.limits.iterations;
        // The client may be gone.
        let _ = answer.send(Stopping { round, rounds, weight_units: 0, durable: false });
        true
    }

    /// Moves all messages of the node into the streams, as far as there is room.
    fn send(&mut self) {
        while let Some((to, envelope)) = self.peer.poll() {
            self.backlog.entry(to).or_default().push_back(envelope);
        }
        let links = &self.member.connections.links;
        self.backlog.retain(|to, waiting| {
            while links.has_room(*to)
                && let Some(envelope) = waiting.pop_front()
            {
                links.send(*to, Message::Collective(envelope));
            }
            !waiting.is_empty()
        });
    }

    /// Repeats messages that may be lost, if nothing has moved since the last check.
    fn be_patient(&mut self) {
        self.show_links();
        let turns = self.peer.turns();
        if turns == self.turns && self.peer.is_owed() && self.backlog.is_empty() {
            self.peer.resend();
        }
        self.turns = turns;
    }
}

/// Waits for the thread that does local work, for ever if there is none. Returns `false` if it died.
async fn ended(working: &mut Option<oneshot::Receiver<()>>) -> bool {
    match working {
        Some(working) => working.await.is_ok(),
        None => std::future::pending().await,
    }
}

/// A description of a further attempt: nothing that was kept is lost.
fn begins_anew(task: &ProblemTask, attempt: u64) -> String {
    let from = match task {
        ProblemTask::Rounds(_) => "the last round that all of them have kept",
        _ => "what each holds of the solution; the one that was started again from nothing",
    };
    format!("a peer was started again: all begin attempt {attempt}, from {from}")
}

fn stopped(reason: &str) -> Error {
    Error::new(ErrorKind::Forced, format!("{reason} before the problem was solved"))
        .hint("started again, this peer makes all others begin a new attempt, from where they are")
}
