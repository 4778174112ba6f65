//! Messages of the collectives as bytes.
//!
//! ```text
//!   share     round, mass (varints)      values: f64 LE each
//!   flood     round (varint)             values: f64 LE and owner u32 LE each
//!   exchange                             values: f64 LE each
//!   partial   is whole (0 or 1)          values: f64 LE each
//!   pull      source (varint)            values: f64 LE each
//!   modular   is whole (0 or 1)          words: u64 LE each
//!   sequence  operation, kind (varints)  a flood value (0), a share (1), an exchange message (2), a partial (3), a pull (4) or a
//!                                        modular partial (5), of any number of values up to the dimension
//!   frame     acknowledged, number or nothing (varints)                       the message, if it has a number
//! ```
//!
//! Nothing is decoded without knowing how long it may be: vectors have the dimension that the receiver expects, which
//! is compared before anything is allocated.

use serde::Deserialize;
use thiserror::Error;

use super::all_reduce::Partial;
use super::exchange::ExchangeMessage;
use super::extremum::FloodValue;
use super::mixing::Share;
use super::modular_sum::ModularPartial;
use super::pull::PullMessage;
use super::reliable_channel::Frame;
use super::sequence::{OperationMessage, SequenceMessage};
use crate::mass::Mass;
use crate::schedule::NodeId;

const OWNED_BYTES: usize = 12;

/// The sizes that a receiver expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeLimits {
    /// Nodes in the plan: every id is below.
    pub nodes: usize,
    /// Values in a share, an exchange message or a flood value, exactly; in a message of a sequence the most.
    pub dimension: usize,
}

/// A message that has an encoding.
///
/// ```
/// use mingle_protocol::collective::{MessageEncoding, MessageError, Share, SizeLimits};
/// use mingle_protocol::Mass;
/// let share = Share { round: 3, mass: Mass::ONE, values: vec![0.5, -1.0] };
/// let limits = SizeLimits { nodes: 8, dimension: 2 };
/// assert_eq!(Share::decode(&share.encode(), &limits), Ok(share.clone()));
/// let others = SizeLimits { dimension: 3, ..limits };
/// assert_eq!(Share::decode(&share.encode(), &others), Err(MessageError::Length { bytes: 16, expected: 24 }));
/// ```
pub trait MessageEncoding: Sized {
    /// Appends the encoding of the message to `bytes`.
    fn encode_into(&self, bytes: &mut Vec<u8>);

    /// The encoding of the message.
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encode_into(&mut bytes);
        bytes
    }

    /// Decodes the message that all of `bytes` are.
    ///
    /// # Errors
    /// [`MessageError`] when they are no message, or one beyond the limits.
    fn decode(bytes: &[u8], limits: &SizeLimits) -> Result<Self, MessageError>;
}

/// A reason why bytes are no message of a collective.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum MessageError {
    /// The numbers in front cannot be read.
    #[error("the head of a message cannot be read")]
    Head,
    /// The values are too few or too many.
    #[error("the values take {bytes} bytes where {expected} are expected")]
    Length { bytes: usize, expected: usize },
    /// A value is not a number, or infinite.
    #[error("value {index} is not finite")]
    NotFinite { index: usize },
    /// An id that no node has.
    #[error("a message names node {id}, but the plan has nodes 0..{nodes}")]
    UnknownNode { id: NodeId, nodes: usize },
    /// An acknowledgement alone with something behind it, or a message without its number.
    #[error("a frame without a message has {bytes} bytes behind its head, or its message has the number 0")]
    Frame { bytes: usize },
}

impl MessageEncoding for Share {
    fn encode_into(&self, bytes: &mut Vec<u8>) {
        put_head(&(self.round, self.mass), bytes);
        put_values(&self.values, bytes);
    }

    fn decode(bytes: &[u8], limits: &SizeLimits) -> Result<Self, MessageError> {
        let ((round, mass), rest) = split_head::<(u64, Mass)>(bytes)?;
        Ok(Self { round, mass, values: decode_values(rest, limits)? })
    }
}

impl MessageEncoding for ExchangeMessage {
    fn encode_into(&self, bytes: &mut Vec<u8>) {
        put_values(&self.values, bytes);
    }

