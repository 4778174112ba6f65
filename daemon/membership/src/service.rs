//! The service that answers requests of other peers (for the plan, the model, the progress) and takes announcements
//! from them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use futures::{AsyncWriteExt, StreamExt};
use libp2p::identity::Keypair;
use libp2p::{Multiaddr, PeerId, Stream};
use mingle_home::error::{Context, ErrorKind, Result};
use mingle_home::home::Home;
use mingle_home::identity::Identity;
use mingle_net::framed;
use mingle_net::known_peers::KnownPeers;
use mingle_net::places::{AdmissionLimits, AdmissionPermit, Places};
use mingle_net::probe::{Prober, SpentTokens};
use mingle_protocol::NodeId;
use tokio::sync::{mpsc, oneshot};

use crate::donors::Borrowed;
use crate::early_end::Wish;
use crate::exchange::{ANSWER_TIMEOUT, MODEL_TIMEOUT, TaskAnswer};
use crate::offer::{CheckedPlan, PlanNews, PlanOffer};
use crate::pending_peers::PendingPeers;
use crate::requests::{MAX_BYTES, MemberAnswer, MemberRequest, PROTOCOL, PeerProgress, PlanVerdict, RoundCosts};
use crate::swarm::{Permission, SwarmIdentity};
use crate::task::Work;

/// Limits on requests answered at the same time.
const ANSWERS: AdmissionLimits = AdmissionLimits { known: 64, strangers: 32, per_peer: 4 };
/// Limits on models sent at the same time, each with two copies in memory.
const MODELS: AdmissionLimits = AdmissionLimits { known: 4, strangers: 0, per_peer: 1 };
/// Peers and addresses that fit into an answer with room to spare; further ones are found in the Kademlia table.
const MAX_PEERS_TOLD: usize = 1024;
const MAX_ADDRESSES_TOLD: usize = 6;
/// Requests that wait for the event loop.
const WANTED_QUEUE: usize = 4;

/// A request or a notice for the event loop.
#[derive(Debug)]
pub enum Wanted {
    /// Requests the ratio; answered by `None` while there is no sound one.
    Model(oneshot::Sender<Option<Arc<[f32]>>>),
    /// A newer plan of the operator arrived.
    Plan(Box<CheckedPlan>, oneshot::Sender<PlanVerdict>),
    /// A newer plan of the operator arrived, with an initial model for it.
    PlanWithModel(Box<CheckedPlan>, Borrowed),
    /// Requests the progress of training.
    Standing(oneshot::Sender<Standing>),
    /// A peer was admitted and is pending.
    JoinRequested(PeerId),
    /// A warning for a person.
    Warning(String),
    /// The next plan has this number of local steps in a round, because of these costs of its rounds.
    LocalSteps(u32, RoundCosts),
    /// A neighbour has another task; the text states the difference.
    OtherTask(NodeId, String),
    /// A neighbour has not connected, and answers this.
    Missing(NodeId, TaskAnswer),
}

/// The state of this peer's training at the time of the call; `None` where it has none to give.
pub type StateSource = Arc<dyn Fn() -> Option<Vec<u8>> + Send + Sync>;

/// Progress of this peer.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// Rounds over, in all.
    pub round: u64,
    /// Rounds over when training is done.
    pub last_round: u64,
    /// Neighbours that left for good.
    pub left: Vec<PeerId>,
    /// Costs of its rounds; `None` before it has measured some.
    pub costs: Option<RoundCosts>,
    /// Rounds of the task.
    pub rounds_of_task: u64,
    /// Rounds of the plan after which models that train until then agree.
    pub rounds_to_end: u64,
    /// The wish of its user.
    pub wish: Wish,
}

/// The state of this process that other peers can ask for.
pub struct MembershipService {
    pub(crate) local: PeerId,
    pub(crate) home: Home,
    pub(crate) key: Keypair,
    pub(crate) prober: Prober,
    known_peers: KnownPeers,
    models: Places,
    state: Mutex<ServiceState>,
    pub(crate) wanted: mpsc::Sender<Wanted>,
}

