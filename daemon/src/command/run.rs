//! `mingle run`: one peer in the foreground, from its key to its trained model.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use libp2p::PeerId;
use mingle_models::Device;
use mingle_planner::Plan;
use mingle_protocol::{Generation, Identity as NodeIdentity, NodeConfig, NodeId, Schedule, TaskCard, WaitPolicy};
use tokio::sync::mpsc;

use crate::cli::RunArgs;
use crate::driver::{Driver, DriverParts, Finished, Sources};
use crate::edge::{Edges, Greeting};
use crate::events::{Event, EventLog};
use crate::failure::{Failure, Kind, OrFail, Outcome};
use crate::home::Home;
use crate::identity::Identity;
use crate::links::Links;
use crate::plan;
use crate::plan_exchange::{self, ServedPlan, SharedPlan};
use crate::results::{self, Summary};
use crate::signals::StopRequests;
use crate::task::{self, LocalTask, Parts};
use crate::trainer::TrainingThread;
use crate::transport::{Network, NetworkEvent};

/// Between two requests for the plan.
const FETCH_PAUSE: Duration = Duration::from_millis(200);

/// Runs the peer.
pub(super) fn execute(arguments: &RunArgs, json: bool) -> Outcome {
    let started = Instant::now();
    task::check_arguments(&arguments.training)?;
    let policy = parse_policy(&arguments.wait)?;
    let parts = Parts::load(&arguments.training.data, arguments.training.seed)?;
    parts.task(&arguments.training.model)?;
    let device = task::open_device(&arguments.training.device)?;
    let home = Home::create(arguments.home.home.as_deref())?;
    let _lock = home.lock()?;
    let identity = Identity::load_or_create(&home.identity())?;
    let log = EventLog::create(&home.events(), json, started)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .or_fail(Kind::Unexpected, "cannot start the event loop")?;
    let peer = Peer { arguments, policy, home, identity, log, started };
    runtime.block_on(peer.run(parts, device))
}

/// `sync`, `bounded:STALENESS` or `async`.
pub(super) fn parse_policy(text: &str) -> Outcome<WaitPolicy> {
    let parsed = match text.split_once(':') {
        None if text == "sync" => Some(WaitPolicy::Sync),
        None if text == "async" => Some(WaitPolicy::Async),
        Some(("bounded", staleness)) => staleness.parse().ok().map(|staleness| WaitPolicy::Bounded { staleness }),
        _ => None,
    };
    parsed.ok_or_else(|| {
        Failure::new(
            Kind::BadInput,
            format!("--wait {text}: choose sync, bounded:STALENESS (such as bounded:4) or async"),
        )
    })
}

/// One peer, before it knows its plan.
struct Peer<'a> {
    arguments: &'a RunArgs,
    policy: WaitPolicy,
    home: Home,
    identity: Identity,
    log: EventLog,
    started: Instant,
}

/// This peer's place in the plan.
struct Place {
    plan: Plan,
    hash: String,
    node: NodeId,
    peers: BTreeMap<NodeId, PeerId>,
    schedule: Arc<Schedule>,
}

