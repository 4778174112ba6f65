//! The vector a parcel carries: the sender's ratio z = x / w, encoded once for all its out-links.

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

/// Largest dimension of a payload: 2^28 coordinates, one gibibyte.
pub const MAX_DIMENSION: usize = 1 << 28;
/// Largest magnitude of a coordinate. Far beyond any model, far enough from `f32::MAX` that sums of masses times
/// coordinates cannot overflow.
pub const MAX_MAGNITUDE: f32 = 1e30;

#[cfg(target_endian = "big")]
compile_error!("payloads travel as little-endian f32 and are sent without conversion: big-endian hosts need one");

/// A finite vector of `f32` with its BLAKE3 hash. Cloning shares the coordinates.
///
/// Every copy in an outbox, every retransmission and every out-link of a step refers to the same allocation.
///
/// ```
/// use mingle_protocol::Payload;
/// let payload = Payload::new(vec![1.0, -2.0].into()).unwrap();
/// assert_eq!(payload.values(), [1.0, -2.0]);
/// assert!(Payload::new(vec![f32::NAN].into()).is_err());
/// ```
#[derive(Clone, PartialEq)]
pub struct Payload {
    values: Arc<[f32]>,
    hash: [u8; 32],
}

impl Payload {
    /// Checks and hashes `values`.
    ///
    /// # Errors
    /// [`PayloadError`] when there are too many coordinates, or one is not finite or beyond [`MAX_MAGNITUDE`].
    pub fn new(values: Arc<[f32]>) -> Result<Self, PayloadError> {
        if values.len() > MAX_DIMENSION {
            return Err(PayloadError::TooLong { dimension: values.len() });
        }
        if let Some(index) = first_unusable(&values) {
            return Err(PayloadError::Unusable { index, value: values[index] });
        }
        let hash = *blake3::hash(bytemuck::cast_slice(&values)).as_bytes();
        Ok(Self { values, hash })
    }

    /// A payload whose coordinates were checked and hashed on the way in.
    pub(crate) fn from_verified(values: Arc<[f32]>, hash: [u8; 32]) -> Self {
        Self { values, hash }
    }

    /// The coordinates.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The coordinates, shared.
    pub fn shared(&self) -> &Arc<[f32]> {
        &self.values
    }

    /// BLAKE3 of the coordinates as little-endian bytes.
    pub fn hash(&self) -> &[u8; 32] {
        &self.hash
    }

    /// The coordinates as they travel: little-endian, 4 bytes each.
    pub fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.values)
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} coordinates)", self.values.len())
    }
}

/// The first coordinate that is not finite or too large, if any. One vectorised pass when all are fine.
pub(crate) fn first_unusable(values: &[f32]) -> Option<usize> {
    const BLOCK: usize = 1024;
    let block = values.chunks(BLOCK).position(|block| !all_usable(block))?;
    let start = block * BLOCK;
    values[start..].iter().position(|value| !usable(*value)).map(|offset| start + offset)
}

fn all_usable(values: &[f32]) -> bool {
    values.iter().fold(true, |all, &value| all & usable(value))
}

/// Also false for NaN.
fn usable(value: f32) -> bool {
    value.abs() <= MAX_MAGNITUDE
}

/// Why a vector cannot be a payload.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// Too many coordinates.
    #[error("{dimension} coordinates are more than the {MAX_DIMENSION} a payload may have")]
    TooLong {
        /// How many there are.
        dimension: usize,
    },
    /// A coordinate is NaN, infinite or absurdly large.
    #[error("coordinate {index} is {value}; payloads hold finite numbers up to {MAX_MAGNITUDE:e} in magnitude")]
    Unusable {
        /// Which coordinate.
        index: usize,
        /// Its value.
        value: f32,
    },
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_offending_coordinate_is_named_wherever_it_is() {
        for (dimension, bad) in [(1, 0), (1024, 1023), (1025, 1024), (5000, 3333)] {
            for value in [f32::NAN, f32::INFINITY, -f32::INFINITY, 2e30] {
                let mut values = vec![1.0; dimension];
                values[bad] = value;
                assert_eq!(first_unusable(&values), Some(bad));
            }
            assert_eq!(first_unusable(&vec![MAX_MAGNITUDE; dimension]), None);
        }
    }

    #[test]
    fn the_hash_is_that_of_the_little_endian_bytes() {
        let payload = Payload::new(vec![1.5, -0.0].into()).unwrap();
        assert_eq!(payload.bytes(), [0, 0, 0xc0, 0x3f, 0, 0, 0, 0x80]);
        assert_eq!(payload.hash(), blake3::hash(&[0, 0, 0xc0, 0x3f, 0, 0, 0, 0x80]).as_bytes());
    }
}
