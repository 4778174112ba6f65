//! One long-lived stream per directed edge of the plan, opened by the sender; acknowledgements come back on it.
//!
//! [`Edges`] opens a stream to each out-neighbour, and reopens it when it breaks. It accepts one stream from each
//! in-neighbour and refuses all other peers, with the reason. The driver receives [`EdgeEvent`]s from the streams. Its
//! outgoing messages wait in a bounded queue per stream, so that a slow peer fills its own queue only.

mod halves;
mod pace;
mod payloads;
mod preamble;
mod stream;

use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt;
use libp2p::{PeerId, Stream, StreamProtocol};
use mingle_protocol::{Message, NodeId};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

use crate::error::NetworkError;
use crate::known_peers::KnownPeers;
use crate::multicast::{Multicast, MulticastSettings};
use crate::places::{AdmissionLimits, AdmissionPermit, Places};
use crate::traffic::Traffic;
use crate::transport::{accept, open_stream};
pub use preamble::{Greeting, StreamRefusal};
pub use stream::EdgeHandle;

const PROTOCOL: StreamProtocol = StreamProtocol::new("/mingle/edge/1");
/// The same, and payloads of parcels may travel elsewhere. Spoken by peers whose payloads go by multicast; with all
/// others they fall back to the one above.
const WITH_PAYLOADS_ELSEWHERE: StreamProtocol = StreamProtocol::new("/mingle/edge/2");
/// Time limit for the preamble of a stream.
const PREAMBLE_TIMEOUT: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Events that wait for the driver; streams are not read while it is full.
const EVENT_QUEUE: usize = 16;
/// Streams in the preamble or in use; an in-neighbour has several while one is being replaced.
const INCOMING: AdmissionLimits = AdmissionLimits { known: usize::MAX, strangers: 64, per_peer: 8 };

/// Direction of the plan's edge, seen from this peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkDirection {
    /// This peer sends parcels, acknowledgements come back.
    Out,
    /// This peer receives parcels and acknowledges them.
    In,
}

/// An event on one of the streams.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "messages are most of all events, and none is kept")]
pub enum EdgeEvent {
    /// A stream is ready to carry messages.
    Up {
        /// The neighbour.
        node: NodeId,
        /// Direction of its parcels.
        direction: LinkDirection,
        /// Queue of the messages to be written to the stream.
        handle: EdgeHandle,
    },
    /// A message arrived.
    Message {
        /// The sender.
        node: NodeId,
        /// The message, within the bounds of the format.
        message: Message,
    },
    /// A stream ended.
    Down {
        /// The neighbour.
        node: NodeId,
        /// Direction of its parcels.
        direction: LinkDirection,
        /// The number of the stream, as in its handle.
        stream: u64,
        /// The error; `None` if the other side closed the stream in good order.
        error: Option<String>,
    },
    /// The other side refuses this stream.
    Refused {
        /// The neighbour.
        node: NodeId,
        /// The reason.
        refusal: StreamRefusal,
    },
    /// A change of the medium that a person should know of.
    Notice {
        /// A sentence.
        message: String,
    },
}

/// Observer of parcels, notified when the last byte of one has been written or read.
pub trait ParcelObserver: Send + Sync {
    /// A parcel was handed to the stream to `node`, from `began` until now.
    fn sent(&self, node: NodeId, began: Instant);
    /// A parcel came from `node`: its first byte at `began`, its last one now.
    fn received(&self, node: NodeId, began: Instant);
}

/// The streams of this peer. Dropping it ends them all.
pub struct Edges {
    tasks: JoinSet<()>,
    multicast: Option<Arc<Multicast>>,
}

/// State shared by all stream tasks.
#[derive(Clone)]
struct SharedStreams {
    greeting: Greeting,
    /// Parameters in a parcel; no other size is accepted.
    dimension: usize,
    /// Time that a stream without a driver waits for the other side to close it.
    close_timeout: Duration,
    /// Interval at which each stream is polled, for the reason at `stream::LOOK_EVERY`.
    look_every: Duration,
    /// Time within which an unfinished message must make progress.
    pace_window: Duration,
    events: mpsc::Sender<EdgeEvent>,
    observer: Arc<dyn ParcelObserver>,
    multicast: Option<Arc<Multicast>>,
}

