//! The members of a scenario, their messages and their faults, on virtual time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use mingle_federated::{FederatedSettings, SharedPrivacy};
use mingle_privacy::{PrivacySettings, ProtectedUnit};
use mingle_protocol::collective::{OperationMessage, SizeLimits};
use mingle_protocol::sim::Agenda;
use mingle_protocol::{Envelope, NodeId, Time};
use mingle_solving::{
    CommunicationPlan, Finding, MarkedFrame, MemoryStore, Part, Problem, Reception, RoundPart, RoundTask, SolverPeer,
    SumProtection, Sums, schedule,
};
use rand::{Rng, RngExt};

use super::SumsOutcome;
use super::member::{Numbers, SharedDisk, SumsTask, WatchedLearning};
use super::scenario::{FoundDisk, SumsFault, SumsScenario};
use super::tampering::{Distortion, Liar, Withholder};
use super::witness::{Life, Witness};

/// The shortest delay of a message; the longest is twice that.
const DELAY: Duration = Duration::from_millis(1);
/// The time without progress after which a member retransmits.
const PATIENCE: Duration = Duration::from_millis(4);
/// The virtual time after which all have to be done.
const LIMIT: Duration = Duration::from_secs(60);
/// The virtual time of a swarm with a member that lies.
const LIMIT_WITH_LIES: Duration = Duration::from_secs(2);
/// Words of the longest message.
const LONGEST: usize = 1 << 17;

/// A process of a member, or none while it is dead, and its home.
struct SimulatedMember {
    peer: Option<SolverPeer>,
    sums: Sums,
    disk: SharedDisk,
    /// The attempt that its home remembers.
    attempt: Option<u64>,
    /// An older copy of the disk, with the attempt at that time.
    copy: Option<(MemoryStore, Option<u64>)>,
    trained: Arc<AtomicU32>,
    processes: u32,
    /// The number of collectives begun at the last check for retransmission.
    turns: u64,
}

enum SumsEvent {
    Arrival { from: usize, to: usize, envelope: Envelope },
    Look(usize),
    Start(usize),
    Fault(SumsFault),
    Reconnect([usize; 2]),
}

pub(super) struct SumsSwarm {
    scenario: SumsScenario,
    task: Arc<SumsTask>,
    problem: Problem,
    names: Arc<Vec<String>>,
    communication: Arc<CommunicationPlan>,
    members: Vec<SimulatedMember>,
    liar: Option<Liar>,
    cut: BTreeSet<[usize; 2]>,
    withholder: Withholder,
    agenda: Agenda<SumsEvent>,
    now: Time,
    witness: Witness,
    outcome: SumsOutcome,
}

impl SumsSwarm {
    /// The swarm of a scenario.
    ///
    /// # Errors
    /// The scenario makes no plan or problem.
    pub(super) fn new(mut scenario: SumsScenario) -> Result<Self, String> {
        let plan = scenario.plan()?;
        let names: Arc<Vec<String>> = Arc::new(plan.nodes().map(|(name, _)| name.to_owned()).collect());
        let task = Arc::new(task(&scenario)?);
        let shared: Arc<dyn RoundTask> = Arc::clone(&task) as Arc<dyn RoundTask>;
        let problem = Problem::of_rounds(shared, Arc::clone(&names));
        let schedule = schedule(&plan).map_err(|error| error.to_string())?;
        let communication = problem.communication(&plan, Arc::new(schedule)).map_err(|error| error.to_string())?;
        let root = root(&communication);
        let liar = scenario.lies.map(|share| {
            let other = (root + scenario.dice.random_range(1..scenario.nodes)) % scenario.nodes;
            Liar::new(other, share)
        });
        let witness = Witness::new(scenario.nodes, root, liar.as_ref().map(|liar| liar.node), scenario.releases());
        let outcome = SumsOutcome { seed: scenario.seed, nodes: scenario.nodes as u32, ..SumsOutcome::default() };
        let mut swarm = Self {
            task,
            problem,
            names,
            communication: Arc::new(communication),
            members: members(&scenario),
            liar,
            cut: BTreeSet::new(),
            withholder: Withholder::new(root, scenario.dimension),
            agenda: Agenda::default(),
            now: Time::default(),
            witness,
            outcome,
            scenario,
        };
        for (at, fault) in swarm.scenario.faults.clone() {
            swarm.agenda.add(at, SumsEvent::Fault(fault));
        }
        for node in 0..swarm.members.len() {
            swarm.agenda.add(Time::default(), SumsEvent::Start(node));
            swarm.agenda.add(Time::default() + PATIENCE, SumsEvent::Look(node));
        }
        Ok(swarm)
    }

