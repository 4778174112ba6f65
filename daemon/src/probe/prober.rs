//! Who measures whom: opens the stream, shows the warrant, and lets only those in that may measure.

use std::sync::Arc;
use std::time::Duration;

use futures::{AsyncWriteExt, StreamExt};
use libp2p::{Multiaddr, PeerId, StreamProtocol};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use super::conversation::{self, Measured};
use super::warrant::Warrant;
use crate::failure::{Failure, Kind, OrFail, Outcome};
use crate::membership::Hall;
use crate::printable::quoted;
use crate::transport::{Reach, framed, open_stream};

const PROTOCOL: StreamProtocol = StreamProtocol::new("/mingle/probe/1");
/// The first words of either side.
const MAX_GREETING_BYTES: usize = 512;
/// Measurements that a peer makes, and as many that it lets others make, at the same time; they disturb each other.
const MAX_AT_ONCE: usize = 4;
/// The peer at the other end is reached and lets us in within this time.
const REACH_TIMEOUT: Duration = Duration::from_secs(10);
/// A measurement takes no longer, also on a link of 100 kbit/s.
const MEASURE_TIMEOUT: Duration = Duration::from_secs(20);

/// What who wants to measure shows.
#[derive(Debug, Serialize, Deserialize)]
struct Greeting {
    warrant: Option<Warrant>,
}

/// Why it may not; none: it may.
#[derive(Debug, Serialize, Deserialize)]
struct Verdict {
    refusal: Option<String>,
}

/// Measures this peer's links.
#[derive(Clone)]
pub(crate) struct Prober {
    streams: libp2p_stream::Control,
    reach: Reach,
    places: Arc<Semaphore>,
}

impl Prober {
    /// A prober on this network.
    pub(crate) fn new(streams: libp2p_stream::Control, reach: Reach) -> Self {
        Self { streams, reach, places: Arc::new(Semaphore::new(MAX_AT_ONCE)) }
    }

    /// Measures the link to a peer, which may be neither connected nor known yet.
    ///
    /// # Errors
    /// It cannot be reached (every address that was tried, and why not), it refuses, or the measurement broke off.
    pub(crate) async fn measure(
        &self,
        to: PeerId,
        addresses: Vec<Multiaddr>,
        warrant: Option<Warrant>,
    ) -> Outcome<Measured> {
        let mut streams = self.reach(to, addresses).await?;
        let _place = self.places.acquire().await.or_fail(Kind::Unexpected, "this peer measures no more")?;
        let measuring = async {
            let mut stream = open_stream(&mut streams, to, PROTOCOL).await?;
            framed::write(&mut stream, &Greeting { warrant }).await?;
            let verdict: Verdict = framed::read(&mut stream, MAX_GREETING_BYTES).await?;
            if let Some(refusal) = verdict.refusal {
                return Ok(Err(Failure::new(
                    Kind::Refused,
                    format!("peer {to} is not to be measured: {}", quoted(&refusal)),
                )));
            }
            conversation::measure(&mut stream).await.map(Ok)
        };
        match tokio::time::timeout(MEASURE_TIMEOUT, measuring).await {
            Ok(Ok(measured)) => measured,
            Ok(Err(error)) => Err(error).or_fail(Kind::Unreachable, format!("the measurement with {to} broke off")),
            Err(_) => Err(Failure::new(
                Kind::Unreachable,
                format!("the measurement with {to} was not over in {} s", MEASURE_TIMEOUT.as_secs()),
            )),
        }
    }

    /// Where a connected peer says that it listens.
    pub(crate) async fn addresses(&self, peer: PeerId) -> Vec<Multiaddr> {
        self.reach.addresses(peer).await
    }

    /// Remembers where a member says that it listens, and returns where others do.
    pub(crate) async fn introduce(
        &self,
        peer: PeerId,
        addresses: Vec<Multiaddr>,
        wanted: Vec<PeerId>,
    ) -> Vec<(PeerId, Vec<Multiaddr>)> {
        self.reach.introduce(peer, addresses, wanted).await
    }

    /// Sees to it that a peer is connected; streams to it can then be opened.
    ///
    /// # Errors
    /// It cannot be reached: every address that was tried, and why not.
    pub(crate) async fn reach(&self, peer: PeerId, addresses: Vec<Multiaddr>) -> Outcome<libp2p_stream::Control> {
        match tokio::time::timeout(REACH_TIMEOUT, self.reach.connect(peer, addresses)).await {
            Ok(true) => Ok(self.streams.clone()),
            _ => Err(self.unreachable(peer).await),
        }
    }

    async fn unreachable(&self, to: PeerId) -> Failure {
        let attempts: Vec<String> = self.reach.attempts(to).await.iter().map(ToString::to_string).collect();
        let why = if attempts.is_empty() {
            "no address of it is known".to_owned()
        } else {
            format!("tried\n  {}", attempts.join("\n  "))
        };
        Failure::new(Kind::Unreachable, format!("peer {to} cannot be reached; {why}"))
            .hint("test an address from there with: mingle ping ADDR")
    }
}

/// Lets peers that may measure their links to this one, for as long as the process runs.
pub(crate) fn serve(mut streams: libp2p_stream::Control, hall: Arc<Hall>) -> Outcome {
    let mut incoming = streams.accept(PROTOCOL).or_fail(Kind::Unexpected, "cannot let links be measured")?;
    tokio::spawn(async move {
        let places = Arc::new(Semaphore::new(MAX_AT_ONCE));
        while let Some((peer, mut stream)) = incoming.next().await {
            let place = Arc::clone(&places).try_acquire_owned();
            let hall = Arc::clone(&hall);
            tokio::spawn(async move {
                let answering = async {
                    let greeting: Greeting = framed::read(&mut stream, MAX_GREETING_BYTES).await?;
                    let refusal = match place {
                        Err(_) => Some("too many measurements are under way".to_owned()),
                        Ok(_) => hall.objection_to_probe(peer, greeting.warrant.as_ref()),
                    };
                    let refused = refusal.is_some();
                    framed::write(&mut stream, &Verdict { refusal }).await?;
                    if refused {
                        return stream.close().await;
                    }
                    conversation::answer(&mut stream).await
                };
                let answered = tokio::time::timeout(MEASURE_TIMEOUT, answering).await;
                if let Ok(Err(error)) = answered {
                    tracing::debug!(%peer, %error, "a measurement broke off");
                }
            });
        }
    });
    Ok(())
}
