//! Messages over one stream: a queue in front of the writing half, a decoder behind the reading half.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::io::{ReadHalf, WriteHalf};
use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use mingle_protocol::wire::{self, MessageReader};
use mingle_protocol::{Message, NodeId, Payload};
use tokio::sync::{mpsc, watch};

use super::pace::{CompletedMessages, MessageProgress, TooSlow};
use super::{EdgeEvent, LinkDirection, ParcelObserver, SharedStreams, payloads};
use crate::multicast::Multicast;
use crate::token_bucket::TokenBucket;
use crate::traffic::{Counters, Traffic};

/// Messages that wait to be written. A node has at most a window of parcels and a few acknowledgements under way; a
/// peer that lets more pile up is not reading.
const WRITE_QUEUE: usize = 64;
/// Bytes read from the stream at a time.
pub(super) const READ_BYTES: usize = 64 * 1024;
/// Once this side has closed its half, the other one reads to the end and closes its own within this time.
pub(super) const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval at which each stream is polled. Yamux does not wake the readers of a connection that this side has closed,
/// such as a relayed one once there is a direct one (rust-yamux issue 216); polled again, the stream reports its end.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A peer that accepts no bytes for this long is gone.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// Acknowledgements that one stream may carry in a burst: many more than a swarm with rounds of milliseconds has. A
/// peer that sends more is read more slowly, and delays only itself.
const ACKS_AT_ONCE: f64 = 20_000.0;
/// Acknowledgements that one stream may carry per second, after the burst.
const ACKS_PER_SECOND: f64 = 5_000.0;
/// Greetings, leave certificates and process statements that one stream may carry in a burst. A sound neighbour sends
/// them when a link comes up, or when a peer joins or leaves: a few in a heartbeat, once as many as there are nodes.
/// Each may cost a signature check, or a request.
const WORDS_AT_ONCE: f64 = 400.0;
/// Greetings, leave certificates and process statements that one stream may carry per second, after the burst.
const WORDS_PER_SECOND: f64 = 20.0;

/// The driver's end of a stream.
#[derive(Clone, Debug)]
pub struct EdgeHandle {
    /// Number of the stream, unique in this process.
    pub stream: u64,
    queue: mpsc::Sender<Message>,
    counters: Arc<Counters>,
    written: watch::Receiver<()>,
    takes_payloads_elsewhere: bool,
}

impl EdgeHandle {
    /// Queues a message; returns `false` if the queue is full: the peer does not keep up. A stream that has ended
    /// accepts and loses it, as the link below would: the driver is about to be notified of the end.
    pub fn send(&self, message: Message) -> bool {
        !matches!(self.queue.try_send(message), Err(mpsc::error::TrySendError::Full(_)))
    }

    /// Returns `true` if the queue takes another message.
    pub fn has_room(&self) -> bool {
        self.queue.capacity() > 0
    }

    /// Returns `true` if both sides may speak of payloads by multicast on this stream.
    pub fn takes_payloads_elsewhere(&self) -> bool {
        self.takes_payloads_elsewhere
    }

    /// Returns `true` if the payloads of parcels on this stream go by multicast, where others need them too.
    pub fn is_heard(&self) -> bool {
        self.counters.is_heard()
    }

    /// Traffic over the stream so far.
    pub fn traffic(&self) -> Traffic {
        self.counters.read()
    }

    /// Closes the queue and waits until the stream has written its messages and closed its half.
    pub async fn finish(self) {
        let Self { queue, mut written, .. } = self;
        drop(queue);
        // The writer never sends a value: an error means that it is done.
        let _ = written.changed().await;
    }
}

/// The driver is gone: nothing is left to do.
pub(super) struct DriverGone;

