//! Forward pass of a block: from images to pooled, rectified outputs.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

use super::geometry::Geometry;

/// The winner where no pixel of the four is above zero: the output is zero, and has no gradient.
pub(crate) const RECTIFIED: u8 = 4;

/// The output of a block.
#[derive(Debug)]
pub(crate) struct Pooled {
    /// `[batch, height / 2, width / 2, outputs]`.
    pub(crate) values: Vec<f32>,
    /// The index, row by row, of the pixel of the four that each value comes from, or [`RECTIFIED`].
    pub(crate) winners: Vec<u8>,
}

/// `relu(max of each 2 x 2 of (images * weight) + bias)`, in O(images x outputs x side^2)
/// operations for `images` of `[batch, height, width, channels]`, `weight` of
/// `[outputs, channels, side, side]` and `bias` of `[outputs]`.
pub(crate) fn forward(geometry: &Geometry, images: &[f32], weight: &[f32], bias: &[f32]) -> Pooled {
    let batch = images.len() / geometry.image();
    let weight = geometry.by_input(weight);
    let mut values = vec![0.0; batch * geometry.pooled()];
    let mut winners = vec![RECTIFIED; values.len()];
    images
        .par_chunks_exact(geometry.image())
        .zip(values.par_chunks_exact_mut(geometry.pooled()))
        .zip(winners.par_chunks_exact_mut(geometry.pooled()))
        .for_each_init(
            || Workspace::new(geometry),
            |workspace, ((image, values), winners)| {
                workspace.convolve(image, &weight);
                pool(geometry, &workspace.convolved, bias, values, winners);
            },
        );
    Pooled { values, winners }
}

/// The buffers for one image.
struct Workspace<'a> {
    geometry: &'a Geometry,
    /// The image with zeros around it.
    padded: Vec<f32>,
    /// For each pixel the inputs under its kernel, or under one row of it.
    lowered: Vec<f32>,
    /// `[height, width, outputs]`, without the bias.
    convolved: Vec<f32>,
}

impl<'a> Workspace<'a> {
    fn new(geometry: &'a Geometry) -> Self {
        let depth = if geometry.is_shallow() { geometry.kernel() } else { geometry.run() };
        Self {
            geometry,
            padded: vec![0.0; geometry.padded()],
            lowered: vec![0.0; geometry.height * geometry.width * depth],
            convolved: vec![0.0; geometry.convolved()],
        }
    }

    fn convolve(&mut self, image: &[f32], weight: &[f32]) {
        self.geometry.pad(image, &mut self.padded);
        if self.geometry.is_shallow() {
            lower(self.geometry, &self.padded, &mut self.lowered);
            let depth = self.geometry.kernel();
            self.multiply(weight, depth, 0..self.geometry.height, 0, Accum::Replace);
        } else {
            lower_rows(self.geometry, &self.padded, &mut self.lowered);
            self.multiply_by_rows(weight);
        }
    }

    /// One product for each row of the kernel, over the output rows for which it meets the image. The middle one comes
    /// first, because it meets the image for all of them and replaces the old values.
    fn multiply_by_rows(&mut self, weight: &[f32]) {
        let Geometry { height, side, outputs, .. } = *self.geometry;
        let run = self.geometry.run();
        let margin = self.geometry.margin();
        let rows = std::iter::once(margin).chain((0..side).filter(|&row| row != margin));
        for row in rows {
            let begin = margin.saturating_sub(row);
            let end = height - row.saturating_sub(margin);
            let weight = &weight[row * run * outputs..][..run * outputs];
            let accumulate = if row == margin { Accum::Replace } else { Accum::Add };
            self.multiply(weight, run, begin..end, begin + row - margin, accumulate);
        }
    }

    /// `convolved[rows] (+)= lowered[from row first] x weight`, with `depth` inputs for each pixel.
    fn multiply(
        &mut self,
        weight: &[f32],
        depth: usize,
        rows: std::ops::Range<usize>,
        first: usize,
        accumulate: Accum,
    ) {
        let Geometry { width, outputs, .. } = *self.geometry;
        let pixels = rows.len() * width;
        let convolved = &mut self.convolved[rows.start * width * outputs..][..pixels * outputs];
        let lowered = &self.lowered[first * width * depth..][..pixels * depth];
        matmul(
            MatMut::from_column_major_slice_mut(convolved, outputs, pixels),
            accumulate,
            MatRef::from_column_major_slice(weight, outputs, depth),
            MatRef::from_column_major_slice(lowered, depth, pixels),
            1.0,
            Par::Seq,
        );
    }
}

/// Copies, for each pixel, the run of inputs under a kernel row in that image row.
fn lower_rows(geometry: &Geometry, padded: &[f32], lowered: &mut [f32]) {
    let run = geometry.run();
    let rows = padded.chunks_exact(geometry.padded_row()).skip(geometry.margin());
    for (row, lowered) in rows.zip(lowered.chunks_exact_mut(geometry.width * run)) {
        for (x, to) in lowered.chunks_exact_mut(run).enumerate() {
            to.copy_from_slice(&row[x * geometry.channels..][..run]);
        }
    }
}

/// Copies, for each pixel, all inputs under its kernel.
pub(crate) fn lower(geometry: &Geometry, padded: &[f32], lowered: &mut [f32]) {
    for (pixel, to) in lowered.chunks_exact_mut(geometry.kernel()).enumerate() {
        let corner = geometry.corner(pixel);
        for (row, to) in to.chunks_exact_mut(geometry.run()).enumerate() {
            to.copy_from_slice(&padded[corner + row * geometry.padded_row()..][..to.len()]);
        }
    }
}

/// The largest of each 2 x 2, plus its bias, or zero if that is negative. NaN stays NaN.
fn pool(geometry: &Geometry, convolved: &[f32], bias: &[f32], values: &mut [f32], winners: &mut [u8]) {
    let Geometry { width, outputs, .. } = *geometry;
    let row = width * outputs;
    let pairs = convolved.chunks_exact(2 * row);
    let pooled = values.chunks_exact_mut(row / 2).zip(winners.chunks_exact_mut(row / 2));
    for (pair, (values, winners)) in pairs.zip(pooled) {
        let (above, below) = pair.split_at(row);
        let fours = above.chunks_exact(2 * outputs).zip(below.chunks_exact(2 * outputs));
        let pooled = values.chunks_exact_mut(outputs).zip(winners.chunks_exact_mut(outputs));
        for ((above, below), (values, winners)) in fours.zip(pooled) {
            let (a, b) = above.split_at(outputs);
            let (c, d) = below.split_at(outputs);
            pool_pixel([a, b, c, d], bias, values, winners);
        }
    }
}

fn pool_pixel([a, b, c, d]: [&[f32]; 4], bias: &[f32], values: &mut [f32], winners: &mut [u8]) {
    let pixels = a.iter().zip(b).zip(c).zip(d).zip(bias);
    for (((((a, b), c), d), bias), (value, winner)) in pixels.zip(values.iter_mut().zip(winners)) {
        let mut best = *a;
        let mut place = 0;
        for (candidate, at) in [(*b, 1), (*c, 2), (*d, 3)] {
            let better = candidate > best || candidate.is_nan();
            best = if better { candidate } else { best };
            place = if better { at } else { place };
        }
        best += bias;
        *value = if best <= 0.0 { 0.0 } else { best };
        *winner = if best <= 0.0 { RECTIFIED } else { place };
    }
}
