//! `mingle run`: one peer in the foreground, from its key to its trained model.

mod agreement;
mod find_place;
mod solve;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libp2p::{Multiaddr, PeerId};
use libp2p_metrics::Registry;
use mingle_models::start_threads;
use mingle_net::probe::{self, Prober};
use mingle_net::transport::{Network, NetworkEvent, NetworkOptions};
use mingle_protocol::record::Recovered;
use mingle_protocol::{Codec, Durability, Identity as NodeIdentity, NodeConfig, RecordRoom, TaskCard, WaitPolicy};
use tokio::sync::mpsc;

use crate::api::{self, Exhibits, Interface, Request, Stopping};
use crate::cli::{Planning, RunArgs, Switch};
use crate::driver::{Driver, DriverParts, Finished, Sources, borrow_model};
use crate::event_loop;
use crate::events::{Event, EventLog};
use crate::failure::{Failure, Kind, OrFail, Outcome};
use crate::home::Home;
use crate::identity::Identity;
use crate::limits;
use crate::meaning;
use crate::membership::{self, Hall, Introductions, Membership, Steward, Wanted};
use crate::place::Place;
use crate::priority;
use crate::records::{self, Past, RecordWriter, Room, Written};
use crate::results::{self, Summary};
use crate::signals::StopRequests;
use crate::status::{State, Status, StatusBoard};
use crate::task::{self, LocalTask};
use crate::task_card::Card;
use crate::timeline::Timeline;
use crate::trainer::{TrainingPosition, TrainingThread};
use crate::wiring::Wiring;
use agreement::{Agreement, HomeTask};
use find_place::Ears;

/// Runs the peer.
pub(super) fn execute(arguments: &RunArgs, json: bool) -> Outcome {
    execute_in(arguments, None, json)
}

/// Runs the peer in the swarm of a ticket, or in the one that its home knows.
pub(super) fn execute_in(arguments: &RunArgs, ticket: Option<Membership>, json: bool) -> Outcome {
    let started = Instant::now();
    check(arguments)?;
    let policy = parse_policy(&arguments.wait)?;
    let priority = arguments.priority;
    let threads = arguments.threads.and_then(|count| NonZeroUsize::new(count.into()));
    start_threads(threads, move || priority::lower(priority)).or_fail(Kind::Unexpected, "this peer cannot train")?;
    let home = Home::at(arguments.home.home.as_deref())?;
    let agreement = match &arguments.problem {
        None => Some(Agreement::begin(&arguments.training)?),
        Some(_) => None,
    };
    let identity = identity_of(&home)?;
    let _lock = home.lock()?;
    let last = HomeTask::of(&home)?;
    let membership = match ticket {
        Some(membership) => Some(membership),
        None => Membership::of(&home)?,
    };
    let log = EventLog::create(&home.events(), json, started)?;
    let runtime = event_loop::start()?;
    let board = StatusBoard::new(Status::starting(identity.peer_id().to_string()), started);
    let arguments = arguments.clone();
    let mut peer =
        Peer { arguments, policy, home, identity, membership, agreement, plan_giver: None, log, board, started };
    peer.agree_by_itself(last)?;
    runtime.block_on(peer.run())
}

/// The key of this peer. A new one would be in no plan: it is made by `init` and `join`, not here.
fn identity_of(home: &Home) -> Outcome<Identity> {
    if home.identity().exists() {
        return Identity::load(&home.identity());
    }
    let root = home.root().display();
    Err(Failure::new(Kind::BadInput, format!("there is no peer in {root}: it has no key, so no plan names it"))
        .hint(format!("join a swarm with a ticket: mingle join TICKET --home {root}; or make a key with `mingle init --home {root}`, and bind it: mingle plan bind PLAN --peer NODE=PEERID")))
}

