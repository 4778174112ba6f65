//! The preamble of a stream: the opener sends its plan and process, the other side accepts the stream or refuses it
//! with a reason. PeerIds are proved by the connection below.

use std::fmt;

use futures::{AsyncRead, AsyncWrite, AsyncWriteExt};
use serde::{Deserialize, Serialize};

use crate::framed;

/// Largest greeting or answer.
const MAX_PREAMBLE_BYTES: usize = 256;

/// The opener's introduction on a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Greeting {
    /// The plan it runs.
    pub plan_hash: [u8; 32],
    /// Random number drawn when the process started; it distinguishes two processes with one identity.
    pub boot_nonce: u64,
}

/// The reason why a stream is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StreamRefusal {
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

impl StreamRefusal {
    /// Returns `true` if the refusal may only mean that one of the two has not received the newest plan yet.
    pub fn is_about_plans(&self) -> bool {
        matches!(self, Self::OtherPlan { .. } | Self::NotANeighbour)
    }
}

impl fmt::Display for StreamRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotANeighbour => f.write_str("its plan has no link from this peer"),
            Self::OtherPlan { ours } => write!(f, "it runs another plan, blake3:{}", hex::encode(ours)),
            Self::IdentityInUse => f.write_str("another process with this peer's identity is connected to it"),
        }
    }
}

/// Sends the greeting; returns the other side's refusal, if any.
pub(super) async fn introduce<S>(stream: &mut S, greeting: &Greeting) -> std::io::Result<Option<StreamRefusal>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    framed::write(stream, greeting).await?;
    framed::read(stream, MAX_PREAMBLE_BYTES).await
}

/// Reads the greeting of the peer that opened the stream.
pub(super) async fn listen<S: AsyncRead + Unpin>(stream: &mut S) -> std::io::Result<Greeting> {
    framed::read(stream, MAX_PREAMBLE_BYTES).await
}

/// Answers a greeting.
pub(super) async fn answer<S: AsyncWrite + Unpin>(
    stream: &mut S,
    refusal: Option<StreamRefusal>,
) -> std::io::Result<()> {
    let refused = refusal.is_some();
    framed::write(stream, &refusal).await?;
    if refused {
        stream.close().await?;
    }
    Ok(())
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
        let refusal = Some(StreamRefusal::OtherPlan { ours: [3; 32] });
        let mut wire = Cursor::new(Vec::new());
        block_on(framed::write(&mut wire, &greeting)).unwrap();
        block_on(answer(&mut wire, refusal.clone())).unwrap();
        wire.set_position(0);
        assert_eq!(block_on(listen(&mut wire)).unwrap(), greeting);
        let answer: Option<StreamRefusal> = block_on(framed::read(&mut wire, MAX_PREAMBLE_BYTES)).unwrap();
        assert_eq!(answer, refusal);
    }

    /// A greeting, an acceptance, and each refusal, as bytes behind their length.
    const GOLDEN: &str = "\
        2a0000000909090909090909090909090909090909090909090909090909090909090909ffffffffffffffffff01\n\
        0100000000\n\
        020000000100\n\
        2200000001010303030303030303030303030303030303030303030303030303030303030303\n\
        020000000102\n";

    #[test]
    fn greetings_and_answers_have_the_bytes_that_they_had() {
        let greeting = Greeting { plan_hash: [9; 32], boot_nonce: u64::MAX };
        let answers = [
            None,
            Some(StreamRefusal::NotANeighbour),
            Some(StreamRefusal::OtherPlan { ours: [3; 32] }),
            Some(StreamRefusal::IdentityInUse),
        ];
        let mut lines = GOLDEN.lines().map(|line| hex::decode(line).unwrap());
        let first = lines.next().unwrap();
        assert_eq!(block_on(listen(&mut Cursor::new(&first))).unwrap(), greeting);
        let mut wire = Cursor::new(Vec::new());
        block_on(framed::write(&mut wire, &greeting)).unwrap();
        assert_eq!(wire.into_inner(), first, "other bytes need another number in the name of the protocol");
        for (line, refusal) in lines.zip(answers) {
            let read: Option<StreamRefusal> =
                block_on(framed::read(&mut Cursor::new(&line), MAX_PREAMBLE_BYTES)).unwrap();
            assert_eq!(read, refusal);
            let mut wire = Cursor::new(Vec::new());
            block_on(answer(&mut wire, refusal)).unwrap();
            assert_eq!(wire.into_inner(), line);
        }
    }

    #[test]
    fn a_claimed_length_beyond_the_limit_is_refused_before_anything_is_allocated() {
        let mut wire = Cursor::new(vec![0xff, 0xff, 0, 0, 0]);
        assert!(block_on(listen(&mut wire)).unwrap_err().to_string().contains("too long"));
    }

    #[test]
    fn mutated_greetings_and_refusals_are_refused_or_make_sense() {
        let of = |value: &dyn Fn(&mut Cursor<Vec<u8>>)| {
            let mut wire = Cursor::new(Vec::new());
            value(&mut wire);
            wire.into_inner()
        };
        let greeting = Greeting { plan_hash: [9; 32], boot_nonce: u64::MAX };
        let seeds = [
            of(&|wire| block_on(framed::write(wire, &greeting)).unwrap()),
            of(&|wire| block_on(answer(wire, Some(StreamRefusal::OtherPlan { ours: [3; 32] }))).unwrap()),
            of(&|wire| block_on(answer(wire, None)).unwrap()),
        ];
        mingle_mutations::for_each_input("greeting", &seeds, |input| {
            let _ = block_on(listen(&mut Cursor::new(input)));
            let refusal =
                block_on(framed::read::<Option<StreamRefusal>, _>(&mut Cursor::new(input), MAX_PREAMBLE_BYTES));
            if let Ok(Some(refusal)) = refusal {
                assert!(refusal.to_string().len() < 200);
            }
        });
    }
}
