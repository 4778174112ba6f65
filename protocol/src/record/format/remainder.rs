//! The numerator of a record as its difference to one that is formed anew from the payload.
//!
//! A parcel in f32 carries the ratio z = x / w itself, and a split leaves x - m z of the numerator. So w z - m z, formed
//! anew from the payload and the books, differs from the numerator in a few of its last bits, or not at all. Only that
//! difference is written, and a record of a split takes one vector instead of two.
//!
//! ```text
//!   of each 256 coordinates:   b: u8   their differences in b bits each, in whole bytes
//! ```
//!
//! A difference is a number of steps from one f32 to the next, in zigzag order (0, -1, 1, -2, ...). It can be of any
//! size: the numerator is written bit by bit, whatever it is. One that has little to do with the payload, such as what
//! remains where all weight was handed on, is written whole, since that is shorter.
//!
//! Format 6, and none before, has such numerators. The rule by which w z - m z is rounded is part of it.

use std::sync::Arc;

use super::LENGTH_BYTES;
use super::vectors::{check_finite, floats};
use crate::mass::Mass;
use crate::record::{Books, RecordError};

/// Coordinates whose differences have the same number of bits.
const BLOCK: usize = 256;

/// The bytes of a numerator.
pub(super) enum Numerator<'a> {
    /// As f32.
    Whole(&'a [u8]),
    /// As the difference to what follows from the payload.
    Remainder(&'a [u8], Expected<'a>),
}

impl Numerator<'_> {
    /// Checks that all coordinates can be read and are finite.
    pub(super) fn check(&self) -> Result<(), RecordError> {
        let vector = "numerator";
        match self {
            Self::Whole(bytes) => check_finite(vector, bytes),
            Self::Remainder(bytes, expected) => {
                let mut first = None;
                for_each(bytes, expected, |index, value| {
                    first = first.or_else(|| (!value.is_finite()).then_some(index));
                })?;
                first.map_or(Ok(()), |index| Err(RecordError::NotFinite { vector, index }))
            }
        }
    }
    /// The numerator as numbers, in one allocation.
    pub(super) fn decode(&self) -> Result<Arc<[f32]>, RecordError> {
        match self {
            Self::Whole(bytes) => Ok(floats(bytes)),
            Self::Remainder(bytes, expected) => decode(bytes, expected),
        }
    }
}

/// The numerator that follows from a payload in f32.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected<'a> {
    payload: &'a [[u8; 4]],
    /// The weight before the split, w.
    whole: f32,
    /// The weight of the parcels that were split off, m.
    given: f32,
}

impl<'a> Expected<'a> {
    /// The numerator that a split which left these books should have left, where `payload` is what it split off.
    pub(super) fn of(books: &Books, payload: &'a [u8]) -> Self {
        let parcels = books.outgoing.values().flat_map(|link| &link.outbox);
        let own = parcels.filter(|parcel| parcel.record == books.number).map(|parcel| parcel.mass.units());
        // Sums of checked masses are far below the limit; in books that are not sound any value is as good.
        let given = own.fold(0_u64, u64::saturating_add);
        let whole = books.mass.units().saturating_add(given);
        let weight = |units| Mass::from_units(units).to_f64() as f32;
        Self { payload: payload.as_chunks().0, whole: weight(whole), given: weight(given) }
    }

    /// The expected numerator in a block, as integers in the order of the numbers.
    fn block(&self, block: usize) -> impl Iterator<Item = i32> {
        let start = (block * BLOCK).min(self.payload.len());
        let ratios = self.payload[start..].iter().take(BLOCK).map(|bytes| f32::from_le_bytes(*bytes));
        let Self { whole, given, .. } = *self;
        ratios.map(move |ratio| {
            let left = whole * ratio - given * ratio;
            // Which bits a sum has that is no number is not the same on all machines.
            ordered(if left.is_finite() { left } else { 0.0 })
        })
    }
}

/// Encodes a numerator; `None` where it is shorter as it is.
pub(super) fn encode(numerator: &[f32], expected: &Expected<'_>) -> Option<Vec<u8>> {
    let most = most_bytes(numerator.len())?;
    let mut bytes = Vec::new();
    for (index, block) in numerator.chunks(BLOCK).enumerate() {
        let mut differences = [0; BLOCK];
        for ((difference, &x), expected) in differences.iter_mut().zip(block).zip(expected.block(index)) {
            *difference = zigzag(ordered(x).wrapping_sub(expected));
        }
        let differences = &differences[..block.len()];
        let bits = bits_of(differences);
        // The length is below that of the dimension's f32, which fits.
        bytes.push(bits as u8);
        pack(differences, bits, &mut bytes);
        if bytes.len() > most {
            return None;
        }
    }
    Some(bytes)
}

