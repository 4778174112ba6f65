//! The two products of a convolution, with a tile of sums in registers.
//!
//! ```text
//! multiply:  output[pixel, lane]  =  sum over entries of the kernel: input[start of pixel + entry] weight[entry, lane]
//! correlate: sums[entry, lane]   +=  sum over pixels: input[start of pixel + entry] gradient[pixel, lane]
//! ```
//!
//! The entries under a kernel are a few *runs* of inputs that lie one after the other. Where a vector holds the lanes of a
//! plane, a tile spans two planes: an input that is read once then takes part in two products.

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

impl Inputs<'_> {
    /// The entries under a kernel.
    fn entries(&self) -> usize {
        self.runs.len() * self.length
    }
}

/// The place of each pixel in planes that follow one another.
#[derive(Clone, Copy, Debug)]
pub(super) struct PixelPlaces<'a> {
    pub(super) places: &'a [u32],
    /// Values of a plane.
    pub(super) plane: usize,
}

/// The products of all pixels with the weights `[planes, entries]`, in O(pixels x entries x planes) operations. The value of
/// each pixel goes to its place in each plane of `output`; it is added there or replaces what is there.
pub(super) fn multiply(inputs: Inputs<'_>, weights: &[Lanes], pixels: PixelPlaces<'_>, output: &mut [f32], add: bool) {
    Arch::new().dispatch(Multiply { inputs, weights, pixels, output, add });
}

/// Adds to `sums`, `[planes, entries]`, the products of inputs and gradients over all pixels; the gradient of each lies at
/// its place in each plane of `gradient`.
pub(super) fn correlate(inputs: Inputs<'_>, gradient: &[f32], pixels: PixelPlaces<'_>, sums: &mut [Lanes]) {
    Arch::new().dispatch(Correlate { inputs, gradient, pixels, sums });
}

struct Multiply<'a> {
    inputs: Inputs<'a>,
    weights: &'a [Lanes],
    pixels: PixelPlaces<'a>,
    output: &'a mut [f32],
    add: bool,
}

impl WithSimd for Multiply<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let planes = self.output.len() / self.pixels.plane;
        // As many sums as there are registers for: pixels, planes and vectors of a pixel in a plane.
        match S::F32_LANES {
            16 => {
                let paired = planes - planes % 2;
                (0..paired).step_by(2).for_each(|plane| self.plane::<S, 12, 2, 1>(simd, plane));
                (paired..planes).for_each(|plane| self.plane::<S, 12, 1, 1>(simd, plane));
            }
            8 => (0..planes).for_each(|plane| self.plane::<S, 6, 1, 2>(simd, plane)),
            4 => (0..planes).for_each(|plane| self.plane::<S, 4, 1, 4>(simd, plane)),
            _ => (0..planes).for_each(|plane| self.plane::<S, 1, 1, LANES>(simd, plane)),
        }
    }
}

impl Multiply<'_> {
    /// Computes all pixels of `PLANES` planes.
    #[inline(always)]
    fn plane<S: Simd, const PIXELS: usize, const PLANES: usize, const VECTORS: usize>(
        &mut self,
        simd: S,
        plane: usize,
    ) {
        let end = self.tiles::<S, PIXELS, PLANES, VECTORS>(simd, plane, 0);
        let end = self.tiles::<S, 4, PLANES, VECTORS>(simd, plane, end);
        self.tiles::<S, 1, PLANES, VECTORS>(simd, plane, end);
    }

    /// Computes tiles of `PIXELS` from a pixel on, as long as whole ones remain; returns the end of the last.
    #[inline(always)]
    fn tiles<S: Simd, const PIXELS: usize, const PLANES: usize, const VECTORS: usize>(
        &mut self,
        simd: S,
        plane: usize,
        first: usize,
    ) -> usize {
        let entries = self.inputs.entries();
        let weights = std::array::from_fn(|index| &self.weights[(plane + index) * entries..][..entries]);
        let (starts, _) = self.inputs.starts[first..].as_chunks::<PIXELS>();
        let (places, _) = self.pixels.places[first..].as_chunks::<PIXELS>();
        for (starts, places) in starts.iter().zip(places) {
            let sums = self.sums::<S, PIXELS, PLANES, VECTORS>(simd, starts, weights);
            for (place, sums) in places.iter().zip(sums) {
                for (index, sums) in sums.into_iter().enumerate() {
                    let place = (plane + index) * self.pixels.plane + *place as usize;
                    let (place, _) = S::as_mut_simd_f32s(&mut self.output[place..][..LANES]);
                    for (place, sum) in place.iter_mut().zip(sums) {
                        *place = if self.add { simd.add_f32s(*place, sum) } else { sum };
                    }
                }
            }
        }
        first + starts.len() * PIXELS
    }

    #[inline(always)]
    fn sums<S: Simd, const PIXELS: usize, const PLANES: usize, const VECTORS: usize>(
        &self,
        simd: S,
        starts: &[u32; PIXELS],
        weights: [&[Lanes]; PLANES],
    ) -> [[[S::f32s; VECTORS]; PLANES]; PIXELS] {
        let Inputs { values, runs, length, .. } = self.inputs;
        let mut sums = [[[simd.splat_f32s(0.0); VECTORS]; PLANES]; PIXELS];
        for (index, run) in runs.iter().enumerate() {
            let values = &values[*run as usize..];
            let weights = weights.map(|weights| weights[index * length..][..length].as_chunks::<LANES>());
            for part in 0..length / LANES {
                let rows = starts.map(|start| &values[start as usize + part * LANES..][..LANES]);
                add_products(simd, &rows, weights.map(|(parts, _)| &parts[part][..]), &mut sums);
            }
            let rest = length % LANES;
            let rows = starts.map(|start| &values[start as usize + length - rest..][..rest]);
            add_products(simd, &rows, weights.map(|(_, rest)| rest), &mut sums);
        }
        sums
    }
}

