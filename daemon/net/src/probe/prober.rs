//! Who measures whom: opens the stream, shows the token, and lets only those in that may measure.

use std::sync::Arc;
use std::time::Duration;

use futures::{AsyncWriteExt, StreamExt};
use libp2p::{Multiaddr, PeerId, StreamProtocol};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use super::conversation::{self, Measured};
use super::token::ProbeToken;
use crate::error::{NetworkError, ProbeError};
use crate::framed;
use crate::printable::quoted;
use crate::transport::{Reach, accept, open_stream};

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
    token: Option<ProbeToken>,
}

/// Why it may not; none: it may.
#[derive(Debug, Serialize, Deserialize)]
struct Verdict {
    refusal: Option<String>,
}

/// Measures this peer's links.
#[derive(Clone)]
pub struct Prober {
    streams: libp2p_stream::Control,
    reach: Reach,
    places: Arc<Semaphore>,
}

impl Prober {
    /// A prober on this network.
    pub fn new(streams: libp2p_stream::Control, reach: Reach) -> Self {
        Self { streams, reach, places: Arc::new(Semaphore::new(MAX_AT_ONCE)) }
    }

    /// Measures the link to a peer, which may be neither connected nor known yet.
    ///
    /// # Errors
    /// It cannot be reached (every address that was tried, and why not), it refuses, or the measurement broke off.
    pub async fn measure(
        &self,
        to: PeerId,
        addresses: Vec<Multiaddr>,
        token: Option<ProbeToken>,
    ) -> Result<Measured, ProbeError> {
        let mut streams = self.reach(to, addresses).await?;
        let _place = self.places.acquire().await.map_err(|_| ProbeError::Closed)?;
        let measuring = async {
            let mut stream = open_stream(&mut streams, to, PROTOCOL).await?;
            framed::write(&mut stream, &Greeting { token }).await?;
            let verdict: Verdict = framed::read(&mut stream, MAX_GREETING_BYTES).await?;
            if let Some(refusal) = verdict.refusal {
                return Ok(Err(ProbeError::Refused { peer: to, reason: quoted(&refusal) }));
            }
            conversation::measure(&mut stream).await.map(Ok)
        };
        match tokio::time::timeout(MEASURE_TIMEOUT, measuring).await {
            Ok(Ok(measured)) => measured,
            Ok(Err(source)) => Err(ProbeError::BrokeOff { peer: to, source }),
            Err(_) => Err(ProbeError::TimedOut { peer: to, limit: MEASURE_TIMEOUT }),
        }
    }

    /// Where a connected peer says that it listens.
    pub async fn addresses(&self, peer: PeerId) -> Vec<Multiaddr> {
        self.reach.addresses(peer).await
    }

    /// Remembers where a member says that it listens, and returns where others do.
    pub async fn introduce(
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
    pub async fn reach(&self, peer: PeerId, addresses: Vec<Multiaddr>) -> Result<libp2p_stream::Control, ProbeError> {
        match tokio::time::timeout(REACH_TIMEOUT, self.reach.connect(peer, addresses)).await {
            Ok(true) => Ok(self.streams.clone()),
            _ => Err(ProbeError::Unreachable { peer, attempts: self.reach.attempts(peer).await }),
        }
    }
}

/// Lets peers measure their links to this one for as long as the process runs, unless `object` says why one may not.
///
/// # Errors
/// This process does so already.
pub fn serve(
    mut streams: libp2p_stream::Control,
    object: impl Fn(PeerId, Option<&ProbeToken>) -> Option<String> + Send + Sync + 'static,
) -> Result<(), NetworkError> {
    let mut incoming = accept(&mut streams, PROTOCOL)?;
    let object = Arc::new(object);
    tokio::spawn(async move {
        let places = Arc::new(Semaphore::new(MAX_AT_ONCE));
        while let Some((peer, mut stream)) = incoming.next().await {
            let place = Arc::clone(&places).try_acquire_owned();
            let object = Arc::clone(&object);
            tokio::spawn(async move {
                let answering = async {
                    let greeting: Greeting = framed::read(&mut stream, MAX_GREETING_BYTES).await?;
                    let refusal = match place {
                        Err(_) => Some("too many measurements are under way".to_owned()),
                        Ok(_) => object(peer, greeting.token.as_ref()),
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
