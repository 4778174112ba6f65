//! The sender's side: payloads are offered to the transmitter, and written to the stream where that does not serve.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use futures::io::ReadHalf;
use futures::{AsyncRead, AsyncWrite};
use mingle_multicast::{ObjectName, Word};
use mingle_protocol::wire::{self, EncodedMessage};
use mingle_protocol::{Message, NodeId, Parcel, Payload};
use tokio::sync::{mpsc, oneshot};

use super::{WORD_QUEUE, no_word, sleep_until};
use crate::edge::halves::{DriverGone, Incoming, Outgoing, READ_BYTES, WRITE_TIMEOUT, read_in_time};
use crate::multicast::{Multicast, Order, Quiet};
use crate::traffic::Counters;

/// Words of the transmitter that wait to be written.
const TRANSMITTER_WORDS: usize = 64;

pub(in crate::edge) struct OutReading {
    say: mpsc::Sender<Word>,
}

pub(in crate::edge) struct OutWriting {
    link: OutLink,
    quiet: Quiet,
    /// Words of the transmitter for the receiver.
    words: mpsc::Receiver<Word>,
    /// Words of the receiver.
    said: mpsc::Receiver<Word>,
    under_way: Option<UnderWay>,
    /// A message that waits until words may be exchanged.
    message: Option<Message>,
    /// A parcel that waits for that, and for the one under way.
    held: Option<HeldParcel>,
}

/// A parcel whose header is not written. Its payload does not wait: it goes with those of the other links.
struct HeldParcel {
    parcel: Parcel,
    object: Option<ObjectName>,
    /// The last question about it.
    question: Option<Word>,
}

/// This stream among those of the transmitter, until it is dropped.
struct OutLink {
    multicast: Arc<Multicast>,
    counters: Arc<Counters>,
    number: u64,
}

/// A parcel whose payload travels by multicast.
struct UnderWay {
    object: ObjectName,
    payload: Payload,
    encoded: EncodedMessage,
    began: Instant,
    /// The last word about it, of either side.
    sign_at: Instant,
}

pub(super) fn conversation(
    multicast: &Arc<Multicast>,
    node: NodeId,
    counters: &Arc<Counters>,
) -> (OutReading, OutWriting) {
    let (say, said) = mpsc::channel(WORD_QUEUE);
    let (to_writer, words) = mpsc::channel(TRANSMITTER_WORDS);
    let number = multicast.new_link();
    multicast.order(Order::Join { link: number, node, words: to_writer, counters: Arc::clone(counters) });
    let link = OutLink { multicast: Arc::clone(multicast), counters: Arc::clone(counters), number };
    (
        OutReading { say },
        OutWriting {
            link,
            quiet: Quiet::new(multicast, node),
            words,
            said,
            under_way: None,
            message: None,
            held: None,
        },
    )
}

impl OutReading {
    pub(super) async fn read_all(
        self,
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
            for aside in incoming.reader.take_asides() {
                incoming.admit_aside().await;
                let Some(word) = Word::decode(&aside) else { return Ok(Some(no_word())) };
                // Waiting for room could wait for a writer that waits for this reader.
                let _ = self.say.try_send(word);
            }
        }
    }
}

