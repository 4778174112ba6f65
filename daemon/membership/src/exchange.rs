//! Requests between peers beside the parcels of the plan: for the plan, for admission, for an initial model, and
//! others.
//!
//! ```text
//!   Plan      -> the plan of this process            members of the plan, and the operator
//!   Task      -> what this swarm is for              members of the plan, and whoever an invitation lets in
//!   Join      -> wait here until a plan names you    whoever brings an invitation and would do the same
//!   Model     -> the ratio z of this peer, now       members of the plan
//!   State     -> the state of this peer's optimizer  members of the plan
//!   Announce  -> this peer takes a newer plan up     whoever has one that the operator signed
//!   Measure   -> this peer's link to another         whoever has the operator's permission
//!   Progress  -> rounds done, and who waits          members of the plan, those that wait, and the operator
//!   Meet      -> where some members listen           members of the plan, and those that wait
//! ```
//!
//! One stream carries one request and one answer, both length-prefixed postcard. The work that a stranger can cause is
//! bounded: a few answers at a time, and only a signature check before the operator's signature is verified.

use std::time::Duration;

use libp2p::{Multiaddr, PeerId};
use mingle_home::error::{Error, ErrorKind, Result};
use mingle_net::framed;
use mingle_net::printable::quoted;
use mingle_net::probe::{LinkMeasurement, ProbeToken};
use mingle_net::transport::open_stream;
use mingle_protocol::PROTOCOL_VERSION;

use crate::invite::Claim;
use crate::offer::PlanNews;
use crate::requests::{MAX_BYTES, MemberAnswer, MemberRequest, PROTOCOL, PeerProgress, PlanVerdict};
use crate::swarm::{Permission, SwarmIdentity};
use crate::task::{Assignment, UNFIT, Work};
use crate::times::with_own_clock;

/// Time after which a peer that does not support this protocol is considered to run another program.
const SPEAKS_AFTER: Duration = Duration::from_secs(3);
/// Time limit for an answer; the peer is asked again later.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for an answer with a model, which is larger.
pub(crate) const MODEL_TIMEOUT: Duration = Duration::from_secs(120);
/// Time limit for connecting to a peer and measuring the link to it.
const MEASURE_TIMEOUT: Duration = Duration::from_secs(35);

/// Requests the plan of `peer`, as a member or with the operator's permission. Returns `None` if the peer has no plan
/// yet, or went away: ask again.
///
/// # Errors
/// The peer does not count this one as a member.
pub async fn fetch_plan(
    streams: &mut libp2p_stream::Control,
    local: PeerId,
    peer: PeerId,
    permission: Option<&Permission>,
) -> Result<Option<PlanNews>> {
    let request = MemberRequest::Plan { permission: permission.cloned() };
    match ask(streams, peer, &request, MAX_BYTES, ANSWER_TIMEOUT).await? {
        None | Some(MemberAnswer::NotYet) => Ok(None),
        Some(MemberAnswer::NotAMember) => {
            Err(Error::new(ErrorKind::Refused, format!("peer {peer} says that {local}, this peer, is not in the plan"))
                .hint(format!("ask whoever made the plan to run: mingle plan bind PLAN --peer NODE={local}")))
        }
        Some(MemberAnswer::Plan(news)) => Ok(Some(*news)),
        Some(_) => Err(nonsense(peer)),
    }
}

/// A member's answer to a request for its task.
#[derive(Clone, Debug)]
pub enum TaskAnswer {
    /// The task.
    Task(Assignment),
    /// The member does not know its task yet.
    NotYet,
    /// No answer: the member is not there, or went away.
    Away,
}

/// Requests the task of the swarm from `peer`.
///
/// # Errors
/// The peer refuses to answer this one.
pub async fn fetch_task(
    streams: &mut libp2p_stream::Control,
    peer: PeerId,
    claim: Option<&Claim>,
) -> Result<TaskAnswer> {
    let request = MemberRequest::Task { claim: claim.cloned() };
    match ask(streams, peer, &request, MAX_BYTES, ANSWER_TIMEOUT).await? {
        None => Ok(TaskAnswer::Away),
        Some(MemberAnswer::NotYet) => Ok(TaskAnswer::NotYet),
        Some(MemberAnswer::Task(assignment)) => Ok(TaskAnswer::Task(assignment)),
        Some(MemberAnswer::NotAMember) => {
            Err(Error::new(ErrorKind::Refused, format!("peer {peer} says that this peer is not in its plan")))
        }
        Some(MemberAnswer::No(why)) => {
            let why = with_own_clock(&quoted(&why));
            Err(Error::new(ErrorKind::Refused, format!("peer {peer} does not let us in: {why}")))
        }
        Some(_) => Err(nonsense(peer)),
    }
}

/// Presents an invitation and this peer's task to `peer`, to be admitted. Returns `None` if the peer went away, or does
/// not know the task of the swarm yet: ask again.
///
/// # Errors
/// The peer refuses admission.
pub async fn request_admission(
    streams: &mut libp2p_stream::Control,
    peer: PeerId,
    swarm: &SwarmIdentity,
    claim: &Claim,
    work: &Work,
) -> Result<Option<()>> {
    let own = work.assignment();
    let request = MemberRequest::Join { wire: PROTOCOL_VERSION, swarm: swarm.id(), claim: claim.clone(), work: own };
    match ask(streams, peer, &request, MAX_BYTES, ANSWER_TIMEOUT).await? {
        None | Some(MemberAnswer::NotYet) => Ok(None),
        Some(MemberAnswer::Wait) => Ok(Some(())),
        Some(MemberAnswer::No(why)) => {
            let refusal = Error::new(ErrorKind::Refused, format!("peer {peer} does not let us in: {}", quoted(&why)));
            Err(if why.starts_with(UNFIT) { refusal.hint(work.same_work()) } else { refusal })
        }
        Some(_) => Err(nonsense(peer)),
    }
}

