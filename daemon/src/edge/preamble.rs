//! The first words on a stream: the opener says what plan it runs and which process it is, the other side takes it or
//! says why not. PeerIds are proved by the connection below.

use std::fmt;

use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// No greeting and no answer is longer.
const MAX_PREAMBLE_BYTES: usize = 256;

/// What the opener of a stream says about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Greeting {
    /// The plan it runs.
    pub(crate) plan_hash: [u8; 32],
    /// Drawn at random when the process started: tells two processes with one identity apart.
    pub(crate) boot_nonce: u64,
}

/// Why a stream is not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Refusal {
    /// The plan has no edge from the opener to this peer.
    NotANeighbour,
    /// This peer runs another plan.
    OtherPlan {
        /// The hash of the plan that this peer runs.
        ours: [u8; 32],
    },
    /// Another process with the opener's identity is connected.
    IdentityInUse,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotANeighbour => f.write_str("its plan has no link from this peer"),
            Self::OtherPlan { ours } => write!(f, "it runs another plan, blake3:{}", hex::encode(ours)),
            Self::IdentityInUse => f.write_str("another process with this peer's identity is connected to it"),
        }
    }
}

/// Greets the other side; returns why it refuses, if it does.
pub(super) async fn introduce<S>(stream: &mut S, greeting: &Greeting) -> std::io::Result<Option<Refusal>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    write(stream, greeting).await?;
    read(stream).await
}

/// Reads the greeting of whoever opened the stream.
pub(super) async fn listen<S: AsyncRead + Unpin>(stream: &mut S) -> std::io::Result<Greeting> {
    read(stream).await
}

/// Answers a greeting.
pub(super) async fn answer<S: AsyncWrite + Unpin>(stream: &mut S, refusal: Option<Refusal>) -> std::io::Result<()> {
    let refused = refusal.is_some();
    write(stream, &refusal).await?;
    if refused {
        stream.close().await?;
    }
    Ok(())
}

async fn write<S: AsyncWrite + Unpin>(stream: &mut S, words: &impl Serialize) -> std::io::Result<()> {
    let bytes = postcard::to_stdvec(words).map_err(std::io::Error::other)?;
    let length = u16::try_from(bytes.len()).map_err(std::io::Error::other)?;
    stream.write_all(&length.to_le_bytes()).await?;
    stream.write_all(&bytes).await?;
    stream.flush().await
}

async fn read<T: DeserializeOwned, S: AsyncRead + Unpin>(stream: &mut S) -> std::io::Result<T> {
    let mut length = [0; 2];
    stream.read_exact(&mut length).await?;
    let length = usize::from(u16::from_le_bytes(length));
    if length > MAX_PREAMBLE_BYTES {
        return Err(std::io::Error::other(format!("a preamble of {length} bytes is too long")));
    }
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).await?;
    postcard::from_bytes(&bytes).map_err(std::io::Error::other)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use futures::executor::block_on;
    use futures::io::Cursor;

    #[test]
    fn a_greeting_and_a_refusal_survive_the_wire() {
        let greeting = Greeting { plan_hash: [9; 32], boot_nonce: u64::MAX };
        let refusal = Some(Refusal::OtherPlan { ours: [3; 32] });
        let mut wire = Cursor::new(Vec::new());
        block_on(write(&mut wire, &greeting)).unwrap();
        block_on(answer(&mut wire, refusal.clone())).unwrap();
        wire.set_position(0);
        assert_eq!(block_on(listen(&mut wire)).unwrap(), greeting);
        let answer: Option<Refusal> = block_on(read(&mut wire)).unwrap();
        assert_eq!(answer, refusal);
    }

    #[test]
    fn a_claimed_length_beyond_the_limit_is_refused_before_anything_is_allocated() {
        let mut wire = Cursor::new(vec![0xff, 0xff, 0, 0]);
        assert!(block_on(listen(&mut wire)).unwrap_err().to_string().contains("too long"));
    }
}
