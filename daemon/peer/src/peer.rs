//! One peer, from its key to its trained model.

mod access;
mod admission;
mod agree;
mod agree_on_rounds;
mod builder;
mod extension;
mod federated;
mod find_place;
mod finish;
mod lenders;
mod long_wait;
mod options;
mod plan_search;
mod purpose;
mod solve;
mod start;
mod train;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use libp2p::{Multiaddr, PeerId};
use libp2p_metrics::Registry;
use mingle_net::multicast::MulticastSettings;
use mingle_net::probe::{self, Prober};
use mingle_net::transport::{Network, NetworkOptions, SignsOfLife};
use mingle_protocol::Durability;
use tokio::sync::mpsc;

use crate::api::{self, ApiState, Interface, Openings, Request, Stopping};
use crate::connections::Connections;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::event_loop::EventReceivers;
use crate::events::{Event, EventFeed, EventLog, EventSink, Watchdog};
use crate::follow::serving::Followers;
use crate::home::Home;
use crate::identity::Identity;
use crate::medium::{self, PeerMedium};
use crate::member::{Member, Notices};
use crate::membership::{self, AutoPlanner, AutomaticPlanning, Introductions, Membership, MembershipService};
use crate::place::Place;
use crate::solving::SumPolicy;
use crate::status::{PeerState, Status, StatusBoard, StatusView};
use crate::stop::StopRequests;
use crate::task::{Assignment, ProblemCard, Work};
use access::{Access, Incoming, Streams};
pub use builder::{PeerBuilder, RunningPeer};
pub use extension::{Announcer, Extension, Farewell};
use find_place::PlanReceivers;
pub use options::{GivenPlan, PeerOptions};
pub use purpose::{Outcome, Purpose};
use solve::CommonWork;

/// The parts of a peer.
pub struct PeerParts {
    /// Its folder, which no other process may use meanwhile.
    pub home: Home,
    /// Its key.
    pub identity: Identity,
    /// The swarm with an operator that it belongs to, if any.
    pub membership: Option<Membership>,
    /// Its work.
    pub purpose: Purpose,
    /// Its options.
    pub options: PeerOptions,
    /// Receiver of events, besides the event file in the home.
    pub sink: EventSink,
    /// Called when this peer's work is settled, before anything of it is kept in the home.
    pub remember: Box<dyn FnMut(&Assignment) -> Result + Send>,
    /// Further calls of its local interface.
    pub extension: Option<Extension>,
    /// Start time of the process in which it runs.
    pub started: Instant,
}

/// One peer, before it knows its plan.
pub struct Peer {
    home: Home,
    identity: Identity,
    membership: Option<Membership>,
    purpose: Purpose,
    options: PeerOptions,
    /// The peer that gave it the plan, if one did.
    plan_giver: Option<PeerId>,
    remember: Box<dyn FnMut(&Assignment) -> Result + Send>,
    extension: Option<Extension>,
    /// The queue of its owner's requests, with both its ends.
    requests: (mpsc::Sender<Request>, mpsc::Receiver<Request>),
    log: EventLog,
    board: StatusBoard,
    started: Instant,
}

impl Peer {
    /// A builder of a peer with this home, which holds its key, plan and records of earlier runs, and where it writes
    /// its results.
    pub fn builder(home: Home) -> PeerBuilder {
        PeerBuilder::new(home)
    }

    /// A peer from all its parts, for callers with more settings than [`builder`](Self::builder) has.
    ///
    /// # Errors
    /// The event file cannot be written.
    pub fn new(parts: PeerParts) -> Result<Self> {
        let PeerParts { home, identity, membership, purpose, options, sink, remember, extension, started } = parts;
        let log = EventLog::open(&home, sink, started)?;
        let board = StatusBoard::new(Status::starting(identity.peer_id().to_string()), started);
        let requests = api::requests();
        let plan_giver = None;
        Ok(Self {
            home,
            identity,
            membership,
            purpose,
            options,
            plan_giver,
            remember,
            extension,
            requests,
            log,
            board,
            started,
        })
    }

    /// A view of this peer's status while it runs.
    pub fn status(&self) -> StatusView {
        self.board.look()
    }

    /// The queue of requests to stop or to leave while it runs; the answers contain its weight.
    pub fn requests(&self) -> mpsc::Sender<Request> {
        self.requests.0.clone()
    }

    /// The feed of its events while it runs.
    pub fn events(&self) -> EventFeed {
        self.log.feed()
    }

    /// Reports an event on behalf of this peer, to all receivers of its own events.
    pub fn tell(&self, event: Event) {
        self.log.tell(event);
    }

    /// A reporter of events and of the trainer's state on behalf of this peer, while it runs.
    pub fn announcer(&self) -> Announcer {
        Announcer { log: self.log.clone(), board: self.board.clone() }
    }

