//! What peers ask each other beside the parcels of the plan: the plan itself, to be let in, and a model to begin with.
//!
//! ```text
//!   Plan      -> the plan of this process            members of the plan, and the operator
//!   Task      -> what this swarm is for              members of the plan, and whoever an invitation lets in
//!   Join      -> wait here until a plan names you    whoever brings an invitation and would do the same
//!   Model     -> the ratio z of this peer, now       members of the plan
//!   Announce  -> this peer takes a newer plan up     whoever has one that the operator signed
//!   Measure   -> this peer's link to another         whoever has the operator's permission
//!   Progress  -> rounds done, and who waits          members of the plan, those that wait, and the operator
//!   Meet      -> where some members listen           members of the plan, and those that wait
//! ```
//!
//! One stream carries one request and one answer, both length-prefixed postcard. What a stranger can cause is bounded: a
//! few answers at a time, and no work but a signature check before it is known that the operator speaks.

use std::time::Duration;

use libp2p::{Multiaddr, PeerId};
use mingle_home::error::{Error, ErrorKind, Result};
use mingle_net::framed;
use mingle_net::printable::quoted;
use mingle_net::probe::{Measured, ProbeToken};
use mingle_net::transport::open_stream;
use mingle_protocol::PROTOCOL_VERSION;

use crate::invite::Claim;
use crate::offer::PlanNews;
use crate::swarm::{Permission, Swarm};
use crate::task::Assignment;
use crate::words::{Answer, MAX_BYTES, PROTOCOL, Progress, Request, Verdict};

/// A peer that does not speak this protocol for so long speaks another.
const SPEAKS_AFTER: Duration = Duration::from_secs(3);
/// A peer that has not answered by then is asked again later.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// A model is larger.
pub(crate) const MODEL_TIMEOUT: Duration = Duration::from_secs(120);
/// Reaching a peer and measuring takes no longer.
const MEASURE_TIMEOUT: Duration = Duration::from_secs(35);

/// Asks `peer` for the plan, as a member or with the operator's permission. `None`: it does not have one yet, or went away; ask again.
///
/// # Errors
/// The peer does not count us as a member.
pub async fn fetch_plan(
    streams: &mut libp2p_stream::Control,
    local: PeerId,
    peer: PeerId,
    permission: Option<&Permission>,
) -> Result<Option<PlanNews>> {
    let request = Request::Plan { permission: permission.cloned() };
    match ask(streams, peer, &request, MAX_BYTES, ANSWER_TIMEOUT).await? {
        None | Some(Answer::NotYet) => Ok(None),
        Some(Answer::NotAMember) => {
            Err(Error::new(ErrorKind::Refused, format!("peer {peer} says that {local}, this peer, is not in the plan"))
                .hint(format!("ask whoever made the plan to run: mingle plan bind PLAN --peer NODE={local}")))
        }
        Some(Answer::Plan(news)) => Ok(Some(*news)),
        Some(_) => Err(nonsense(peer)),
    }
}

/// The answer of a member that is asked for its task.
#[derive(Clone, Debug)]
pub enum TaskAnswer {
    /// This is it.
    Task(Assignment),
    /// It does not know yet.
    NotYet,
    /// Nothing: it is not there, or went away.
    Away,
}

/// Asks `peer` what the swarm is for.
///
/// # Errors
/// It does not tell this peer.
pub async fn fetch_task(
    streams: &mut libp2p_stream::Control,
    peer: PeerId,
    claim: Option<&Claim>,
) -> Result<TaskAnswer> {
    let request = Request::Task { claim: claim.cloned() };
    match ask(streams, peer, &request, MAX_BYTES, ANSWER_TIMEOUT).await? {
        None => Ok(TaskAnswer::Away),
        Some(Answer::NotYet) => Ok(TaskAnswer::NotYet),
        Some(Answer::Task(assignment)) => Ok(TaskAnswer::Task(assignment)),
        Some(Answer::NotAMember) => {
            Err(Error::new(ErrorKind::Refused, format!("peer {peer} says that this peer is not in its plan")))
        }
        Some(Answer::No(why)) => {
            Err(Error::new(ErrorKind::Refused, format!("peer {peer} does not let us in: {}", quoted(&why))))
        }
        Some(_) => Err(nonsense(peer)),
    }
}

