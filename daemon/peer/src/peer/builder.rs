//! A peer inside another program.

use std::time::Instant;

use libp2p::Multiaddr;
use mingle_federated::FederatedSettings;
use mingle_planner::Plan;
use tokio::sync::{mpsc, oneshot};

use super::{GivenPlan, Outcome, Peer, PeerOptions, PeerParts, Purpose};
use crate::api::{Request, Stopping};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::events::{Event, EventFeed};
use crate::home::Home;
use crate::identity::Identity;
use crate::membership::{Membership, Ticket};
use crate::status::StatusView;
use crate::stop::{self, StopHandle};
use crate::training::{FixedTask, LocalTraining, TrainingTask};

/// Settings of a peer to be started.
pub struct PeerBuilder {
    home: Home,
    options: PeerOptions,
    ticket: Option<Ticket>,
    name: String,
    rounds: u64,
    training: Option<Box<dyn LocalTraining>>,
    task: Option<Box<dyn TrainingTask>>,
    federated: Option<FederatedSettings>,
}

impl PeerBuilder {
    pub(super) fn new(home: Home) -> Self {
        let options = PeerOptions::default();
        let name = "a model".to_owned();
        Self { home, options, ticket: None, name, rounds: 20_000, training: None, task: None, federated: None }
    }

    /// The plan; otherwise it is that of a bootstrap peer, or that of the last run in the home.
    #[must_use]
    pub fn plan(mut self, plan: Plan) -> Self {
        self.options.plan = Some(GivenPlan { plan, origin: "this program".to_owned() });
        self
    }

    /// Peers that are up, to ask for the plan and for others; may be called more than once.
    #[must_use]
    pub fn bootstrap<'a>(mut self, addresses: impl IntoIterator<Item = &'a Multiaddr>) -> Self {
        self.options.bootstrap.extend(addresses.into_iter().cloned());
        self
    }

    /// The swarm to join, with the invitation of its operator. Later starts in the same home need no ticket.
    #[must_use]
    pub fn ticket(mut self, ticket: Ticket) -> Self {
        self.ticket = Some(ticket);
        self
    }

    /// The training of this peer. Peers of a swarm need the same layout, [`name`](Self::name) and
    /// [`rounds`](Self::rounds).
    #[must_use]
    pub fn training(mut self, training: impl LocalTraining + 'static) -> Self {
        self.training = Some(Box::new(training));
        self
    }

    /// A training task that is settled with the members of the swarm first.
    #[must_use]
    pub fn task(mut self, task: impl TrainingTask + 'static) -> Self {
        self.task = Some(Box::new(task));
        self
    }

    /// Trains by federated averaging instead of push-sum: in rounds whose changes are summed behind masks, with noise that
    /// all share if the settings have [privacy](FederatedSettings::privacy). All members need the same settings, and their
    /// rounds count in place of [`rounds`](Self::rounds).
    #[must_use]
    pub fn federated(mut self, settings: FederatedSettings) -> Self {
        self.rounds = settings.rounds;
        self.federated = Some(settings);
        self
    }

    /// Name of the task, for people and to distinguish it from others.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Number of rounds to train, 20,000 by default.
    #[must_use]
    pub fn rounds(mut self, rounds: u64) -> Self {
        self.rounds = rounds;
        self
    }

    /// Changes the peer's options.
    #[must_use]
    pub fn options(mut self, change: impl FnOnce(&mut PeerOptions)) -> Self {
        change(&mut self.options);
        self
    }

    /// Starts the peer on a thread of its own, within the present tokio runtime. It is up when this returns.
    ///
    /// # Errors
    /// There is nothing to train, the home is in use or has no key, or no address can be listened on.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn start(self) -> Result<RunningPeer> {
        let Self { home, options, ticket, name, rounds, training, task, federated } = self;
        let task = match (task, training) {
            (Some(task), _) => task,
            (None, Some(training)) => Box::new(FixedTask::new(&name, rounds, training)?),
            (None, None) => {
                return Err(Error::new(ErrorKind::BadInput, "this peer has nothing to train")
                    .hint("give it something with PeerBuilder::training"));
            }
        };
        let purpose = match federated {
            Some(settings) => Purpose::TrainFederated(task, settings),
            None => Purpose::Train(task),
        };
        let identity = Identity::load_or_create(&home.identity())?;
        let lock = home.lock()?;
        let membership = match ticket {
            Some(ticket) => Some(ticket.membership(identity.peer_id(), &home)?),
            None => Membership::of(&home)?,
        };
        let (up, is_up) = oneshot::channel();
        let mut up = Some(up);
        let parts = PeerParts {
            membership,
            identity,
            purpose,
            options,
            sink: Box::new(move |event, _| {
                if let Event::Listening { addresses, .. } = event
                    && let Some(up) = up.take()
                {
                    // The caller may be gone.
                    let _ = up.send(addresses.clone());
                }
            }),
            remember: Box::new(|_| Ok(())),
            extension: None,
            started: Instant::now(),
            home,
        };
        let peer = Peer::new(parts)?;
        let status = peer.status();
        let events = peer.events();
        let asks = peer.requests();
        let (stop, requests) = stop::channel();
        let (ended, outcome) = oneshot::channel();
        let runtime = tokio::runtime::Handle::current();
        std::thread::Builder::new()
            .name("peer".to_owned())
            .spawn(move || {
                let outcome = runtime.block_on(peer.run(requests));
                drop(lock);
                // The caller may be gone.
                let _ = ended.send(outcome);
            })
            .context(ErrorKind::Unexpected, "cannot start the thread of this peer")?;
        let Ok(addresses) = is_up.await else { return Err(outcome.await.map_or_else(|_| crashed(), failed)) };
        let addresses = addresses.iter().filter_map(|address| address.parse().ok()).collect();
        Ok(RunningPeer { addresses, status, events, stop, asks, outcome })
    }
}

