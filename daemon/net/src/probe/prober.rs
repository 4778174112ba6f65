//! The measuring and the measured end of a probe: opens the stream, shows the token, and admits only peers with
//! permission.

use std::sync::Arc;
use std::time::Duration;

use futures::{AsyncWriteExt, StreamExt};
use libp2p::{Multiaddr, PeerId, Stream, StreamProtocol};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use super::conversation::{self, LinkMeasurement};
use super::token::ProbeToken;
use crate::error::{NetworkError, ProbeError};
use crate::framed;
use crate::known_peers::KnownPeers;
use crate::places::{AdmissionLimits, AdmissionPermit, Places};
use crate::printable::quoted;
use crate::transport::{Reach, accept, open_stream};

const PROTOCOL: StreamProtocol = StreamProtocol::new("/mingle/probe/1");
/// Largest greeting or verdict.
const MAX_GREETING_BYTES: usize = 512;
/// Measurements that a peer makes at the same time; they disturb each other.
const MAX_AT_ONCE: usize = 4;
/// Limits on requests whose greeting is read and answered, with a reason if refused.
const HEARD: AdmissionLimits = AdmissionLimits { known: 32, strangers: 8, per_peer: 4 };
/// Limits on running measurements; a stranger needs a token of the operator.
const MEASURED: AdmissionLimits = AdmissionLimits { known: 4, strangers: 2, per_peer: 4 };
/// Time limit for connecting to the peer.
const REACH_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit of a measurement, enough for a link of 100 kbit/s.
const MEASURE_TIMEOUT: Duration = Duration::from_secs(20);

/// The request of a peer that wants to measure.
#[derive(Debug, Serialize, Deserialize)]
struct Greeting {
    token: Option<ProbeToken>,
}

/// The answer to a request; without a refusal it is granted.
#[derive(Debug, Serialize, Deserialize)]
struct Verdict {
    refusal: Option<String>,
}

/// Measures the links of this peer.
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
    /// The peer cannot be reached (every address that was tried, and why it failed), it refuses, or the measurement
    /// broke off.
    pub async fn measure(
        &self,
        to: PeerId,
        addresses: Vec<Multiaddr>,
        token: Option<ProbeToken>,
    ) -> Result<LinkMeasurement, ProbeError> {
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

    /// The addresses that a connected peer reports for itself.
    pub async fn addresses(&self, peer: PeerId) -> Vec<Multiaddr> {
        self.reach.addresses(peer).await
    }

    /// The known addresses of `wanted`.
    pub async fn whereabouts(&self, wanted: Vec<PeerId>) -> Vec<(PeerId, Vec<Multiaddr>)> {
        self.reach.whereabouts(wanted).await
    }

    /// Stores the addresses that a member reports for itself, and returns the known addresses of `wanted`.
    pub async fn introduce(
        &self,
        peer: PeerId,
        addresses: Vec<Multiaddr>,
        wanted: Vec<PeerId>,
    ) -> Vec<(PeerId, Vec<Multiaddr>)> {
        self.reach.introduce(peer, addresses, wanted).await
    }

    /// Connects to a peer, so that streams to it can be opened.
    ///
    /// # Errors
    /// The peer cannot be reached: every address that was tried, and why it failed.
    pub async fn reach(&self, peer: PeerId, addresses: Vec<Multiaddr>) -> Result<libp2p_stream::Control, ProbeError> {
        match tokio::time::timeout(REACH_TIMEOUT, self.reach.connect(peer, addresses)).await {
            Ok(true) => Ok(self.streams.clone()),
            _ => Err(ProbeError::Unreachable { peer, attempts: self.reach.attempts(peer).await }),
        }
    }
}

/// Answers measurements of the links to this peer for as long as the process runs, unless `object` returns a reason to
/// refuse one. Peers in `known` have permits of their own.
///
/// # Errors
/// This process already serves measurements.
pub fn serve(
    mut streams: libp2p_stream::Control,
    known: KnownPeers,
    object: impl Fn(PeerId, Option<&ProbeToken>) -> Option<String> + Send + Sync + 'static,
) -> Result<(), NetworkError> {
    let mut incoming = accept(&mut streams, PROTOCOL)?;
    let object = Arc::new(object);
    tokio::spawn(async move {
        let heard = Places::new(known.clone(), HEARD);
        let measured = Places::new(known, MEASURED);
        while let Some((peer, stream)) = incoming.next().await {
            // A peer without a permit asks again later.
            let Some(place) = heard.take(peer) else { continue };
            let measured = measured.clone();
            let object = Arc::clone(&object);
            tokio::spawn(async move {
                let permit = |token: Option<&ProbeToken>| {
                    // Checking a token spends it, so the permit is taken first.
                    let place = measured.take(peer).ok_or_else(|| "too many measurements are under way".to_owned())?;
                    object(peer, token).map_or(Ok(place), Err)
                };
                let answering = answer_one(stream, &place, permit);
                if let Ok(Err(error)) = tokio::time::timeout(MEASURE_TIMEOUT, answering).await {
                    tracing::debug!(%peer, %error, "a measurement broke off");
                }
            });
        }
    });
    Ok(())
}

/// Reads a request and, if it is permitted, serves the measurement while the permit is held.
async fn answer_one(
    mut stream: Stream,
    place: &AdmissionPermit,
    permit: impl Fn(Option<&ProbeToken>) -> Result<AdmissionPermit, String>,
) -> std::io::Result<()> {
    let greeting = framed::read(&mut stream, MAX_GREETING_BYTES);
    let greeting: Greeting = tokio::time::timeout(place.patience(MEASURE_TIMEOUT), greeting).await??;
    let permitted = permit(greeting.token.as_ref());
    framed::write(&mut stream, &Verdict { refusal: permitted.as_ref().err().cloned() }).await?;
    if permitted.is_err() {
        return stream.close().await;
    }
    conversation::answer(&mut stream).await
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use futures::executor::block_on;
    use futures::io::Cursor;
    use libp2p::identity::Keypair;

    use crate::probe::ProbedLink;

    #[test]
    fn mutated_warrants_and_measurements_are_refused_or_hold() {
        let operator = Keypair::generate_ed25519();
        let link = ProbedLink { swarm: &[1; 32], from: PeerId::random(), to: PeerId::random() };
        let token = ProbeToken::sign(&link, &[], &operator, 1_800_000_000, [7; 16]).unwrap();
        let sound = postcard::to_stdvec(&Greeting { token: Some(token.clone()) }).unwrap();
        let seeds = [sound, postcard::to_stdvec(&Verdict { refusal: Some("no".to_owned()) }).unwrap()];
        mingle_mutations::for_each_input("warrant", &seeds, |input| {
            drop(postcard::from_bytes::<Verdict>(input));
            let Ok(Greeting { token: Some(read) }) = postcard::from_bytes::<Greeting>(input) else { return };
            assert_eq!(read.holds(&link, &operator.public(), 1_800_000_000), read == token, "{read:?}");
        });
        let echo = [&[0][..], &[5; 8]].concat();
        let burst = [&[1][..], &300_u32.to_le_bytes(), &[0x5a; 300]].concat();
        let seeds = [echo.clone(), burst.clone(), [echo, burst].concat()];
        mingle_mutations::for_each_input("measurement", &seeds, |input| {
            drop(block_on(conversation::answer(&mut Cursor::new(input.to_vec()))));
        });
    }
}