/// Refuses what can be seen to be wrong before anything is read or started.
pub(crate) fn check(arguments: &RunArgs) -> Outcome {
    task::check_arguments(&arguments.training)?;
    if arguments.largest_norm.is_some_and(|norm| norm.is_nan() || norm <= 0.0) {
        return Err(Failure::new(Kind::BadInput, "--largest-norm must be a positive number"));
    }
    if arguments.problem.is_some() && arguments.codec != Codec::F32 {
        return Err(Failure::new(
            Kind::BadInput,
            "--codec is for models: what peers that solve a problem say is exact",
        )
        .hint("leave --codec or --problem away"));
    }
    let RunArgs { bootstrap_timeout_s, gather_s, deadline_ms, time_box_ms, drain_ms, .. } = *arguments;
    limits::check("bootstrap-timeout-s", bootstrap_timeout_s, 1..=limits::LONGEST_WAIT_S)?;
    limits::check("gather-s", gather_s, 0..=limits::LONGEST_WAIT_S)?;
    limits::check("deadline-ms", deadline_ms, 1..=limits::LONGEST_WAIT_MS)?;
    limits::check("drain-ms", drain_ms, 0..=limits::LONGEST_WAIT_MS)?;
    time_box_ms.map_or(Ok(()), |time_box_ms| limits::check("time-box-ms", time_box_ms, 1..=limits::LONGEST_WAIT_MS))?;
    parse_policy(&arguments.wait).map(drop)
}