/// A running peer. It goes on when this is dropped.
pub struct RunningPeer {
    addresses: Vec<Multiaddr>,
    status: StatusView,
    events: EventFeed,
    stop: StopHandle,
    asks: mpsc::Sender<Request>,
    outcome: oneshot::Receiver<Result<Outcome>>,
}

impl RunningPeer {
    /// Addresses on which it listens, each with its PeerId, from which others [`bootstrap`](PeerBuilder::bootstrap).
    pub fn addresses(&self) -> &[Multiaddr] {
        &self.addresses
    }

    /// Its newest status, and a way to wait for the next.
    pub fn status(&self) -> StatusView {
        self.status.clone()
    }

    /// Its events, for any number of readers.
    pub fn events(&self) -> EventFeed {
        self.events.clone()
    }

    /// Asks it to stop in good order; asked again, it stops at once.
    pub fn stop(&self) {
        self.stop.stop("asked to stop");
    }

    /// Requests it to hand all its weight over to its neighbours and to end for good. Returns its state at the request;
    /// `None` if it is ending already.
    pub async fn leave(&self) -> Option<Stopping> {
        let (answer, answered) = oneshot::channel();
        self.asks.send(Request::Leave(answer)).await.ok()?;
        answered.await.ok().flatten()
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// The failure that ended it before its work was done and before it was requested to stop.
    pub async fn outcome(self) -> Result<Outcome> {
        self.outcome.await.unwrap_or_else(|_| Err(crashed()))
    }
}

fn crashed() -> Error {
    Error::new(ErrorKind::Unexpected, "the thread of this peer has crashed")
}

/// The failure that ended a peer before it was up.
fn failed(outcome: Result<Outcome>) -> Error {
    outcome.err().unwrap_or_else(|| Error::new(ErrorKind::Unexpected, "this peer has ended before it was up"))
}
