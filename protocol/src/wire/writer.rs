//! Messages to bytes, without copying payloads.

use serde::{Deserialize, Serialize};

use super::frame::{FRAME_HEAD_BYTES, Head, Kind, MAX_CHUNK_BYTES};
use crate::codec::Codec;
use crate::message::{Message, ParcelHeader};
use crate::payload::Payload;

/// A parcel header as it travels.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ParcelFrame {
    pub(super) header: ParcelHeader,
    pub(super) codec: Codec,
    pub(super) payload_bytes: u64,
    pub(super) hash: [u8; 32],
}

/// A plan header as it travels.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PlanFrame {
    pub(super) bytes: u64,
    pub(super) hash: [u8; 32],
}

/// A message ready to be written: a control frame, and slices of the bulk data behind it.
#[derive(Clone, Debug)]
pub struct EncodedMessage {
    control: Vec<u8>,
    bulk: Bulk,
    full_chunk: [u8; FRAME_HEAD_BYTES],
    last_chunk: [u8; FRAME_HEAD_BYTES],
}

#[derive(Clone, Debug)]
enum Bulk {
    None,
    Payload(Payload),
    Plan(Vec<u8>),
}

/// Encodes one message. A payload is shared, not copied.
///
/// ```
/// use mingle_protocol::{Message, wire};
/// let encoded = wire::encode(Message::PlanGet { hash: None });
/// let bytes: Vec<u8> = encoded.slices().flatten().copied().collect();
/// let mut reader = wire::MessageReader::new(0);
/// assert_eq!(reader.feed(&bytes).unwrap(), [Message::PlanGet { hash: None }]);
/// ```
pub fn encode(message: Message) -> EncodedMessage {
    match message {
        Message::Hello(hello) => EncodedMessage::new(Kind::Hello, &hello, Bulk::None),
        Message::Ack(ack) => EncodedMessage::new(Kind::Ack, &ack, Bulk::None),
        Message::Parcel(parcel) => {
            let frame = ParcelFrame {
                header: parcel.header,
                codec: parcel.payload.codec(),
                payload_bytes: parcel.payload.bytes().len() as u64,
                hash: *parcel.payload.hash(),
            };
            EncodedMessage::new(Kind::Parcel, &frame, Bulk::Payload(parcel.payload))
        }
        Message::Left(certificate) => EncodedMessage::new(Kind::Left, &certificate, Bulk::None),
        Message::Collective(envelope) => EncodedMessage::new(Kind::Collective, &envelope, Bulk::None),
        Message::PlanGet { hash } => EncodedMessage::new(Kind::PlanGet, &hash, Bulk::None),
        Message::PlanData(plan) => {
            let frame = PlanFrame { bytes: plan.len() as u64, hash: *blake3::hash(&plan).as_bytes() };
            EncodedMessage::new(Kind::Plan, &frame, Bulk::Plan(plan))
        }
    }
}

impl EncodedMessage {
    fn new(kind: Kind, body: &impl Serialize, bulk: Bulk) -> Self {
        let control = control_frame(kind, body);
        let last = bulk.bytes().len() % MAX_CHUNK_BYTES;
        Self {
            control,
            bulk,
            full_chunk: Head { kind: Kind::Chunk, bytes: MAX_CHUNK_BYTES }.encode(),
            last_chunk: Head { kind: Kind::Chunk, bytes: last }.encode(),
        }
    }

    /// The bytes to write, in order. Another control message may be written before any chunk's head, that is between
    /// any two [`frames`](Self::frames).
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> {
        self.frames().flat_map(|(head, body)| [head, body]).filter(|slice| !slice.is_empty())
    }

    /// The frames to write, in order: what comes first and, for a chunk, the bulk bytes after it.
    pub fn frames(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let chunks = self.bulk.bytes().chunks(MAX_CHUNK_BYTES).map(|chunk| {
            let head = if chunk.len() == MAX_CHUNK_BYTES { &self.full_chunk } else { &self.last_chunk };
            (head.as_slice(), chunk)
        });
        std::iter::once((self.control.as_slice(), [].as_slice())).chain(chunks)
    }

    /// How many bytes there are in all.
    pub fn total_bytes(&self) -> usize {
        let bulk = self.bulk.bytes().len();
        self.control.len() + bulk + bulk.div_ceil(MAX_CHUNK_BYTES) * FRAME_HEAD_BYTES
    }
}

impl Bulk {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::None => &[],
            Self::Payload(payload) => payload.bytes(),
            Self::Plan(plan) => plan,
        }
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
