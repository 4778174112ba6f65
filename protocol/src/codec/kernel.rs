//! The loops that touch every coordinate: each reads and writes its vectors once.
//!
//! A block at a time is decoded, used and left behind in the innermost cache. Sums and maxima are kept per place in the
//! block and put together at the end, so their bits depend neither on the width of the machine's vectors nor on
//! threads.

use std::marker::PhantomData;

use pulp::{Arch, Simd, WithSimd};

use super::bfloat16::Bfloat16;
use super::float16::Float16;
use super::float32::Float32;
use super::format::{BLOCK, Format, MOST_BLOCK_BYTES};
use super::int8::Int8;
use super::magnitude::{larger, largest_of_block, magnitude, magnitude_bits};
use super::packed::{Int3, Int4};
use super::{Codec, Dither, Encoded};

/// Coordinates between two points at which partial sums move to f64: a multiple of [`BLOCK`], and few enough that each
/// of its [`BLOCK`] partial sums has only 64 terms.
pub(super) const STRETCH: usize = 64 * BLOCK;

/// Runs a kernel with the format of a codec.
macro_rules! with_format {
    ($codec:expr, $kernel:ident($($argument:expr),*)) => {
        match $codec {
            Codec::F32 => $kernel::<Float32>($($argument),*),
            Codec::F16 => $kernel::<Float16>($($argument),*),
            Codec::Bf16 => $kernel::<Bfloat16>($($argument),*),
            Codec::Int8 => $kernel::<Int8>($($argument),*),
            Codec::Int4 => $kernel::<Int4>($($argument),*),
            Codec::Int3 => $kernel::<Int3>($($argument),*),
        }
    };
}
pub(super) use with_format;

/// Measurements of one absorption: a pass over numerator and parcel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Absorbed {
    /// Squared distance of the parcel from the ratio that the numerator had.
    pub(crate) apart: f64,
    /// The square of that ratio.
    pub(crate) own: f64,
    /// The largest magnitude in the numerator now; not finite when one of its coordinates is not.
    pub(crate) largest: f32,
}

/// `numerator += weight * decoded`, measuring the distance from `numerator * inverse` as it was before.
pub(crate) fn absorb(numerator: &mut [f32], encoded: Encoded<'_>, weight: f32, inverse: f32) -> Absorbed {
    with_format!(encoded.codec, absorb_as(numerator, encoded, weight, inverse))
}

/// A vector to be encoded: its bytes are to be written, and its base is there already.
pub(crate) struct Unwritten<'a> {
    pub(crate) codec: Codec,
    pub(crate) bytes: &'a mut [u8],
    /// The vector that the bytes are to be a difference to; empty for none.
    pub(crate) base: &'a [f32],
}

/// Encodes `numerator * inverse` and subtracts `weight` times the decoded vector from the numerator. Returns the
/// largest magnitude left in it.
pub(crate) fn emit(
    numerator: &mut [f32],
    unwritten: Unwritten<'_>,
    (weight, inverse): (f32, f32),
    dither: &mut Dither,
) -> f32 {
    with_format!(unwritten.codec, emit_as(numerator, unwritten, (weight, inverse), dither))
}

/// `numerator += scale * delta`. Returns the largest magnitude in the numerator.
pub(crate) fn add(numerator: &mut [f32], scale: f32, delta: &[f32]) -> f32 {
    Arch::new().dispatch(Add { numerator, scale, delta })
}

struct Add<'a> {
    numerator: &'a mut [f32],
    scale: f32,
    delta: &'a [f32],
}

impl WithSimd for Add<'_> {
    type Output = f32;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f32 {
        let mut largest = [0; BLOCK];
        let (blocks, rest) = self.numerator.as_chunks_mut();
        let (deltas, last) = self.delta.as_chunks();
        for (x, delta) in blocks.iter_mut().zip(deltas) {
            add_block(x, self.scale, delta, &mut largest);
        }
        let mut x = padded(rest);
        let delta = padded(last);
        add_block(&mut x, self.scale, &delta, &mut largest);
        rest.copy_from_slice(&x[..rest.len()]);
        magnitude(&largest)
    }
}

/// The size of a vector: its largest magnitude and its norm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Extent {
    /// The largest magnitude; not finite when a value is not.
    pub(crate) largest: f32,
    /// The Euclidean norm, where all values are finite.
    pub(crate) norm: f64,
}