    /// Runs the peer, with its local interface open, until its work is done or it is requested to stop.
    ///
    /// # Errors
    /// Any earlier end: no plan, neighbours that refuse it, training that fails or diverges, a disk that cannot be
    /// written, or a second request to stop.
    pub async fn run(mut self, stop: StopRequests) -> Result<Outcome> {
        medium::check(&self.options.medium, self.options.air_rate, self.options.slots)?;
        self.refuse_rounds_of_problem()?;
        let mut registry = Registry::default();
        // Only a preference: unreadable addresses are overwritten below.
        let before = self.home.addresses().unwrap_or_default();
        let PeerOptions { listen, mdns, medium, air_rate, slots, .. } = &self.options;
        let signs_of_life = SignsOfLife::of(medium, *air_rate, *slots);
        let options = NetworkOptions { listen, before: &before, mdns: *mdns, signs_of_life };
        let (network, events) = Network::start(self.identity.keypair(), &options, &mut registry).await?;
        self.home.keep_addresses(&network.addresses)?;
        let (requests, asked) = std::mem::replace(&mut self.requests, api::requests());
        let api_state = ApiState { status: self.board.look(), events: self.log.feed(), registry, requests };
        let mut openings = Openings { http: self.options.http, ..Openings::default() };
        let farewell = self.extension.take().map(|Extension { routes, tcp, farewell }| {
            openings.more = Some(routes);
            openings.tcp = tcp;
            farewell
        });
        let interface = Interface::open(&self.home, openings, api_state).await?;
        self.introduce(&network, &interface);
        let outcome = self.take_part(&network, &interface, Incoming { events, stop, asked }).await;
        if let Err(failure) = &outcome {
            self.log.tell_failure(failure);
            self.board.update(|status| status.state = PeerState::Failed);
        }
        if let Some(farewell) = farewell {
            farewell(&outcome).await;
        }
        network.close().await;
        // Clients that follow the streams can read to the end.
        drop(self);
        interface.close().await;
        outcome
    }

    /// Publishes the addresses of the peer, for its neighbours and for its owner.
    fn introduce(&mut self, network: &Network, interface: &Interface) {
        let addresses: Vec<String> = network.addresses.iter().map(ToString::to_string).collect();
        let rounds = self.rounds();
        self.board.update(|status| {
            status.addresses.clone_from(&addresses);
            status.rounds = rounds;
            status.durable = self.options.durability == Durability::On;
        });
        self.log.tell(Event::Listening { peer: self.identity.peer_id().to_string(), addresses });
        self.log.tell(Event::Interface {
            socket: interface.socket().map(|path| path.display().to_string()),
            page: interface.page(),
            trainer: interface.guarded(),
        });
        let exposures = self.home.exposures().into_iter().map(|exposure| exposure.to_string());
        for message in interface.troubles().into_iter().chain(exposures) {
            self.log.tell(Event::Warning { message });
        }
    }

    /// Rounds to train, as far as is known.
    fn rounds(&self) -> u64 {
        match &self.purpose {
            Purpose::Train(task) => task.rounds(),
            Purpose::TrainFederated(_, settings) => settings.rounds,
            Purpose::Solve(_) => 0,
            Purpose::Learn(task) => task.rules().rounds(),
        }
    }

    async fn take_part(&mut self, network: &Network, interface: &Interface, mut incoming: Incoming) -> Result<Outcome> {
        let swarm = self.membership.as_ref().map(|membership| membership.swarm.clone());
        let prober = Prober::new(network.streams.clone(), network.reach());
        let (service, mut wanted) =
            MembershipService::open(&self.home, &self.identity, swarm, prober, network.known.clone())?;
        membership::serve(network.streams.clone(), Arc::clone(&service))?;
        let guard = Arc::clone(&service);
        probe::serve(network.streams.clone(), network.known.clone(), move |peer, token| {
            guard.objection_to_probe(peer, token)
        })?;
        let trains = matches!(self.purpose, Purpose::Train(_));
        let followers =
            Followers::serve(network.streams.clone(), Arc::clone(&service), self.options.followers, trains)?;
        interface.show_service(&service);
        if let Some(planning) = self.options.automatic_planning {
            let least_members = planning.least_members.max(self.least_members());
            AutoPlanner::start(&service, network.streams.clone(), AutomaticPlanning { least_members, ..planning })?;
        }
        Introductions::start(network, &self.home).await;
        network.bootstrap(self.bootstrap()).await;

        let stopping = Stopping { round: 0, rounds: self.rounds(), weight_units: 0, durable: true };
        let mut receivers = PlanReceivers::new(network, &mut incoming.events, &mut wanted);
        let place = tokio::select! {
            place = self.settle(&mut receivers, &service) => place?,
            reason = stopped(&mut incoming.stop, &mut incoming.asked, stopping) => {
                let waits_for_trainer = self.board.look().borrow().state == PeerState::WaitingForTrainer;
                let what = if waits_for_trainer { "a trainer attached" } else { "there was a plan" };
                return Err(Error::new(ErrorKind::Forced, format!("{reason} before {what}")));
            }
        };
        place.show_on(&self.board);
        interface.show_plan(&place.plan.plan);
        let (out, inward) = place.neighbours();
        network.seek(out.into_values().chain(inward.into_values()).collect()).await;
        let access = Access { service, wanted, interface, followers };
        // The futures are too large for the stack of their callers.
        match std::mem::replace(&mut self.purpose, Purpose::Solve(PathBuf::new())) {
            Purpose::Solve(path) => {
                Box::pin(self.solve(CommonWork::File(path), place, network, access, incoming)).await
            }
            Purpose::Learn(task) => {
                let work = CommonWork::Rounds(Box::new(move |_| Ok(Arc::clone(&task))));
                Box::pin(self.solve(work, place, network, access, incoming)).await
            }
            Purpose::Train(task) => Box::pin(self.train(task, place, network, access, incoming)).await,
            Purpose::TrainFederated(task, settings) => {
                Box::pin(self.train_federated((task, settings), place, network, access, incoming)).await
            }
        }
    }