/// Brings `peer` an invitation, and says what this peer would do. `None`: it went away, or does not know yet what the swarm
/// is for; ask again.
///
/// # Errors
/// It does not let this peer in.
pub async fn request_admission(
    streams: &mut libp2p_stream::Control,
    peer: PeerId,
    swarm: &Swarm,
    claim: &Claim,
    work: &Assignment,
) -> Result<Option<()>> {
    let (swarm, claim, work) = (swarm.id(), claim.clone(), work.clone());
    let request = Request::Join { wire: PROTOCOL_VERSION, swarm, claim, work };
    match ask(streams, peer, &request, MAX_BYTES, ANSWER_TIMEOUT).await? {
        None | Some(Answer::NotYet) => Ok(None),
        Some(Answer::Wait) => Ok(Some(())),
        Some(Answer::No(why)) => {
            Err(Error::new(ErrorKind::Refused, format!("peer {peer} does not let us in: {}", quoted(&why))))
        }
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
pub async fn announce(streams: &mut libp2p_stream::Control, peer: PeerId, news: &PlanNews) -> Result<Option<Verdict>> {
    match ask(streams, peer, &Request::Announce(news.clone()), MAX_BYTES, ANSWER_TIMEOUT).await? {
        None => Ok(None),
        Some(Answer::Verdict(verdict)) => Ok(Some(verdict)),
        Some(_) => Err(nonsense(peer)),
    }
}

/// Asks `peer` where it stands. Who is no member has the operator's [permission](crate::Signer::permit_to_ask). `None`: it went away.
pub async fn ask_progress(
    streams: &mut libp2p_stream::Control,
    peer: PeerId,
    swarm: &Swarm,
    permission: Option<&Permission>,
) -> Result<Option<Progress>> {
    let request = Request::Progress { swarm: swarm.id(), permission: permission.cloned() };
    match ask(streams, peer, &request, MAX_BYTES, ANSWER_TIMEOUT).await? {
        None => Ok(None),
        Some(Answer::Progress(progress)) => Ok(Some(progress)),
        Some(Answer::NotAMember) => {
            let message = format!("peer {peer} tells where it stands to members and to the operator alone");
            Err(Error::new(ErrorKind::Refused, message)
                .hint("if this home signed for the swarm before, another key may sign by now: mingle operator show, at a member"))
        }
        Some(Answer::No(why)) => Err(Error::new(ErrorKind::Refused, format!("peer {peer}: {}", quoted(&why)))),
        Some(_) => Err(nonsense(peer)),
    }
}

/// Tells `peer` where this one listens, and asks where others do. `None`: it went away, or does not know this peer.
pub(crate) async fn meet(
    streams: &mut libp2p_stream::Control,
    peer: PeerId,
    addresses: &[Multiaddr],
    wanted: &[PeerId],
) -> Option<Vec<(PeerId, Vec<Multiaddr>)>> {
    let wanted = wanted.iter().map(|peer| peer.to_bytes()).collect();
    let request = Request::Meet { addresses: addresses.to_vec(), wanted };
    match ask(streams, peer, &request, MAX_BYTES, ANSWER_TIMEOUT).await {
        Ok(Some(Answer::Met(found))) => {
            let named = found.into_iter().map(|(peer, addresses)| Some((PeerId::from_bytes(&peer).ok()?, addresses)));
            Some(named.flatten().collect())
        }
        _ => None,
    }
}

/// Has `from` measure its link to `to`.
pub(crate) async fn order_measurement(
    streams: &mut libp2p_stream::Control,
    from: PeerId,
    to: PeerId,
    addresses: &[Multiaddr],
    token: Option<ProbeToken>,
) -> Result<Measured> {
    let request = Request::Measure { to: to.to_bytes(), addresses: addresses.to_vec(), token };
    match ask(streams, from, &request, MAX_BYTES, MEASURE_TIMEOUT).await? {
        Some(Answer::Measured(measured)) if measured.is_sound() => Ok(measured),
        Some(Answer::No(why)) => Err(Error::new(ErrorKind::Refused, format!("{from} says: {}", quoted(&why)))),
        Some(_) => Err(nonsense(from)),
        None => Err(Error::new(ErrorKind::Unreachable, format!("peer {from} went away before it had measured"))),
    }
}

fn nonsense(peer: PeerId) -> Error {
    Error::new(ErrorKind::Refused, format!("peer {peer} answered something that was not asked"))
}

async fn ask(
    streams: &mut libp2p_stream::Control,
    peer: PeerId,
    request: &Request,
    most_bytes: usize,
    patience: Duration,
) -> Result<Option<Answer>> {
    let asking = async {
        let mut stream = open(streams, peer).await?;
        framed::write(&mut stream, request).await?;
        framed::read(&mut stream, most_bytes).await
    };
    match tokio::time::timeout(patience, asking).await {
        Ok(Ok(answer)) => Ok(Some(answer)),
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::InvalidData => {
            Err(Error::new(ErrorKind::Refused, format!("peer {peer} sent something that is no answer: {error}")))
        }
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::Unsupported => {
            let message =
                format!("peer {peer} does not speak {PROTOCOL}: it runs another release of Mingle, or another program");
            Err(Error::new(ErrorKind::Refused, message)
                .hint("run the same release on all peers: mingle --version; docs/operations.md says how to upgrade"))
        }
        Ok(Err(error)) => {
            tracing::debug!(%peer, %error, "no answer from this peer");
            Ok(None)
        }
        Err(_) => Ok(None),
    }
}

/// A stream to ask on. A peer that has just begun to listen may not speak yet.
async fn open(streams: &mut libp2p_stream::Control, peer: PeerId) -> std::io::Result<libp2p::Stream> {
    for _ in 0..SPEAKS_AFTER.as_secs() {
        match open_stream(streams, peer, PROTOCOL).await {
            Err(error) if error.kind() == std::io::ErrorKind::Unsupported => {}
            opened => return opened,
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    open_stream(streams, peer, PROTOCOL).await
}