impl Peer<'_> {
    async fn run(mut self, mut parts: Parts, device: Device) -> Outcome {
        let mut stop = StopRequests::listen(self.arguments.stop_with_stdin)?;
        let (network, mut network_events) = Network::start(self.identity.keypair(), &self.arguments.listen).await?;
        self.log.tell(Event::Listening {
            peer: self.identity.peer_id().to_string(),
            addresses: network.addresses.iter().map(ToString::to_string).collect(),
        });
        let shared_plan = SharedPlan::default();
        plan_exchange::serve(network.streams.clone(), Arc::clone(&shared_plan))?;
        network.bootstrap(self.arguments.bootstrap.clone()).await;

        let place = tokio::select! {
            place = self.find_place(&network, &mut network_events, &shared_plan) => place?,
            reason = stop.next() => return Err(Failure::new(Kind::Forced, format!("{reason} before there was a plan"))),
        };
        let (out, inward) = neighbours(&place);
        network.seek(out.into_values().chain(inward.into_values()).collect()).await;
        if let Some(split) = &self.arguments.training.split {
            parts.deal(split, place.peers.len(), self.arguments.training.seed)?;
        }
        let task = LocalTask::new(&self.arguments.training, &parts, place.node.index(), device)?;
        drop(parts);
        self.train(place, task, &network, network_events, stop).await
    }

    /// Gets the plan and finds this peer in it.
    async fn find_place(
        &mut self,
        network: &Network,
        events: &mut mpsc::Receiver<NetworkEvent>,
        shared: &OnceLock<ServedPlan>,
    ) -> Outcome<Place> {
        let (plan, origin) = self.find_plan(network, events).await?;
        let peer = self.identity.peer_id();
        let node = plan::node_of(&plan, &peer).ok_or_else(|| {
            Failure::new(Kind::Refused, format!("this peer, {peer}, is not in the plan blake3:{}", plan.hash()))
                .hint(format!("mingle plan bind PLAN --peer NODE={peer}"))
        })?;
        let peers = plan::peers(&plan)?;
        let served = ServedPlan::new(&plan)?;
        let schedule = Arc::new(plan::schedule(&plan)?);
        plan::write(&plan, &self.home.plan())?;
        let hash = plan.hash().to_string();
        self.log.tell(Event::Plan {
            hash: hash.clone(),
            method: plan.method().to_string(),
            nodes: plan.node_count(),
            node: node.index(),
            origin,
        });
        // Set once, here: this peer has one plan for its whole run.
        let _ = shared.set(served);
        Ok(Place { plan, hash, node, peers, schedule })
    }

    /// The plan and where it came from: the file named, else a bootstrap peer, else the home.
    async fn find_plan(
        &mut self,
        network: &Network,
        events: &mut mpsc::Receiver<NetworkEvent>,
    ) -> Outcome<(Plan, String)> {
        if let Some(path) = &self.arguments.plan {
            return Ok((plan::read(path)?, path.display().to_string()));
        }
        let kept = self.home.plan();
        if self.arguments.bootstrap.is_empty() {
            if kept.exists() {
                return Ok((plan::read(&kept)?, kept.display().to_string()));
            }
            return Err(Failure::new(Kind::BadInput, "this peer has no plan")
                .hint("give it one with --plan FILE, or a peer that has it with --bootstrap ADDR"));
        }
        match self.fetch_plan(network, events).await {
            Err(failure) if kept.exists() && failure.is(Kind::Unreachable) => {
                self.log.tell(Event::Warning { message: format!("{failure}; the plan of the last run is used") });
                Ok((plan::read(&kept)?, kept.display().to_string()))
            }
            other => other,
        }
    }

    /// Asks the bootstrap peers until one gives the plan or the time is up.
    async fn fetch_plan(
        &mut self,
        network: &Network,
        events: &mut mpsc::Receiver<NetworkEvent>,
    ) -> Outcome<(Plan, String)> {
        let patience = Duration::from_secs(self.arguments.bootstrap_timeout_s);
        let mut search = PlanSearch::default();
        let found = tokio::time::timeout(patience, self.search_plan(network, events, &mut search)).await;
        found.unwrap_or_else(|_| Err(search.failure(patience)))
    }

    async fn search_plan(
        &mut self,
        network: &Network,
        events: &mut mpsc::Receiver<NetworkEvent>,
        search: &mut PlanSearch,
    ) -> Outcome<(Plan, String)> {
        let local = self.identity.peer_id();
        let mut streams = network.streams.clone();
        loop {
            for (&peer, address) in &search.answered {
                match plan_exchange::fetch(&mut streams, local, peer).await {
                    Ok(Some(plan)) => return Ok((plan, format!("from {peer} at {address}"))),
                    Ok(None) => {}
                    Err(refusal) => {
                        search.refusals.insert(peer, refusal);
                    }
                }
            }
            let all_refuse = search.refusals.len() == search.answered.len();
            if search.answers >= self.arguments.bootstrap.len()
                && all_refuse
                && let Some((_, refusal)) = search.refusals.pop_first()
            {
                return Err(refusal);
            }
            let pause = async {
                if search.answered.is_empty() {
                    std::future::pending::<()>().await;
                }
                tokio::time::sleep(FETCH_PAUSE).await;
            };
            tokio::select! {
                Some(event) = events.recv() => self.note(event, search),
                () = pause => {}
            }
        }
    }

    /// Keeps track of who answered and who did not; each failure is told once.
    fn note(&mut self, event: NetworkEvent, search: &mut PlanSearch) {
        match event {
            NetworkEvent::Bootstrapped { peer, address } => {
                search.answers += 1;
                search.answered.insert(peer, address.to_string());
            }
            NetworkEvent::DialFailed { peer, attempts } => {
                let attempts = attempts.iter().map(ToString::to_string);
                let fresh: Vec<String> = attempts.filter(|attempt| search.failures.insert(attempt.clone())).collect();
                if !fresh.is_empty() {
                    self.log.tell(Event::DialFailed { peer: peer.map(|peer| peer.to_string()), attempts: fresh });
                }
            }
        }
    }

    async fn train(
        mut self,
        place: Place,
        task: LocalTask,
        network: &Network,
        network_events: mpsc::Receiver<NetworkEvent>,
        stop: StopRequests,
    ) -> Outcome {
        let training = &self.arguments.training;
        let description = task::card(&task.task, training);
        self.log.tell(Event::Task {
            description: description.clone(),
            parameters: task.task.parameter_count(),
            train_samples: task.train.len(),
            test_samples: task.test.len(),
            device: task.device.adapter().to_string(),
        });
        let (config, greeting) = self.configure(&place, &task, &description)?;
        let (out, inward) = neighbours(&place);
        let (edges, edge_events) =
            Edges::start(&network.streams, greeting, task.task.parameter_count(), &out, &inward)?;
        let model = task.task;
        let (trainer, evaluator, test) = task.build(training, place.node.index())?;
        let (thread, answers) = TrainingThread::start(trainer, evaluator, test)?;
        let mut sources = Sources { edges: edge_events, network: network_events, answers, stop };
        let driver = Driver::new(DriverParts {
            config,
            plan_hash: place.hash.clone(),
            home: &self.home,
            links: Links::new(out.keys().copied(), inward.keys().copied()),
            training: thread,
            log: &mut self.log,
            evaluate_every: training.evaluate_every,
            peers: place.peers.clone(),
            receivers: out.keys().copied().collect(),
            started: self.started,
        })?;
        let mut finished = driver.run(&mut sources).await?;
        edges.shutdown().await;
        let summary = Summary {
            schema: Summary::schema(),
            peer: self.identity.peer_id().to_string(),
            node: place.node.0,
            plan: place.hash,
            task: description,
            rounds: finished.rounds,
            rounds_wanted: training.rounds,
            accuracy: finished.evaluation.accuracy,
            loss: finished.evaluation.loss,
            seconds: self.started.elapsed().as_secs_f64(),
            sent_bytes: finished.sent_bytes,
            peak_resident_bytes: results::peak_resident_bytes(),
            ledger: finished.node.ledger(),
        };
        results::write_model(&self.home, &model, &finished.node.ratio(), metadata(&summary))?;
        summary.write(&self.home)?;
        self.log.tell(done(&summary, &finished));
        Ok(())
    }

    /// The node's configuration, and how this process greets its neighbours.
    fn configure(&mut self, place: &Place, task: &LocalTask, description: &str) -> Outcome<(NodeConfig, Greeting)> {
        let training = &self.arguments.training;
        let boot_nonce = boot_nonce()?;
        let plan_hash = *place.plan.hash().as_bytes();
        if self.arguments.fresh {
            self.home.forget_incarnations(&place.hash)?;
        }
        let incarnation = self.home.next_incarnation(&place.hash)?;
        if incarnation > 1 {
            self.log.tell(Event::Rejoining { incarnation });
        }
        let initial = task.task.initial_parameters(training.seed);
        let mut config = NodeConfig::new(place.node, Arc::clone(&place.schedule), initial, training.rounds);
        config.generation = Generation { counter: 0, plan_hash };
        config.task = TaskCard { hash: task_hash(description), description: description.to_owned() };
        config.identity = NodeIdentity { incarnation, boot_nonce };
        config.policy = self.policy;
        config.deadline_floor = Duration::from_millis(self.arguments.deadline_ms);
        config.drain_deadline = Duration::from_millis(self.arguments.drain_ms);
        Ok((config, Greeting { plan_hash, boot_nonce }))
    }
}

