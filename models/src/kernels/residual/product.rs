//! The two products of a convolution, with a tile of sums in registers.
//!
//! ```text
//! multiply:  output[pixel, lane]  =  sum over entries of the kernel: input[start of pixel + entry] weight[entry, lane]
//! correlate: sums[entry, lane]   +=  sum over pixels: input[start of pixel + entry] gradient[pixel, lane]
//! ```
//!
//! The entries under a kernel are a few *runs* of inputs that lie one after the other.

use pulp::{Arch, Simd, WithSimd};

use super::{LANES, Lanes};

/// The pixels over which tiles of sums are added up before the next tile: their gradients fit into the first cache.
const PIXELS_AT_ONCE: usize = 128;

/// The inputs under the kernel of each pixel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inputs<'a> {
    pub(super) values: &'a [f32],
    /// The place at which the kernel of each pixel begins.
    pub(super) starts: &'a [u32],
    /// The places of runs relative to it.
    pub(super) runs: &'a [u32],
    /// The length of a run.
    pub(super) length: usize,
}

/// The products of all pixels with the weights of one plane of outputs, `[entries]`, in O(pixels x entries) operations.
/// The value of each pixel goes to its place in `output`; it is added there or replaces what is there.
pub(super) fn multiply(inputs: Inputs<'_>, weight: &[Lanes], places: &[u32], output: &mut [f32], add: bool) {
    Arch::new().dispatch(Multiply { inputs, weight, places, output, add });
}

/// Adds to `sums`, `[entries]`, the products of inputs and gradients over all pixels; the gradient of each lies at its
/// place in `gradient`.
pub(super) fn correlate(inputs: Inputs<'_>, gradient: &[f32], places: &[u32], sums: &mut [Lanes]) {
    Arch::new().dispatch(Correlate { inputs, gradient, places, sums });
}

struct Multiply<'a> {
    inputs: Inputs<'a>,
    weight: &'a [Lanes],
    places: &'a [u32],
    output: &'a mut [f32],
    add: bool,
}

impl WithSimd for Multiply<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // As many sums as there are registers for: pixels, and vectors of a pixel.
        match S::F32_LANES {
            16 => self.tiles::<S, 12, 1>(simd),
            8 => self.tiles::<S, 6, 2>(simd),
            4 => self.tiles::<S, 4, 4>(simd),
            _ => self.tiles::<S, 1, LANES>(simd),
        }
    }
}

impl Multiply<'_> {
    #[inline(always)]
    fn tiles<S: Simd, const PIXELS: usize, const VECTORS: usize>(self, simd: S) {
        let Some(last) = self.inputs.starts.len().checked_sub(1) else { return };
        for first in (0..=last).step_by(PIXELS) {
            // Past the end the last pixel is computed again.
            let pixels: [usize; PIXELS] = std::array::from_fn(|pixel| (first + pixel).min(last));
            let starts = pixels.map(|pixel| self.inputs.starts[pixel] as usize);
            let sums = self.sums::<S, PIXELS, VECTORS>(simd, starts);
            for (pixel, sums) in pixels.into_iter().zip(sums).take(last + 1 - first) {
                let place = &mut self.output[self.places[pixel] as usize..][..LANES];
                let (place, _) = S::as_mut_simd_f32s(place);
                for (place, sum) in place.iter_mut().zip(sums) {
                    *place = if self.add { simd.add_f32s(*place, sum) } else { sum };
                }
            }
        }
    }

    #[inline(always)]
    fn sums<S: Simd, const PIXELS: usize, const VECTORS: usize>(
        &self,
        simd: S,
        starts: [usize; PIXELS],
    ) -> [[S::f32s; VECTORS]; PIXELS] {
        let Inputs { values, runs, length, .. } = self.inputs;
        let mut sums = [[simd.splat_f32s(0.0); VECTORS]; PIXELS];
        for (run, weight) in runs.iter().zip(self.weight.chunks_exact(length)) {
            let values = &values[*run as usize..];
            let (parts, rest) = weight.as_chunks::<LANES>();
            for (part, weight) in parts.iter().enumerate() {
                let rows = starts.map(|start| &values[start + part * LANES..][..LANES]);
                add_products(simd, &rows, weight, &mut sums);
            }
            let rows = starts.map(|start| &values[start + length - rest.len()..][..rest.len()]);
            add_products(simd, &rows, rest, &mut sums);
        }
        sums
    }
}

