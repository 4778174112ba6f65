//! The interface between codecs and kernels: encoding and decoding of one block.

use super::Dither;

/// Coordinates that are encoded together. A multiple of every vector width, and small enough that a block and all that
/// is kept beside it stay in the innermost cache.
pub(crate) const BLOCK: usize = 256;
/// Bytes of the longest block.
pub(super) const MOST_BLOCK_BYTES: usize = 4 * BLOCK;

/// One codec, block by block. The last block of a vector is padded with zeros, and its encoding cut to length.
///
/// The loops are straight and branch-free over whole blocks, so that the compiler turns them into vector instructions,
/// and use nothing whose result depends on the machine.
pub(super) trait Format {
    /// Bytes in front of a block.
    const HEAD: usize;
    /// Bytes per coordinate.
    const WIDTH: usize;
    /// Bytes of a whole block.
    const BLOCK_BYTES: usize = Self::HEAD + BLOCK * Self::WIDTH;

    /// Writes `values`, which are finite and in range, and replaces them by what [`decode`](Self::decode) will read.
    fn encode(values: &mut [f32; BLOCK], bytes: &mut [u8], dither: &mut Dither);

    /// Decodes bytes that passed [`is_sound`](Self::is_sound).
    fn decode(bytes: &[u8], values: &mut [f32; BLOCK]);

    /// Returns `true` if all values that these bytes hold are finite and not too large. The bytes are whole coordinates
    /// of one block, from its beginning.
    fn is_sound(bytes: &[u8]) -> bool;
}
