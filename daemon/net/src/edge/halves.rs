//! The two halves of a stream: the bounds of what may be read, and the writing of messages.

use std::time::{Duration, Instant};

use futures::io::{ReadHalf, WriteHalf};
use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use mingle_protocol::wire::{self, MessageReader};
use mingle_protocol::{Message, NodeId, Payload};

use super::pace::{CompletedMessages, MessageProgress, TooSlow};
use super::{EdgeEvent, ParcelObserver, SharedStreams};
use crate::token_bucket::TokenBucket;
use crate::traffic::Counters;

/// Bytes read from the stream at a time.
pub(super) const READ_BYTES: usize = 64 * 1024;
/// A peer that accepts no bytes for this long is gone.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// Acknowledgements that one stream may carry in a burst: many more than a swarm with rounds of milliseconds has. A
/// peer that sends more is read more slowly, and delays only itself.
pub(super) const ACKS_AT_ONCE: f64 = 20_000.0;
/// Acknowledgements that one stream may carry per second, after the burst.
pub(super) const ACKS_PER_SECOND: f64 = 5_000.0;
/// Greetings, leave certificates and process statements that one stream may carry in a burst. A sound neighbour sends
/// them when a link comes up, or when a peer joins or leaves: a few in a heartbeat, once as many as there are nodes.
/// Each may cost a signature check, or a request.
const WORDS_AT_ONCE: f64 = 400.0;
/// Greetings, leave certificates and process statements that one stream may carry per second, after the burst.
const WORDS_PER_SECOND: f64 = 20.0;

/// The driver is gone: nothing is left to do.
pub(super) struct DriverGone;

/// The reading half of a stream: its decoder, and the bounds of what it may carry.
pub(super) struct Incoming<'a> {
    node: NodeId,
    shared: &'a SharedStreams,
    counters: &'a Counters,
    pub(super) reader: MessageReader,
    acks: TokenBucket,
    words: TokenBucket,
    pub(super) pace: MessageProgress,
    /// Arrival of the first bytes of the parcel that is being read.
    began: Option<Instant>,
}

impl<'a> Incoming<'a> {
    pub(super) fn new(node: NodeId, shared: &'a SharedStreams, counters: &'a Counters, reader: MessageReader) -> Self {
        Self {
            node,
            shared,
            counters,
            reader,
            acks: TokenBucket::new(ACKS_AT_ONCE, ACKS_PER_SECOND),
            words: TokenBucket::new(WORDS_AT_ONCE, WORDS_PER_SECOND),
            pace: MessageProgress::new(shared.pace_window),
            began: None,
        }
    }

    /// Takes bytes that were waited for, and hands the messages that they complete to the driver. Returns the error
    /// that they make, if any.
    pub(super) async fn take(&mut self, bytes: &[u8], waits_since: Instant) -> Result<Option<String>, DriverGone> {
        self.counters.note_received(bytes.len());
        let came = Instant::now();
        let messages = match self.reader.feed(bytes) {
            Ok(messages) => messages,
            Err(error) => return Ok(Some(error.to_string())),
        };
        let mut finished = CompletedMessages { parcel: false, other: self.reader.has_asides() };
        messages.iter().for_each(|message| match message {
            Message::Parcel(_) => finished.parcel = true,
            _ => finished.other = true,
        });
        let waited = came.saturating_duration_since(waits_since);
        if let Err(error) = self.pace.note(waited, self.reader.unfinished(), finished) {
            return Ok(Some(error.to_string()));
        }
        for message in messages {
            self.hand_over(message, came).await?;
        }
        let is_receiving = self.reader.is_receiving();
        self.began = self.began.filter(|_| is_receiving).or_else(|| is_receiving.then_some(came));
        Ok(None)
    }

    /// Hands a message to the driver, at the rate of its kind.
    pub(super) async fn hand_over(&mut self, message: Message, came: Instant) -> Result<(), DriverGone> {
        let node = self.node;
        match message {
            Message::Parcel(_) => {
                let began = self.began.take().unwrap_or(came);
                self.counters.note_received_parcel(came.saturating_duration_since(began));
                self.shared.observer.received(node, began);
            }
            Message::Collective(_) => {}
            Message::Ack(_) => keep_to_the_rate(&mut self.acks).await,
            Message::Hello(_) | Message::Left(_) | Message::Process(_) => keep_to_the_rate(&mut self.words).await,
        }
        self.shared.events.send(EdgeEvent::Message { node, message }).await.map_err(|_| DriverGone)
    }

    /// Waits until the rate of acknowledgements allows another word about payloads.
    pub(super) async fn admit_aside(&mut self) {
        keep_to_the_rate(&mut self.acks).await;
    }
}

/// The writing half of a stream.
pub(super) struct Outgoing<'a, S> {
    pub(super) stream: WriteHalf<S>,
    pub(super) node: NodeId,
    pub(super) counters: &'a Counters,
    pub(super) observer: &'a dyn ParcelObserver,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Outgoing<'_, S> {
    /// Writes one message; flushes unless another follows at once.
    pub(super) async fn write_message(&mut self, message: Message, more: bool) -> std::io::Result<()> {
        let parcel = match &message {
            Message::Parcel(parcel) => Some((Instant::now(), parcel.payload.clone())),
            _ => None,
        };
        self.write(wire::encode(message).slices(), more).await?;
        if let Some((began, payload)) = parcel {
            self.note_sent_parcel(&payload, began);
        }
        Ok(())
    }

    /// Writes bytes; flushes unless more follow at once.
    pub(super) async fn write<'b>(
        &mut self,
        slices: impl Iterator<Item = &'b [u8]>,
        more: bool,
    ) -> std::io::Result<()> {
        for slice in slices {
            in_time(self.stream.write_all(slice)).await?;
            self.counters.note_sent(slice.len());
        }
        if more { Ok(()) } else { in_time(self.stream.flush()).await }
    }

    /// Counts a parcel that the other side has from now on.
    pub(super) fn note_sent_parcel(&self, payload: &Payload, began: Instant) {
        self.counters.note_sent_parcel(payload);
        self.observer.sent(self.node, began);
    }

    /// Closes the writing half.
    pub(super) async fn close(&mut self) -> std::io::Result<()> {
        in_time(self.stream.close()).await
    }
}

/// Reads the available bytes, within `patience` if there is a limit.
pub(super) async fn read_in_time(
    stream: &mut ReadHalf<impl AsyncRead + AsyncWrite + Unpin>,
    buffer: &mut [u8],
    patience: Option<Duration>,
) -> std::io::Result<usize> {
    let Some(patience) = patience else { return stream.read(buffer).await };
    let too_slow = |_| Err(std::io::Error::new(std::io::ErrorKind::TimedOut, TooSlow.to_string()));
    tokio::time::timeout(patience, stream.read(buffer)).await.unwrap_or_else(too_slow)
}

/// Waits until the rate limit allows one more message.
async fn keep_to_the_rate(bucket: &mut TokenBucket) {
    while !bucket.take(Instant::now()) {
        tokio::time::sleep(bucket.wait(Instant::now())).await;
    }
}

async fn in_time(writing: impl Future<Output = std::io::Result<()>>) -> std::io::Result<()> {
    tokio::time::timeout(WRITE_TIMEOUT, writing)
        .await
        .unwrap_or_else(|_| Err(std::io::Error::other("the peer takes no more data")))
}
