//! Encodings of a parcel's vector that lose nothing of the swarm's sum to rounding.
//!
//! A parcel's mass is *defined* as (w_m, w_m decode(u)): what the receiver adds is computed from the very bytes it got,
//! and the sender subtracts exactly that from its numerator. Whatever a codec rounds away never leaves the sender, goes
//! into its next parcel, and the sum of all x is conserved as well under `int8` as under `f32`.
//!
//! The encoded vector is the ratio u = x / w, never the numerator: a small w would push a 16-bit float into its
//! subnormals. All codecs here are stateless and work on blocks of [`BLOCK`] coordinates:
//!
//! | codec | bits per coordinate | per block | largest error of a coordinate | rounding |
//! | --- | --- | --- | --- | --- |
//! | [`F32`](Codec::F32) | 32 | | none | |
//! | [`F16`](Codec::F16) | 16 | | 2^-11 of itself, 2^-25 below 2^-14 | to nearest, ties to even |
//! | [`Bf16`](Codec::Bf16) | 16 | | 2^-8 of itself | to nearest, ties to even |
//! | [`Int8`](Codec::Int8) | 8 | 32 bits | 1/127 of the block's largest | stochastic: right on average |
//! | [`Int4`](Codec::Int4) | 4 | 32 bits | 1/14 of the block's largest | to nearest |
//! | [`Int3`](Codec::Int3) | 3 | 32 bits | 1/6 of the block's largest | to nearest |
//!
//! The encoded vector is the ratio, or its difference to a vector that sender and receiver both have (see `reference`).
//! Four and three bits are for differences alone. The length of an encoding follows from the dimension, so a receiver
//! knows it before it allocates.

mod bfloat16;
mod buffer_pool;
mod decoding;
mod distance;
mod dither;
mod float16;
mod float32;
mod format;
mod int8;
mod kernel;
mod magnitude;
mod packed;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub(crate) use buffer_pool::{BufferPool, MOST_IDLE_BYTES};
pub(crate) use decoding::{decode, first_flaw, square_of};
pub(crate) use distance::{Distance, distance};
pub(crate) use dither::Dither;
pub(crate) use kernel::{Absorbed, Extent, Unwritten, absorb, add, emit, extent_of, largest_of};

/// Coordinates that are encoded together. A multiple of every vector width, and small enough that a block and all that
/// is kept beside it stay in the innermost cache.
pub(crate) const BLOCK: usize = 256;
/// Largest magnitude of a coordinate. Far beyond any model, far enough from `f32::MAX` that sums of masses times
/// coordinates cannot overflow.
pub const MAX_MAGNITUDE: f32 = 1e30;

/// An encoded vector: bytes, and the vector that they are a difference to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encoded<'a> {
    pub(crate) codec: Codec,
    pub(crate) bytes: &'a [u8],
    /// As long as the vector; empty for zeros.
    pub(crate) base: &'a [f32],
}

/// The largest error of the ratio that remains with a sender, relative to the vector. See [`Codec::suited_to`].
const LARGEST_LEFTOVER: f64 = 1.0 / 16.0;

/// The encoding of a payload's coordinates. The order is that of the numbers on the wire: add at the end.
///
/// ```
/// use mingle_protocol::Codec;
/// assert_eq!(Codec::F16.encoded_len(1000), 2000);
/// assert_eq!(Codec::Int8.encoded_len(1000), 1000 + 4 * 4);
/// assert_eq!("bf16".parse(), Ok(Codec::Bf16));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Codec {
    /// Little-endian IEEE 754 binary32.
    #[default]
    F32,
    /// Little-endian IEEE 754 binary16.
    F16,
    /// Little-endian bfloat16: the upper half of a binary32.
    Bf16,
    /// Blocks of 256 coordinates: a little-endian f32 scale, then one signed byte per coordinate, in units of the
    /// scale.
    Int8,
    /// Blocks of 256 coordinates: a little-endian f32 scale, then four bits per coordinate.
    Int4,
    /// Blocks of 256 coordinates: a little-endian f32 scale, then three bits per coordinate.
    Int3,
}

impl Codec {
    /// Every codec. A receiver accepts them all, whatever it sends itself.
    pub const ALL: [Self; 6] = [Self::F32, Self::F16, Self::Bf16, Self::Int8, Self::Int4, Self::Int3];