    /// Finds this peer's place, and agrees with the others on the task.
    async fn settle(&mut self, receivers: &mut PlanReceivers<'_>, service: &MembershipService) -> Result<Place> {
        self.agree_on_rounds(receivers, service).await?;
        self.wait_for_trainer(receivers, service).await?;
        if self.work().is_some() {
            self.announce_work(service);
            self.remember_new_work()?;
        }
        let place = self.find_place(receivers, service).await?;
        self.agree_with_others(receivers, service, &place).await?;
        self.remember_new_work()?;
        self.show_rounds();
        Ok(place)
    }

    /// Begins to open the streams of the plan. Returns the sources of events, and this peer as a member.
    fn join_plan<'a>(
        &'a mut self,
        place: Place,
        network: &'a Network,
        access: Access<'a>,
        incoming: Incoming,
        streams: Streams,
    ) -> Result<(EventReceivers, Member<'a>)> {
        let Streams { boot_nonce, dimension, timeline } = streams;
        let PeerOptions { medium, air_rate, slots, codec, .. } = &self.options;
        let settings = MulticastSettings::of(medium, *air_rate);
        let medium = settings.map(|settings| PeerMedium { settings, slots: *slots, codec: *codec });
        let (connections, edges) =
            Connections::open(&network.streams, place, boot_nonce, dimension, medium.as_ref(), &timeline)?;
        let Incoming { events, stop, asked } = incoming;
        let Access { service, wanted, interface, followers } = access;
        let receivers = EventReceivers {
            edges,
            network: events,
            wanted,
            stop,
            requests: asked,
            answers: None,
            written: None,
            watchdog: Watchdog::of_environment(),
        };
        let member = Member {
            home: &self.home,
            local: self.identity.peer_id(),
            connections,
            service,
            network,
            log: &mut self.log,
            board: &self.board,
            interface,
            timeline,
            medium,
            started: self.started,
            followers,
            skipped_rounds: self.home.skipped_rounds()?,
            notices: Notices::default(),
        };
        Ok((receivers, member))
    }

    /// Bootstrap addresses: those of the options, else those of the ticket.
    fn bootstrap(&self) -> Vec<Multiaddr> {
        match &self.membership {
            Some(membership) if self.options.bootstrap.is_empty() => membership.bootstrap.clone(),
            _ => self.options.bootstrap.clone(),
        }
    }

    /// The fewest members that this peer's work needs.
    fn least_members(&self) -> usize {
        match &self.purpose {
            Purpose::Train(_) | Purpose::Solve(_) => 1,
            Purpose::TrainFederated(_, settings) => settings.least_members(),
            Purpose::Learn(task) => task.least_nodes(),
        }
    }

    /// This peer's work, once it is settled.
    fn work(&self) -> Option<Work> {
        match &self.purpose {
            Purpose::Train(task) => task.card().map(Work::Train),
            Purpose::TrainFederated(task, settings) => {
                let model = federated::description(task.card()?.as_ref());
                Some(problem(mingle_federated_training::shared(settings, &model), self.options.sums))
            }
            Purpose::Learn(task) => Some(problem(task.shared(), self.options.sums)),
            // Their files are resolved for the members of a plan, and compared once there is one.
            Purpose::Solve(_) => Some(problem(serde_json::json!({}), self.options.sums)),
        }
    }
}

fn problem(settings: serde_json::Value, sums: SumPolicy) -> Work {
    Work::Solve(ProblemCard::with_sums(settings, sums))
}

/// Waits until the peer is requested to stop. Returns the reason.
async fn stopped(stop: &mut StopRequests, asked: &mut mpsc::Receiver<Request>, answer: Stopping) -> String {
    loop {
        let request = tokio::select! {
            reason = stop.next() => return reason,
            Some(request) = asked.recv() => request,
        };
        // The client may be gone.
        match request {
            Request::Stop(sender) => drop(sender.send(answer)),
            // It holds no weight that the others would miss.
            Request::Leave(sender) => drop(sender.send(Some(answer))),
            Request::End(_) => {
                request.decline();
                continue;
            }
        }
        return "asked to stop".to_owned();
    }
}

/// A number that distinguishes this process from any other.
fn boot_nonce() -> Result<u64> {
    getrandom::u64().context(ErrorKind::Unexpected, "the operating system gives no random numbers")
}