    /// Runs to the end, and checks it.
    pub(super) fn run(mut self) -> SumsOutcome {
        let limit = Time::default() + if self.liar.is_some() { LIMIT_WITH_LIES } else { LIMIT };
        while let Some((at, _)) = self.agenda.next(self.now).filter(|(at, _)| *at <= limit) {
            let Some(event) = self.agenda.pop(at) else { break };
            self.now = at;
            if let Err(failure) = self.happen(event) {
                self.outcome.failure.get_or_insert(failure);
            }
            self.end_withholding();
            let has_failed = self.outcome.failure.is_some() || self.witness.see().failure.is_some();
            if has_failed || self.is_over() {
                break;
            }
        }
        self.conclude()
    }

    fn happen(&mut self, event: SumsEvent) -> Result<(), String> {
        match event {
            SumsEvent::Arrival { from, to, envelope } => return self.arrive(from, to, &envelope),
            SumsEvent::Look(node) => self.look(node),
            SumsEvent::Start(node) => return self.start(node),
            SumsEvent::Fault(fault) => self.befall(fault),
            SumsEvent::Reconnect(pair) => {
                self.cut.remove(&pair);
            }
        }
        Ok(())
    }

    fn befall(&mut self, fault: SumsFault) {
        match fault {
            SumsFault::Copy { node } => self.copy(node),
            SumsFault::Withhold { away } => {
                self.copy(self.withholder.root);
                self.withholder.begin(away, self.witness.see().sums);
            }
            SumsFault::Cut { between, away } => {
                self.outcome.link_cuts += u64::from(self.cut.insert(ordered(between)));
                self.agenda.add(self.now + away, SumsEvent::Reconnect(ordered(between)));
            }
            SumsFault::Kill { node, disk, away } => self.kill(node, disk, away),
        }
    }

    fn copy(&mut self, node: usize) {
        let member = &mut self.members[node];
        member.copy = Some((member.disk.copy(), member.attempt));
    }

    /// Ends the root as soon as it has a sum that no other has. Its disk is as it was before.
    fn end_withholding(&mut self) {
        let sums = self.witness.see().sums;
        if let Some(away) = self.withholder.end(sums) {
            self.outcome.withheld += 1;
            self.kill(self.withholder.root, FoundDisk::PutBack, away);
        }
    }

    fn kill(&mut self, node: usize, disk: FoundDisk, away: Duration) {
        let member = &mut self.members[node];
        if member.peer.take().is_none() {
            return;
        }
        self.outcome.kills += 1;
        let found = match disk {
            FoundDisk::Whole => None,
            FoundDisk::Empty => Some((MemoryStore::default(), None)),
            FoundDisk::PutBack => member.copy.clone(),
        };
        if let Some((found, attempt)) = found {
            self.outcome.disk_faults += 1;
            self.outcome.rollbacks += u64::from(disk == FoundDisk::PutBack);
            member.disk.put_back(found);
            member.attempt = attempt;
            self.witness.see().disk_changed(node);
        }
        self.agenda.add(self.now + away, SumsEvent::Start(node));
    }

