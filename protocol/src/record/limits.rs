//! The version of the format of records, and the most bytes of their parts.

/// Version of the format that is written. Unknown ones are refused: there is no guessing about mass.
pub const FORMAT_VERSION: u32 = 6;
/// Most bytes that books may take without a large state of the host: those of more than 100,000 links.
pub const MAX_BOOKS_BYTES: usize = 96 << 20;
/// Most bytes that a host may keep in a record for which it announced nothing.
pub const MAX_HOST_BYTES: usize = 64 << 10;

/// Most bytes that a host may keep in any record of so many coordinates: as much as three vectors, such as the moments of
/// Adam and the model of the round before, and [`MAX_HOST_BYTES`] more.
pub const fn most_host_bytes(dimension: usize) -> usize {
    MAX_HOST_BYTES + MAX_HOST_VECTORS * 4 * dimension + MAX_MOMENTUM_HEAD
}

/// Most of these bytes for a training by itself. The rest is for the model of the round before, which momentum across
/// rounds keeps.
pub const fn most_training_bytes(dimension: usize) -> usize {
    most_host_bytes(dimension) - 4 * dimension - MAX_MOMENTUM_HEAD
}

/// Vectors as long as the numerator that a host may keep beside [`MAX_HOST_BYTES`].
pub(super) const MAX_HOST_VECTORS: usize = 3;
/// Most bytes that momentum across rounds keeps beside a vector.
const MAX_MOMENTUM_HEAD: usize = 32;
