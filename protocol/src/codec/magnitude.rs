//! Magnitudes of coordinates, compared as integers: NaN is above infinity, so that no comparison hides it.

use super::BLOCK;

/// The largest magnitude in a block; not finite when a value is not.
#[inline(always)]
pub(super) fn largest_of_block(values: &[f32; BLOCK]) -> f32 {
    const LANES: usize = 32;
    let mut largest = [0; LANES];
    for row in values.as_chunks::<LANES>().0 {
        for lane in 0..LANES {
            largest[lane] = largest[lane].max(magnitude_bits(row[lane]));
        }
    }
    magnitude(&largest)
}

/// The bits of |value|: as integers they are in the order of the magnitudes, with NaN above infinity.
#[inline(always)]
pub(super) fn magnitude_bits(value: f32) -> i32 {
    value.abs().to_bits().cast_signed()
}

/// The largest of the magnitudes with these bits.
#[inline(always)]
pub(super) fn magnitude(bits: &[i32]) -> f32 {
    f32::from_bits(bits.iter().fold(0, |largest, &bits| largest.max(bits)).cast_unsigned())
}

/// The larger magnitude of the two.
pub(super) fn larger(a: f32, b: f32) -> f32 {
    magnitude(&[magnitude_bits(a), magnitude_bits(b)])
}