/// The model of `peer`, `[dimension]`; `None` if it has none, went away, or sent something else.
pub(crate) async fn fetch_model(
    streams: &mut libp2p_stream::Control,
    peer: PeerId,
    dimension: usize,
) -> Option<Vec<f32>> {
    let most = dimension.checked_mul(4)?.checked_add(64)?;
    let answer = ask(streams, peer, &MemberRequest::Model, most, MODEL_TIMEOUT).await;
    let Ok(Some(MemberAnswer::Model(bytes))) = answer else { return None };
    let (values, rest) = bytes.as_chunks::<4>();
    let model: Vec<f32> = values.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    let is_sound = rest.is_empty() && model.len() == dimension && model.iter().all(|value| value.is_finite());
    is_sound.then_some(model)
}

/// The state of the training of `peer`, of 1 to `most_bytes` bytes; `None` if it gives none, went away, or sent something
/// else.
pub(crate) async fn fetch_state(
    streams: &mut libp2p_stream::Control,
    peer: PeerId,
    most_bytes: usize,
) -> Option<Vec<u8>> {
    let most = most_bytes.checked_add(64)?;
    match ask(streams, peer, &MemberRequest::State, most, MODEL_TIMEOUT).await {
        Ok(Some(MemberAnswer::State(bytes))) => Some(bytes).filter(|bytes| (1..=most_bytes).contains(&bytes.len())),
        _ => None,
    }
}

/// Announces a plan to `peer`. Returns `None` if it went away.
pub async fn announce(
    streams: &mut libp2p_stream::Control,
    peer: PeerId,
    news: &PlanNews,
) -> Result<Option<PlanVerdict>> {
    match ask(streams, peer, &MemberRequest::Announce(news.clone()), MAX_BYTES, ANSWER_TIMEOUT).await? {
        None => Ok(None),
        Some(MemberAnswer::Verdict(verdict)) => Ok(Some(verdict)),
        Some(_) => Err(nonsense(peer)),
    }
}

/// Requests the progress of `peer`. An asker that is no member needs the operator's
/// [permission](crate::Signer::permit_to_ask). Returns `None` if the peer went away.
pub async fn ask_progress(
    streams: &mut libp2p_stream::Control,
    peer: PeerId,
    swarm: &SwarmIdentity,
    permission: Option<&Permission>,
) -> Result<Option<PeerProgress>> {
    let request = MemberRequest::Progress { swarm: swarm.id(), permission: permission.cloned() };
    match ask(streams, peer, &request, MAX_BYTES, ANSWER_TIMEOUT).await? {
        None => Ok(None),
        Some(MemberAnswer::Progress(progress)) => Ok(Some(progress)),
        Some(MemberAnswer::NotAMember) => {
            let message = format!("peer {peer} tells where it stands to members and to the operator alone");
            Err(Error::new(ErrorKind::Refused, message)
                .hint("if this home signed for the swarm before, another key may sign by now: mingle operator show, at a member"))
        }
        Some(MemberAnswer::No(why)) => Err(Error::new(ErrorKind::Refused, format!("peer {peer}: {}", quoted(&why)))),
        Some(_) => Err(nonsense(peer)),
    }
}

/// Sends `peer` the addresses of this one, and requests those of `wanted`. Returns `None` if the peer went away, or
/// does not know this one.
pub(crate) async fn meet(
    streams: &mut libp2p_stream::Control,
    peer: PeerId,
    addresses: &[Multiaddr],
    wanted: &[PeerId],
) -> Option<Vec<(PeerId, Vec<Multiaddr>)>> {
    let wanted = wanted.iter().map(|peer| peer.to_bytes()).collect();
    let request = MemberRequest::Meet { addresses: addresses.to_vec(), wanted };
    match ask(streams, peer, &request, MAX_BYTES, ANSWER_TIMEOUT).await {
        Ok(Some(MemberAnswer::Met(found))) => {
            let named = found.into_iter().map(|(peer, addresses)| Some((PeerId::from_bytes(&peer).ok()?, addresses)));
            Some(named.flatten().collect())
        }
        _ => None,
    }
}

/// Makes `from` measure its link to `to`.
pub(crate) async fn order_measurement(
    streams: &mut libp2p_stream::Control,
    from: PeerId,
    to: PeerId,
    addresses: &[Multiaddr],
    token: Option<ProbeToken>,
) -> Result<LinkMeasurement> {
    let request = MemberRequest::Measure { to: to.to_bytes(), addresses: addresses.to_vec(), token };
    match ask(streams, from, &request, MAX_BYTES, MEASURE_TIMEOUT).await? {
        Some(MemberAnswer::Measured(measured)) if measured.is_sound() => Ok(measured),
        Some(MemberAnswer::No(why)) => Err(Error::new(ErrorKind::Refused, format!("{from} says: {}", quoted(&why)))),
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
    request: &MemberRequest,
    most_bytes: usize,
    patience: Duration,
) -> Result<Option<MemberAnswer>> {
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

/// Opens a stream for a request. A peer that has only begun to listen may not support the protocol yet.
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
