//! The side of a member: versions of its model for followers, within bounds.
//!
//! The event loop of the peer only asks at the end of a round whether a model is wanted, and hands it over. All else is
//! done by a thread of low priority and by tasks, one for each follower. A version is one file in memory, shared by all
//! followers, and is made no more often than the rest after the one before allows.

mod line;
mod making;
mod sending;
mod state;

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use futures::{AsyncReadExt, AsyncWriteExt, StreamExt};
use libp2p::{PeerId, Stream};
use mingle_home::error::{Error, ErrorKind, Result};
use mingle_membership::MembershipService;
use mingle_net::framed;
use mingle_net::known_peers::KnownPeers;
use mingle_net::places::{AdmissionLimits, Places, STRANGER_TIMEOUT};
use mingle_net::transport;
use mingle_training::ModelEncoder;
use tokio::sync::watch;

use crate::messages::{
    Ask, MAX_ADDRESSES, MAX_ASK_BYTES, MAX_MEMBERS, MAX_TASK_BYTES, PROTOCOL, Refusal, Reply, Welcome,
};
pub use making::RoundModel;
use sending::SendingRate;
use state::{Next, Phase, State};

/// Limits on streams whose first request is read: any stranger may open one.
const GREETINGS: AdmissionLimits = AdmissionLimits { known: 0, strangers: 32, per_peer: 2 };
/// Time after which a follower that waits gets an answer without a model.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// Time that a follower has for what it does with a model, before it asks for the next one.
const LONGEST_SILENCE: Duration = Duration::from_secs(120);
/// Time at the end of a peer for its followers to get the last model.
const FAREWELL: Duration = Duration::from_secs(20);
/// Time at the end of a peer to send its followers elsewhere.
const SHORT_FAREWELL: Duration = Duration::from_secs(1);

/// Limits on followers, set by the owner of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowerLimits {
    /// Most followers at a time; 0 serves none.
    pub most: usize,
    /// Most bytes of models a second, to all of them together.
    pub bytes_per_second: u64,
}

impl Default for FollowerLimits {
    fn default() -> Self {
        Self { most: 16, bytes_per_second: 16_000_000 }
    }
}

/// The followers of this peer. Clones are the same.
#[derive(Clone)]
pub struct Followers {
    shared: Arc<Shared>,
}

struct Shared {
    service: Arc<MembershipService>,
    limits: FollowerLimits,
    rate: SendingRate,
    state: Mutex<State>,
    /// Counts changes of the state that a waiting follower must see.
    news: watch::Sender<u64>,
    encoder: OnceLock<ModelEncoder>,
    /// The way to the thread that makes versions, once one was wanted.
    models: OnceLock<Option<SyncSender<RoundModel>>>,
}

/// A follower among those that are served; it is removed when this is dropped.
struct Seat {
    number: u64,
    shared: Arc<Shared>,
}

impl Followers {
    /// Begins to answer followers, for as long as the process runs. Those of a peer that trains no model are refused.
    ///
    /// # Errors
    /// Another part of this process answers them already.
    pub fn serve(
        mut streams: libp2p_stream::Control,
        service: Arc<MembershipService>,
        limits: FollowerLimits,
        trains: bool,
    ) -> Result<Self> {
        let mut incoming =
            transport::accept(&mut streams, PROTOCOL).map_err(|error| Error::of(ErrorKind::Unexpected, error))?;
        let shared = Arc::new(Shared {
            service,
            limits,
            rate: SendingRate::new(limits.bytes_per_second),
            state: Mutex::new(State::new(if trains { Phase::Begins } else { Phase::NoModel })),
            news: watch::Sender::new(0),
            encoder: OnceLock::new(),
            models: OnceLock::new(),
        });
        let followers = Self { shared: Arc::clone(&shared) };
        tokio::spawn(async move {
            let greetings = Places::new(KnownPeers::default(), GREETINGS);
            while let Some((peer, stream)) = incoming.next().await {
                // A follower without a permit asks again later.
                let Some(place) = greetings.take(peer) else { continue };
                let shared = Arc::clone(&shared);
                tokio::spawn(async move {
                    if let Err(error) = shared.greet(peer, stream, place).await {
                        tracing::debug!(%peer, %error, "a follower has gone");
                    }
                });
            }
        });
        Ok(followers)
    }

