//! Decoding of messages from bytes as they arrive.

use serde::de::DeserializeOwned;

use super::WireError;
use super::assembler::ParcelAssembler;
use super::frame::{FRAME_HEAD_BYTES, Head, Kind};
use super::writer::ParcelFrame;
use crate::codec::BufferPool;
use crate::message::{Hello, MAX_DESCRIPTION, Message, PROTOCOL_VERSION};
use crate::payload::MAX_DIMENSION;

/// Decodes the bytes of one stream into messages.
///
/// Holds at most one control frame and one payload of the expected dimension. The memory of a parcel is used again for
/// the next one, once no reader is left. After an error the stream is beyond repair: drop the reader with it.
#[derive(Debug)]
pub struct MessageReader {
    dimension: usize,
    head: Vec<u8>,
    frame: Option<Head>,
    body: Vec<u8>,
    chunk_left: usize,
    /// The parcel whose chunks are still arriving.
    parcel: Option<Box<ParcelAssembler>>,
    /// `true` if payloads may travel elsewhere.
    takes_elsewhere: bool,
    /// The name under which the payload of that parcel travels elsewhere, until its first chunk comes.
    elsewhere: Option<u64>,
    /// Bodies of frames about payloads that travel elsewhere.
    asides: Vec<Vec<u8>>,
    /// The buffer of the parcel before, for the next one.
    pool: BufferPool<u8>,
}

/// A message of which a part has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfinished {
    /// A parcel.
    Parcel {
        /// Bytes of its payload that are there.
        bytes: usize,
    },
    /// The frame of another message, or the head of one.
    Frame {
        /// Bytes of it that are there.
        bytes: usize,
    },
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
            parcel: None,
            takes_elsewhere: false,
            elsewhere: None,
            asides: Vec::new(),
            pool: BufferPool::new(1),
        }
    }

    /// A reader for a stream on which the payload of a parcel may be announced to travel elsewhere.
    #[must_use]
    pub fn with_payloads_elsewhere(self) -> Self {
        Self { takes_elsewhere: true, ..self }
    }

    /// The payload that was announced to travel elsewhere: its name there, and its length. `None` once its chunks come
    /// on the stream after all.
    pub fn awaited(&self) -> Option<(u64, usize)> {
        let parcel = self.parcel.as_ref()?;
        Some((self.elsewhere?, parcel.payload_bytes()))
    }

    /// Takes the awaited payload as it came elsewhere. `None` if it is not the announced one, by its length, its
    /// numbers or its hash: then it is still awaited.
    pub fn supply(&mut self, bytes: &[u8]) -> Option<Message> {
        self.elsewhere?;
        let parcel = self.parcel.as_mut()?;
        if bytes.len() != parcel.payload_bytes() || parcel.push(bytes, &mut self.pool).is_err() || !parcel.matches() {
            parcel.restart();
            return None;
        }
        self.elsewhere = None;
        self.parcel.take()?.finish(&mut self.pool).ok().map(Message::Parcel)
    }

    /// Returns `true` if frames about payloads elsewhere have come that are not taken.
    pub fn has_asides(&self) -> bool {
        !self.asides.is_empty()
    }

    /// Takes the bodies of the frames about payloads elsewhere that have come, in order.
    pub fn take_asides(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.asides)
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

    /// Returns `true` if a part of a parcel has come, and not yet all of it.
    pub fn is_receiving(&self) -> bool {
        self.parcel.is_some()
    }

    /// The message that is incomplete, if any. While that is a parcel, frames of other messages may come between its
    /// chunks.
    pub fn unfinished(&self) -> Option<Unfinished> {
        if let Some(parcel) = self.parcel.as_ref().filter(|_| self.elsewhere.is_none()) {
            return Some(Unfinished::Parcel { bytes: parcel.filled() });
        }
        let bytes = self.head.len() + self.body.len();
        (bytes > 0 || self.frame.is_some()).then_some(Unfinished::Frame { bytes })
    }

    fn take_head(&mut self, bytes: &mut &[u8]) -> Result<(), WireError> {
        take(bytes, FRAME_HEAD_BYTES, &mut self.head);
        if let Ok(head) = <[u8; FRAME_HEAD_BYTES]>::try_from(self.head.as_slice()) {
            self.head.clear();
            let head = Head::decode(head)?;
            if head.kind.is_about_payloads_elsewhere() && !self.takes_elsewhere {
                return Err(WireError::UnknownKind { kind: head.kind as u8 });
            }
            if head.kind == Kind::Chunk {
                if head.bytes == 0 || self.parcel.is_none() {
                    return Err(WireError::UnexpectedChunk);
                }
                self.chunk_left = head.bytes;
                self.elsewhere = None;
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
        let Some(parcel) = &mut self.parcel else {
            return Err(WireError::UnexpectedChunk);
        };
        parcel.push(piece, &mut self.pool)?;
        if parcel.missing() == 0
            && self.chunk_left == 0
            && let Some(parcel) = self.parcel.take()
        {
            messages.push(Message::Parcel(parcel.finish(&mut self.pool)?));
        }
        Ok(())
    }

    /// A message, or `None` for the header of a parcel.
    fn control(&mut self, kind: Kind, body: &[u8]) -> Result<Option<Message>, WireError> {
        match kind {
            Kind::Hello => hello(body).map(|hello| Some(Message::Hello(hello))),
            Kind::Ack => decode(kind, body).map(|ack| Some(Message::Ack(ack))),
            Kind::Collective => decode(kind, body).map(|envelope| Some(Message::Collective(envelope))),
            Kind::Left => decode(kind, body).map(|certificate| Some(Message::Left(certificate))),
            Kind::Process => decode(kind, body).map(|statement| Some(Message::Process(statement))),
            Kind::Parcel => {
                let frame: ParcelFrame = decode(kind, body)?;
                let assembler = ParcelAssembler::new(&frame, self.dimension)?;
                if let Some(unfinished) = &self.parcel {
                    return Err(WireError::Interleaved { missing: unfinished.missing() });
                }
                self.parcel = Some(Box::new(assembler));
                Ok(None)
            }
            Kind::Elsewhere => {
                let name = decode(kind, body)?;
                if self.parcel.as_ref().is_none_or(|parcel| parcel.filled() > 0) || self.elsewhere.is_some() {
                    return Err(WireError::UnexpectedChunk);
                }
                self.elsewhere = Some(name);
                Ok(None)
            }
            Kind::Aside => {
                self.asides.push(body.to_vec());
                Ok(None)
            }
            Kind::Chunk => Err(WireError::UnexpectedChunk),
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
    // The layout of the rest is that of the version.
    if let Ok((version, _)) = postcard::take_from_bytes::<u16>(body)
        && version != PROTOCOL_VERSION
    {
        return Ok(Box::new(Hello::of_version(version)));
    }
    let hello: Box<Hello> = decode(Kind::Hello, body)?;
    if hello.task.description.len() > MAX_DESCRIPTION {
        let reason = format!("the task description has more than {MAX_DESCRIPTION} bytes");
        return Err(WireError::Malformed { kind: Kind::Hello as u8, reason });
    }
    Ok(hello)
}