/// `sync`, `bounded:STALENESS` or `async`.
pub(super) fn parse_policy(text: &str) -> Outcome<WaitPolicy> {
    let parsed = match text.split_once(':') {
        None if text == "sync" => Some(WaitPolicy::Sync),
        None if text == "async" => Some(WaitPolicy::Async),
        Some(("bounded", staleness)) => staleness
            .parse()
            .ok()
            .filter(|staleness| *staleness <= limits::LARGEST_STALENESS)
            .map(|staleness| WaitPolicy::Bounded { staleness }),
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
struct Peer {
    arguments: RunArgs,
    policy: WaitPolicy,
    home: Home,
    identity: Identity,
    /// The swarm with an operator that this home belongs to, if any.
    membership: Option<Membership>,
    /// What it trains with the others; none if it solves a problem.
    agreement: Option<Agreement>,
    /// The peer that gave it the plan, if one did.
    plan_giver: Option<PeerId>,
    log: EventLog,
    board: StatusBoard,
    started: Instant,
}

impl Peer {
    /// Runs the peer within reach of whoever watches and steers it.
    async fn run(mut self) -> Outcome {
        let stop = StopRequests::listen(self.arguments.stop_with_stdin)?;
        let mut registry = Registry::default();
        // Only a preference: what cannot be read is overwritten below.
        let before = self.home.addresses().unwrap_or_default();
        let mdns = self.arguments.mdns == Switch::On;
        let options = NetworkOptions { listen: &self.arguments.listen, before: &before, mdns };
        let (network, events) = Network::start(self.identity.keypair(), &options, &mut registry).await?;
        self.home.keep_addresses(&network.addresses)?;
        let (requests, asked) = api::requests();
        let exhibits = Exhibits { status: self.board.look(), events: self.log.feed(), registry, requests };
        let interface = Interface::open(&self.home, self.arguments.http, exhibits).await?;
        self.introduce(&network, &interface);
        let outcome = self.take_part(&network, &interface, Incoming { events, stop, asked }).await;
        if let Err(failure) = &outcome {
            self.log.tell_failure(failure);
            self.board.update(|status| status.state = State::Failed);
        }
        // Whoever watches reads to the end.
        drop(self);
        interface.close().await;
        outcome
    }

    /// Says where the peer can be reached, by its neighbours and by its owner.
    fn introduce(&mut self, network: &Network, interface: &Interface) {
        let addresses: Vec<String> = network.addresses.iter().map(ToString::to_string).collect();
        self.board.update(|status| {
            status.addresses.clone_from(&addresses);
            status.rounds = self.arguments.training.rounds;
            status.durable = Durability::from(self.arguments.durability) == Durability::On;
        });
        self.log.tell(Event::Listening { peer: self.identity.peer_id().to_string(), addresses });
        self.log.tell(Event::Interface {
            socket: interface.socket().map(|path| path.display().to_string()),
            page: interface.page(),
        });
        if let Some(message) = interface.trouble() {
            self.log.tell(Event::Warning { message });
        }
    }

    async fn take_part(&mut self, network: &Network, interface: &Interface, mut incoming: Incoming) -> Outcome {
        let swarm = self.membership.as_ref().map(|membership| membership.swarm.clone());
        let prober = Prober::new(network.streams.clone(), network.reach());
        let (hall, mut wanted) = Hall::open(&self.home, &self.identity, swarm, prober, network.guests.clone())?;
        membership::serve(network.streams.clone(), Arc::clone(&hall))?;
        let guard = Arc::clone(&hall);
        probe::serve(network.streams.clone(), move |peer, token| guard.objection_to_probe(peer, token))?;
        interface.show_hall(&hall);
        if self.arguments.planning == Planning::Auto {
            let hours = u64::from(self.arguments.forget_after_h);
            Steward::start(&hall, network.streams.clone(), Duration::from_secs(3600 * hours))?;
        }
        Introductions::start(network, &self.home).await;
        network.bootstrap(self.bootstrap()).await;

        if self.work().is_some() {
            self.announce_work(&hall);
            self.remember_new_work()?;
        }
        let stopping = Stopping { round: 0, rounds: self.arguments.training.rounds, weight_units: 0, durable: true };
        let mut ears = Ears { network, events: &mut incoming.events, wanted: &mut wanted };
        let place = tokio::select! {
            place = self.settle(&mut ears, &hall) => place?,
            reason = stopped(&mut incoming.stop, &mut incoming.asked, stopping) => {
                return Err(Failure::new(Kind::Forced, format!("{reason} before there was a plan")));
            }
        };
        self.board.show_place(&place);
        interface.show_plan(&place.plan.plan);
        let (out, inward) = place.neighbours();
        network.seek(out.into_values().chain(inward.into_values()).collect()).await;
        // Too large futures for the stack of those who wait for them.
        let access = Access { hall, wanted, interface };
        let (Some(agreement), training) = (self.agreement.take(), self.arguments.training.clone()) else {
            let problem = self.arguments.problem.clone().unwrap_or_default();
            return Box::pin(self.solve(&problem, place, network, access, incoming)).await;
        };
        let (card, mut parts, device) = agreement.conclude()?;
        if let Some(split) = &training.split {
            parts.deal(split, place.peers.len(), training.seed)?;
        }
        let task = LocalTask::new(&training, &parts, place.node.index(), device)?;
        drop(parts);
        Box::pin(self.train(place, task, &card, network, access, incoming)).await
    }

    /// Finds its place, and agrees with the others on what is trained.
    async fn settle(&mut self, ears: &mut Ears<'_>, hall: &Hall) -> Outcome<Place> {
        let place = self.find_place(ears, hall).await?;
        self.agree_with_others(ears, hall, &place).await?;
        self.remember_new_work()?;
        let rounds = self.arguments.training.rounds;
        self.board.update(|status| status.rounds = rounds);
        Ok(place)
    }

    /// Whom to ask first: those named, else those of the ticket.
    fn bootstrap(&self) -> Vec<Multiaddr> {
        match &self.membership {
            Some(membership) if self.arguments.bootstrap.is_empty() => membership.bootstrap.clone(),
            _ => self.arguments.bootstrap.clone(),
        }
    }

    async fn train(
        &mut self,
        place: Place,
        task: LocalTask,
        card: &Card,
        network: &Network,
        access: Access<'_>,
        mut incoming: Incoming,
    ) -> Outcome {
        let training = self.arguments.training.clone();
        let description = card.describe();
        self.log.tell(Event::Task {
            description: description.clone(),
            parameters: task.task.parameter_count(),
            train_samples: task.train.len(),
            test_samples: task.test.len(),
            device: task.device.adapter().to_string(),
        });
        self.board.update(|status| {
            status.task = Some(description.clone());
            status.device = Some(task.device.adapter().to_string());
        });
        let mut config = self.configure(&place, &task, card)?;
        let Some(start) = self.begin(&place, &mut config)? else { return Ok(()) };
        self.remember_work()?;
        if start.needs_a_model(&place) {
            let stopping = Stopping { round: 0, rounds: training.rounds, weight_units: 0, durable: true };
            let (peer, model) = tokio::select! {
                borrowed = borrow_model(network.streams.clone(), &place, config.initial.len()) => borrowed,
                reason = stopped(&mut incoming.stop, &mut incoming.asked, stopping) => {
                    return Err(Failure::new(Kind::Forced, format!("{reason} before a member gave its model")));
                }
            };
            self.log.tell(Event::Borrowed { peer: peer.to_string() });
            config.initial = model;
        }
        let boot_nonce = config.identity.boot_nonce;
        let (wiring, edge_events) =
            Wiring::open(&network.streams, place, boot_nonce, config.initial.len(), &start.timeline)?;
        let model = task.task;
        let (mut trainer, evaluator, test) = task.build(&training, wiring.place.node.index())?;
        trainer.resume_at(start.position().local_steps);
        let (thread, answers) =
            TrainingThread::start(trainer, evaluator, test, self.arguments.priority, start.timeline.clone())?;
        let Start { records, written, recovered, timeline, .. } = start;
        let Incoming { events, stop, asked } = incoming;
        let Access { hall, wanted, interface } = access;
        let mut sources =
            Sources { edges: edge_events, network: events, answers, written, wanted, stop, requests: asked };
        let parts = DriverParts {
            config,
            home: &self.home,
            wiring,
            hall,
            swarm: self.membership.as_ref().map(|membership| membership.swarm.clone()),
            network,
            local: self.identity.peer_id(),
            leaves: self.arguments.leaves,
            rounds: training.rounds,
            training: thread,
            records,
            log: &mut self.log,
            board: &self.board,
            interface,
            evaluate_every: training.evaluate_every,
            timeline,
            started: self.started,
        };
        let driver = Driver::new(parts, recovered)?;
        let mut finished = driver.run(&mut sources).await?;
        let mut summary = Summary {
            schema: Summary::schema(),
            peer: self.identity.peer_id().to_string(),
            node: finished.place.node.0,
            plan: finished.place.hash.clone(),
            task: description,
            rounds: finished.rounds,
            rounds_wanted: training.rounds,
            accuracy: finished.evaluation.accuracy,
            loss: finished.evaluation.loss,
            seconds: self.started.elapsed().as_secs_f64(),
            sent_bytes: finished.traffic.sent_bytes,
            received_bytes: finished.traffic.received_bytes,
            encoding: finished.traffic.encoding(self.arguments.codec),
            peak_resident_bytes: results::peak_resident_bytes(),
            model_blake3: None,
            ledger: finished.node.ledger(),
        };
        let hash = results::write_model(&self.home, &model, &finished.node.ratio(), metadata(&summary, card))?;
        summary.model_blake3 = Some(hash);
        summary.write(&self.home)?;
        if let Some(ending) = &finished.ending {
            ending.write(&self.home)?;
        }
        self.log.tell(done(&summary, &finished));
        let is_done = summary.rounds >= summary.rounds_wanted;
        self.board.update(|status| status.state = if is_done { State::Done } else { State::Stopped });
        Ok(())
    }

    /// Finds out what this peer goes on with, and gets its records ready. `None` if its run is over.
    fn begin(&mut self, place: &Place, config: &mut NodeConfig) -> Outcome<Option<Start>> {
        let (past, mut store) = Past::find(&self.home, config)?;
        let mut begins_with_belief = false;
        let recovered = match past {
            Past::Finished(ending) => {
                self.log.tell(Event::Finished { round: ending.rounds, left: ending.left });
                self.board.update(|status| (status.state, status.round) = (State::Done, ending.rounds));
                return Ok(None);
            }
            Past::None => {
                let incarnation = config.identity.incarnation;
                if incarnation > 1 {
                    self.log.tell(Event::Rejoining { incarnation });
                }
                None
            }
            Past::Unfinished(recovered) => {
                let books = &recovered.record.books;
                self.log.tell(Event::Recovered {
                    round: place.plan.first_round() + books.step / config.schedule.round_length(),
                    weight_units: books.mass.units(),
                    record: books.number,
                });
                Some(*recovered)
            }
            Past::Replaced { belief } => {
                config.initial = belief;
                begins_with_belief = true;
                None
            }
        };
        // A run that is over keeps the timeline that it has.
        let timeline = match self.arguments.timeline {
            Switch::On => Timeline::create(&self.home, place.node.0)?,
            Switch::Off => Timeline::default(),
        };
        if config.durability == Durability::Off {
            return Ok(Some(Start { records: None, written: None, recovered, begins_with_belief, timeline }));
        }
        store.make_room(Room::new(config.initial.len(), RecordRoom::of(&place.schedule, place.node))?)?;
        config.record_slots = Some(store.slots());
        let (records, written) = RecordWriter::start(store, timeline.clone())?;
        Ok(Some(Start { records: Some(records), written: Some(written), recovered, begins_with_belief, timeline }))
    }

    /// The node's configuration.
    fn configure(&mut self, place: &Place, task: &LocalTask, card: &Card) -> Outcome<NodeConfig> {
        let training = &self.arguments.training;
        let boot_nonce = boot_nonce()?;
        if self.arguments.fresh {
            self.home.forget_incarnations(&place.hash)?;
            records::discard(&self.home)?;
        }
        let incarnation = self.home.next_incarnation(&place.hash)?;
        let initial = task.task.initial_parameters(training.seed);
        let largest_norm = self.arguments.largest_norm.unwrap_or_else(|| usual_bound(&initial));
        let mut config =
            NodeConfig::new(place.node, Arc::clone(&place.schedule), initial, place.plan.rounds(training.rounds));
        config.generation = place.plan.generation();
        config.task = TaskCard { hash: card.hash(), description: card.describe() };
        config.identity = NodeIdentity { incarnation, boot_nonce };
        config.durability = self.arguments.durability.into();
        config.largest_norm = Some(largest_norm);
        config.policy = self.policy;
        config.codec = self.arguments.codec;
        config.gather_for = Some(Duration::from_secs(self.arguments.gather_s));
        config.deadline_floor = Duration::from_millis(self.arguments.deadline_ms);
        config.time_box = self.arguments.time_box_ms.map(Duration::from_millis);
        config.drain_deadline = Duration::from_millis(self.arguments.drain_ms);
        Ok(config)
    }
}

/// What others may ask of this process, and what only the event loop can answer of it.
struct Access<'a> {
    hall: Arc<Hall>,
    wanted: mpsc::Receiver<Wanted>,
    interface: &'a Interface,
}

/// What comes from outside.
struct Incoming {
    events: mpsc::Receiver<NetworkEvent>,
    stop: StopRequests,
    asked: mpsc::Receiver<Request>,
}

/// Waits until somebody wants the peer to stop, and says who.
async fn stopped(stop: &mut StopRequests, asked: &mut mpsc::Receiver<Request>, answer: Stopping) -> &'static str {
    tokio::select! {
        reason = stop.next() => reason,
        Some(request) = asked.recv() => {
            // Whoever asked may have gone.
            match request {
                Request::Stop(sender) => drop(sender.send(answer)),
                // It holds nothing that the others would miss.
                Request::Leave(sender) => drop(sender.send(Some(answer))),
            }
            "asked to stop"
        }
    }
}