    /// The peer trains this task, and writes its models so.
    pub fn begin(&self, task: String, encoder: ModelEncoder) {
        if self.shared.encoder.set(encoder).is_ok() {
            self.shared.state().phase = Phase::Trains(task);
            self.shared.tell_news();
        }
    }

    /// Hands over the model of a round that has ended, if followers wait for one. It becomes a version soon; the caller
    /// does not wait. `plan` is the hash of the plan.
    pub fn note_round(&self, round: u64, last_round: u64, plan: &str, model: impl FnOnce() -> Arc<[f32]>) {
        let is_wanted = self.shared.limits.most > 0 && self.shared.state().wants(round, Instant::now());
        let models = if is_wanted { self.models() } else { None };
        let Some(models) = models else { return };
        let model = RoundModel { round, last_round, model: model(), metadata: self.metadata(plan, round) };
        self.shared.state().is_busy = true;
        if models.try_send(model).is_err() {
            self.shared.state().is_busy = false;
        }
    }

    /// The way to the thread that makes versions; `None` if there can be none.
    fn models(&self) -> Option<&SyncSender<RoundModel>> {
        let encoder = self.shared.encoder.get()?;
        let models = self.shared.models.get_or_init(|| {
            let started = making::start(Arc::downgrade(&self.shared), Arc::clone(encoder));
            started.inspect_err(|error| tracing::warn!(%error, "followers get no models")).ok()
        });
        models.as_ref()
    }

    /// Metadata for the file of a round's model.
    fn metadata(&self, plan: &str, round: u64) -> BTreeMap<String, String> {
        let task = match &self.shared.state().phase {
            Phase::Trains(task) => task.clone(),
            Phase::Begins | Phase::NoModel | Phase::Leaves => String::new(),
        };
        let known = [("plan", plan.to_owned()), ("task", task), ("rounds", round.to_string())];
        known.map(|(key, value)| (key.to_owned(), value)).into()
    }

    /// Number of followers at present.
    pub fn count(&self) -> usize {
        self.shared.state().count()
    }

    /// Gives followers the last model of this peer, and waits until they have it, for a while. Where the training is not
    /// done, they are sent to other members.
    pub async fn see_off(&self, model: RoundModel) {
        if self.count() == 0 {
            return;
        }
        if model.round < model.last_round {
            return self.wait_for_departures(SHORT_FAREWELL).await;
        }
        let shared = Arc::clone(&self.shared);
        let making = tokio::task::spawn_blocking(move || {
            let Some(encoder) = shared.encoder.get() else { return };
            let followed = shared.state().followed();
            for precision in followed {
                making::make(&shared, encoder, &model, precision, true);
            }
        });
        // A panic in an encoder loses the model of followers alone.
        let _ = making.await;
        self.wait_for_departures(FAREWELL).await;
    }