/// Adds the products of the entries of each row with the weights of each plane.
#[inline(always)]
fn add_products<S: Simd, const PIXELS: usize, const PLANES: usize, const VECTORS: usize>(
    simd: S,
    rows: &[&[f32]; PIXELS],
    weights: [&[Lanes]; PLANES],
    sums: &mut [[[S::f32s; VECTORS]; PLANES]; PIXELS],
) {
    for entry in 0..weights[0].len() {
        let weights = weights.map(|weights| vectors::<S, VECTORS>(&weights[entry]));
        for (sums, row) in sums.iter_mut().zip(rows) {
            let input = simd.splat_f32s(row[entry]);
            add_multiple(simd, input, weights, sums);
        }
    }
}

/// Adds the multiples of the vectors of each plane by `input`.
#[inline(always)]
fn add_multiple<S: Simd, const PLANES: usize, const VECTORS: usize>(
    simd: S,
    input: S::f32s,
    of: [[S::f32s; VECTORS]; PLANES],
    sums: &mut [[S::f32s; VECTORS]; PLANES],
) {
    for (sums, of) in sums.iter_mut().zip(of) {
        for (sum, of) in sums.iter_mut().zip(of) {
            *sum = simd.mul_add_f32s(input, of, *sum);
        }
    }
}

/// The vectors of the lanes of a pixel.
#[inline(always)]
fn vectors<S: Simd, const VECTORS: usize>(lanes: &[f32]) -> [S::f32s; VECTORS] {
    let (vectors, _) = S::as_simd_f32s(lanes);
    std::array::from_fn(|vector| vectors[vector])
}

struct Correlate<'a> {
    inputs: Inputs<'a>,
    gradient: &'a [f32],
    pixels: PixelPlaces<'a>,
    sums: &'a mut [Lanes],
}

impl WithSimd for Correlate<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let planes = self.gradient.len() / self.pixels.plane;
        match S::F32_LANES {
            16 => {
                let paired = planes - planes % 2;
                (0..paired).step_by(2).for_each(|plane| self.plane::<S, 8, 2, 1>(simd, plane));
                (paired..planes).for_each(|plane| self.plane::<S, 16, 1, 1>(simd, plane));
            }
            8 => (0..planes).for_each(|plane| self.plane::<S, 6, 1, 2>(simd, plane)),
            4 => (0..planes).for_each(|plane| self.plane::<S, 4, 1, 4>(simd, plane)),
            _ => (0..planes).for_each(|plane| self.plane::<S, 1, 1, LANES>(simd, plane)),
        }
    }
}

impl Correlate<'_> {
    /// Adds the products of all entries with the gradients of `PLANES` planes.
    #[inline(always)]
    fn plane<S: Simd, const ENTRIES: usize, const PLANES: usize, const VECTORS: usize>(
        &mut self,
        simd: S,
        plane: usize,
    ) {
        let starts = self.inputs.starts.chunks(PIXELS_AT_ONCE);
        for pixels in starts.zip(self.pixels.places.chunks(PIXELS_AT_ONCE)) {
            for run in 0..self.inputs.runs.len() {
                let end = self.tiles::<S, ENTRIES, PLANES, VECTORS>(simd, plane, (run, 0), pixels);
                let end = self.tiles::<S, 4, PLANES, VECTORS>(simd, plane, (run, end), pixels);
                self.tiles::<S, 1, PLANES, VECTORS>(simd, plane, (run, end), pixels);
            }
        }
    }

    /// Adds tiles of `ENTRIES` from the entry `begin` of a run on, as long as whole ones remain; returns the end of the
    /// last.
    #[inline(always)]
    fn tiles<S: Simd, const ENTRIES: usize, const PLANES: usize, const VECTORS: usize>(
        &mut self,
        simd: S,
        plane: usize,
        (run, mut begin): (usize, usize),
        (starts, places): (&[u32], &[u32]),
    ) -> usize {
        let Inputs { values, runs, length, .. } = self.inputs;
        let gradients: [_; PLANES] =
            std::array::from_fn(|index| &self.gradient[(plane + index) * self.pixels.plane..][..self.pixels.plane]);
        while begin + ENTRIES <= length {
            let values = &values[runs[run] as usize + begin..];
            let mut sums = [[[simd.splat_f32s(0.0); VECTORS]; PLANES]; ENTRIES];
            for (start, place) in starts.iter().zip(places) {
                let inputs = &values[*start as usize..][..ENTRIES];
                let gradients = gradients.map(|plane| vectors::<S, VECTORS>(&plane[*place as usize..][..LANES]));
                for (sums, input) in sums.iter_mut().zip(inputs) {
                    add_multiple(simd, simd.splat_f32s(*input), gradients, sums);
                }
            }
            for (entry, sums) in sums.into_iter().enumerate() {
                for (index, sums) in sums.into_iter().enumerate() {
                    let total = &mut self.sums[((plane + index) * runs.len() + run) * length + begin + entry];
                    let (total, _) = S::as_mut_simd_f32s(total);
                    total.iter_mut().zip(sums).for_each(|(total, sum)| *total = simd.add_f32s(*total, sum));
                }
            }
            begin += ENTRIES;
        }
        begin
    }
}