fn task_hash(description: &str) -> [u8; 32] {
    *blake3::hash(description.as_bytes()).as_bytes()
}

/// A number that tells this process from any other.
fn boot_nonce() -> Outcome<u64> {
    getrandom::u64().or_fail(Kind::Unexpected, "the operating system gives no random numbers")
}

/// The peers that this one sends to, and those that it hears from, over the whole period.
fn neighbours(place: &Place) -> (BTreeMap<NodeId, PeerId>, BTreeMap<NodeId, PeerId>) {
    let of = |nodes: &[NodeId]| nodes.iter().map(|node| (*node, place.peers[node])).collect();
    (of(place.schedule.all_out_neighbours(place.node)), of(place.schedule.all_in_neighbours(place.node)))
}

fn metadata(summary: &Summary) -> BTreeMap<String, String> {
    [
        ("plan", summary.plan.clone()),
        ("task", summary.task.clone()),
        ("rounds", summary.rounds.to_string()),
        ("accuracy", summary.accuracy.to_string()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}

fn done(summary: &Summary, finished: &Finished) -> Event {
    Event::Done {
        round: finished.rounds,
        accuracy: summary.accuracy,
        weight_units: summary.ledger.mass.units(),
        seconds: summary.seconds,
        sent_bytes: summary.sent_bytes,
        peak_resident_bytes: summary.peak_resident_bytes,
    }
}

/// What came of asking for the plan so far.
#[derive(Default)]
struct PlanSearch {
    /// How many of the bootstrap addresses have answered.
    answers: usize,
    /// The peers behind them, with an address each.
    answered: BTreeMap<PeerId, String>,
    /// Those that will not give this peer their plan, or gave one that does not hold.
    refusals: BTreeMap<PeerId, Failure>,
    /// The addresses that did not answer, with the reason.
    failures: BTreeSet<String>,
}

impl PlanSearch {
    /// What to say when the time is up.
    fn failure(&mut self, patience: Duration) -> Failure {
        if let Some((_, refusal)) = self.refusals.pop_first() {
            return refusal;
        }
        let seconds = patience.as_secs();
        if self.answered.is_empty() {
            let tried: Vec<&str> = self.failures.iter().map(String::as_str).collect();
            return Failure::new(
                Kind::Unreachable,
                format!("no bootstrap peer could be reached in {seconds} s; tried\n  {}", tried.join("\n  ")),
            )
            .hint("is that peer running, and does it listen on an address that this machine can reach? its log says where it listens");
        }
        let peers: Vec<String> = self.answered.iter().map(|(peer, address)| format!("{peer} at {address}")).collect();
        Failure::new(Kind::Unreachable, format!("no peer had a plan within {seconds} s; asked {}", peers.join(", ")))
            .hint("start one of them with --plan FILE")
    }
}
