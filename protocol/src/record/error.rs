//! Errors of bytes that are not a record, and of records that cannot be written.

use thiserror::Error;

use super::limits::{FORMAT_VERSION, MAX_BOOKS_BYTES};
use crate::payload::{MAX_DIMENSION, PayloadError};
use crate::schedule::{MAX_NODES, NodeId};
use crate::window::WINDOW;

/// A reason why bytes are not a record, or a record cannot be written.
///
/// [`Empty`](Self::Empty) is an answer rather than a fault: a slot that was never used. Every other one means that
/// nothing in the bytes can be relied on.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum RecordError {
    /// Nothing but zeros, as in a slot before its first use.
    #[error("nothing has been written here")]
    Empty,
    /// Bytes that do not begin as records do.
    #[error("this does not begin as a record does")]
    NotARecord,
    /// A record of another version of the format.
    #[error(
        "this is a record in format {found}; this version writes format {FORMAT_VERSION}, and reads the three before too"
    )]
    Version { found: u32 },
    /// Fewer bytes than a record of this shape takes.
    #[error("{bytes} bytes are here where the record takes {needed}")]
    Cut { bytes: u64, needed: u64 },
    /// The content does not fit the checksum: a write was cut off, or the disk changed it.
    #[error("the checksum is wrong: the write was cut off, or the disk is damaged")]
    Torn,
    /// The difference of a numerator to what follows from its payload cannot be read.
    #[error("the numerator cannot be read from coordinate {index} on")]
    Remainder {
        /// The first coordinate of the part that cannot be read.
        index: usize,
    },
    /// A field of the head that no record has.
    #[error("the head says {field} = {value}, which no record does")]
    Head { field: &'static str, value: u32 },
    /// The payload is a difference to a vector that no sender uses as a reference, or that is not there.
    #[error("the payload is a difference to a vector that cannot be a reference")]
    UnfitBase,
    /// Books longer than they may be.
    #[error("the books take {bytes} bytes; at most {MAX_BOOKS_BYTES}, and the state of the host, can be stored")]
    BooksTooLong { bytes: u64 },
    /// Bytes that are no books.
    #[error("the books cannot be decoded: {reason}")]
    Malformed { reason: String },
    /// An index that no plan has.
    #[error("node {id} is named, but plans have at most {MAX_NODES} nodes")]
    NotANode { id: NodeId },
    /// A link from the node to itself.
    #[error("node {id} has a link to itself")]
    SelfLink { id: NodeId },
    /// More of the host's bytes than fit.
    #[error("the host wants to keep {bytes} bytes; at most {most} can be stored")]
    HostTooLong {
        /// Their number.
        bytes: usize,
        /// The most bytes that it may keep.
        most: usize,
    },
    /// More mass in one place than all nodes can bring.
    #[error("a mass of {units} units is more than {MAX_NODES} nodes can bring")]
    Overweight { units: u64 },
    /// A receiver that applied less than nothing.
    #[error("the link from node {from} starts after parcel {base}, but its parcels are applied up to {applied}")]
    AppliedBeforeBase {
        /// The sender.
        from: NodeId,
        /// The number after which the link starts.
        base: u64,
        /// The number up to which its parcels are applied.
        applied: u64,
    },
    /// Marks on more parcels than a window has.
    #[error("the link from node {from} marks more refused parcels than a window has")]
    Rejections { from: NodeId },
    /// Certificates out of order, or of another generation.
    #[error("the leave certificate of node {leaver} is of another generation, out of order, or not sorted")]
    Certificate { leaver: NodeId },
    /// A sender whose numbers are not base <= acked < next.
    #[error("the link to node {to} starts after parcel {base}, is confirmed up to {acked} and goes on with {next_seq}")]
    AckedOutOfRange {
        /// The receiver.
        to: NodeId,
        /// The number after which the link starts.
        base: u64,
        /// The number up to which its parcels are confirmed.
        acked: u64,
        /// The number of the next parcel.
        next_seq: u64,
    },
    /// An outbox that does not hold exactly the parcels sent and not confirmed.
    #[error("the outbox to node {to} holds {parcels} parcels where {expected} are not confirmed")]
    OutboxLength {
        /// The receiver.
        to: NodeId,
        /// Parcels in the outbox.
        parcels: usize,
        /// Parcels between the confirmed and the next.
        expected: u64,
    },
    /// More parcels outstanding than a link may have.
    #[error("the outbox to node {to} holds {parcels} parcels; a link has at most {WINDOW} outstanding")]
    WindowExceeded { to: NodeId, parcels: usize },
    /// An outbox whose numbers have a gap.
    #[error("the outbox to node {to} holds parcel {seq} where {expected} is due")]
    OutboxGap { to: NodeId, seq: u64, expected: u64 },
    /// A parcel of a step that does not lie between that of the parcel before it and that of the record.
    #[error("parcel {seq} to node {to} is of step {step}, which cannot follow the step before it or is yet to come")]
    OutboxStep { to: NodeId, seq: u64, step: u64 },
    /// A parcel whose payload would be in a record that does not lie between that of the parcel before it and this one.
    #[error("parcel {seq} to node {to} names record {record}, which cannot follow the one before it or is yet to come")]
    OutboxRecord { to: NodeId, seq: u64, record: u64 },
    /// Parcels that name this record, which has no payload.
    #[error("parcel {seq} to node {to} names this record, {record}, but it holds no payload")]
    NoPayload { to: NodeId, seq: u64, record: u64 },
    /// More coordinates than a vector may have.
    #[error("{dimension} coordinates are more than the {MAX_DIMENSION} a vector may have")]
    TooManyCoordinates { dimension: usize },
    /// A vector that is not as long as the numerator.
    #[error("the {vector} has {found} coordinates, the numerator {dimension}")]
    Dimension {
        /// The name of the vector.
        vector: &'static str,
        /// The number of its coordinates.
        found: usize,
        /// The number of coordinates of the numerator.
        dimension: usize,
    },
    /// A coordinate that is infinite or not a number.
    #[error("coordinate {index} of the {vector} is not a finite number")]
    NotFinite { vector: &'static str, index: usize },
    /// A payload that cannot be one.
    #[error("the payload cannot be used: {0}")]
    Payload(#[from] PayloadError),
}