pub(crate) struct ServiceState {
    /// The swarm, if it has an operator, with its newest authority certificate.
    pub(crate) swarm: Option<SwarmIdentity>,
    /// The plan, with the PeerIds of its members.
    pub(crate) plan: Option<(PlanOffer, BTreeSet<String>)>,
    pub(crate) pending_peers: PendingPeers,
    /// The task of this peer; `None` before it is known.
    pub(crate) work: Option<Work>,
    /// Newcomers with a ticket and another task, of which the user was told.
    pub(crate) unfit_newcomers: BTreeSet<PeerId>,
    /// Set when an event loop runs that answers requests for the model.
    gives_models: bool,
    /// The state of this peer's training, where members that join may have it.
    pub(crate) states: Option<StateSource>,
    /// Set when this process plans the swarm, and counts who asks for its end.
    pub(crate) plans_the_swarm: bool,
    /// The operator's permissions that were used here.
    pub(crate) spent: SpentTokens,
    /// Pairs of plans that a person was warned of: two of one number, or one and a plan after the other. A plan that
    /// cannot be followed is paired with itself.
    pub(crate) oddities: BTreeSet<[[u8; 32]; 2]>,
}

impl ServiceState {
    fn counter(&self) -> u64 {
        self.plan.as_ref().map_or(0, |(offer, _)| offer.generation().counter)
    }
}

impl MembershipService {
    /// A service without a plan or a task. Requests that only the event loop can answer come out of the receiver.
    pub fn open(
        home: &Home,
        identity: &Identity,
        swarm: Option<SwarmIdentity>,
        prober: Prober,
        known_peers: KnownPeers,
    ) -> Result<(Arc<Self>, mpsc::Receiver<Wanted>)> {
        let (wanted, receiver) = mpsc::channel(WANTED_QUEUE);
        let state = Mutex::new(ServiceState {
            swarm,
            plan: None,
            pending_peers: PendingPeers::open(home)?,
            work: None,
            unfit_newcomers: BTreeSet::new(),
            gives_models: false,
            states: None,
            plans_the_swarm: false,
            spent: SpentTokens::default(),
            oddities: BTreeSet::new(),
        });
        let local = identity.peer_id();
        let key = identity.keypair().clone();
        let models = Places::new(known_peers.clone(), MODELS);
        let home = home.clone();
        let service = Self { local, home, key, prober, known_peers, models, state, wanted };
        Ok((Arc::new(service), receiver))
    }

    /// Makes this the plan that the service offers.
    pub fn follow(&self, plan: &CheckedPlan) {
        let members: BTreeSet<String> = plan.plan.nodes().filter_map(|(_, peer)| peer.map(str::to_owned)).collect();
        let mut state = self.state();
        state.pending_peers.dismiss(&members, plan.offer.revoked());
        state.plan = Some((plan.offer.clone(), members));
        drop(state);
        self.show_known();
        self.learn(plan.offer.authority());
        self.remember_authority();
    }

    /// Lets the event loop answer requests for the model from now on. Before, they are answered with "not yet", so that
    /// two peers that each need the other's model do not wait for each other.
    pub fn give_models(&self) {
        self.state().gives_models = true;
    }

    /// Returns `true` if this process plans the swarm, and can end its training for all.
    pub fn plans_the_swarm(&self) -> bool {
        self.state().plans_the_swarm
    }

    /// Number of pending peers.
    pub fn waiting(&self) -> usize {
        self.state().pending_peers.waiting().len()
    }

    /// The pending peers, in the order of their admission.
    pub(crate) fn who_waits(&self) -> Vec<PeerId> {
        self.state().pending_peers.waiting().to_vec()
    }

    /// The members of the plan by their names; this peer alone, while there is none.
    pub(crate) fn members(&self) -> Vec<PeerId> {
        let state = self.state();
        let Some((_, members)) = &state.plan else { return vec![self.local] };
        members.iter().filter_map(|peer| peer.parse().ok()).collect()
    }

    /// The newest signed plan that this peer follows.
    pub(crate) fn last_plan(&self) -> Option<PlanOffer> {
        self.state().plan.as_ref().map(|(offer, _)| offer.clone()).filter(|offer| offer.counter() > 0)
    }

    /// Progress of this peer; `None` while it ends.
    pub(crate) async fn standing(&self) -> Option<Standing> {
        self.ask(Wanted::Standing).await
    }

    /// This peer serves everybody that it knows before others, and relays for them.
    pub(crate) fn show_known(&self) {
        self.known_peers.replace(self.known().into_iter().collect());
    }

    /// Returns `true` if this peer is the operator of the swarm or its delegate.
    pub fn is_operator(&self) -> bool {
        matches!(self.signer(), Some(Ok(_)))
    }

