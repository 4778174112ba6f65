//! Words about payloads that sender and receiver exchange on the stream of their link.

use serde::{Deserialize, Serialize};

use crate::seal::SECRET_BYTES;

/// Longest list of blocks in a word: those of an object of 2^31 bytes in symbols of half the default length.
const MAX_BLOCKS: usize = 4_096;

/// The name of an object: the number of the key, and its number under that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ObjectName {
    /// Number of the key.
    pub key: u32,
    /// Number of the object.
    pub object: u32,
}

impl ObjectName {
    /// The name as one number.
    pub fn to_number(self) -> u64 {
        u64::from(self.key) << 32 | u64::from(self.object)
    }

    /// The name that a number stands for.
    pub fn from_number(number: u64) -> Self {
        Self { key: (number >> 32) as u32, object: number as u32 }
    }
}

/// A word about payloads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Word {
    /// The sender's present key, and the length of its symbols.
    Key {
        /// The secret of the key.
        secret: [u8; SECRET_BYTES],
        /// Bytes of a symbol.
        symbol_bytes: u16,
    },
    /// The sender has sent all symbols of a pass, and wants to know what is missing.
    Sent {
        /// The object.
        object: ObjectName,
        /// The pass, counted from 0.
        pass: u16,
        /// `true` if no pass follows: the receiver says that it has the object, or wants it by stream.
        last: bool,
    },
    /// The sender has not forgotten the object: its symbols are still to come.
    Coming {
        /// The object.
        object: ObjectName,
    },
    /// Packets reach the receiver: a probe has come.
    Heard {
        /// Number of the key of the probe.
        key: u32,
        /// Number of the probe.
        probe: u32,
    },
    /// The receiver has the object.
    Got {
        /// The object.
        object: ObjectName,
    },
    /// The receiver lacks symbols.
    Lacks {
        /// The object.
        object: ObjectName,
        /// The pass after which they are missing.
        pass: u16,
        /// Symbols that each block still needs.
        missing: Vec<u16>,
    },
    /// The receiver wants the object by stream.
    Rest {
        /// The object.
        object: ObjectName,
    },
}

impl Word {
    /// The word as bytes.
    pub fn encode(&self) -> Vec<u8> {
        // Numbers, arrays and one list: growing a vector is all that encoding them can do.
        postcard::to_stdvec(self).unwrap_or_default()
    }

    /// The word that the bytes are, all of them.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (word, rest) = postcard::take_from_bytes(bytes).ok()?;
        let is_bounded = !matches!(&word, Self::Lacks { missing, .. } if missing.len() > MAX_BLOCKS);
        (rest.is_empty() && is_bounded).then_some(word)
    }
}
