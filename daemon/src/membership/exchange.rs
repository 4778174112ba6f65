//! What peers ask each other beside the parcels of the plan: the plan itself, to be let in, and a model to begin with.
//!
//! ```text
//!   Plan      -> the plan of this process            members of the plan
//!   Knock     -> wait here until a plan names you    whoever brings an invitation
//!   Model     -> the ratio z of this peer, now       members of the plan
//!   Announce  -> this peer takes a newer plan up     whoever has one that the operator signed
//!   Progress  -> rounds done, and who waits          whoever knows the id of the swarm
//! ```
//!
//! One stream carries one request and one answer, both length-prefixed postcard. What a stranger can cause is bounded: a
//! few answers at a time, and no work but a signature check before it is known that the operator speaks.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::{AsyncReadExt, AsyncWriteExt, StreamExt};
use libp2p::{PeerId, Stream, StreamProtocol};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::invite::Invite;
use super::lobby::Lobby;
use super::offer::{CheckedPlan, MAX_OFFER_BYTES, PlanOffer};
use super::swarm::Swarm;
use crate::failure::{Failure, Kind, OrFail, Outcome};
use crate::home::Home;
use crate::transport::open_stream;

const PROTOCOL: StreamProtocol = StreamProtocol::new("/mingle/swarm/1");
/// The most that a request, or an answer without a model, may be long.
const MAX_BYTES: usize = MAX_OFFER_BYTES + 64;
/// Requests that are answered at the same time.
const MAX_ANSWERS_AT_ONCE: usize = 32;
/// Requests that wait for the event loop.
const WANTED_QUEUE: usize = 4;
/// A peer that has not answered by then is asked again later.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// A model is larger.
const MODEL_TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Serialize, Deserialize)]
enum Request {
    Plan,
    Knock { swarm: [u8; 32], invite: Invite },
    Model,
    Announce(PlanOffer),
    Progress { swarm: [u8; 32] },
}

#[derive(Serialize, Deserialize)]
enum Answer {
    /// The plan that this process follows.
    Plan(PlanOffer),
    /// There is none yet.
    NotYet,
    /// The plan does not name the asker.
    NotAMember,
    /// The asker may wait for a plan that names it.
    Wait,
    /// The ratio, as little-endian f32.
    Model(Vec<u8>),
    Verdict(Verdict),
    Progress(Progress),
    /// No, and why.
    No(String),
}

/// What became of a plan that a peer was told of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Verdict {
    /// It follows it from now on.
    Taken,
    /// It follows it already.
    Known,
    /// It follows a newer one: this.
    Older(PlanOffer),
    /// It cannot follow it, and why.
    Refused(String),
}

/// Where a peer stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Progress {
    /// The counter of its plan; 0: none.
    pub(crate) counter: u64,
    /// Rounds over, in all.
    pub(crate) round: u64,
    /// PeerIds that wait for a plan that names them.
    pub(crate) waiting: Vec<String>,
}

/// What the event loop has to answer itself.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// The ratio; none while there is no sound one.
    Model(oneshot::Sender<Option<Arc<[f32]>>>),
    /// A newer plan of the operator is there.
    Plan(Box<CheckedPlan>, oneshot::Sender<Verdict>),
    /// A newer plan of the operator, and the model of this member to begin it with.
    PlanWithModel(Box<CheckedPlan>, PeerId, Vec<f32>),
    /// How many rounds are over.
    Round(oneshot::Sender<u64>),
    /// A peer was let in and waits.
    Knocked(PeerId),
}

/// What this process can tell others.
pub(crate) struct Hall {
    swarm: Option<Swarm>,
    state: Mutex<State>,
    wanted: mpsc::Sender<Wanted>,
}

struct State {
    plan: Option<(PlanOffer, BTreeSet<String>)>,
    lobby: Lobby,
}