    /// Passes a notice of this process to the event loop.
    pub async fn hand_in(&self, wanted: Wanted) {
        // The loop may have ended.
        let _ = self.wanted.send(wanted).await;
    }

    pub(crate) fn state(&self) -> std::sync::MutexGuard<'_, ServiceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_member(&self, peer: &PeerId) -> bool {
        self.state().plan.as_ref().is_some_and(|(_, members)| members.contains(&peer.to_string()))
    }

    /// Returns `true` if this is the operator or its delegate, or has the permission of either.
    fn may_operate(&self, peer: &PeerId, permission: Option<&Permission>) -> bool {
        let Some(swarm) = self.swarm() else { return false };
        let Some(permission) = permission else { return swarm.role_of(peer).is_some() };
        let permits = swarm.permits_to_ask(peer, permission);
        if permits {
            self.learn(&permission.authority);
        }
        permits
    }

    /// The plan that this peer follows, for a member of it and for the operator.
    fn tell_plan(&self, peer: &PeerId, permission: Option<&Permission>) -> MemberAnswer {
        let plan = self.state().plan.clone();
        match plan {
            None => MemberAnswer::NotYet,
            Some((offer, members)) if members.contains(&peer.to_string()) => {
                MemberAnswer::Plan(Box::new(self.news(offer)))
            }
            Some((offer, _)) if self.may_operate(peer, permission) => MemberAnswer::Plan(Box::new(self.news(offer))),
            Some(_) => MemberAnswer::NotAMember,
        }
    }

    async fn answer(&self, peer: PeerId, request: MemberRequest) -> MemberAnswer {
        match request {
            MemberRequest::Plan { permission } => self.tell_plan(&peer, permission.as_ref()),
            MemberRequest::Join { wire, swarm, claim, work } => self.admit(peer, wire, swarm, &claim, &work),
            MemberRequest::Task { claim } => self.tell_task(peer, claim.as_ref()),
            MemberRequest::Model if !self.is_member(&peer) => MemberAnswer::NotAMember,
            MemberRequest::Model if !self.state().gives_models => MemberAnswer::NotYet,
            MemberRequest::Model => match self.ask(Wanted::Model).await.flatten() {
                Some(ratio) => MemberAnswer::Model(ratio.iter().flat_map(|value| value.to_le_bytes()).collect()),
                None => MemberAnswer::NotYet,
            },
            MemberRequest::State if !self.is_member(&peer) => MemberAnswer::NotAMember,
            MemberRequest::State => self.lend_state(),
            MemberRequest::Measure { to, addresses, token } => self.measure_for(peer, &to, addresses, token).await,
            MemberRequest::Meet { addresses, wanted } => self.introduce(peer, addresses, &wanted).await,
            MemberRequest::Announce(news) => MemberAnswer::Verdict(self.judge(news).await),
            MemberRequest::Progress { swarm, .. } if !self.is_ours(swarm) => other_swarm(),
            MemberRequest::Progress { permission, .. }
                if !self.may_operate(&peer, permission.as_ref()) && !self.known_peers.contains(&peer) =>
            {
                MemberAnswer::NotAMember
            }
            MemberRequest::Progress { .. } => {
                let standing = self.standing().await.unwrap_or_default();
                let addresses = self.addresses_of_known().await;
                let state = self.state();
                let counter = state.counter();
                let waiting = state.pending_peers.entries().cloned().collect();
                let left = standing.left.iter().map(PeerId::to_string).collect();
                let Standing { round, costs, wish, .. } = standing;
                let asks_to_end = wish != Wish::GoOn;
                MemberAnswer::Progress(PeerProgress { counter, round, waiting, left, addresses, costs, asks_to_end })
            }
        }
    }

    /// Sends a member the addresses of other members, and stores its own.
    async fn introduce(&self, peer: PeerId, addresses: Vec<Multiaddr>, wanted: &[Vec<u8>]) -> MemberAnswer {
        let known: BTreeSet<PeerId> = self.known().into_iter().collect();
        if !known.contains(&peer) {
            return MemberAnswer::NotAMember;
        }
        let wanted = wanted.iter().filter_map(|peer| PeerId::from_bytes(peer).ok());
        let wanted = wanted.filter(|peer| known.contains(peer)).take(MAX_PEERS_TOLD).collect();
        let found = self.prober.introduce(peer, addresses, wanted).await;
        MemberAnswer::Met(found.into_iter().map(|(peer, addresses)| (peer.to_bytes(), addresses)).collect())
    }

    /// Addresses of the known peers, as Kademlia does not answer strangers.
    async fn addresses_of_known(&self) -> BTreeMap<String, Vec<String>> {
        let known = self.known().into_iter().take(MAX_PEERS_TOLD).collect();
        let found = self.prober.whereabouts(known).await.into_iter().map(|(peer, addresses)| {
            let some = addresses.iter().take(MAX_ADDRESSES_TOLD).map(Multiaddr::to_string);
            (peer.to_string(), some.collect())
        });
        found.collect()
    }

    fn is_ours(&self, swarm: [u8; 32]) -> bool {
        self.swarm().is_some_and(|ours| ours.id() == swarm)
    }

    /// Hands a newer plan to the event loop.
    pub(crate) async fn judge(&self, news: PlanNews) -> PlanVerdict {
        if self.swarm().is_none() {
            return PlanVerdict::Refused("the plan of this swarm does not change: it has no operator".to_owned());
        }
        self.learn(&news.authority);
        let offer = news.offer;
        let Some(swarm) = self.swarm().filter(|swarm| offer.was_signed(swarm)) else {
            return PlanVerdict::Refused("the operator of the swarm did not sign this plan".to_owned());
        };
        self.note_fork(&offer);
        let current = self.state().plan.as_ref().map(|(offer, _)| offer.clone());
        let theirs = offer.generation();
        match current {
            Some(current) if current.hash() == offer.hash() => return PlanVerdict::Known,
            // A peer with an older plan was a member once, and may be none any more: the newer plan is the proof.
            Some(current) if !theirs.replaces(&current.generation()) => {
                return PlanVerdict::Older(Box::new(self.news(current)));
            }
            _ => {}
        }
        self.learn(offer.authority());
        match offer.check(Some(&swarm)) {
            Err(failure) => PlanVerdict::Refused(format!("{failure:#}")),
            Ok(plan) => {
                let answer = self.ask(|sender| Wanted::Plan(Box::new(plan), sender)).await;
                answer.unwrap_or_else(|| PlanVerdict::Refused("this peer is just ending".to_owned()))
            }
        }
    }

    async fn ask<T>(&self, wanted: impl FnOnce(oneshot::Sender<T>) -> Wanted) -> Option<T> {
        let (sender, receiver) = oneshot::channel();
        self.wanted.send(wanted(sender)).await.ok()?;
        receiver.await.ok()
    }
}