    fn start(&mut self, node: usize) -> Result<(), String> {
        let member = &mut self.members[node];
        member.processes += 1;
        let attempt = member.attempt.map_or(0, |last| last + 1);
        member.attempt = Some(attempt);
        let life = Life { process: member.processes, attempt };
        self.witness.see().lives(node, life);
        let model = Numbers {
            node,
            dimension: self.scenario.dimension,
            is_restless: self.scenario.is_restless,
            trained: Arc::clone(&member.trained),
        };
        let learning =
            WatchedLearning::new(&self.task, &self.names, model, self.witness.clone(), self.scenario.weakness)
                .map_err(|error| error.to_string())?;
        let task: Arc<dyn RoundTask> = Arc::clone(&self.task) as Arc<dyn RoundTask>;
        let part = Part::Rounds(RoundPart::new(task, Box::new(learning), Box::new(member.disk.clone())));
        let communication = Arc::clone(&self.communication);
        let sums = member.sums.clone();
        let peer = SolverPeer::new(node, &self.problem, part, communication, attempt, sums);
        member.peer = Some(peer.with_process(member.processes));
        self.outcome.attempts += 1;
        self.go_on(node);
        Ok(())
    }

    fn arrive(&mut self, from: usize, to: usize, envelope: &Envelope) -> Result<(), String> {
        let Some(peer) = &mut self.members[to].peer else { return Ok(()) };
        // The attempt begins while the envelope is taken, and the witness has to know of it before.
        if peer.would_begin_anew(NodeId(from as u32), envelope) {
            let attempt = envelope.attempt.max(self.members[to].attempt.map_or(0, |last| last + 1));
            let life = Life { process: self.members[to].processes, attempt };
            self.witness.see().lives(to, life);
        }
        let Some(peer) = &mut self.members[to].peer else { return Ok(()) };
        let taken = peer.handle(NodeId(from as u32), envelope);
        let is_from_liar = self.liar.as_ref().is_some_and(|liar| liar.node == from);
        match taken {
            Ok(Reception::NewAttempt(attempt)) => {
                self.members[to].attempt = Some(attempt);
                self.witness.see().lives(to, Life { process: self.members[to].processes, attempt });
                self.outcome.attempts += 1;
            }
            Ok(_) => {}
            Err(_) if is_from_liar => {}
            Err(fault) => return Err(format!("member {to} refuses a message of the sound member {from}: {fault}")),
        }
        self.go_on(to);
        Ok(())
    }

    /// Sends again what a member owes that has not gone on since the last check.
    fn look(&mut self, node: usize) {
        self.agenda.add(self.now + PATIENCE, SumsEvent::Look(node));
        let member = &mut self.members[node];
        let Some(peer) = &member.peer else { return };
        let turns = peer.turns();
        if turns == member.turns && peer.is_owed() {
            peer.resend();
        }
        member.turns = turns;
        self.go_on(node);
    }

    /// Runs the local work of a member, and sends what it has to send.
    fn go_on(&mut self, node: usize) {
        let Some(peer) = &mut self.members[node].peer else { return };
        while let Some(work) = peer.local_work() {
            work.run();
            peer.worked();
        }
        let sent: Vec<(NodeId, Envelope)> = std::iter::from_fn(|| peer.poll()).collect();
        for (to, envelope) in sent {
            self.send(node, to.index(), envelope);
        }
    }

    fn send(&mut self, from: usize, to: usize, mut envelope: Envelope) {
        self.outcome.messages += 1;
        let sizes = SizeLimits { nodes: self.members.len(), dimension: LONGEST };
        if let Ok(mut marked) = MarkedFrame::decode(&envelope.frame, &sizes)
            && let Some((_, message)) = &mut marked.frame.message
        {
            if let OperationMessage::ModularPartial(partial) = &message.payload
                && !partial.is_whole
            {
                self.witness.see().sent(from, message.operation, &partial.words);
            }
            if self.withholder.withholds(from, message) {
                return;
            }
            let dice = &mut self.scenario.dice;
            let lie = self.liar.as_mut().filter(|liar| liar.node == from).map(|liar| liar.lie(message, dice));
            match lie {
                None => {}
                Some(Distortion::Said) => envelope.frame = marked.encode(),
                Some(Distortion::LaterAttempt) => envelope.attempt += 1,
                Some(Distortion::Rubbish) => {
                    envelope.frame = (0..dice.random_range(0..60)).map(|_| dice.random()).collect();
                }
                Some(Distortion::Withheld) => return,
            }
        }
        let dice = &mut self.scenario.dice;
        let delay = DELAY + Duration::from_micros(dice.next_u64() % 1_000);
        if self.cut.contains(&ordered([from, to])) || dice.random_bool(self.scenario.loss) {
            return;
        }
        self.agenda.add(self.now + delay, SumsEvent::Arrival { from, to, envelope });
    }

