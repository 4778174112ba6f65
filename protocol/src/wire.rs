//! The wire format: encoding and decoding of messages.
//!
//! ```text
//!   frame    length: u32 LE (of the body)   kind: u8   body
//!   control  body = postcard, at most 64 KiB (a leave certificate or a message of a collective 1 MiB), nothing after it
//!   chunk    body = raw bytes, at most 256 KiB: the next piece of the parcel announced last
//! ```
//!
//! Between neighbours whose payloads may travel elsewhere, such as by multicast, there are two more kinds of frames:
//!
//! ```text
//!   elsewhere  body = postcard u64: the payload of the header before travels elsewhere, under this name
//!   aside      body = at most 64 KiB about such payloads, opaque here
//! ```
//!
//! A parcel is a header frame and its chunks; other control frames may come between the chunks, so that a heartbeat
//! never waits behind a slow parcel. [`encode`] gives byte slices that borrow the payload, [`MessageReader`] takes
//! bytes as they arrive. Nothing a peer sends can make it panic, or allocate more than one payload of the dimension it
//! was made for.

mod assembler;
mod frame;
mod reader;
mod writer;

pub use frame::{FRAME_HEAD_BYTES, MAX_CERTIFICATE_BYTES, MAX_CHUNK_BYTES, MAX_COLLECTIVE_BYTES, MAX_CONTROL_BYTES};
pub use reader::{MessageReader, Unfinished};
pub use writer::{EncodedMessage, aside, elsewhere, encode};

use thiserror::Error;

/// A reason why bytes are not a message. The stream they came from cannot be trusted any further: drop it.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum WireError {
    /// A frame kind this version does not know.
    #[error("frame kind {kind} is unknown; the peer speaks another version")]
    UnknownKind { kind: u8 },
    /// A frame longer than its kind may be.
    #[error("a frame of kind {kind} announces {bytes} bytes, more than the {limit} it may have")]
    FrameTooLong { kind: u8, bytes: usize, limit: usize },
    /// A control body that does not fit its kind.
    #[error("a control frame of kind {kind} cannot be decoded: {reason}")]
    Malformed { kind: u8, reason: String },
    /// A chunk without a header, or an empty one.
    #[error("a chunk came that no header announced")]
    UnexpectedChunk,
    /// A header while the chunks of another are still due.
    #[error("a header came while {missing} bytes of the previous one are missing")]
    Interleaved { missing: usize },
    /// A payload of the wrong size.
    #[error("a payload of {bytes} bytes is announced where {expected} are expected")]
    PayloadSize { bytes: u64, expected: u64 },
    /// More bytes than announced.
    #[error("a chunk runs {excess} bytes past the end of what was announced")]
    TooManyBytes { excess: usize },
    /// A payload whose content does not fit its header.
    #[error("the payload of parcel {seq} does not match its hash")]
    HashMismatch { seq: u64 },
    /// A payload with a coordinate that is not a usable number.
    #[error("coordinate {index} of parcel {seq} is not a finite number of reasonable size")]
    Unusable { seq: u64, index: usize },
}
