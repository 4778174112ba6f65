//! Repair symbols of a block: a Reed-Solomon code over GF(2^16), in O(n log n) (Lin, Al-Naffouri, Han and Chung 2016).

use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};
use thiserror::Error;

/// The code cannot be applied to a block.
#[derive(Debug, Error)]
#[error("a block of {symbols} symbols of {symbol_bytes} bytes cannot be coded")]
pub struct CodeError {
    /// Source symbols of the block.
    pub symbols: u32,
    /// Bytes of each.
    pub symbol_bytes: usize,
    #[source]
    source: reed_solomon_simd::Error,
}

/// The repair symbols of a block of `symbols` full symbols, one after another: as many as the block has symbols.
pub(crate) fn encode(symbols: &[u8], symbol_bytes: usize) -> Result<Vec<u8>, CodeError> {
    let count = symbols.len() / symbol_bytes;
    let failed = |source| CodeError { symbols: count as u32, symbol_bytes, source };
    let mut encoder = ReedSolomonEncoder::new(count, count, symbol_bytes).map_err(failed)?;
    for symbol in symbols.chunks_exact(symbol_bytes) {
        encoder.add_original_shard(symbol).map_err(failed)?;
    }
    let result = encoder.encode().map_err(failed)?;
    Ok(result.recovery_iter().flatten().copied().collect())
}

/// Fills in the source symbols of a block that are not there, from those that are and as many repair symbols.
pub(crate) fn restore<'a>(
    symbols: &mut [u8],
    symbol_bytes: usize,
    is_there: impl Fn(usize) -> bool,
    repairs: impl Iterator<Item = (u32, &'a [u8])>,
) -> Result<(), CodeError> {
    let count = symbols.len() / symbol_bytes;
    let failed = |source| CodeError { symbols: count as u32, symbol_bytes, source };
    let mut decoder = ReedSolomonDecoder::new(count, count, symbol_bytes).map_err(failed)?;
    for (index, symbol) in symbols.chunks_exact(symbol_bytes).enumerate().filter(|(index, _)| is_there(*index)) {
        decoder.add_original_shard(index, symbol).map_err(failed)?;
    }
    for (index, symbol) in repairs {
        decoder.add_recovery_shard(index as usize, symbol).map_err(failed)?;
    }
    let result = decoder.decode().map_err(failed)?;
    for (index, symbol) in result.restored_original_iter() {
        symbols[index * symbol_bytes..][..symbol_bytes].copy_from_slice(symbol);
    }
    Ok(())
}