impl Hall {
    /// Nothing to tell yet. What only the event loop can answer comes out of the receiver.
    pub(crate) fn open(home: &Home, swarm: Option<Swarm>) -> Outcome<(Arc<Self>, mpsc::Receiver<Wanted>)> {
        let (wanted, receiver) = mpsc::channel(WANTED_QUEUE);
        let state = Mutex::new(State { plan: None, lobby: Lobby::open(home)? });
        Ok((Arc::new(Self { swarm, state, wanted }), receiver))
    }

    /// From here on this is the plan.
    pub(crate) fn follow(&self, plan: &CheckedPlan) {
        let members: BTreeSet<String> = plan.plan.nodes().filter_map(|(_, peer)| peer.map(str::to_owned)).collect();
        let mut state = self.state();
        state.lobby.dismiss(&members);
        state.plan = Some((plan.offer.clone(), members));
    }

    /// Puts something before the event loop that this process found out itself.
    pub(crate) async fn hand_in(&self, wanted: Wanted) {
        // The loop may be over.
        let _ = self.wanted.send(wanted).await;
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_member(&self, peer: &PeerId) -> bool {
        self.state().plan.as_ref().is_some_and(|(_, members)| members.contains(&peer.to_string()))
    }

    async fn answer(&self, peer: PeerId, request: Request) -> Answer {
        match request {
            Request::Plan => match &self.state().plan {
                None => Answer::NotYet,
                Some((offer, members)) if members.contains(&peer.to_string()) => Answer::Plan(offer.clone()),
                Some(_) => Answer::NotAMember,
            },
            Request::Knock { swarm, invite } => self.admit(peer, swarm, &invite).await,
            Request::Model if !self.is_member(&peer) => Answer::NotAMember,
            Request::Model => match self.ask(Wanted::Model).await.flatten() {
                Some(ratio) => Answer::Model(ratio.iter().flat_map(|value| value.to_le_bytes()).collect()),
                None => Answer::NotYet,
            },
            Request::Announce(offer) => Answer::Verdict(self.judge(offer).await),
            Request::Progress { swarm } if !self.is_ours(swarm) => other_swarm(),
            Request::Progress { .. } => {
                let round = self.ask(Wanted::Round).await.unwrap_or_default();
                let state = self.state();
                let counter = state.plan.as_ref().map_or(0, |(offer, _)| offer.generation().counter);
                let waiting = state.lobby.waiting().iter().map(PeerId::to_string).collect();
                Answer::Progress(Progress { counter, round, waiting })
            }
        }
    }

    fn is_ours(&self, swarm: [u8; 32]) -> bool {
        self.swarm.as_ref().is_some_and(|ours| ours.id() == swarm)
    }

    async fn admit(&self, peer: PeerId, swarm: [u8; 32], invite: &Invite) -> Answer {
        let Some(ours) = self.swarm.as_ref().filter(|ours| ours.id() == swarm) else { return other_swarm() };
        if self.is_member(&peer) {
            return Answer::Wait;
        }
        let admitted = self.state().lobby.admit(peer, invite, ours);
        match admitted {
            Ok(is_new) => {
                if is_new {
                    // Only news for a person: without a reader it is dropped.
                    let _ = self.wanted.try_send(Wanted::Knocked(peer));
                }
                Answer::Wait
            }
            Err(failure) => Answer::No(failure.to_string()),
        }
    }

    /// Hands a newer plan to the event loop.
    async fn judge(&self, offer: PlanOffer) -> Verdict {
        let Some(swarm) = &self.swarm else {
            return Verdict::Refused("the plan of this swarm does not change: it has no operator".to_owned());
        };
        if !offer.is_signed(swarm) {
            return Verdict::Refused(format!("the operator of the swarm {} did not sign this plan", swarm.name));
        }
        let current = self.state().plan.as_ref().map(|(offer, _)| offer.clone());
        let theirs = offer.generation();
        match current {
            Some(current) if current.generation() == theirs => return Verdict::Known,
            // Whoever has an older plan was a member once, and may be none any more: the newer one is the proof.
            Some(current) if !theirs.replaces(&current.generation()) => return Verdict::Older(current),
            _ => {}
        }
        match offer.check(Some(swarm)) {
            Err(failure) => Verdict::Refused(failure.to_string()),
            Ok(plan) => {
                let answer = self.ask(|sender| Wanted::Plan(Box::new(plan), sender)).await;
                answer.unwrap_or_else(|| Verdict::Refused("this peer is just ending".to_owned()))
            }
        }
    }

    async fn ask<T>(&self, wanted: impl FnOnce(oneshot::Sender<T>) -> Wanted) -> Option<T> {
        let (sender, receiver) = oneshot::channel();
        self.wanted.send(wanted(sender)).await.ok()?;
        receiver.await.ok()
    }
}

fn other_swarm() -> Answer {
    Answer::No("this peer belongs to another swarm".to_owned())
}

/// Answers requests for as long as the process runs.
pub(crate) fn serve(mut streams: libp2p_stream::Control, hall: Arc<Hall>) -> Outcome {
    let mut incoming = streams.accept(PROTOCOL).or_fail(Kind::Unexpected, "cannot serve the plan")?;
    tokio::spawn(async move {
        let places = Arc::new(Semaphore::new(MAX_ANSWERS_AT_ONCE));
        while let Some((peer, stream)) = incoming.next().await {
            // Whoever finds no place asks again later.
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
            let hall = Arc::clone(&hall);
            tokio::spawn(async move {
                let _place = place;
                let served = tokio::time::timeout(MODEL_TIMEOUT, answer_one(peer, stream, &hall)).await;
                if !matches!(served, Ok(Ok(()))) {
                    tracing::debug!(%peer, "a peer went away before it had its answer");
                }
            });
        }
    });
    Ok(())
}

async fn answer_one(peer: PeerId, mut stream: Stream, hall: &Hall) -> std::io::Result<()> {
    let request = tokio::time::timeout(ANSWER_TIMEOUT, read(&mut stream, MAX_BYTES)).await??;
    let answer = hall.answer(peer, request).await;
    write(&mut stream, &answer).await?;
    stream.close().await
}

/// Asks `peer` for the plan. `None`: it does not have one yet, or went away; ask again.
///
/// # Errors
/// The peer does not count us as a member, or sent a plan that does not hold.
pub(crate) async fn fetch_plan(
    streams: &mut libp2p_stream::Control,
    local: PeerId,
    peer: PeerId,
    swarm: Option<&Swarm>,
) -> Outcome<Option<CheckedPlan>> {
    match ask(streams, peer, &Request::Plan, MAX_BYTES, ANSWER_TIMEOUT).await? {
        None | Some(Answer::NotYet) => Ok(None),
        Some(Answer::NotAMember) => {
            Err(Failure::new(Kind::Refused, format!("peer {peer} says that {local}, this peer, is not in the plan"))
                .hint(format!("ask whoever made the plan to run: mingle plan bind PLAN --peer NODE={local}")))
        }
        Some(Answer::Plan(offer)) => offer.check(swarm).map(Some).map_err(|failure| {
            Failure::new(Kind::Integrity, format!("the plan sent by {peer} cannot be followed: {failure}"))
        }),
        Some(_) => Err(nonsense(peer)),
    }
}

/// Brings `peer` an invitation. `None`: it went away; ask again.
///
/// # Errors
/// It does not let this peer in.
pub(crate) async fn knock(
    streams: &mut libp2p_stream::Control,
    peer: PeerId,
    swarm: &Swarm,
    invite: &Invite,
) -> Outcome<Option<()>> {
    let request = Request::Knock { swarm: swarm.id(), invite: invite.clone() };
    match ask(streams, peer, &request, MAX_BYTES, ANSWER_TIMEOUT).await? {
        None => Ok(None),
        Some(Answer::Wait) => Ok(Some(())),
        Some(Answer::No(why)) => Err(Failure::new(Kind::Refused, format!("peer {peer} does not let us in: {why}"))),
        Some(_) => Err(nonsense(peer)),
    }
}

/// The model of `peer`, `[dimension]`. `None`: it has none, went away, or sent something else.
pub(crate) async fn fetch_model(
    streams: &mut libp2p_stream::Control,
    peer: PeerId,
    dimension: usize,
) -> Option<Vec<f32>> {
    let most = dimension.checked_mul(4)?.checked_add(64)?;
    let answer = ask(streams, peer, &Request::Model, most, MODEL_TIMEOUT).await;
    let Ok(Some(Answer::Model(bytes))) = answer else { return None };
    let (values, rest) = bytes.as_chunks::<4>();
    let model: Vec<f32> = values.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    let is_sound = rest.is_empty() && model.len() == dimension && model.iter().all(|value| value.is_finite());
    is_sound.then_some(model)
}

/// Tells `peer` of a plan. `None`: it went away.
pub(crate) async fn announce(
    streams: &mut libp2p_stream::Control,
    peer: PeerId,
    offer: &PlanOffer,
) -> Outcome<Option<Verdict>> {
    match ask(streams, peer, &Request::Announce(offer.clone()), MAX_BYTES, ANSWER_TIMEOUT).await? {
        None => Ok(None),
        Some(Answer::Verdict(verdict)) => Ok(Some(verdict)),
        Some(_) => Err(nonsense(peer)),
    }
}

/// Asks `peer` where it stands. `None`: it went away.
pub(crate) async fn ask_progress(
    streams: &mut libp2p_stream::Control,
    peer: PeerId,
    swarm: &Swarm,
) -> Outcome<Option<Progress>> {
    match ask(streams, peer, &Request::Progress { swarm: swarm.id() }, MAX_BYTES, ANSWER_TIMEOUT).await? {
        None => Ok(None),
        Some(Answer::Progress(progress)) => Ok(Some(progress)),
        Some(Answer::No(why)) => Err(Failure::new(Kind::Refused, format!("peer {peer}: {why}"))),
        Some(_) => Err(nonsense(peer)),
    }
}

fn nonsense(peer: PeerId) -> Failure {
    Failure::new(Kind::Refused, format!("peer {peer} answered something that was not asked"))
}

async fn ask(
    streams: &mut libp2p_stream::Control,
    peer: PeerId,
    request: &Request,
    most_bytes: usize,
    patience: Duration,
) -> Outcome<Option<Answer>> {
    let asking = async {
        let mut stream = open_stream(streams, peer, PROTOCOL).await?;
        write(&mut stream, request).await?;
        read(&mut stream, most_bytes).await
    };
    match tokio::time::timeout(patience, asking).await {
        Ok(Ok(answer)) => Ok(Some(answer)),
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::InvalidData => {
            Err(Failure::new(Kind::Refused, format!("peer {peer} sent something that is no answer: {error}")))
        }
        Ok(Err(error)) => {
            tracing::debug!(%peer, %error, "no answer from this peer");
            Ok(None)
        }
        Err(_) => Ok(None),
    }
}

async fn write(stream: &mut Stream, words: &impl Serialize) -> std::io::Result<()> {
    let bytes = postcard::to_stdvec(words).map_err(std::io::Error::other)?;
    let length = u32::try_from(bytes.len()).map_err(std::io::Error::other)?;
    stream.write_all(&length.to_le_bytes()).await?;
    stream.write_all(&bytes).await?;
    stream.flush().await
}

async fn read<T: DeserializeOwned>(stream: &mut Stream, most_bytes: usize) -> std::io::Result<T> {
    let invalid = |why: String| std::io::Error::new(std::io::ErrorKind::InvalidData, why);
    let mut length = [0; 4];
    stream.read_exact(&mut length).await?;
    let length = u32::from_le_bytes(length) as usize;
    if length > most_bytes {
        return Err(invalid(format!("{length} bytes are too long")));
    }
    // Grows as bytes arrive: a peer that only claims a length gets nothing allocated.
    let mut bytes = Vec::new();
    stream.take(length as u64).read_to_end(&mut bytes).await?;
    if bytes.len() < length {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    postcard::from_bytes(&bytes).map_err(|error| invalid(error.to_string()))
}