    /// The codec's name on command lines and in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::Int8 => "int8",
            Self::Int4 => "int4",
            Self::Int3 => "int3",
        }
    }

    /// The codec's number on the wire.
    pub const fn id(self) -> u8 {
        self as u8
    }

    /// The exact number of bytes that `dimension` coordinates take, whatever their values.
    pub const fn encoded_len(self, dimension: usize) -> usize {
        let blocks = dimension.div_ceil(BLOCK);
        match self {
            Self::F32 => 4 * dimension,
            Self::F16 | Self::Bf16 => 2 * dimension,
            Self::Int8 => dimension + 4 * blocks,
            Self::Int4 | Self::Int3 => blocks * self.unit().0,
        }
    }

    /// The fewest bytes that can be checked by themselves, and the coordinates they hold.
    pub(crate) const fn unit(self) -> (usize, usize) {
        match self {
            Self::F32 => (4, 1),
            Self::F16 | Self::Bf16 => (2, 1),
            Self::Int8 => (4 + BLOCK, BLOCK),
            Self::Int4 => (4 + BLOCK / 2, BLOCK),
            Self::Int3 => (4 + BLOCK * 3 / 8, BLOCK),
        }
    }

    /// Returns `true` for the codecs in which differences to a reference are sent where there is one.
    pub const fn sends_differences(self) -> bool {
        matches!(self, Self::Int8 | Self::Int4 | Self::Int3)
    }

    /// The codec of whole ratios of a node that sends differences in this one: four and three bits are too coarse.
    #[must_use]
    pub const fn of_wholes(self) -> Self {
        match self {
            Self::Int4 | Self::Int3 => Self::Int8,
            _ => self,
        }
    }

    /// The most rounds from one exact average to the next under which nodes with momentum across rounds stay together;
    /// `None` if they do over any. Differences grow over the period, the error of few bits with them, and momentum
    /// carries it on. Measured, see `docs/communication.md`.
    pub const fn longest_period_with_momentum(self) -> Option<u64> {
        match self {
            Self::Int4 => Some(16),
            Self::Int3 => Some(8),
            _ => None,
        }
    }

    /// The largest error of a coordinate, relative to the largest one of its block; 0 when there is none.
    fn relative_error(self) -> f64 {
        match self {
            Self::F32 => 0.0,
            Self::F16 => 1.0 / 2048.0,
            Self::Bf16 => 1.0 / 256.0,
            Self::Int8 => 1.0 / 127.0,
            Self::Int4 => 1.0 / 14.0,
            Self::Int3 => 1.0 / 6.0,
        }
    }

    /// Returns this codec or a finer one, for a node that keeps this share of its weight, between 0 and 1. What
    /// rounding leaves behind must be small beside what stays. Nodes that keep nothing, as in exact averaging, send
    /// [`F32`](Self::F32).
    ///
    /// ```
    /// use mingle_protocol::Codec;
    /// assert_eq!(Codec::Int8.with_share_kept(0.25), Codec::Int8);
    /// assert_eq!(Codec::Int8.with_share_kept(0.0), Codec::F32);
    /// ```
    #[must_use]
    pub fn with_share_kept(self, kept: f64) -> Self {
        self.suited_to(0.0, 1.0 - kept, kept)
    }

    /// This codec, or the next finer one that a parcel needs.
    ///
    /// Two things can make a codec too coarse. `largest` may lie outside its range: `F16` ends at 65504, and gives way
    /// to `Bf16`, which is as short. And since rounding stays with the sender, a sender that parts with `sent` and
    /// keeps little is left with a ratio whose error is `sent / kept` times the codec's: beyond [`LARGEST_LEFTOVER`] of
    /// the vector it gives way to a finer codec, and to `F32` when nothing is kept at all.
    pub(crate) fn suited_to(self, largest: f32, sent: f64, kept: f64) -> Self {
        // Rounding up must not leave the range that receivers accept.
        if largest > MAX_MAGNITUDE / 2.0 {
            return Self::F32;
        }
        let finer = match self {
            Self::F32 => return self,
            Self::F16 if largest > float16::LARGEST => Self::Bf16,
            Self::F16 => Self::F32,
            Self::Bf16 | Self::Int8 if largest <= float16::LARGEST => Self::F16,
            Self::Bf16 => Self::F32,
            Self::Int8 => Self::Bf16,
            Self::Int4 | Self::Int3 => Self::Int8,
        };
        let is_in_range = self != Self::F16 || largest <= float16::LARGEST;
        if is_in_range && sent * self.relative_error() <= kept * LARGEST_LEFTOVER {
            return self;
        }
        // A parcel that is out of range for F16 and too coarse in Bf16 ends at F32.
        finer.suited_to(largest, sent, kept)
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Codec {
    type Err = UnknownCodec;

    fn from_str(name: &str) -> Result<Self, UnknownCodec> {
        Self::ALL.into_iter().find(|codec| codec.name() == name).ok_or_else(|| UnknownCodec { name: name.to_owned() })
    }
}

/// A name that no codec has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{name:?} is no codec; there are f32, f16, bf16, int8, int4 and int3")]
pub struct UnknownCodec {
    /// The name given.
    pub name: String,
}

#[cfg(test)]
mod tests;