/// Norm and largest magnitude in one pass.
pub(crate) fn extent_of(values: &[f32]) -> Extent {
    let Extent { largest, norm } = Arch::new().dispatch(Measure(values));
    // Where squares would leave the range of f32, the rare pass in f64.
    let is_in_range = largest == 0.0 || (1e-12..1e17).contains(&largest);
    if is_in_range || !largest.is_finite() {
        return Extent { largest, norm };
    }
    Extent { largest, norm: values.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>().sqrt() }
}

struct Measure<'a>(&'a [f32]);

impl WithSimd for Measure<'_> {
    type Output = Extent;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Extent {
        let mut squares = [0.0; BLOCK];
        let mut largest = [0; BLOCK];
        let mut total = 0.0;
        for stretch in self.0.chunks(STRETCH) {
            let (blocks, rest) = stretch.as_chunks();
            for block in blocks.iter().chain([&padded(rest)]) {
                for i in 0..BLOCK {
                    squares[i] += block[i] * block[i];
                    largest[i] = largest[i].max(magnitude_bits(block[i]));
                }
            }
            total += take_sum(&mut squares);
        }
        Extent { largest: magnitude(&largest), norm: total.sqrt() }
    }
}

/// The largest magnitude; not finite when a value is not.
pub(crate) fn largest_of(values: &[f32]) -> f32 {
    let (blocks, rest) = values.as_chunks();
    blocks.iter().map(largest_of_block).fold(largest_of_block(&padded(rest)), larger)
}

/// An absorption, as work that is compiled once for every kind of vector unit. Wider vectors do the same operations on
/// more coordinates at a time, none of them fused, so the result is the same to the bit.
struct Absorb<'a, F> {
    numerator: &'a mut [f32],
    encoded: Encoded<'a>,
    weight: f32,
    inverse: f32,
    format: PhantomData<F>,
}

fn absorb_as<F: Format>(numerator: &mut [f32], encoded: Encoded<'_>, weight: f32, inverse: f32) -> Absorbed {
    Arch::new().dispatch(Absorb::<F> { numerator, encoded, weight, inverse, format: PhantomData })
}

impl<F: Format> WithSimd for Absorb<'_, F> {
    type Output = Absorbed;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Absorbed {
        let mut found = Absorbed::default();
        let mut sums = Sums { apart: [0.0; BLOCK], own: [0.0; BLOCK], largest: [0; BLOCK] };
        let mut values = [0.0; BLOCK];
        let Encoded { bytes, mut base, .. } = self.encoded;
        for (x, bytes) in self.numerator.chunks_mut(STRETCH).zip(bytes.chunks(stretch_bytes::<F>())) {
            let (blocks, rest) = x.as_chunks_mut();
            let mut encoded = bytes.chunks(F::BLOCK_BYTES);
            for (x, bytes) in blocks.iter_mut().zip(&mut encoded) {
                F::decode(bytes, &mut values);
                add_base(&mut values, &mut base);
                sums.absorb(x, &values, self.weight, self.inverse);
            }
            if let Some(bytes) = encoded.next() {
                values = [0.0; BLOCK];
                F::decode(bytes, &mut values);
                add_base(&mut values, &mut base);
                // A sender can write anything behind the end of the vector.
                values[rest.len()..].fill(0.0);
                let mut x = padded(rest);
                sums.absorb(&mut x, &values, self.weight, self.inverse);
                rest.copy_from_slice(&x[..rest.len()]);
            }
            found.apart += take_sum(&mut sums.apart);
            found.own += take_sum(&mut sums.own);
        }
        found.largest = magnitude(&sums.largest);
        found
    }
}

/// Partial sums of an absorption, one per place in a block.
struct Sums {
    apart: [f32; BLOCK],
    own: [f32; BLOCK],
    largest: [i32; BLOCK],
}

impl Sums {
    #[inline(always)]
    fn absorb(&mut self, x: &mut [f32; BLOCK], values: &[f32; BLOCK], weight: f32, inverse: f32) {
        for i in 0..BLOCK {
            let ratio = x[i] * inverse;
            let difference = values[i] - ratio;
            self.apart[i] += difference * difference;
            self.own[i] += ratio * ratio;
            x[i] += weight * values[i];
            self.largest[i] = self.largest[i].max(magnitude_bits(x[i]));
        }
    }
}