    fn decode(bytes: &[u8], limits: &SizeLimits) -> Result<Self, MessageError> {
        Ok(Self { values: decode_values(bytes, limits)? })
    }
}

fn put_values(values: &[f64], bytes: &mut Vec<u8>) {
    bytes.reserve_exact(8 * values.len());
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
}

fn decode_values<Values>(bytes: &[u8], limits: &SizeLimits) -> Result<Values, MessageError>
where
    Values: FromIterator<f64> + std::ops::Deref<Target = [f64]>,
{
    check_length(bytes, 8, limits.dimension)?;
    let values: Values = bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
    match values.iter().position(|value| !value.is_finite()) {
        Some(index) => Err(MessageError::NotFinite { index }),
        None => Ok(values),
    }
}

const EXTREMUM: u8 = 0;
const SHARE: u8 = 1;
const EXCHANGE: u8 = 2;
const PARTIAL: u8 = 3;
const PULL: u8 = 4;
const MODULAR: u8 = 5;

impl MessageEncoding for PullMessage {
    fn encode_into(&self, bytes: &mut Vec<u8>) {
        put_head(&self.source, bytes);
        put_values(&self.values, bytes);
    }

    fn decode(bytes: &[u8], limits: &SizeLimits) -> Result<Self, MessageError> {
        let (source, rest) = split_head(bytes)?;
        check_id(source, limits)?;
        Ok(Self { source, values: decode_values(rest, limits)? })
    }
}

impl MessageEncoding for Partial {
    fn encode_into(&self, bytes: &mut Vec<u8>) {
        put_head(&self.is_whole, bytes);
        put_values(&self.values, bytes);
    }

    fn decode(bytes: &[u8], limits: &SizeLimits) -> Result<Self, MessageError> {
        let (is_whole, rest) = split_head(bytes)?;
        Ok(Self { is_whole, values: decode_values(rest, limits)? })
    }
}

impl MessageEncoding for ModularPartial {
    fn encode_into(&self, bytes: &mut Vec<u8>) {
        put_head(&self.is_whole, bytes);
        bytes.reserve_exact(8 * self.words.len());
        self.words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    }

    fn decode(bytes: &[u8], limits: &SizeLimits) -> Result<Self, MessageError> {
        let (is_whole, rest) = split_head(bytes)?;
        check_length(rest, 8, limits.dimension)?;
        Ok(Self { is_whole, words: rest.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect() })
    }
}

impl MessageEncoding for SequenceMessage {
    fn encode_into(&self, bytes: &mut Vec<u8>) {
        let (kind, message): (u8, &dyn Body) = match &self.payload {
            OperationMessage::Extremum(value) => (EXTREMUM, value),
            OperationMessage::Share(share) => (SHARE, share),
            OperationMessage::Exchange(message) => (EXCHANGE, message),
            OperationMessage::Partial(partial) => (PARTIAL, partial),
            OperationMessage::Pull(message) => (PULL, message),
            OperationMessage::ModularPartial(partial) => (MODULAR, partial),
        };
        put_head(&(self.operation, kind), bytes);
        message.put(bytes);
    }

    /// The number of values differs from operation to operation: the collective of the operation compares it.
    fn decode(bytes: &[u8], limits: &SizeLimits) -> Result<Self, MessageError> {
        let ((operation, kind), body) = split_head::<(u64, u8)>(bytes)?;
        let payload = match kind {
            EXTREMUM => {
                let values = split_head::<u64>(body)?.1;
                OperationMessage::Extremum(FloodValue::decode(body, &fitting(values, OWNED_BYTES, limits)?)?)
            }
            SHARE => {
                let values = split_head::<(u64, Mass)>(body)?.1;
                OperationMessage::Share(Share::decode(body, &fitting(values, 8, limits)?)?)
            }
            EXCHANGE => OperationMessage::Exchange(ExchangeMessage::decode(body, &fitting(body, 8, limits)?)?),
            PARTIAL => {
                let values = split_head::<bool>(body)?.1;
                OperationMessage::Partial(Partial::decode(body, &fitting(values, 8, limits)?)?)
            }
            PULL => {
                let values = split_head::<NodeId>(body)?.1;
                OperationMessage::Pull(PullMessage::decode(body, &fitting(values, 8, limits)?)?)
            }
            MODULAR => {
                let words = split_head::<bool>(body)?.1;
                let partial = ModularPartial::decode(body, &fitting(words, 8, limits)?)?;
                OperationMessage::ModularPartial(partial)
            }
            _ => return Err(MessageError::Head),
        };
        Ok(Self { operation, payload })
    }
}

