//! Payloads of parcels that travel by multicast: the conversation on the stream of each link.
//!
//! ```text
//!   sender                                     receiver
//!   key, and its probes by multicast  ---->
//!                                     <----    heard
//!   header of a parcel, `elsewhere`   ---->
//!   symbols by multicast              ---->    object store
//!   sent, pass 0                      ---->
//!                                     <----    lacks 3 of block 0, or got it
//!   repair symbols by multicast       ---->
//!   sent, pass 1                      ---->
//!                                     <----    got it: the parcel is complete
//!                                        or    rest: the chunks follow, as on any stream
//! ```
//!
//! The receiver decides how a parcel is completed, so the two never disagree. The sender writes the next header once
//! the parcel is complete; other messages pass meanwhile.

mod inward;
mod outward;

use std::io;
use std::sync::Arc;
use std::time::Instant;

use futures::io::ReadHalf;
use futures::{AsyncRead, AsyncWrite};
use mingle_protocol::{Message, NodeId};
use tokio::sync::mpsc;

use super::halves::{DriverGone, Incoming, Outgoing};
use super::{EdgeEvent, LinkDirection};
use crate::multicast::{Multicast, MulticastSettings};
use crate::traffic::Counters;

/// Words that wait between the halves of a stream. A sound neighbour has a few under way; what is more is dropped.
const WORD_QUEUE: usize = 1_024;

/// The reading half of the conversation.
pub(super) enum Reading {
    In(inward::InReading),
    Out(outward::OutReading),
}

/// The writing half of the conversation.
pub(super) enum Writing {
    In(inward::InWriting),
    Out(Box<outward::OutWriting>),
}

/// The conversation of a stream, if there is one: its two halves.
pub(super) fn talk(
    multicast: Option<&Arc<Multicast>>,
    node: NodeId,
    direction: LinkDirection,
    counters: &Arc<Counters>,
) -> (Option<Reading>, Option<Writing>) {
    let Some(multicast) = multicast else { return (None, None) };
    match direction {
        LinkDirection::In => {
            let (reading, writing) = inward::conversation(multicast, node, counters);
            (Some(Reading::In(reading)), Some(Writing::In(writing)))
        }
        LinkDirection::Out => {
            let (reading, writing) = outward::conversation(multicast, node, counters);
            (Some(Reading::Out(reading)), Some(Writing::Out(Box::new(writing))))
        }
    }
}

impl Reading {
    /// Reads messages until the other side closes its half (`None`) or an error occurs (its text).
    pub(super) async fn read_all(
        self,
        stream: ReadHalf<impl AsyncRead + AsyncWrite + Unpin>,
        incoming: Incoming<'_>,
    ) -> Result<Option<String>, DriverGone> {
        match self {
            Self::In(reading) => reading.read_all(stream, incoming).await,
            Self::Out(reading) => reading.read_all(stream, incoming).await,
        }
    }
}

impl Writing {
    /// Writes queued messages until the driver closes the queue, then closes the writing half.
    pub(super) async fn write_all<S: AsyncRead + AsyncWrite + Unpin>(
        self,
        outgoing: Outgoing<'_, S>,
        messages: mpsc::Receiver<Message>,
    ) -> io::Result<()> {
        match self {
            Self::In(writing) => writing.write_all(outgoing, messages).await,
            Self::Out(writing) => writing.write_all(outgoing, messages).await,
        }
    }
}

/// Starts the multicast of a plan. If it cannot be used, a notice says why.
pub(super) fn start(
    settings: &MulticastSettings,
    plan_hash: &[u8; 32],
    dimension: usize,
    in_neighbours: usize,
    events: &mpsc::Sender<EdgeEvent>,
) -> Option<Arc<Multicast>> {
    let queue = events.clone();
    let notices = Box::new(move |message| {
        // If the driver is busy, the log has the sentence alone.
        let _ = queue.try_send(EdgeEvent::Notice { message });
    });
    match Multicast::start(settings, plan_hash, dimension, in_neighbours, notices) {
        Ok(multicast) => Some(multicast),
        Err(error) => {
            let message = format!("payloads go by stream: {error}");
            // The queue is empty.
            let _ = events.try_send(EdgeEvent::Notice { message });
            None
        }
    }
}

/// The error of a word that is none.
fn no_word() -> String {
    "a frame about payloads makes no sense".to_owned()
}

/// Sleeps until this time, or for ever.
async fn sleep_until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant.into()).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use mingle_multicast::Word;
    use mingle_protocol::wire::{self, MessageReader};

    #[test]
    fn mutated_frames_about_payloads_are_refused_or_make_sense() {
        let seeds = [
            wire::aside(&Word::Heard { key: 7, probe: 2 }.encode()),
            [wire::aside(&Word::Key { secret: [1; 32], symbol_bytes: 1166 }.encode()), wire::elsewhere(7)].concat(),
        ];
        mingle_mutations::for_each_input("frames about payloads", &seeds, |input| {
            let mut reader = MessageReader::new(4).with_payloads_elsewhere();
            if reader.feed(input).is_ok() {
                assert_eq!(reader.awaited(), None, "no header can come of these");
                reader.take_asides().iter().for_each(|aside| drop(Word::decode(aside)));
            }
        });
    }
}