/// The stream that each in-neighbour holds open now.
type Open = Arc<Mutex<BTreeMap<NodeId, Holder>>>;

/// The process that holds the stream of an in-neighbour, and a signal that ends this stream when the process opens
/// another.
#[derive(Clone, Debug)]
struct Holder {
    boot_nonce: u64,
    replaced: Arc<Notify>,
}

impl Edges {
    /// Starts opening streams to `out` and accepting streams from `inward`.
    ///
    /// `dimension` is the number of parameters that a parcel carries: no other size is accepted. With settings of
    /// multicast, payloads go once for all out-neighbours that packets reach. If it cannot be used, a notice says why,
    /// and they go by stream.
    ///
    /// # Errors
    /// The streams of another plan are still accepted in this process.
    pub fn start(
        control: &libp2p_stream::Control,
        greeting: Greeting,
        dimension: usize,
        multicast: Option<&MulticastSettings>,
        out: &BTreeMap<NodeId, PeerId>,
        inward: &BTreeMap<NodeId, PeerId>,
        observer: Arc<dyn ParcelObserver>,
    ) -> Result<(Self, mpsc::Receiver<EdgeEvent>), NetworkError> {
        let (events, receiver) = mpsc::channel(EVENT_QUEUE);
        let multicast = multicast
            .and_then(|settings| payloads::start(settings, &greeting.plan_hash, dimension, inward.len(), &events));
        let shared = SharedStreams {
            greeting,
            dimension,
            close_timeout: stream::CLOSE_TIMEOUT,
            look_every: stream::LOOK_EVERY,
            pace_window: pace::WINDOW,
            events,
            observer,
            multicast: multicast.clone(),
        };
        let mut tasks = JoinSet::new();
        for (&node, &peer) in out {
            tasks.spawn(keep_open(control.clone(), shared.clone(), node, peer));
        }
        let with_payloads = multicast.as_ref().map(|_| accept(&mut control.clone(), WITH_PAYLOADS_ELSEWHERE));
        let with_payloads = with_payloads.transpose()?;
        let incoming = Listening { incoming: accept(&mut control.clone(), PROTOCOL)?, with_payloads };
        let nodes = inward.iter().map(|(&node, &peer)| (peer, node)).collect();
        tasks.spawn(accept_all(incoming, shared, nodes));
        Ok((Self { tasks, multicast }, receiver))
    }

    /// The packets of this peer, as traffic beside that of its streams.
    pub fn packets(&self) -> Traffic {
        self.multicast.as_ref().map(|multicast| multicast.traffic()).unwrap_or_default()
    }

    /// The group that payloads go to, if any do.
    pub fn group(&self) -> Option<SocketAddrV4> {
        self.multicast.as_ref().map(|multicast| multicast.group())
    }

    /// Ends every stream task. To have queued messages written, wait on the handles first.
    pub async fn shutdown(&mut self) {
        self.tasks.shutdown().await;
    }
}

