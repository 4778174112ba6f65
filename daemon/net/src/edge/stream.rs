//! Messages over one stream: a queue in front of the writing half, a decoder behind the reading half.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::io::{ReadHalf, WriteHalf};
use futures::{AsyncReadExt, AsyncWriteExt};
use libp2p::Stream;
use mingle_protocol::wire::{self, MessageReader};
use mingle_protocol::{Message, NodeId};
use tokio::sync::{mpsc, watch};

use super::{Direction, EdgeEvent, ParcelObserver, Shared};
use crate::traffic::{Counters, Traffic};

/// Messages that wait to be written. A node has at most a window of parcels and a few acknowledgements under way; a
/// peer that lets more pile up is not reading.
const WRITE_QUEUE: usize = 64;
/// Bytes read from the stream at a time.
const READ_BYTES: usize = 64 * 1024;
/// A peer that takes nothing for so long is gone.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// The driver's end of a stream.
#[derive(Clone, Debug)]
pub struct EdgeHandle {
    /// Tells the streams of one process apart.
    pub stream: u64,
    queue: mpsc::Sender<Message>,
    counters: Arc<Counters>,
    written: watch::Receiver<()>,
}

impl EdgeHandle {
    /// Queues a message; `false` when the queue is full: the peer does not keep up. A stream that has ended takes it
    /// and loses it, as the link below would: the driver is about to hear of the end.
    pub fn send(&self, message: Message) -> bool {
        !matches!(self.queue.try_send(message), Err(mpsc::error::TrySendError::Full(_)))
    }

    /// Whether the queue takes another message.
    pub fn has_room(&self) -> bool {
        self.queue.capacity() > 0
    }

    /// What went over the stream so far.
    pub fn traffic(&self) -> Traffic {
        self.counters.read()
    }

    /// Lets the stream write what is queued, close its half, and returns then.
    pub async fn finish(self) {
        let Self { queue, mut written, .. } = self;
        drop(queue);
        // The writer never sends a value: an error says that it is done.
        let _ = written.changed().await;
    }
}

/// The driver is gone: nothing is left to do.
pub(super) struct DriverGone;

/// Carries messages over `stream` until it ends, telling the driver what happens.
pub(super) async fn carry(
    stream: Stream,
    node: NodeId,
    direction: Direction,
    shared: &Shared,
) -> Result<(), DriverGone> {
    static STREAMS: AtomicU64 = AtomicU64::new(0);
    let number = STREAMS.fetch_add(1, Ordering::Relaxed);
    let (queue, messages) = mpsc::channel(WRITE_QUEUE);
    let (still_writing, written) = watch::channel(());
    let counters = Arc::<Counters>::default();
    let handle = EdgeHandle { stream: number, queue, counters: Arc::clone(&counters), written };
    let tell = |event| async { shared.events.send(event).await.map_err(|_| DriverGone) };
    tell(EdgeEvent::Up { node, direction, handle }).await?;

    let (reader, writer) = stream.split();
    let (observer, written_counters) = (Arc::clone(&shared.observer), Arc::clone(&counters));
    let writing = async move {
        let result = write_all(writer, node, messages, &written_counters, observer.as_ref()).await;
        drop(still_writing);
        match result {
            // The driver has closed the queue: the other side ends the stream when it has read to the end.
            Ok(()) => std::future::pending().await,
            Err(error) => error,
        }
    };
    let ended = tokio::select! {
        ended = read_all(reader, node, shared, &counters) => ended?,
        error = writing => Some(error.to_string()),
    };
    tell(EdgeEvent::Down { node, direction, stream: number, error: ended }).await
}

/// Reads messages until the other side closes its half (`None`) or something is wrong with it (why).
async fn read_all(
    mut stream: ReadHalf<Stream>,
    node: NodeId,
    shared: &Shared,
    counters: &Counters,
) -> Result<Option<String>, DriverGone> {
    let mut reader = MessageReader::new(shared.dimension);
    let mut buffer = vec![0; READ_BYTES];
    // When the first bytes of the parcel that is being read came.
    let mut began = None;
    loop {
        let bytes = match stream.read(&mut buffer).await {
            Ok(0) => return Ok(None),
            Ok(count) => {
                counters.note_received(count);
                &buffer[..count]
            }
            Err(error) => return Ok(Some(error.to_string())),
        };
        let came = Instant::now();
        let messages = match reader.feed(bytes) {
            Ok(messages) => messages,
            Err(error) => return Ok(Some(error.to_string())),
        };
        for message in messages {
            if let Message::Parcel(_) = message {
                counters.note_received_parcel();
                shared.observer.received(node, began.take().unwrap_or(came));
            }
            let event = EdgeEvent::Message { node, message };
            shared.events.send(event).await.map_err(|_| DriverGone)?;
        }
        began = began.filter(|_| reader.is_receiving()).or_else(|| reader.is_receiving().then_some(came));
    }
}

/// Writes queued messages until the driver closes the queue, then closes the writing half.
async fn write_all(
    mut stream: WriteHalf<Stream>,
    node: NodeId,
    mut messages: mpsc::Receiver<Message>,
    counters: &Counters,
    observer: &dyn ParcelObserver,
) -> std::io::Result<()> {
    while let Some(message) = messages.recv().await {
        let more = !messages.is_empty();
        let parcel = match &message {
            Message::Parcel(parcel) => Some((Instant::now(), parcel.payload.clone())),
            _ => None,
        };
        write_message(&mut stream, message, more, counters).await?;
        if let Some((began, payload)) = parcel {
            counters.note_sent_parcel(&payload);
            observer.sent(node, began);
        }
    }
    in_time(stream.close()).await
}

/// Writes one message; flushes unless another follows at once.
async fn write_message(
    stream: &mut WriteHalf<Stream>,
    message: Message,
    more: bool,
    counters: &Counters,
) -> std::io::Result<()> {
    let encoded = wire::encode(message);
    for slice in encoded.slices() {
        in_time(stream.write_all(slice)).await?;
        counters.note_sent(slice.len());
    }
    if more { Ok(()) } else { in_time(stream.flush()).await }
}

async fn in_time(writing: impl Future<Output = std::io::Result<()>>) -> std::io::Result<()> {
    tokio::time::timeout(WRITE_TIMEOUT, writing)
        .await
        .unwrap_or_else(|_| Err(std::io::Error::other("the peer takes no more data")))
}