/// Carries messages over `stream` until it ends, and reports its events to the driver.
///
/// A stream without a driver ends when the other side closes it, at the latest after a timeout: the other side may have
/// vanished silently, and a stream that never ended would never be reopened.
pub(super) async fn carry<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    node: NodeId,
    direction: LinkDirection,
    shared: &SharedStreams,
    multicast: Option<&Arc<Multicast>>,
) -> Result<(), DriverGone> {
    static STREAMS: AtomicU64 = AtomicU64::new(0);
    let number = STREAMS.fetch_add(1, Ordering::Relaxed);
    let (queue, messages) = mpsc::channel(WRITE_QUEUE);
    let (still_writing, written) = watch::channel(());
    let counters = Arc::<Counters>::default();
    let takes_payloads_elsewhere = multicast.is_some();
    let handle =
        EdgeHandle { stream: number, queue, counters: Arc::clone(&counters), written, takes_payloads_elsewhere };
    let tell = |event| async { shared.events.send(event).await.map_err(|_| DriverGone) };
    tell(EdgeEvent::Up { node, direction, handle }).await?;

    let (reader, writer) = stream.split();
    let outgoing = Outgoing { stream: writer, node, counters: &counters, observer: shared.observer.as_ref() };
    let (read, write) = payloads::talk(multicast, node, direction, &counters);
    let writing = async move {
        let result = match write {
            None => write_all(outgoing, messages).await,
            Some(write) => write.write_all(outgoing, messages).await,
        };
        drop(still_writing);
        match result {
            Ok(()) => {
                tokio::time::sleep(shared.close_timeout).await;
                std::io::Error::new(std::io::ErrorKind::TimedOut, "the other side does not close the stream")
            }
            Err(error) => error,
        }
    };
    let decoder = MessageReader::new(shared.dimension);
    let reading = async {
        match read {
            None => read_all(reader, Incoming::new(node, shared, &counters, decoder)).await,
            Some(read) => {
                let decoder = decoder.with_payloads_elsewhere();
                read.read_all(reader, Incoming::new(node, shared, &counters, decoder)).await
            }
        }
    };
    let mut reading = pin!(reading);
    let mut writing = pin!(writing);
    let mut looks = tokio::time::interval(shared.look_every);
    let ended = loop {
        tokio::select! {
            ended = &mut reading => break ended?,
            error = &mut writing => break Some(error.to_string()),
            _ = looks.tick() => {}
        }
    };
    tell(EdgeEvent::Down { node, direction, stream: number, error: ended }).await
}

/// Reads messages until the other side closes its half (`None`) or an error occurs (its text).
async fn read_all(
    mut stream: ReadHalf<impl AsyncRead + AsyncWrite + Unpin>,
    mut incoming: Incoming<'_>,
) -> Result<Option<String>, DriverGone> {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let waits_since = Instant::now();
        match read_in_time(&mut stream, &mut buffer, incoming.pace.patience()).await {
            Ok(0) => return Ok(None),
            Ok(count) => {
                if let Some(error) = incoming.take(&buffer[..count], waits_since).await? {
                    return Ok(Some(error));
                }
            }
            Err(error) => return Ok(Some(error.to_string())),
        }
    }
}

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

/// Writes queued messages until the driver closes the queue, then closes the writing half.
async fn write_all<S: AsyncRead + AsyncWrite + Unpin>(
    mut outgoing: Outgoing<'_, S>,
    mut messages: mpsc::Receiver<Message>,
) -> std::io::Result<()> {
    while let Some(message) = messages.recv().await {
        let more = !messages.is_empty();
        outgoing.write_message(message, more).await?;
    }
    outgoing.close().await
}

/// The writing half of a stream.
pub(super) struct Outgoing<'a, S> {
    stream: WriteHalf<S>,
    node: NodeId,
    pub(super) counters: &'a Counters,
    observer: &'a dyn ParcelObserver,
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

