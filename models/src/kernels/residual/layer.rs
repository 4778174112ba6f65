//! A convolution and the norm that follows it, on one image at a time.

use super::group_norm::{LaneLine, NormGradient, OfNorm, Statistics};
use super::patches::{Geometry, Patches, Planes, Tap};
use super::product::{Inputs, PixelPlaces, correlate, multiply};
use super::{LANES, Lanes};

/// The places that a convolution reads and writes, the same for all images.
#[derive(Clone, Debug)]
pub(super) struct ConvNorm {
    pub(super) geometry: Geometry,
    forward: Patches,
    backward: Vec<Patches>,
    /// The place of the gradient of each output in its padded plane.
    gradients: Vec<u32>,
}

/// The weights of a layer in the order in which they are read, and those of its norm.
#[derive(Clone, Debug)]
pub(super) struct Weights<'a> {
    forward: Vec<Lanes>,
    backward: Vec<Vec<Lanes>>,
    scale: &'a [f32],
    shift: &'a [f32],
}

/// The gradients of the weights of a layer.
#[derive(Clone, Debug)]
pub(super) struct Gradients {
    weight: Vec<Lanes>,
    norm: Vec<OfNorm>,
}

impl ConvNorm {
    pub(super) fn new(geometry: Geometry) -> Self {
        Self {
            geometry,
            forward: Patches::forward(&geometry),
            backward: Patches::backward(&geometry),
            gradients: geometry.padded_output().places(),
        }
    }

