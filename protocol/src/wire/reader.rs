//! Bytes to messages, as they arrive.

use serde::de::DeserializeOwned;

use super::WireError;
use super::assembler::ParcelAssembler;
use super::frame::{FRAME_HEAD_BYTES, Head, Kind, MAX_PLAN_BYTES};
use super::writer::{ParcelFrame, PlanFrame};
use crate::codec::BufferPool;
use crate::message::{Hello, MAX_DESCRIPTION, Message};
use crate::payload::MAX_DIMENSION;

/// Decodes the bytes of one stream into messages.
///
/// Holds at most one control frame and one payload of the expected dimension (or one plan). The memory of a parcel that
/// nobody reads any more serves for the next one. After an error the stream
/// is beyond repair: drop the reader with it.
#[derive(Debug)]
pub struct MessageReader {
    dimension: usize,
    head: Vec<u8>,
    frame: Option<Head>,
    body: Vec<u8>,
    chunk_left: usize,
    bulk: Option<Incoming>,
    /// The buffer of the parcel before, for the next one.
    pool: BufferPool<u8>,
}

/// Bulk data whose chunks are still arriving.
#[derive(Debug)]
enum Incoming {
    Parcel(Box<ParcelAssembler>),
    Plan { bytes: Vec<u8>, announced: usize, hash: [u8; 32] },
}

impl MessageReader {
    /// A reader for a stream whose parcels have `dimension` coordinates, at most [`MAX_DIMENSION`]; 0 refuses all
    /// parcels.
    pub fn new(dimension: usize) -> Self {
        Self {
            dimension: dimension.min(MAX_DIMENSION),
            head: Vec::new(),
            frame: None,
            body: Vec::new(),
            chunk_left: 0,
            bulk: None,
            pool: BufferPool::new(1),
        }
    }

    /// Takes the bytes that arrived, in pieces of any size, and returns the messages they complete.
    ///
    /// # Errors
    /// [`WireError`]; messages completed by earlier calls are not affected.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<Vec<Message>, WireError> {
        let mut messages = Vec::new();
        while !bytes.is_empty() {
            match self.frame {
                None => self.take_head(&mut bytes)?,
                Some(Head { kind: Kind::Chunk, .. }) => self.take_chunk(&mut bytes, &mut messages)?,
                Some(head) => take(&mut bytes, head.bytes, &mut self.body),
            }
            if let Some(head) = self.frame
                && head.kind != Kind::Chunk
                && self.body.len() == head.bytes
            {
                self.frame = None;
                let body = std::mem::take(&mut self.body);
                messages.extend(self.control(head.kind, &body)?);
            }
        }
        Ok(messages)
    }

    /// Whether a part of a parcel or plan has come, and not yet all of it.
    pub fn is_receiving(&self) -> bool {
        self.bulk.is_some()
    }

    fn take_head(&mut self, bytes: &mut &[u8]) -> Result<(), WireError> {
        take(bytes, FRAME_HEAD_BYTES, &mut self.head);
        if let Ok(head) = <[u8; FRAME_HEAD_BYTES]>::try_from(self.head.as_slice()) {
            self.head.clear();
            let head = Head::decode(head)?;
            if head.kind == Kind::Chunk {
                if head.bytes == 0 || self.bulk.is_none() {
                    return Err(WireError::UnexpectedChunk);
                }
                self.chunk_left = head.bytes;
            }
            self.frame = Some(head);
        }
        Ok(())
    }

    fn take_chunk(&mut self, bytes: &mut &[u8], messages: &mut Vec<Message>) -> Result<(), WireError> {
        let (piece, rest) = bytes.split_at(bytes.len().min(self.chunk_left));
        *bytes = rest;
        self.chunk_left -= piece.len();
        if self.chunk_left == 0 {
            self.frame = None;
        }
        let Some(incoming) = &mut self.bulk else {
            return Err(WireError::UnexpectedChunk);
        };
        incoming.push(piece, &mut self.pool)?;
        if incoming.missing() == 0
            && self.chunk_left == 0
            && let Some(incoming) = self.bulk.take()
        {
            messages.push(incoming.finish(&mut self.pool)?);
        }
        Ok(())
    }

    /// A message, or `None` for the header of bulk data.
    fn control(&mut self, kind: Kind, body: &[u8]) -> Result<Option<Message>, WireError> {
        match kind {
            Kind::Hello => hello(body).map(|hello| Some(Message::Hello(hello))),
            Kind::Ack => decode(kind, body).map(|ack| Some(Message::Ack(ack))),
            Kind::Collective => decode(kind, body).map(|envelope| Some(Message::Collective(envelope))),
            Kind::Left => decode(kind, body).map(|certificate| Some(Message::Left(certificate))),
            Kind::PlanGet => decode(kind, body).map(|hash| Some(Message::PlanGet { hash })),
            Kind::Parcel => {
                let frame: ParcelFrame = decode(kind, body)?;
                self.announce(Incoming::Parcel(Box::new(ParcelAssembler::new(&frame, self.dimension)?)))
            }
            Kind::Plan => {
                let frame: PlanFrame = decode(kind, body)?;
                let announced = usize::try_from(frame.bytes).unwrap_or(usize::MAX);
                if announced == 0 || announced > MAX_PLAN_BYTES {
                    return Err(WireError::PlanSize { bytes: frame.bytes });
                }
                self.announce(Incoming::Plan { bytes: Vec::new(), announced, hash: frame.hash })
            }
            Kind::Chunk => Err(WireError::UnexpectedChunk),
        }
    }

    fn announce(&mut self, incoming: Incoming) -> Result<Option<Message>, WireError> {
        if let Some(unfinished) = &self.bulk {
            return Err(WireError::Interleaved { missing: unfinished.missing() });
        }
        self.bulk = Some(incoming);
        Ok(None)
    }
}

