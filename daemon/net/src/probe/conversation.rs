//! Wire protocol of a link measurement: echoes for the round trip, bursts for the bandwidth.
//!
//! ```text
//!   0 ++ nonce (8)             -> nonce (8)                            an echo
//!   1 ++ length (4) ++ bytes   -> nanoseconds that they took (8)       a burst
//! ```
//! Numbers are little-endian. Each burst is four times as long as the one before, until one takes long enough for an
//! estimate: a slow link is not flooded, and a fast one is not judged by its first packets.

use std::io;
use std::time::{Duration, Instant};

use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use serde::{Deserialize, Serialize};

const ECHO: u8 = 0;
const BURST: u8 = 1;

/// Echoes of a measurement, besides one to warm up.
const ECHOES: usize = 9;
/// Time after which no further echo is sent.
const ECHO_TIME: Duration = Duration::from_millis(1500);
const FIRST_BURST_BYTES: u32 = 64 << 10;
const LAST_BURST_BYTES: u32 = 16 << 20;
const GROWTH: u32 = 4;
/// A burst of at least this duration determines the bandwidth.
const LONG_ENOUGH: Duration = Duration::from_millis(400);
/// Most requests, and most bytes in bursts, that one measurement may cost the measured peer.
const MAX_REQUESTS: usize = 32;
const MAX_BYTES: u64 = 2 * LAST_BURST_BYTES as u64;
const CHUNK_BYTES: usize = 64 << 10;

/// The result of measuring a link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkMeasurement {
    /// Median of the round trips.
    pub round_trip: Duration,
    /// Bits per second that arrived at the other end.
    pub bits_per_s: f64,
}

impl LinkMeasurement {
    /// Returns `true` if the values are possible for a measurement; those received from a peer need not be.
    pub fn is_sound(&self) -> bool {
        self.bits_per_s.is_finite() && self.bits_per_s > 0.0 && self.round_trip > Duration::ZERO
    }
}

/// Measures over a stream to a peer that runs [`answer`].
pub(super) async fn measure<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S) -> io::Result<LinkMeasurement> {
    let round_trip = echoes(stream).await?;
    let bits_per_s = bursts(stream).await?;
    stream.close().await?;
    Ok(LinkMeasurement { round_trip, bits_per_s })
}

async fn echoes<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S) -> io::Result<Duration> {
    echo(stream, 0).await?;
    let began = Instant::now();
    let mut times = Vec::with_capacity(ECHOES);
    while times.is_empty() || (times.len() < ECHOES && began.elapsed() < ECHO_TIME) {
        times.push(echo(stream, times.len() as u64 + 1).await?);
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

async fn echo<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, nonce: u64) -> io::Result<Duration> {
    let began = Instant::now();
    let mut request = [ECHO; 9];
    request[1..].copy_from_slice(&nonce.to_le_bytes());
    stream.write_all(&request).await?;
    stream.flush().await?;
    if read_u64(stream).await? != nonce {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the echo is not what was sent"));
    }
    Ok(began.elapsed())
}

async fn bursts<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S) -> io::Result<f64> {
    let mut length = FIRST_BURST_BYTES;
    loop {
        let took = burst(stream, length).await?;
        if took >= LONG_ENOUGH || length >= LAST_BURST_BYTES {
            return Ok(f64::from(length) * 8.0 / took.as_secs_f64());
        }
        length *= GROWTH;
    }
}

/// Sends `length` bytes; returns how long they took to arrive.
async fn burst<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, length: u32) -> io::Result<Duration> {
    stream.write_all(&[BURST]).await?;
    stream.write_all(&length.to_le_bytes()).await?;
    let chunk = vec![0x5a; CHUNK_BYTES];
    let mut left = length as usize;
    while left > 0 {
        let now = left.min(chunk.len());
        stream.write_all(&chunk[..now]).await?;
        left -= now;
    }
    stream.flush().await?;
    // A peer that claims no time at all must not make the link infinitely fast.
    Ok(Duration::from_nanos(read_u64(stream).await?.max(1000)))
}

/// Answers the requests of a measurement until the other end closes the stream.
///
/// # Errors
/// The other end sends an unknown request, or asks for more than a measurement needs.
pub(super) async fn answer<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S) -> io::Result<()> {
    let mut bytes = 0;
    for _ in 0..MAX_REQUESTS {
        let mut request = [0];
        if stream.read(&mut request).await? == 0 {
            return stream.close().await;
        }
        let answer = match request[0] {
            ECHO => read_u64(stream).await?,
            BURST => {
                let mut length = [0; 4];
                stream.read_exact(&mut length).await?;
                let length = u32::from_le_bytes(length);
                bytes += u64::from(length);
                if bytes > MAX_BYTES {
                    break;
                }
                take(stream, length).await?
            }
            _ => return Err(io::Error::new(io::ErrorKind::InvalidData, "no request of a measurement")),
        };
        stream.write_all(&answer.to_le_bytes()).await?;
        stream.flush().await?;
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "more than a measurement needs"))
}

/// Reads a burst; returns the nanoseconds that it took.
async fn take<S: AsyncRead + Unpin>(stream: &mut S, length: u32) -> io::Result<u64> {
    let began = Instant::now();
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut left = length as usize;
    while left > 0 {
        let now = left.min(buffer.len());
        let read = stream.read(&mut buffer[..now]).await?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        left -= read;
    }
    Ok(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

async fn read_u64<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<u64> {
    let mut bytes = [0; 8];
    stream.read_exact(&mut bytes).await?;
    Ok(u64::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use tokio_util::compat::TokioAsyncReadCompatExt;

    /// Two ends of a pipe with a small buffer.
    fn pipe() -> (impl AsyncRead + AsyncWrite + Unpin, impl AsyncRead + AsyncWrite + Unpin) {
        let (near, far) = tokio::io::duplex(8 << 10);
        (near.compat(), far.compat())
    }

    #[tokio::test]
    async fn a_link_is_measured_by_both_ends_together() {
        let (mut near, mut far) = pipe();
        let (measured, answered) = futures::join!(measure(&mut near), answer(&mut far));
        answered.unwrap();
        let measured = measured.unwrap();
        assert!(measured.round_trip < ECHO_TIME, "{measured:?}");
        assert!(measured.bits_per_s.is_finite() && measured.bits_per_s > 0.0, "{measured:?}");
    }

    #[tokio::test]
    async fn nobody_is_flooded_by_what_pretends_to_be_a_measurement() {
        let (mut near, mut far) = pipe();
        let flood = async {
            for _ in 0..=2 {
                if burst(&mut near, LAST_BURST_BYTES).await.is_err() {
                    break;
                }
            }
            // By now at the latest the other end sees the close.
            drop(near);
        };
        let (answered, ()) = futures::join!(
            async {
                let answered = answer(&mut far).await;
                drop(far);
                answered
            },
            flood
        );
        assert_eq!(answered.unwrap_err().to_string(), "more than a measurement needs");
    }

    #[tokio::test]
    async fn what_is_no_request_ends_the_conversation() {
        let (mut near, mut far) = pipe();
        near.write_all(&[7]).await.unwrap();
        near.flush().await.unwrap();
        assert!(answer(&mut far).await.unwrap_err().to_string().contains("no request"));
    }
}
