//! Passes over an encoded vector alone: decoding it, its norm, and the check of bytes that came from elsewhere.

use std::marker::PhantomData;

use pulp::{Arch, Simd, WithSimd};

use super::bfloat16::Bfloat16;
use super::float16::Float16;
use super::float32::Float32;
use super::format::{BLOCK, Format};
use super::int8::Int8;
use super::kernel::{add_base, stretch_bytes, take_sum, with_format};
use super::packed::{Int3, Int4};
use super::{Codec, Encoded};

/// Decodes to `values`.
pub(crate) fn decode(encoded: Encoded<'_>, values: &mut [f32]) {
    with_format!(encoded.codec, decode_as(encoded, values));
}

/// The sum of the squares of an encoded vector.
pub(crate) fn square_of(encoded: Encoded<'_>) -> f64 {
    with_format!(encoded.codec, square_as(encoded))
}

/// The first coordinate of the first unit of `bytes` that is not finite or too large, if any. `bytes` are whole units.
pub(crate) fn first_flaw(codec: Codec, bytes: &[u8]) -> Option<usize> {
    with_format!(codec, first_flaw_as(bytes, codec.unit()))
}

struct Decode<'a, F> {
    encoded: Encoded<'a>,
    values: &'a mut [f32],
    format: PhantomData<F>,
}

fn decode_as<F: Format>(encoded: Encoded<'_>, values: &mut [f32]) {
    Arch::new().dispatch(Decode::<F> { encoded, values, format: PhantomData });
}

impl<F: Format> WithSimd for Decode<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Encoded { bytes, mut base, .. } = self.encoded;
        for (values, bytes) in self.values.chunks_mut(BLOCK).zip(bytes.chunks(F::BLOCK_BYTES)) {
            let mut block = [0.0; BLOCK];
            F::decode(bytes, &mut block);
            add_base(&mut block, &mut base);
            values.copy_from_slice(&block[..values.len()]);
        }
    }
}

struct Square<'a, F> {
    encoded: Encoded<'a>,
    format: PhantomData<F>,
}

fn square_as<F: Format>(encoded: Encoded<'_>) -> f64 {
    Arch::new().dispatch(Square::<F> { encoded, format: PhantomData })
}

impl<F: Format> WithSimd for Square<'_, F> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        let mut sums = [0.0; BLOCK];
        let mut values = [0.0; BLOCK];
        let mut square = 0.0;
        let Encoded { bytes, mut base, .. } = self.encoded;
        for stretch in bytes.chunks(stretch_bytes::<F>()) {
            for bytes in stretch.chunks(F::BLOCK_BYTES) {
                if bytes.len() < F::BLOCK_BYTES {
                    values = [0.0; BLOCK];
                }
                F::decode(bytes, &mut values);
                add_base(&mut values, &mut base);
                for (sum, value) in sums.iter_mut().zip(&values) {
                    *sum += value * value;
                }
            }
            square += take_sum(&mut sums);
        }
        square
    }
}

fn first_flaw_as<F: Format>(bytes: &[u8], (unit_bytes, unit): (usize, usize)) -> Option<usize> {
    let block = Arch::new().dispatch(FirstUnsound::<F> { bytes, format: PhantomData })?;
    let flawed = bytes.chunks(F::BLOCK_BYTES).nth(block)?;
    let offset = flawed.chunks(unit_bytes).position(|bytes| !F::is_sound(bytes))?;
    Some(block * BLOCK + offset * unit)
}

/// The number of the first block that is not sound, if any.
struct FirstUnsound<'a, F> {
    bytes: &'a [u8],
    format: PhantomData<F>,
}

impl<F: Format> WithSimd for FirstUnsound<'_, F> {
    type Output = Option<usize>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Option<usize> {
        self.bytes.chunks(F::BLOCK_BYTES).position(|bytes| !F::is_sound(bytes))
    }
}