/// Opens a stream to `peer`, carries messages until it breaks, and opens it again.
async fn keep_open(mut control: libp2p_stream::Control, shared: SharedStreams, node: NodeId, peer: PeerId) {
    let mut pause = FIRST_PAUSE;
    loop {
        match open(&mut control, &shared, peer).await {
            Ok((stream, multicast)) => {
                pause = FIRST_PAUSE;
                tracing::debug!(%peer, node = node.0, "opened the stream to this neighbour");
                let ended = stream::carry(stream, node, LinkDirection::Out, &shared, multicast).await;
                if ended.is_err() {
                    return; // the driver is gone
                }
            }
            Err(OpenError::Refused(refusal)) => {
                tracing::debug!(%peer, ?refusal, "this neighbour refuses the stream");
                let event = EdgeEvent::Refused { node, refusal };
                if shared.events.send(event).await.is_err() {
                    return;
                }
            }
            Err(OpenError::Unreachable(error)) => {
                tracing::debug!(%peer, error, "cannot open a stream yet");
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Opens a stream on which payloads may travel elsewhere, or one of the other protocol if the peer does not know that.
///
/// A peer that takes up its plan begins to accept both, this one first. It may do so between two attempts: only if it
/// accepts the other protocol, and still not this one, does it not know it.
async fn open_with_payloads<'a>(
    control: &mut libp2p_stream::Control,
    multicast: &'a Arc<Multicast>,
    peer: PeerId,
) -> std::io::Result<(Stream, Option<&'a Arc<Multicast>>)> {
    let is_unknown = |error: &std::io::Error| error.kind() == std::io::ErrorKind::Unsupported;
    match open_stream(control, peer, WITH_PAYLOADS_ELSEWHERE).await {
        Err(error) if is_unknown(&error) => {}
        opened => return opened.map(|stream| (stream, Some(multicast))),
    }
    let other = open_stream(control, peer, PROTOCOL).await?;
    match open_stream(control, peer, WITH_PAYLOADS_ELSEWHERE).await {
        Err(error) if is_unknown(&error) => Ok((other, None)),
        opened => opened.map(|stream| (stream, Some(multicast))),
    }
}

enum OpenError {
    Refused(StreamRefusal),
    Unreachable(String),
}

/// Opens a stream to `peer`. Returns it with the multicast, if the peer takes payloads elsewhere.
async fn open<'a>(
    control: &mut libp2p_stream::Control,
    shared: &'a SharedStreams,
    peer: PeerId,
) -> Result<(Stream, Option<&'a Arc<Multicast>>), OpenError> {
    let unreachable = |error: &dyn std::fmt::Display| OpenError::Unreachable(error.to_string());
    let opened = match &shared.multicast {
        Some(multicast) => open_with_payloads(control, multicast, peer).await,
        None => open_stream(control, peer, PROTOCOL).await.map(|stream| (stream, None)),
    };
    let (mut stream, multicast) = opened.map_err(|error| unreachable(&error))?;
    let answer = tokio::time::timeout(PREAMBLE_TIMEOUT, preamble::introduce(&mut stream, &shared.greeting))
        .await
        .map_err(|_| unreachable(&"no answer to the greeting"))?
        .map_err(|error| unreachable(&error))?;
    match answer {
        None => Ok((stream, multicast)),
        Some(refusal) => Err(OpenError::Refused(refusal)),
    }
}

/// The streams that others open.
struct Listening {
    incoming: libp2p_stream::IncomingStreams,
    /// Those on which payloads may travel elsewhere.
    with_payloads: Option<libp2p_stream::IncomingStreams>,
}

impl Listening {
    /// The next stream, its opener, and whether payloads may travel elsewhere.
    async fn next(&mut self) -> Option<(PeerId, Stream, bool)> {
        let with_payloads = async {
            match &mut self.with_payloads {
                Some(incoming) => incoming.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            next = self.incoming.next() => next.map(|(peer, stream)| (peer, stream, false)),
            next = with_payloads => next.map(|(peer, stream)| (peer, stream, true)),
        }
    }
}

/// Accepts the streams of in-neighbours, and refuses those of other peers.
async fn accept_all(mut incoming: Listening, shared: SharedStreams, nodes: BTreeMap<PeerId, NodeId>) {
    let open = Open::default();
    let neighbours = KnownPeers::default();
    neighbours.replace(nodes.keys().copied().collect());
    let places = Places::new(neighbours, INCOMING);
    let mut streams = JoinSet::new();
    loop {
        tokio::select! {
            next = incoming.next() => {
                let Some((peer, stream, with_payloads)) = next else { return };
                // A peer without a permit opens another stream later.
                if let Some(place) = places.take(peer) {
                    let node = nodes.get(&peer).copied();
                    let mut shared = shared.clone();
                    shared.multicast = shared.multicast.filter(|_| with_payloads);
                    streams.spawn(receive(stream, node, place, shared, Arc::clone(&open)));
                }
            }
            Some(_) = streams.join_next() => {}
        }
    }
}

/// Answers the greeting of an incoming stream, then carries it until it ends.
async fn receive(mut stream: Stream, node: Option<NodeId>, place: AdmissionPermit, shared: SharedStreams, open: Open) {
    let patience = place.patience(PREAMBLE_TIMEOUT);
    let answer = |stream: Stream, refusal| async move {
        let mut stream = stream;
        let answered = tokio::time::timeout(patience, preamble::answer(&mut stream, refusal)).await;
        matches!(answered, Ok(Ok(()))).then_some(stream)
    };
    // The greeting is read even if the stream is refused: a stream closed with data unread loses the answer.
    let greeting = tokio::time::timeout(patience, preamble::listen(&mut stream)).await;
    let Ok(Ok(theirs)) = greeting else { return };
    let Some(node) = node else {
        answer(stream, Some(StreamRefusal::NotANeighbour)).await;
        return;
    };
    let holder = match admit(&shared.greeting, &theirs, node, &open) {
        Ok(holder) => {
            tracing::debug!(node = node.0, "accepted the stream of this neighbour");
            holder
        }
        Err(refusal) => {
            answer(stream, Some(refusal)).await;
            return;
        }
    };
    if let Some(stream) = answer(stream, None).await {
        tokio::select! {
            // An error means that the driver is gone: no event can be delivered.
            _ = stream::carry(stream, node, LinkDirection::In, &shared, shared.multicast.as_ref()) => {}
            () = holder.replaced.notified() => {}
        }
    }
    release(&open, node, &holder);
}

/// Admits a stream with this greeting as that of `node`, and registers its holder.
fn admit(ours: &Greeting, theirs: &Greeting, node: NodeId, open: &Open) -> Result<Holder, StreamRefusal> {
    if theirs.plan_hash != ours.plan_hash {
        return Err(StreamRefusal::OtherPlan { ours: ours.plan_hash });
    }
    let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
    match open.get(&node) {
        None => {}
        // The same process reopens its stream before the end of the old one was noticed.
        Some(holder) if holder.boot_nonce == theirs.boot_nonce => holder.replaced.notify_one(),
        // The first process with this identity is still connected: a second one is refused, not the first one lost.
        Some(_) => return Err(StreamRefusal::IdentityInUse),
    }
    let holder = Holder { boot_nonce: theirs.boot_nonce, replaced: Arc::default() };
    open.insert(node, holder.clone());
    Ok(holder)
}

fn release(open: &Open, node: NodeId, holder: &Holder) {
    let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
    if open.get(&node).is_some_and(|current| Arc::ptr_eq(&current.replaced, &holder.replaced)) {
        open.remove(&node);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn greeting(boot_nonce: u64, plan: u8) -> Greeting {
        Greeting { plan_hash: [plan; 32], boot_nonce }
    }

    #[test]
    fn a_second_process_with_the_same_identity_is_refused_while_the_first_is_connected() {
        let open = Open::default();
        let ours = greeting(1, 0);
        let first = admit(&ours, &greeting(10, 0), NodeId(3), &open).unwrap();
        assert_eq!(admit(&ours, &greeting(11, 0), NodeId(3), &open).err(), Some(StreamRefusal::IdentityInUse));
        release(&open, NodeId(3), &first);
        assert!(admit(&ours, &greeting(11, 0), NodeId(3), &open).is_ok());
    }

    #[test]
    fn the_late_end_of_an_old_stream_does_not_free_the_place_of_the_new_one() {
        let open = Open::default();
        let ours = greeting(1, 0);
        let old = admit(&ours, &greeting(10, 0), NodeId(3), &open).unwrap();
        let new = admit(&ours, &greeting(10, 0), NodeId(3), &open).unwrap();
        release(&open, NodeId(3), &old);
        assert_eq!(admit(&ours, &greeting(11, 0), NodeId(3), &open).err(), Some(StreamRefusal::IdentityInUse));
        release(&open, NodeId(3), &new);
        assert!(admit(&ours, &greeting(11, 0), NodeId(3), &open).is_ok());
    }

    #[test]
    fn a_peer_with_another_plan_is_told_so() {
        let open = Open::default();
        let refusal = admit(&greeting(1, 7), &greeting(2, 8), NodeId(0), &open);
        assert_eq!(refusal.err(), Some(StreamRefusal::OtherPlan { ours: [7; 32] }));
    }
}
