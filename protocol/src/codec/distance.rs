//! The distance of a parcel's vector from a ratio, measured without absorbing it.

use std::marker::PhantomData;

use pulp::{Arch, Simd, WithSimd};

use super::bfloat16::Bfloat16;
use super::float16::Float16;
use super::float32::Float32;
use super::format::{BLOCK, Format};
use super::int8::Int8;
use super::kernel::{STRETCH, add_base, padded, stretch_bytes, take_sum, with_format};
use super::packed::{Int3, Int4};
use super::{Codec, Encoded, decode};

/// Squared distance of a vector from another, and the square of that other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Distance {
    pub(crate) apart: f64,
    pub(crate) own: f64,
}

/// The distance of an encoded vector from `numerator * inverse`. One pass; a second one in f64 where squares leave the
/// range of f32.
pub(crate) fn distance(numerator: &[f32], encoded: Encoded<'_>, inverse: f32) -> Distance {
    let found: Distance = with_format!(encoded.codec, distance_as(numerator, encoded, inverse));
    if found.apart.is_finite() && found.own.is_finite() {
        return found;
    }
    let mut values = vec![0.0; numerator.len()];
    decode(encoded, &mut values);
    let mut apart = 0.0;
    let mut own = 0.0;
    for (x, value) in numerator.iter().zip(&values) {
        let ratio = f64::from(*x) * f64::from(inverse);
        apart += (f64::from(*value) - ratio).powi(2);
        own += ratio * ratio;
    }
    Distance { apart, own }
}

struct Measure<'a, F> {
    numerator: &'a [f32],
    encoded: Encoded<'a>,
    inverse: f32,
    format: PhantomData<F>,
}

fn distance_as<F: Format>(numerator: &[f32], encoded: Encoded<'_>, inverse: f32) -> Distance {
    Arch::new().dispatch(Measure::<F> { numerator, encoded, inverse, format: PhantomData })
}

impl<F: Format> WithSimd for Measure<'_, F> {
    type Output = Distance;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Distance {
        let mut apart = [0.0; BLOCK];
        let mut own = [0.0; BLOCK];
        let mut values = [0.0; BLOCK];
        let mut found = Distance::default();
        let Encoded { bytes, mut base, .. } = self.encoded;
        for (x, bytes) in self.numerator.chunks(STRETCH).zip(bytes.chunks(stretch_bytes::<F>())) {
            for (x, bytes) in x.chunks(BLOCK).zip(bytes.chunks(F::BLOCK_BYTES)) {
                values = if x.len() < BLOCK { [0.0; BLOCK] } else { values };
                F::decode(bytes, &mut values);
                add_base(&mut values, &mut base);
                values[x.len()..].fill(0.0);
                let x = padded(x);
                for i in 0..BLOCK {
                    let ratio = x[i] * self.inverse;
                    let difference = values[i] - ratio;
                    apart[i] += difference * difference;
                    own[i] += ratio * ratio;
                }
            }
            found.apart += take_sum(&mut apart);
            found.own += take_sum(&mut own);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::codec::absorb;
    use crate::payload::Payload;

    #[test]
    fn it_is_the_distance_that_an_absorption_measures_in_every_codec_and_length() {
        for codec in Codec::ALL {
            for length in [1, 255, 256, 257, 5_000, STRETCH + 3] {
                let mut numerator: Vec<f32> = (0..length).map(|i| (i as f32 * 0.37).sin()).collect();
                let other: Vec<f32> = (0..length).map(|i| (i as f32 * 0.11).cos()).collect();
                let payload = Payload::encoded(codec, &other, 1).unwrap();
                let found = distance(&numerator, payload.encoded_vector(), 2.0);
                let absorbed = absorb(&mut numerator, payload.encoded_vector(), 0.5, 2.0);
                assert_eq!((found.apart, found.own), (absorbed.apart, absorbed.own), "{codec} {length}");
            }
        }
    }

    #[test]
    fn distances_beyond_the_range_of_f32_are_finite() {
        let payload = Payload::new(&[1e30, -1e30]).unwrap();
        let found = distance(&[0.0, 0.0], payload.encoded_vector(), 1.0);
        assert!((found.apart / 2e60 - 1.0).abs() < 1e-6, "{found:?}");
    }
}
