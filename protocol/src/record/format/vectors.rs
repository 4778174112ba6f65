//! Vectors of a record as bytes, and the checks of their coordinates.

use std::sync::Arc;

use crate::record::RecordError;
use crate::reference::Reference;

/// Little-endian f32 as numbers, in one allocation.
pub(super) fn floats(bytes: &[u8]) -> Arc<[f32]> {
    bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

/// Checks that a vector can be a reference.
pub(super) fn check_base(bytes: &[u8]) -> Result<(), RecordError> {
    let is_fit = |all: bool, &bytes: &[u8; 4]| all & Reference::can_have(f32::from_le_bytes(bytes));
    if bytes.as_chunks().0.iter().fold(true, is_fit) { Ok(()) } else { Err(RecordError::UnfitBase) }
}

/// One vectorised pass when all coordinates are finite.
pub(super) fn check_finite(vector: &'static str, bytes: &[u8]) -> Result<(), RecordError> {
    const BLOCK: usize = 1024;
    let coordinates = bytes.as_chunks::<4>().0;
    let all_finite = |block: &[[u8; 4]]| block.iter().fold(true, |all, &bytes| all & is_finite(bytes));
    let Some(block) = coordinates.chunks(BLOCK).position(|block| !all_finite(block)) else {
        return Ok(());
    };
    let start = block * BLOCK;
    let offset = coordinates[start..].iter().position(|&bytes| !is_finite(bytes)).unwrap_or(0);
    Err(RecordError::NotFinite { vector, index: start + offset })
}

fn is_finite(bytes: [u8; 4]) -> bool {
    const EXPONENT: u32 = 0x7f80_0000;
    u32::from_le_bytes(bytes) & EXPONENT != EXPONENT
}