/// The limits with the dimension that `values` have, unless it is larger than the limit.
fn fitting(values: &[u8], each: usize, limits: &SizeLimits) -> Result<SizeLimits, MessageError> {
    let dimension = values.len() / each;
    if dimension > limits.dimension {
        return Err(MessageError::Length { bytes: values.len(), expected: limits.dimension.saturating_mul(each) });
    }
    Ok(SizeLimits { dimension, ..*limits })
}

impl MessageEncoding for FloodValue {
    fn encode_into(&self, bytes: &mut Vec<u8>) {
        put_head(&self.round, bytes);
        bytes.reserve_exact(OWNED_BYTES * self.values.len());
        for (value, owner) in &self.values {
            bytes.extend(value.to_le_bytes());
            bytes.extend(owner.0.to_le_bytes());
        }
    }

    fn decode(bytes: &[u8], limits: &SizeLimits) -> Result<Self, MessageError> {
        let (round, rest) = split_head(bytes)?;
        check_length(rest, OWNED_BYTES, limits.dimension)?;
        let mut values = Vec::with_capacity(limits.dimension);
        for (index, &[a, b, c, d, e, f, g, h, i, j, k, l]) in rest.as_chunks().0.iter().enumerate() {
            let value = f64::from_le_bytes([a, b, c, d, e, f, g, h]);
            let owner = NodeId(u32::from_le_bytes([i, j, k, l]));
            if !value.is_finite() {
                return Err(MessageError::NotFinite { index });
            }
            check_id(owner, limits)?;
            values.push((value, owner));
        }
        Ok(Self { round, values })
    }
}

impl<M: MessageEncoding> MessageEncoding for Frame<M> {
    fn encode_into(&self, bytes: &mut Vec<u8>) {
        put_head(&(self.acknowledged, self.message.as_ref().map(|(number, _)| *number)), bytes);
        if let Some((_, message)) = &self.message {
            message.encode_into(bytes);
        }
    }

    fn decode(bytes: &[u8], limits: &SizeLimits) -> Result<Self, MessageError> {
        let ((acknowledged, number), body) = split_head::<(u64, Option<u64>)>(bytes)?;
        let message = match number {
            Some(number) if number > 0 => Some((number, M::decode(body, limits)?)),
            None if body.is_empty() => None,
            _ => return Err(MessageError::Frame { bytes: body.len() }),
        };
        Ok(Self { acknowledged, message })
    }
}

/// Writes the numbers in front of a message.
fn put_head(numbers: &impl serde::Serialize, bytes: &mut Vec<u8>) {
    // Numbers alone: growing a vector is all that encoding them can do.
    *bytes = postcard::to_extend(numbers, std::mem::take(bytes)).unwrap_or_default();
}

/// A message of any kind, to be written.
trait Body {
    fn put(&self, bytes: &mut Vec<u8>);
}

impl<Message: MessageEncoding> Body for Message {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.encode_into(bytes);
    }
}

fn split_head<'a, Head: Deserialize<'a>>(bytes: &'a [u8]) -> Result<(Head, &'a [u8]), MessageError> {
    postcard::take_from_bytes(bytes).map_err(|_| MessageError::Head)
}

fn check_length(bytes: &[u8], each: usize, count: usize) -> Result<(), MessageError> {
    let expected = count.saturating_mul(each);
    if bytes.len() == expected { Ok(()) } else { Err(MessageError::Length { bytes: bytes.len(), expected }) }
}

fn check_id(id: NodeId, limits: &SizeLimits) -> Result<(), MessageError> {
    if id.index() < limits.nodes { Ok(()) } else { Err(MessageError::UnknownNode { id, nodes: limits.nodes }) }
}