/// What the run begins with, beside the configuration.
struct Start {
    records: Option<RecordWriter>,
    written: Option<mpsc::Receiver<Written>>,
    recovered: Option<Recovered>,
    /// The node has a model of its own to begin with, of a plan that was replaced.
    begins_with_belief: bool,
    /// What this process writes down of what it does when.
    timeline: Timeline,
}

impl Start {
    /// Whether the others are further than the model that everybody begins with.
    fn needs_a_model(&self, place: &Place) -> bool {
        self.recovered.is_none() && !self.begins_with_belief && place.plan.first_round() > 0
    }

    /// Where the training stands that this start goes on with.
    fn position(&self) -> TrainingPosition {
        self.recovered.as_ref().map(|past| TrainingPosition::decode(&past.record.books.host)).unwrap_or_default()
    }
}

/// No sound model of a training that began with `initial` has a larger norm.
fn usual_bound(initial: &[f32]) -> f64 {
    let square: f64 = initial.iter().map(|value| f64::from(*value).powi(2)).sum();
    1000.0 * square.sqrt().max(1.0)
}

/// A number that tells this process from any other.
fn boot_nonce() -> Outcome<u64> {
    getrandom::u64().or_fail(Kind::Unexpected, "the operating system gives no random numbers")
}

fn metadata(summary: &Summary, card: &Card) -> BTreeMap<String, String> {
    let mut metadata = meaning::of(card);
    metadata.extend(
        [
            ("plan", summary.plan.clone()),
            ("task", summary.task.clone()),
            ("rounds", summary.rounds.to_string()),
            ("accuracy", summary.accuracy.to_string()),
        ]
        .map(|(key, value)| (key.to_owned(), value)),
    );
    metadata
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