    /// Orders `weight`, `[to, from, side, side]`, for the way forward, and for the way back if it is `wanted`.
    pub(super) fn weights<'a>(&self, [weight, scale, shift]: [&'a [f32]; 3], wanted: bool) -> Weights<'a> {
        let Geometry { from, to, .. } = self.geometry;
        let forward = (0..to / LANES).flat_map(|plane| {
            self.forward.weights.iter().map(move |tap| {
                std::array::from_fn(|lane| weight[self.entry(plane * LANES + lane, tap.channel, tap.row, tap.column)])
            })
        });
        let backward = |patches: &Patches| -> Vec<Lanes> {
            let planes = (0..from / LANES).flat_map(|plane| patches.weights.iter().map(move |tap| (plane, tap)));
            let of_row = |(plane, tap): (usize, &Tap)| -> Lanes {
                std::array::from_fn(|lane| weight[self.entry(tap.channel, plane * LANES + lane, tap.row, tap.column)])
            };
            planes.map(of_row).collect()
        };
        let backward = if wanted { self.backward.iter().map(backward).collect() } else { Vec::new() };
        Weights { forward: forward.collect(), backward, scale, shift }
    }

    /// The place of a weight in `[to, from, side, side]`.
    fn entry(&self, output: usize, input: usize, row: usize, column: usize) -> usize {
        let Geometry { from, side, .. } = self.geometry;
        ((output * from + input) * side + row) * side + column
    }

    /// Convolves an image with its margins; writes the statistics of each plane.
    pub(super) fn convolve(
        &self,
        weights: &Weights<'_>,
        image: &[f32],
        output: &mut [f32],
        statistics: &mut [Statistics],
    ) {
        let Patches { starts, runs, length, places, .. } = &self.forward;
        let inputs = Inputs { values: image, starts, runs, length: *length };
        multiply(inputs, &weights.forward, PixelPlaces { places, plane: self.plane() }, output, false);
        for (plane, statistics) in output.chunks_exact(self.plane()).zip(statistics) {
            *statistics = Statistics::of(plane);
        }
    }

    /// Writes the normalized and rectified outputs into the middle of `planes`.
    pub(super) fn rectified(
        &self,
        weights: &Weights<'_>,
        (output, statistics): (&[f32], &[Statistics]),
        planes: Planes,
        to: &mut [f32],
    ) {
        let lines = self.lines(weights, statistics);
        for ((plane, to), line) in output.chunks_exact(self.plane()).zip(to.chunks_exact_mut(planes.size())).zip(lines)
        {
            line.rectified(plane, planes, to);
        }
    }

    /// Writes the rectified sum of the normalized outputs and the input of the block, which has gone through another layer
    /// if one is given.
    pub(super) fn rectified_sum(
        &self,
        (weights, output, statistics): (&Weights<'_>, &[f32], &[Statistics]),
        image: &[f32],
        shortcut: Option<(&Self, &Weights<'_>, &[f32], &[Statistics])>,
        to: &mut [f32],
    ) {
        let residual = shortcut.map_or(image, |(_, _, output, _)| output);
        let mut others = shortcut.map(|(layer, weights, _, statistics)| layer.lines(weights, statistics));
        let planes = output.chunks_exact(self.plane()).zip(residual.chunks_exact(self.plane()));
        let planes = planes.zip(to.chunks_exact_mut(self.plane()));
        for (((plane, residual), to), line) in planes.zip(self.lines(weights, statistics)) {
            line.rectified_sum(plane, residual, others.as_mut().and_then(Iterator::next).as_ref(), to);
        }
    }

    /// The lines by which the outputs are normalized, plane by plane.
    fn lines<'a>(&self, weights: &'a Weights<'_>, statistics: &'a [Statistics]) -> impl Iterator<Item = LaneLine> {
        let norms = weights.scale.chunks_exact(LANES).zip(weights.shift.chunks_exact(LANES));
        statistics.iter().zip(norms).map(|(statistics, (scale, shift))| statistics.line(scale, shift))
    }

    /// Goes back through norm and, if the output was `rectified`, rectifier: from the gradient of the output of the layer to
    /// that of the convolution's, with its margins, which are left alone.
    pub(super) fn of_norm(
        &self,
        weights: &Weights<'_>,
        (output, statistics): (&[f32], &[Statistics]),
        gradient: &[f32],
        rectified: bool,
        (of_output, sums): (&mut [f32], &mut Gradients),
    ) {
        let planes = self.geometry.padded_output();
        let norms = weights.scale.chunks_exact(LANES).zip(weights.shift.chunks_exact(LANES));
        let inputs = output.chunks_exact(self.plane()).zip(gradient.chunks_exact(self.plane()));
        let outputs = of_output.chunks_exact_mut(planes.size()).zip(&mut sums.norm);
        for ((((plane, gradient), statistics), (scale, shift)), (of_plane, sums)) in
            inputs.zip(statistics).zip(norms).zip(outputs)
        {
            let norm = NormGradient { plane, statistics: *statistics, scale, shift, rectified };
            sums.add(&norm.write(gradient, planes, of_plane));
        }
    }

    /// Adds the gradients of the weights for an image with its margins, given that of the output with its margins.
    pub(super) fn of_weights(&self, image: &[f32], of_output: &[f32], sums: &mut Gradients) {
        let Patches { starts, runs, length, .. } = &self.forward;
        let inputs = Inputs { values: image, starts, runs, length: *length };
        let pixels = PixelPlaces { places: &self.gradients, plane: self.geometry.padded_output().size() };
        correlate(inputs, of_output, pixels, &mut sums.weight);
    }

    /// Computes the gradient of an image, without its margins: adds it to what is there or replaces it. PixelPlaces that no
    /// kernel meets are left alone.
    pub(super) fn of_image(&self, weights: &Weights<'_>, of_output: &[f32], of_image: &mut [f32], add: bool) {
        let plane = self.geometry.height * self.geometry.width * LANES;
        for (Patches { starts, runs, length, places, .. }, weights) in self.backward.iter().zip(&weights.backward) {
            let inputs = Inputs { values: of_output, starts, runs, length: *length };
            multiply(inputs, weights, PixelPlaces { places, plane }, of_image, add);
        }
    }

    pub(super) fn no_gradients(&self) -> Gradients {
        let planes = self.geometry.to / LANES;
        let weight = vec![[0.0; LANES]; planes * self.geometry.entries()];
        Gradients { weight, norm: vec![OfNorm::default(); planes] }
    }

    /// The gradients of the weight, `[to, from, side, side]`, the scale and the shift.
    pub(super) fn in_given_order(&self, gradients: &Gradients) -> [Vec<f32>; 3] {
        let mut weight = vec![0.0; self.geometry.to * self.geometry.entries()];
        for (plane, rows) in gradients.weight.chunks_exact(self.geometry.entries()).enumerate() {
            for (tap, row) in self.forward.weights.iter().zip(rows) {
                for (lane, value) in row.iter().enumerate() {
                    weight[self.entry(plane * LANES + lane, tap.channel, tap.row, tap.column)] = *value;
                }
            }
        }
        let of_norm = |part: fn(&OfNorm) -> &Lanes| gradients.norm.iter().flat_map(part).copied().collect();
        [weight, of_norm(|norm| &norm.scale), of_norm(|norm| &norm.shift)]
    }

    /// Values of a plane of the output.
    fn plane(&self) -> usize {
        self.geometry.pixels() * LANES
    }

    /// Planes of the output.
    pub(super) fn planes(&self) -> usize {
        self.geometry.to / LANES
    }
}

impl Gradients {
    pub(super) fn add(&mut self, other: &Self) {
        let weights = self.weight.iter_mut().zip(&other.weight);
        weights.for_each(|(sum, term)| sum.iter_mut().zip(term).for_each(|(sum, term)| *sum += term));
        self.norm.iter_mut().zip(&other.norm).for_each(|(sum, term)| sum.add(term));
    }
}
