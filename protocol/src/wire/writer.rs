//! Encoding of messages to bytes, without copying payloads.

use serde::{Deserialize, Serialize};

use super::frame::{FRAME_HEAD_BYTES, Head, Kind, MAX_CHUNK_BYTES};
use crate::codec::Codec;
use crate::message::{Message, ParcelHeader};
use crate::payload::Payload;
use crate::reference::ReferenceId;

/// A parcel header in the form in which it travels.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ParcelFrame {
    pub(super) header: ParcelHeader,
    pub(super) codec: Codec,
    /// The reference that the payload is a difference to.
    pub(super) reference: Option<ReferenceId>,
    pub(super) payload_bytes: u64,
    pub(super) hash: [u8; 32],
}

/// A message ready to be written: a control frame, and slices of the bulk data behind it.
#[derive(Clone, Debug)]
pub struct EncodedMessage {
    control: Vec<u8>,
    /// The payload of a parcel; `None` for other messages.
    payload: Option<Payload>,
    full_chunk: [u8; FRAME_HEAD_BYTES],
    last_chunk: [u8; FRAME_HEAD_BYTES],
}

/// Encodes one message. A payload is shared, not copied.
///
/// ```
/// use mingle_protocol::{Envelope, Message, wire};
/// let message = Message::Collective(Envelope { task: [0; 32], attempt: 1, frame: vec![7] });
/// let encoded = wire::encode(message.clone());
/// let bytes: Vec<u8> = encoded.slices().flatten().copied().collect();
/// let mut reader = wire::MessageReader::new(0);
/// assert_eq!(reader.feed(&bytes).unwrap(), [message]);
/// ```
pub fn encode(message: Message) -> EncodedMessage {
    match message {
        Message::Hello(hello) => EncodedMessage::new(Kind::Hello, &hello, None),
        Message::Ack(ack) => EncodedMessage::new(Kind::Ack, &ack, None),
        Message::Parcel(parcel) => {
            let frame = ParcelFrame {
                header: parcel.header,
                codec: parcel.payload.codec(),
                reference: parcel.payload.reference(),
                payload_bytes: parcel.payload.bytes().len() as u64,
                hash: *parcel.payload.hash(),
            };
            EncodedMessage::new(Kind::Parcel, &frame, Some(parcel.payload))
        }
        Message::Process(statement) => EncodedMessage::new(Kind::Process, &statement, None),
        Message::Left(certificate) => EncodedMessage::new(Kind::Left, &certificate, None),
        Message::Collective(envelope) => EncodedMessage::new(Kind::Collective, &envelope, None),
    }
}

/// The frame behind the header of a parcel whose payload travels elsewhere, under this name. Chunks may still follow, if
/// the receiver does not get the payload there.
pub fn elsewhere(name: u64) -> Vec<u8> {
    control_frame(Kind::Elsewhere, &name)
}

/// A frame about payloads that travel elsewhere; its body is opaque to this crate, of at most
/// [`MAX_CONTROL_BYTES`](super::MAX_CONTROL_BYTES).
pub fn aside(body: &[u8]) -> Vec<u8> {
    let mut frame = Head { kind: Kind::Aside, bytes: body.len() }.encode().to_vec();
    frame.extend_from_slice(body);
    frame
}

impl EncodedMessage {
    fn new(kind: Kind, body: &impl Serialize, payload: Option<Payload>) -> Self {
        let control = control_frame(kind, body);
        let last = payload.as_ref().map_or(0, |payload| payload.bytes().len()) % MAX_CHUNK_BYTES;
        Self {
            control,
            payload,
            full_chunk: Head { kind: Kind::Chunk, bytes: MAX_CHUNK_BYTES }.encode(),
            last_chunk: Head { kind: Kind::Chunk, bytes: last }.encode(),
        }
    }

    /// The bytes to write, in order. Another control message may be written before any chunk's head, that is between
    /// any two [`frames`](Self::frames).
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> {
        self.frames().flat_map(|(head, body)| [head, body]).filter(|slice| !slice.is_empty())
    }

    /// The frames to write, in order: the bytes of the control frame or of a chunk's head, and the bulk bytes after
    /// them.
    pub fn frames(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let chunks = self.bulk().chunks(MAX_CHUNK_BYTES).map(|chunk| {
            let head = if chunk.len() == MAX_CHUNK_BYTES { &self.full_chunk } else { &self.last_chunk };
            (head.as_slice(), chunk)
        });
        std::iter::once((self.control.as_slice(), [].as_slice())).chain(chunks)
    }

    /// The number of bytes in all.
    pub fn total_bytes(&self) -> usize {
        let bulk = self.bulk().len();
        self.control.len() + bulk + bulk.div_ceil(MAX_CHUNK_BYTES) * FRAME_HEAD_BYTES
    }

    fn bulk(&self) -> &[u8] {
        self.payload.as_ref().map_or(&[], Payload::bytes)
    }
}

fn control_frame(kind: Kind, body: &impl Serialize) -> Vec<u8> {
    let mut frame = vec![0; FRAME_HEAD_BYTES];
    // Plain structs of numbers, arrays and one short string: growing a vector is all that encoding them can do.
    frame = postcard::to_extend(body, frame).unwrap_or_default();
    let bytes = frame.len().saturating_sub(FRAME_HEAD_BYTES);
    if let Some(head) = frame.first_chunk_mut() {
        *head = Head { kind, bytes }.encode();
    }
    frame
}