    fn is_over(&self) -> bool {
        let is_done = |member: &SimulatedMember| member.peer.as_ref().is_some_and(|peer| peer.outcome().is_some());
        self.members.iter().all(is_done)
    }

    fn conclude(mut self) -> SumsOutcome {
        let mut outcome = self.outcome;
        outcome.ended_ms = self.now.micros() / 1_000;
        outcome.lies = self.liar.as_ref().map_or(0, |liar| liar.lies);
        let seen = self.witness.see();
        outcome.checks = seen.checks;
        outcome.sums = seen.sums;
        outcome.digest = seen.digest();
        outcome.failure = seen.failure.clone().or(outcome.failure);
        drop(seen);
        if outcome.failure.is_none() && self.liar.is_none() {
            outcome.checks += 1;
            outcome.failure = end(&mut self.members).err();
        }
        outcome
    }
}

/// Checks that all have come to the end, with the same model.
fn end(members: &mut [SimulatedMember]) -> Result<(), String> {
    let mut models = Vec::new();
    for (node, member) in members.iter_mut().enumerate() {
        let found = member.peer.take().and_then(SolverPeer::into_outcome);
        match found {
            Some(Ok(Finding::Learned(learned))) => {
                let model = learned.files.into_iter().find(|(name, _)| name == "model.safetensors");
                models.push(model.map(|(_, bytes)| bytes));
            }
            Some(Ok(Finding::Solution(_))) => return Err(format!("member {node} solved a problem")),
            Some(Err(error)) => return Err(format!("member {node} ended: {error}")),
            None => return Err(format!("member {node} has not come to the end")),
        }
    }
    match models.windows(2).position(|pair| pair[0] != pair[1] || pair[0].is_none()) {
        Some(node) => Err(format!("members {node} and {} have different models", node + 1)),
        None => Ok(()),
    }
}

fn task(scenario: &SumsScenario) -> Result<SumsTask, String> {
    let settings =
        PrivacySettings::for_changes(1.0, scenario.releases(), 8.0, 1e-5).map_err(|error| error.to_string())?;
    let privacy = Some(SharedPrivacy { settings, colluders: 1, protects: ProtectedUnit::Member });
    let metrics = vec!["first".to_owned()];
    let settings = FederatedSettings { privacy, metrics, ..FederatedSettings::new(scenario.rounds, 1) };
    let rules = settings.rules().map_err(|error| error.to_string())?;
    Ok(SumsTask { settings, rules })
}

fn members(scenario: &SumsScenario) -> Vec<SimulatedMember> {
    let all = Sums::simulated(SumProtection::Masked, scenario.nodes, scenario.seed);
    let member = |sums| SimulatedMember {
        peer: None,
        sums,
        disk: SharedDisk::default(),
        attempt: None,
        copy: None,
        trained: Arc::default(),
        processes: 0,
        turns: 0,
    };
    all.into_iter().map(member).collect()
}

/// The node around which sums are gathered: the first of those with most links, as the collectives have it.
fn root(communication: &CommunicationPlan) -> usize {
    let schedule = &communication.schedule;
    let links = |node: usize| {
        let node = NodeId(node as u32);
        schedule.all_out_neighbours(node).len() + schedule.all_in_neighbours(node).len()
    };
    (0..schedule.nodes()).rev().max_by_key(|node| links(*node)).unwrap_or_default()
}

fn ordered([one, other]: [usize; 2]) -> [usize; 2] {
    [one.min(other), one.max(other)]
}
