//! Messages over one stream: a queue in front of the writing half, a decoder behind the reading half.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::io::ReadHalf;
use futures::{AsyncRead, AsyncReadExt, AsyncWrite};
use mingle_protocol::wire::MessageReader;
use mingle_protocol::{Message, NodeId};
use tokio::sync::{mpsc, watch};

use super::halves::{DriverGone, Incoming, Outgoing, READ_BYTES, read_in_time};
use super::{EdgeEvent, LinkDirection, SharedStreams, payloads};
use crate::multicast::Multicast;
use crate::traffic::{Counters, Traffic};

/// Messages that wait to be written. A node has at most a window of parcels and a few acknowledgements under way; a
/// peer that lets more pile up is not reading.
const WRITE_QUEUE: usize = 64;
/// Once this side has closed its half, the other one reads to the end and closes its own within this time.
pub(super) const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval at which each stream is polled. Yamux does not wake the readers of a connection that this side has closed,
/// such as a relayed one once there is a direct one (rust-yamux issue 216); polled again, the stream reports its end.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(1);
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::pin::Pin;
    use std::sync::atomic::AtomicBool;
    use std::task::{Context, Poll};

    use mingle_protocol::wire;
    use mingle_protocol::{Ack, Generation, Incarnation, LinkPositions, ProcessStatement, Signature};

    use super::*;
    use crate::edge::halves::{ACKS_AT_ONCE, ACKS_PER_SECOND};
    use crate::edge::{Greeting, ParcelObserver};

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