impl OutWriting {
    pub(super) async fn write_all<S: AsyncRead + AsyncWrite + Unpin>(
        mut self,
        mut outgoing: Outgoing<'_, S>,
        mut messages: mpsc::Receiver<Message>,
    ) -> io::Result<()> {
        let mut is_open = true;
        while is_open || self.under_way.is_some() || self.held.is_some() || self.message.is_some() {
            let quiet = self.quiet.until();
            if quiet.is_none() && self.write_waiting(&mut outgoing).await? {
                continue;
            }
            let deadline = self.under_way.as_ref().map(|parcel| parcel.sign_at + WRITE_TIMEOUT);
            tokio::select! {
                message = messages.recv(), if is_open && self.held.is_none() && self.message.is_none() => match message {
                    Some(Message::Parcel(parcel)) => {
                        let object = self.link.offer(&parcel).await;
                        self.held = Some(HeldParcel { parcel, object, question: None });
                    }
                    Some(message) => self.message = Some(message),
                    None => is_open = false,
                },
                Some(word) = self.words.recv(), if quiet.is_none() => self.say(word, &mut outgoing).await?,
                Some(word) = self.said.recv() => self.hear(word, &mut outgoing).await?,
                () = sleep_until(quiet) => {}
                () = sleep_until(deadline) => {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "the peer does not say if it has a payload"));
                }
            }
        }
        outgoing.close().await
    }

    /// Writes the message that waits, or begins the parcel that does. `false` if nothing can be written yet.
    async fn write_waiting<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        outgoing: &mut Outgoing<'_, S>,
    ) -> io::Result<bool> {
        if let Some(message) = self.message.take() {
            outgoing.write_message(message, false).await?;
            return Ok(true);
        }
        let Some(held) = self.held.take_if(|_| self.under_way.is_none()) else { return Ok(false) };
        self.begin(held, outgoing).await?;
        Ok(true)
    }

    /// Writes a word of the transmitter. A question about a payload whose header is not written yet waits for that.
    async fn say<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        word: Word,
        outgoing: &mut Outgoing<'_, S>,
    ) -> io::Result<()> {
        if let Word::Sent { object, .. } = &word
            && let Some(held) = self.held.as_mut().filter(|held| held.object == Some(*object))
        {
            held.question = Some(word);
            return Ok(());
        }
        self.note_sign(&word);
        outgoing.write(std::iter::once(&*wire::aside(&word.encode())), false).await
    }

    /// Begins a parcel: its payload is an object of multicast, or goes by stream.
    async fn begin<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        HeldParcel { parcel, object, question }: HeldParcel,
        outgoing: &mut Outgoing<'_, S>,
    ) -> io::Result<()> {
        let Some(object) = object else {
            return outgoing.write_message(Message::Parcel(parcel), false).await;
        };
        let began = Instant::now();
        let payload = parcel.payload.clone();
        let encoded = wire::encode(Message::Parcel(parcel));
        let elsewhere = wire::elsewhere(object.to_number());
        let header = encoded.frames().take(1).map(|(control, _)| control);
        outgoing.write(header.chain(std::iter::once(&*elsewhere)), false).await?;
        self.under_way = Some(UnderWay { object, payload, encoded, began, sign_at: began });
        match question {
            Some(word) => outgoing.write(std::iter::once(&*wire::aside(&word.encode())), false).await,
            None => Ok(()),
        }
    }

    /// Takes a word of the receiver.
    async fn hear<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        word: Word,
        outgoing: &mut Outgoing<'_, S>,
    ) -> io::Result<()> {
        self.note_sign(&word);
        let ended = match &word {
            Word::Got { object } | Word::Rest { object } => self.under_way.take_if(|parcel| parcel.object == *object),
            _ => None,
        };
        let wants_chunks = matches!(word, Word::Rest { .. });
        self.link.multicast.order(Order::Said { link: self.link.number, word });
        let Some(UnderWay { payload, encoded, began, .. }) = ended else { return Ok(()) };
        if wants_chunks {
            let chunks = encoded.frames().skip(1).flat_map(|(head, body)| [head, body]);
            outgoing.write(chunks, false).await?;
            outgoing.counters.note_resorted();
        } else {
            outgoing.counters.note_sent_by_multicast(payload.bytes().len());
        }
        outgoing.note_sent_parcel(&payload, began);
        Ok(())
    }

    fn note_sign(&mut self, word: &Word) {
        let about = match word {
            Word::Sent { object, .. }
            | Word::Coming { object }
            | Word::Got { object }
            | Word::Lacks { object, .. }
            | Word::Rest { object } => Some(*object),
            Word::Key { .. } | Word::Heard { .. } => None,
        };
        if let Some(parcel) = self.under_way.as_mut().filter(|parcel| Some(parcel.object) == about) {
            parcel.sign_at = Instant::now();
        }
    }
}

impl OutLink {
    /// Offers a payload to the transmitter. `None` if it is to go by stream.
    async fn offer(&self, parcel: &Parcel) -> Option<ObjectName> {
        if !self.counters.is_heard() {
            return None;
        }
        let (answer, answered) = oneshot::channel();
        let Parcel { header, payload } = parcel;
        let order = Order::Offer { link: self.number, step: header.step, payload: payload.clone(), answer };
        self.multicast.order(order);
        answered.await.ok().flatten()
    }
}

impl Drop for OutLink {
    fn drop(&mut self) {
        self.multicast.order(Order::Leave { link: self.number });
    }
}