/// Adds the products of the entries of each row with the weights.
#[inline(always)]
fn add_products<S: Simd, const PIXELS: usize, const VECTORS: usize>(
    simd: S,
    rows: &[&[f32]; PIXELS],
    weight: &[Lanes],
    sums: &mut [[S::f32s; VECTORS]; PIXELS],
) {
    for (entry, weight) in weight.iter().enumerate() {
        let (weight, _) = S::as_simd_f32s(weight);
        let Some(weight) = weight.first_chunk::<VECTORS>() else { continue };
        for (sums, row) in sums.iter_mut().zip(rows) {
            let input = simd.splat_f32s(row[entry]);
            for (sum, weight) in sums.iter_mut().zip(weight) {
                *sum = simd.mul_add_f32s(input, *weight, *sum);
            }
        }
    }
}

struct Correlate<'a> {
    inputs: Inputs<'a>,
    gradient: &'a [f32],
    places: &'a [u32],
    sums: &'a mut [Lanes],
}

impl WithSimd for Correlate<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let starts = self.inputs.starts;
        let places = self.places;
        for pixels in starts.chunks(PIXELS_AT_ONCE).zip(places.chunks(PIXELS_AT_ONCE)) {
            for run in 0..self.inputs.runs.len() {
                match S::F32_LANES {
                    16 => {
                        let end = self.tiles::<S, 16, 1>(simd, run, 0, pixels);
                        self.tiles::<S, 1, 1>(simd, run, end, pixels);
                    }
                    8 => {
                        let end = self.tiles::<S, 6, 2>(simd, run, 0, pixels);
                        let end = self.tiles::<S, 4, 2>(simd, run, end, pixels);
                        self.tiles::<S, 1, 2>(simd, run, end, pixels);
                    }
                    4 => {
                        let end = self.tiles::<S, 4, 4>(simd, run, 0, pixels);
                        self.tiles::<S, 1, 4>(simd, run, end, pixels);
                    }
                    _ => {
                        self.tiles::<S, 1, LANES>(simd, run, 0, pixels);
                    }
                }
            }
        }
    }
}

impl Correlate<'_> {
    /// Adds tiles of `ENTRIES` from the entry `begin` of a run on, as long as whole ones remain; returns the end of the
    /// last.
    #[inline(always)]
    fn tiles<S: Simd, const ENTRIES: usize, const VECTORS: usize>(
        &mut self,
        simd: S,
        run: usize,
        mut begin: usize,
        (starts, places): (&[u32], &[u32]),
    ) -> usize {
        let Inputs { values, runs, length, .. } = self.inputs;
        while begin + ENTRIES <= length {
            let values = &values[runs[run] as usize + begin..];
            let totals = &mut self.sums[run * length + begin..][..ENTRIES];
            let mut sums = [[simd.splat_f32s(0.0); VECTORS]; ENTRIES];
            for (start, place) in starts.iter().zip(places) {
                let inputs = &values[*start as usize..][..ENTRIES];
                let (gradient, _) = S::as_simd_f32s(&self.gradient[*place as usize..][..LANES]);
                let Some(gradient) = gradient.first_chunk::<VECTORS>() else { continue };
                for (sums, input) in sums.iter_mut().zip(inputs) {
                    let input = simd.splat_f32s(*input);
                    for (sum, gradient) in sums.iter_mut().zip(gradient) {
                        *sum = simd.mul_add_f32s(input, *gradient, *sum);
                    }
                }
            }
            for (total, sums) in totals.iter_mut().zip(sums) {
                let (total, _) = S::as_mut_simd_f32s(total);
                total.iter_mut().zip(sums).for_each(|(total, sum)| *total = simd.add_f32s(*total, sum));
            }
            begin += ENTRIES;
        }
        begin
    }
}
