//! How a peer that knows only an address gets the plan: it asks whoever answers there.
//!
//! The asker opens a stream and writes nothing; the answer is one length-prefixed [`Answer`]. Only members of the plan
//! are given it: the plan names every peer. The receiver checks the plan whole before it believes a word of it.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::{AsyncReadExt, AsyncWriteExt, StreamExt};
use libp2p::{PeerId, Stream, StreamProtocol};
use mingle_planner::Plan;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use crate::failure::{Failure, Kind, OrFail, Outcome};

const PROTOCOL: StreamProtocol = StreamProtocol::new("/mingle/plan/1");
/// The most that an answer may be long: the largest plan, and room for its envelope.
const MAX_ANSWER_BYTES: usize = (1 << 20) + 64;
/// Peers that are sent the plan at the same time.
const MAX_ANSWERS_AT_ONCE: usize = 32;
/// A peer that has not answered by then is asked again later.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// What a peer answers when it is asked for the plan.
#[derive(Serialize, Deserialize)]
enum Answer {
    /// The plan's canonical bytes.
    Plan(Vec<u8>),
    /// This peer waits for the plan itself.
    NotYet,
    /// The asker is not in the plan.
    NotAMember,
}

/// The plan of this process, once it is known.
pub(crate) type SharedPlan = Arc<OnceLock<ServedPlan>>;

/// A plan as it is given to members.
#[derive(Debug)]
pub(crate) struct ServedPlan {
    answer: Arc<[u8]>,
    members: BTreeSet<String>,
}

impl ServedPlan {
    /// The plan's canonical bytes, for the peers that it names.
    ///
    /// # Errors
    /// The plan is too large to be sent.
    pub(crate) fn new(plan: &Plan) -> Outcome<Self> {
        let doing = "the plan cannot be given to other peers";
        let bytes = plan.to_postcard().or_fail(Kind::BadInput, doing)?;
        let answer = encode(&Answer::Plan(bytes)).or_fail(Kind::Unexpected, doing)?;
        let members = plan.nodes().filter_map(|(_, peer)| peer.map(str::to_owned)).collect();
        Ok(Self { answer, members })
    }
}

/// Answers everyone who asks for the plan, for as long as the process runs.
pub(crate) fn serve(mut streams: libp2p_stream::Control, plan: SharedPlan) -> Outcome {
    let mut incoming = streams.accept(PROTOCOL).or_fail(Kind::Unexpected, "cannot serve the plan")?;
    tokio::spawn(async move {
        let places = Arc::new(Semaphore::new(MAX_ANSWERS_AT_ONCE));
        while let Some((peer, stream)) = incoming.next().await {
            // Whoever finds no place asks again later.
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
            let Ok(answer) = answer_for(&peer, &plan) else { continue };
            tokio::spawn(async move {
                let _place = place;
                let sent = tokio::time::timeout(ANSWER_TIMEOUT, send(stream, &answer)).await;
                if !matches!(sent, Ok(Ok(()))) {
                    tracing::debug!(%peer, "a peer went away while it was sent the plan");
                }
            });
        }
    });
    Ok(())
}

/// Asks `peer` for the plan. `None`: it does not have one yet, or went away; ask again.
///
/// # Errors
/// The peer does not count us as a member, or sent a plan that does not hold.
pub(crate) async fn fetch(streams: &mut libp2p_stream::Control, local: PeerId, peer: PeerId) -> Outcome<Option<Plan>> {
    let answer = tokio::time::timeout(ANSWER_TIMEOUT, ask(streams, peer)).await;
    let bytes = match answer {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(error)) => {
            tracing::debug!(%peer, %error, "no plan from this peer yet");
            return Ok(None);
        }
        Err(_) => return Ok(None),
    };
    let answer: Answer = postcard::from_bytes(&bytes)
        .or_fail(Kind::Refused, format!("peer {peer} sent something that is not a plan"))?;
    match answer {
        Answer::NotYet => Ok(None),
        Answer::NotAMember => {
            Err(Failure::new(Kind::Refused, format!("peer {peer} says that {local}, this peer, is not in the plan"))
                .hint(format!("ask whoever made the plan to run: mingle plan bind PLAN --peer NODE={local}")))
        }
        Answer::Plan(bytes) => {
            let plan = Plan::from_postcard(&bytes)
                .or_fail(Kind::Integrity, format!("the plan sent by {peer} does not hold"))?;
            Ok(Some(plan))
        }
    }
}

fn answer_for(peer: &PeerId, plan: &SharedPlan) -> std::io::Result<Arc<[u8]>> {
    match plan.get() {
        None => encode(&Answer::NotYet),
        Some(plan) if plan.members.contains(&peer.to_string()) => Ok(Arc::clone(&plan.answer)),
        Some(_) => encode(&Answer::NotAMember),
    }
}

fn encode(answer: &Answer) -> std::io::Result<Arc<[u8]>> {
    postcard::to_stdvec(answer).map(Arc::from).map_err(std::io::Error::other)
}

async fn send(mut stream: Stream, bytes: &[u8]) -> std::io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(std::io::Error::other)?;
    stream.write_all(&length.to_le_bytes()).await?;
    stream.write_all(bytes).await?;
    stream.close().await
}

async fn ask(streams: &mut libp2p_stream::Control, peer: PeerId) -> std::io::Result<Vec<u8>> {
    let mut stream = streams.open_stream(peer, PROTOCOL).await.map_err(std::io::Error::other)?;
    let mut length = [0; 4];
    stream.read_exact(&mut length).await?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_ANSWER_BYTES {
        return Err(std::io::Error::other(format!("an answer of {length} bytes is too long")));
    }
    // Grows as bytes arrive: a peer that only claims a length gets nothing allocated.
    let mut bytes = Vec::new();
    stream.take(length as u64).read_to_end(&mut bytes).await?;
    if bytes.len() < length {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}