    async fn wait_for_departures(&self, patience: Duration) {
        self.shared.state().phase = Phase::Leaves;
        self.shared.tell_news();
        let mut news = self.shared.news.subscribe();
        let gone = news.wait_for(|_| self.count() == 0);
        // Those that are still there lose their connection.
        let _ = tokio::time::timeout(patience, gone).await;
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell_news(&self) {
        self.news.send_modify(|count| *count += 1);
    }

    /// Reads the first request, and serves the follower if it may follow.
    async fn greet(
        self: Arc<Self>,
        peer: PeerId,
        mut stream: Stream,
        place: mingle_net::places::AdmissionPermit,
    ) -> io::Result<()> {
        let ask: Ask = tokio::time::timeout(STRANGER_TIMEOUT, framed::read(&mut stream, MAX_ASK_BYTES)).await??;
        match self.admit(&peer, &ask) {
            Err(refusal) => {
                tracing::debug!(%peer, %refusal, "a follower is refused");
                let farewell = async {
                    framed::write(&mut stream, &Reply::Refused(refusal)).await?;
                    stream.close().await
                };
                tokio::time::timeout(STRANGER_TIMEOUT, farewell).await?
            }
            Ok(seat) => {
                drop(place);
                seat.serve(peer, stream, ask).await
            }
        }
    }

    /// Checks a request.
    fn check(&self, peer: &PeerId, ask: &Ask) -> Result<(), Refusal> {
        let ours = self.service.swarm().map(|swarm| swarm.id());
        if ours != Some(ask.swarm) {
            return Err(Refusal::OtherSwarm);
        }
        let invited = self.service.check_follower(peer, &ask.claim);
        invited.map_err(|failure| Refusal::NotInvited(format!("{failure:#}")))?;
        if self.limits.most == 0 {
            return Err(Refusal::Off);
        }
        if self.state().phase == Phase::NoModel { Err(Refusal::NoModel) } else { Ok(()) }
    }

    fn admit(self: &Arc<Self>, peer: &PeerId, ask: &Ask) -> Result<Seat, Refusal> {
        self.check(peer, ask)?;
        let most = self.limits.most;
        let seat = self.state().seat(ask.precision, most);
        let full = Refusal::Full(u32::try_from(most).unwrap_or(u32::MAX));
        seat.map(|number| Seat { number, shared: Arc::clone(self) }).ok_or(full)
    }

    async fn welcome(&self) -> Option<Welcome> {
        let Phase::Trains(task) = self.state().phase.clone() else { return None };
        let members = self.service.members_with_addresses(MAX_MEMBERS, MAX_ADDRESSES).await;
        let members = members.into_iter().map(|(peer, addresses)| (peer.to_bytes(), addresses)).collect();
        Some(Welcome { task: shortened(task), members })
    }
}

impl Seat {
    /// Answers requests of a follower until it goes, or has the final model.
    async fn serve(&self, peer: PeerId, mut stream: Stream, mut ask: Ask) -> io::Result<()> {
        let mut is_welcome = false;
        loop {
            if !is_welcome && let Some(welcome) = self.shared.welcome().await {
                reply(&mut stream, &Reply::Welcome(welcome)).await?;
                is_welcome = true;
            }
            match self.next(&ask).await {
                // Before the peer has begun, there is nothing to be welcome to.
                Next::Update(update, loads) if is_welcome => {
                    let is_final = update.is_final;
                    reply(&mut stream, &Reply::Update(update)).await?;
                    for load in loads {
                        sending::send(&mut stream, load.bytes(), &self.shared.rate).await?;
                    }
                    if is_final {
                        return hang_up(stream).await;
                    }
                }
                Next::Leaving => {
                    reply(&mut stream, &Reply::Leaving).await?;
                    return hang_up(stream).await;
                }
                Next::Update(..) | Next::Wait => reply(&mut stream, &Reply::Waiting).await?,
            }
            let asking = framed::read(&mut stream, MAX_ASK_BYTES);
            let precision = ask.precision;
            ask = tokio::time::timeout(LONGEST_SILENCE, asking).await??;
            // An invitation may have been revoked meanwhile, and a follower keeps to its precision.
            ask.precision = precision;
            if let Err(refusal) = self.shared.check(&peer, &ask) {
                reply(&mut stream, &Reply::Refused(refusal)).await?;
                return stream.close().await;
            }
        }
    }

    /// The answer to a request, at the latest after `HEARTBEAT`.
    async fn next(&self, ask: &Ask) -> Next {
        let mut news = self.shared.news.subscribe();
        let waiting = async {
            loop {
                news.mark_unchanged();
                match self.shared.state().next(self.number, ask, Instant::now()) {
                    Next::Wait => {}
                    next => return next,
                }
                if news.changed().await.is_err() {
                    return Next::Leaving;
                }
            }
        };
        tokio::time::timeout(HEARTBEAT, waiting).await.unwrap_or(Next::Wait)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.shared.state().leave(self.number);
        self.shared.tell_news();
    }
}

async fn reply(stream: &mut Stream, reply: &Reply) -> io::Result<()> {
    tokio::time::timeout(LONGEST_SILENCE, framed::write(stream, reply)).await?
}

/// Ends a stream once the other side has ended it too. A process that ends takes with it what it has sent and the other
/// side has not read: a connection over QUIC that is closed drops what it has received.
async fn hang_up(mut stream: Stream) -> io::Result<()> {
    stream.close().await?;
    let mut nothing = [0];
    tokio::time::timeout(LONGEST_SILENCE, stream.read(&mut nothing)).await?.map(drop)
}

fn shortened(mut task: String) -> String {
    task.truncate(task.floor_char_boundary(MAX_TASK_BYTES));
    task
}