async fn in_time(writing: impl Future<Output = std::io::Result<()>>) -> std::io::Result<()> {
    tokio::time::timeout(WRITE_TIMEOUT, writing)
        .await
        .unwrap_or_else(|_| Err(std::io::Error::other("the peer takes no more data")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::pin::Pin;
    use std::sync::atomic::AtomicBool;
    use std::task::{Context, Poll};

    use mingle_protocol::{Ack, Generation, Incarnation, LinkPositions, ProcessStatement, Signature};

    use super::*;
    use crate::edge::Greeting;

    struct Blind;

    impl ParcelObserver for Blind {
        fn sent(&self, _: NodeId, _: Instant) {}
        fn received(&self, _: NodeId, _: Instant) {}
    }

    /// A stream whose other side accepts everything, and sends nothing after its first bytes. Only a poll notices its
    /// end: no waker is called.
    #[derive(Default)]
    struct Silent {
        has_ended: Arc<AtomicBool>,
        first_words: Vec<u8>,
    }

    impl AsyncRead for Silent {
        fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut [u8]) -> Poll<std::io::Result<usize>> {
            let said = self.first_words.len().min(buffer.len());
            if said > 0 {
                buffer[..said].copy_from_slice(&self.first_words[..said]);
                self.first_words.drain(..said);
                return Poll::Ready(Ok(said));
            }
            if self.has_ended.load(Ordering::Relaxed) { Poll::Ready(Ok(0)) } else { Poll::Pending }
        }
    }

    impl AsyncWrite for Silent {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    /// Carries messages over `stream` until it ends.
    fn carried(stream: Silent) -> mpsc::Receiver<EdgeEvent> {
        let (events, receiver) = mpsc::channel(4);
        let shared = SharedStreams {
            greeting: Greeting { plan_hash: [0; 32], boot_nonce: 1 },
            dimension: 1,
            close_timeout: Duration::from_millis(1),
            look_every: Duration::from_millis(1),
            pace_window: Duration::from_millis(20),
            multicast: None,
            events,
            observer: Arc::new(Blind),
        };
        tokio::spawn(async move { carry(stream, NodeId(3), LinkDirection::Out, &shared, None).await.is_ok() });
        receiver
    }

    #[tokio::test]
    async fn a_stream_that_the_driver_gives_up_ends_although_the_other_side_never_closes_it() {
        let mut events = carried(Silent::default());
        let Some(EdgeEvent::Up { handle, .. }) = events.recv().await else { panic!("it is up first") };
        drop(handle);
        let Some(EdgeEvent::Down { error: Some(error), .. }) = events.recv().await else { panic!("it goes down") };
        assert!(error.contains("does not close"), "{error}");
    }

    #[tokio::test]
    async fn a_stream_ends_although_nobody_is_woken_by_its_end() {
        let stream = Silent::default();
        let has_ended = Arc::clone(&stream.has_ended);
        let mut events = carried(stream);
        let Some(EdgeEvent::Up { handle, .. }) = events.recv().await else { panic!("it is up first") };
        has_ended.store(true, Ordering::Relaxed);
        let Some(EdgeEvent::Down { error: None, .. }) = events.recv().await else { panic!("it goes down") };
        drop(handle);
    }

    #[tokio::test]
    async fn a_stream_on_which_a_message_stands_still_ends_and_one_that_is_silent_does_not() {
        // The head of a frame of 1,000 bytes, and none of them.
        let words = [&1000_u32.to_le_bytes()[..], &[1]].concat();
        let mut events = carried(Silent { first_words: words, ..Silent::default() });
        let Some(EdgeEvent::Up { handle, .. }) = events.recv().await else { panic!("it is up first") };
        let Some(EdgeEvent::Down { error: Some(error), .. }) = events.recv().await else { panic!("it goes down") };
        assert!(error.contains("64 bytes a second"), "{error}");
        drop(handle);

        let mut events = carried(Silent::default());
        let Some(EdgeEvent::Up { handle, .. }) = events.recv().await else { panic!("it is up first") };
        assert!(tokio::time::timeout(Duration::from_millis(200), events.recv()).await.is_err(), "nothing has begun");
        drop(handle);
    }

    /// The time to read `count` copies of this message; none may be lost.
    async fn time_to_read(message: Message, count: usize) -> Duration {
        let bytes: Vec<u8> = wire::encode(message.clone()).slices().collect::<Vec<_>>().concat();
        let began = Instant::now();
        let mut events = carried(Silent { first_words: bytes.repeat(count), ..Silent::default() });
        let Some(EdgeEvent::Up { handle, .. }) = events.recv().await else { panic!("it is up first") };
        for _ in 0..count {
            let Some(EdgeEvent::Message { message: read, .. }) = events.recv().await else { panic!("one is lost") };
            assert_eq!(read, message);
        }
        drop(handle);
        began.elapsed()
    }

    #[tokio::test]
    async fn control_messages_beyond_the_allowance_are_taken_at_their_rate_and_none_is_lost() {
        let generation = Generation { counter: 0, plan_hash: [0; 32] };
        let signature = Signature::default();
        let (node, boot_nonce) = (NodeId(3), 1);
        let word = ProcessStatement { generation, node, boot_nonce, number: 1, age_ms: 0, other: None, signature };
        let (identity, link) = (Incarnation::default(), LinkPositions::default());
        let ack = Ack { generation, identity, seen: identity, link };
        // A burst, and one second's worth beyond it: 20 statements, 5,000 acknowledgements.
        let words = time_to_read(Message::Process(word), 420);
        let acks = time_to_read(Message::Ack(ack), (ACKS_AT_ONCE + ACKS_PER_SECOND) as usize);
        for took in [words.await, acks.await] {
            assert!(took >= Duration::from_millis(999), "{took:?}");
        }
    }
}