pub(crate) fn other_swarm() -> MemberAnswer {
    MemberAnswer::No("this peer belongs to another swarm".to_owned())
}

/// Answers requests for as long as the process runs.
pub fn serve(mut streams: libp2p_stream::Control, service: Arc<MembershipService>) -> Result {
    let mut incoming = streams.accept(PROTOCOL).context(ErrorKind::Unexpected, "cannot serve the plan")?;
    tokio::spawn(async move {
        let places = Places::new(service.known_peers.clone(), ANSWERS);
        while let Some((peer, stream)) = incoming.next().await {
            // A peer without a permit asks again later.
            let Some(place) = places.take(peer) else { continue };
            let service = Arc::clone(&service);
            tokio::spawn(async move {
                let limit = if place.is_known() { MODEL_TIMEOUT } else { ANSWER_TIMEOUT };
                let served = tokio::time::timeout(limit, answer_one(peer, stream, &service, &place)).await;
                if !matches!(served, Ok(Ok(()))) {
                    tracing::debug!(%peer, "a peer went away before it had its answer");
                }
            });
        }
    });
    Ok(())
}

async fn answer_one(
    peer: PeerId,
    mut stream: Stream,
    service: &MembershipService,
    place: &AdmissionPermit,
) -> std::io::Result<()> {
    let patience = place.patience(ANSWER_TIMEOUT);
    let request = tokio::time::timeout(patience, framed::read(&mut stream, MAX_BYTES)).await??;
    // Held until the model, or what is as large, is written.
    let asks_for_model = matches!(request, MemberRequest::Model | MemberRequest::State) && service.is_member(&peer);
    let model_place = asks_for_model.then(|| service.models.take(peer));
    let answer = match model_place {
        Some(None) => MemberAnswer::NotYet,
        _ => service.answer(peer, request).await,
    };
    framed::write(&mut stream, &answer).await?;
    stream.close().await
}