impl Incoming {
    fn missing(&self) -> usize {
        match self {
            Self::Parcel(assembler) => assembler.missing(),
            Self::Plan { bytes, announced, .. } => announced - bytes.len(),
        }
    }

    fn push(&mut self, piece: &[u8], pool: &mut BufferPool<u8>) -> Result<(), WireError> {
        let missing = self.missing();
        match self {
            Self::Parcel(assembler) => assembler.push(piece, pool),
            Self::Plan { .. } if piece.len() > missing => {
                Err(WireError::TooManyBytes { excess: piece.len() - missing })
            }
            Self::Plan { bytes, .. } => {
                bytes.extend_from_slice(piece);
                Ok(())
            }
        }
    }

    fn finish(self, pool: &mut BufferPool<u8>) -> Result<Message, WireError> {
        match self {
            Self::Parcel(assembler) => assembler.finish(pool).map(Message::Parcel),
            Self::Plan { bytes, hash, .. } if *blake3::hash(&bytes).as_bytes() == hash => Ok(Message::PlanData(bytes)),
            Self::Plan { .. } => Err(WireError::PlanHash),
        }
    }
}

/// Moves bytes from the front of `bytes` until `target` has `length` of them.
fn take(bytes: &mut &[u8], length: usize, target: &mut Vec<u8>) {
    let wanted = length.saturating_sub(target.len()).min(bytes.len());
    let (front, rest) = bytes.split_at(wanted);
    target.extend_from_slice(front);
    *bytes = rest;
}

fn decode<T: DeserializeOwned>(kind: Kind, body: &[u8]) -> Result<T, WireError> {
    let malformed = |reason: String| WireError::Malformed { kind: kind as u8, reason };
    let (value, rest) = postcard::take_from_bytes(body).map_err(|error| malformed(error.to_string()))?;
    if rest.is_empty() { Ok(value) } else { Err(malformed(format!("{} bytes are left over", rest.len()))) }
}

fn hello(body: &[u8]) -> Result<Box<Hello>, WireError> {
    let hello: Box<Hello> = decode(Kind::Hello, body)?;
    if hello.task.description.len() > MAX_DESCRIPTION {
        let reason = format!("the task description has more than {MAX_DESCRIPTION} bytes");
        return Err(WireError::Malformed { kind: Kind::Hello as u8, reason });
    }
    Ok(hello)
}