/// An emission, as work that is compiled once for every kind of vector unit.
struct Emit<'a, F> {
    numerator: &'a mut [f32],
    unwritten: Unwritten<'a>,
    weight: f32,
    inverse: f32,
    dither: &'a mut Dither,
    format: PhantomData<F>,
}

fn emit_as<F: Format>(
    numerator: &mut [f32],
    unwritten: Unwritten<'_>,
    (weight, inverse): (f32, f32),
    dither: &mut Dither,
) -> f32 {
    Arch::new().dispatch(Emit::<F> { numerator, unwritten, weight, inverse, dither, format: PhantomData })
}

impl<F: Format> WithSimd for Emit<'_, F> {
    type Output = f32;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f32 {
        let scales = (self.weight, self.inverse);
        let mut largest = [0; BLOCK];
        let Unwritten { bytes, mut base, .. } = self.unwritten;
        let mut written = 0;
        for x in self.numerator.chunks_mut(STRETCH) {
            let end = (written + stretch_bytes::<F>()).min(bytes.len());
            let (blocks, rest) = x.as_chunks_mut();
            let mut encoded = bytes[written..end].chunks_mut(F::BLOCK_BYTES);
            for (x, bytes) in blocks.iter_mut().zip(&mut encoded) {
                emit_block::<F>(x, bytes, &mut base, scales, self.dither, &mut largest);
            }
            if let Some(bytes) = encoded.next() {
                let mut x = padded(rest);
                let mut whole = [0; MOST_BLOCK_BYTES];
                emit_block::<F>(&mut x, &mut whole[..F::BLOCK_BYTES], &mut base, scales, self.dither, &mut largest);
                rest.copy_from_slice(&x[..rest.len()]);
                bytes.copy_from_slice(&whole[..bytes.len()]);
            }
            written = end;
        }
        magnitude(&largest)
    }
}

#[inline(always)]
fn emit_block<F: Format>(
    x: &mut [f32; BLOCK],
    bytes: &mut [u8],
    base: &mut &[f32],
    (weight, inverse): (f32, f32),
    dither: &mut Dither,
    largest: &mut [i32; BLOCK],
) {
    let mut values = [0.0; BLOCK];
    for (value, x) in values.iter_mut().zip(&*x) {
        *value = x * inverse;
    }
    let mut subtracted = *base;
    for (value, base) in values.iter_mut().zip(take_block(&mut subtracted)) {
        *value -= base;
    }
    F::encode(&mut values, bytes, dither);
    add_base(&mut values, base);
    for i in 0..BLOCK {
        x[i] -= weight * values[i];
        largest[i] = largest[i].max(magnitude_bits(x[i]));
    }
}

/// The next block of a base, which may be short or empty.
#[inline(always)]
fn take_block<'a>(base: &mut &'a [f32]) -> &'a [f32] {
    let (block, rest) = base.split_at(base.len().min(BLOCK));
    *base = rest;
    block
}

/// Adds the next block of a base, where there is one, to what was decoded.
#[inline(always)]
pub(super) fn add_base(values: &mut [f32; BLOCK], base: &mut &[f32]) {
    for (value, base) in values.iter_mut().zip(take_block(base)) {
        *value += base;
    }
}

#[inline(always)]
fn add_block(x: &mut [f32; BLOCK], scale: f32, delta: &[f32; BLOCK], largest: &mut [i32; BLOCK]) {
    for i in 0..BLOCK {
        x[i] += scale * delta[i];
        largest[i] = largest[i].max(magnitude_bits(x[i]));
    }
}

/// A short last block, filled up with zeros.
pub(super) fn padded(rest: &[f32]) -> [f32; BLOCK] {
    let mut block = [0.0; BLOCK];
    block[..rest.len()].copy_from_slice(rest);
    block
}

/// Bytes that a stretch takes.
pub(super) const fn stretch_bytes<F: Format>() -> usize {
    STRETCH / BLOCK * F::BLOCK_BYTES
}

/// Returns the total, added in a fixed order, and sets the partial sums to zero.
pub(super) fn take_sum(partial: &mut [f32; BLOCK]) -> f64 {
    std::mem::replace(partial, [0.0; BLOCK]).iter().map(|&sum| f64::from(sum)).sum()
}