/// The most bytes that are shorter, with their length, than so many coordinates are.
pub(super) fn most_bytes(dimension: usize) -> Option<usize> {
    (4 * dimension).checked_sub(LENGTH_BYTES + 1)
}

/// Reads a numerator of as many coordinates as the payload has, block by block.
///
/// # Errors
/// [`RecordError::Remainder`] for bytes that [`encode`] does not write.
fn for_each(bytes: &[u8], expected: &Expected<'_>, mut see: impl FnMut(usize, f32)) -> Result<(), RecordError> {
    let dimension = expected.payload.len();
    let mut rest = bytes;
    for start in (0..dimension).step_by(BLOCK) {
        let length = (dimension - start).min(BLOCK);
        let (bits, behind) = rest.split_first().ok_or(RecordError::Remainder { index: start })?;
        let bits = u32::from(*bits);
        let packed = (length * bits as usize).div_ceil(8);
        let (packed, behind) = behind
            .split_at_checked(packed)
            .filter(|_| bits <= u32::BITS)
            .ok_or(RecordError::Remainder { index: start })?;
        let mut differences = [0; BLOCK];
        let differences = &mut differences[..length];
        if !unpack(packed, bits, differences) || bits_of(differences) != bits {
            return Err(RecordError::Remainder { index: start });
        }
        for ((index, difference), expected) in (start..).zip(&*differences).zip(expected.block(start / BLOCK)) {
            see(index, number(expected.wrapping_add(unzigzag(*difference))));
        }
        rest = behind;
    }
    if rest.is_empty() { Ok(()) } else { Err(RecordError::Remainder { index: dimension }) }
}

fn decode(bytes: &[u8], expected: &Expected<'_>) -> Result<Arc<[f32]>, RecordError> {
    let mut numerator: Arc<[f32]> = std::iter::repeat_n(0.0, expected.payload.len()).collect();
    // There is no other reference to it.
    let values = Arc::get_mut(&mut numerator).unwrap_or_default();
    for_each(bytes, expected, |index, value| values[index] = value)?;
    Ok(numerator)
}

/// The bits of a number as an integer that ascends with it.
fn ordered(number: f32) -> i32 {
    let bits = number.to_bits() as i32;
    bits ^ (bits >> 31 & i32::MAX)
}

fn number(ordered: i32) -> f32 {
    f32::from_bits((ordered ^ (ordered >> 31 & i32::MAX)) as u32)
}

fn zigzag(difference: i32) -> u32 {
    (difference << 1 ^ difference >> 31) as u32
}

fn unzigzag(difference: u32) -> i32 {
    (difference >> 1) as i32 ^ -((difference & 1) as i32)
}

/// The bits that the largest of some differences takes.
fn bits_of(differences: &[u32]) -> u32 {
    u32::BITS - differences.iter().fold(0, |all, difference| all | difference).leading_zeros()
}

/// Appends the lowest bits of each number, and zeros up to a whole byte.
fn pack(numbers: &[u32], bits: u32, bytes: &mut Vec<u8>) {
    if bits == 0 {
        return;
    }
    let mut held = 0_u64;
    let mut held_bits = 0;
    for &number in numbers {
        held |= u64::from(number) << held_bits;
        held_bits += bits;
        if held_bits >= u32::BITS {
            bytes.extend_from_slice(&(held as u32).to_le_bytes());
            held >>= u32::BITS;
            held_bits -= u32::BITS;
        }
    }
    bytes.extend_from_slice(&held.to_le_bytes()[..held_bits.div_ceil(8) as usize]);
}

/// Reads as many numbers of so many bits as there is room for. Returns `false` if the bits behind them are not zero.
fn unpack(bytes: &[u8], bits: u32, numbers: &mut [u32]) -> bool {
    if bits == 0 {
        return true;
    }
    let mask = u64::from(u32::MAX >> (u32::BITS - bits));
    let mut held = 0_u64;
    let mut held_bits = 0;
    let mut rest = bytes;
    for number in numbers {
        while held_bits < bits {
            let (piece, behind) = rest.split_at(rest.len().min(4));
            let mut next = [0; 4];
            next[..piece.len()].copy_from_slice(piece);
            held |= u64::from(u32::from_le_bytes(next)) << held_bits;
            held_bits += u32::BITS;
            rest = behind;
        }
        *number = (held & mask) as u32;
        held >>= bits;
        held_bits -= bits;
    }
    held == 0 && rest.is_empty()
}

#[cfg(test)]
mod tests;
