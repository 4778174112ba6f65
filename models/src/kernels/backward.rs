//! Backward pass of a block: from the gradient of pooled outputs to those of weights, biases and images.
//!
//! Each value of the gradient belongs to one pixel, the winner of its four, or to none where the output was rectified.
//! So instead of matrix products over all pixels, each value adds a multiple of its kernel's inputs to the gradient of
//! the weights, and a multiple of the weights to the gradient of those inputs.

use rayon::prelude::*;

use super::forward::{RECTIFIED, lower};
use super::geometry::Geometry;
use super::sparse::{RunSums, Runs, add_shares};

/// The number of images whose gradients are added up one after the other. These sums are then added in order, so that
/// the bits do not depend on the number of threads.
const IMAGES_AT_ONCE: usize = 8;

/// The gradients of the weights, `[outputs, channels, side, side]`, and of the biases, given the `gradient` of the
/// output and the winning pixels. O(values with a gradient x side^2 x channels) operations.
pub(crate) fn of_weight(geometry: &Geometry, images: &[f32], gradient: &[f32], winners: &[u8]) -> (Vec<f32>, Vec<f32>) {
    let pooled = IMAGES_AT_ONCE * geometry.pooled();
    let parts: Vec<WeightSums<'_>> = images
        .par_chunks(IMAGES_AT_ONCE * geometry.image())
        .zip(gradient.par_chunks(pooled).zip(winners.par_chunks(pooled)))
        .map(|(images, (gradient, winners))| {
            let mut sums = WeightSums::new(geometry);
            let pooled = gradient.chunks_exact(geometry.pooled()).zip(winners.chunks_exact(geometry.pooled()));
            for (image, (gradient, winners)) in images.chunks_exact(geometry.image()).zip(pooled) {
                sums.add(image, gradient, winners);
            }
            sums
        })
        .collect();
    let mut weight = vec![0.0; geometry.outputs * geometry.kernel()];
    let mut bias = vec![0.0; geometry.outputs];
    for part in parts {
        add(&mut weight, &part.weight);
        add(&mut bias, &part.bias);
    }
    (geometry.in_given_order(&weight), bias)
}

/// The gradient of the images, `[batch, height, width, channels]`, in as many operations as `of_weight` takes.
pub(crate) fn of_images(geometry: &Geometry, weight: &[f32], gradient: &[f32], winners: &[u8]) -> Vec<f32> {
    let weight = geometry.by_output(weight);
    let corners = geometry.corners();
    let runs = Runs {
        rows: geometry.side,
        length: geometry.run(),
        sum_stride: geometry.padded_row(),
        term_stride: geometry.run(),
    };
    let batch = gradient.len() / geometry.pooled();
    let mut images = vec![0.0; batch * geometry.image()];
    images
        .par_chunks_exact_mut(geometry.image())
        .zip(gradient.par_chunks_exact(geometry.pooled()).zip(winners.par_chunks_exact(geometry.pooled())))
        .for_each_init(
            || (RunSums::new(corners.len(), geometry.outputs), vec![0.0; geometry.padded()]),
            |(shares, padded), (image, (gradient, winners))| {
                shares.clear();
                for_each_active(geometry, gradient, winners, |pixel, output, gradient| {
                    shares.push(pixel, output * geometry.kernel(), gradient);
                });
                padded.fill(0.0);
                add_shares(padded, &corners, &weight, shares, runs);
                geometry.unpad(padded, image);
            },
        );
    images
}

/// The gradients of weights and biases over some images.
struct WeightSums<'a> {
    geometry: &'a Geometry,
    /// `[outputs, side, side, channels]`.
    weight: Vec<f32>,
    bias: Vec<f32>,
    /// The place where the weights of each output begin.
    kernels: Vec<u32>,
    shares: RunSums,
    padded: Vec<f32>,
    /// The inputs of every kernel in a row, for shallow kernels; else empty.
    lowered: Vec<f32>,
}

impl<'a> WeightSums<'a> {
    fn new(geometry: &'a Geometry) -> Self {
        let lowered = if geometry.is_shallow() { geometry.height * geometry.width * geometry.kernel() } else { 0 };
        Self {
            geometry,
            weight: vec![0.0; geometry.outputs * geometry.kernel()],
            bias: vec![0.0; geometry.outputs],
            kernels: (0..geometry.outputs).map(|output| (output * geometry.kernel()) as u32).collect(),
            shares: RunSums::new(geometry.outputs, geometry.height * geometry.width / 4),
            padded: vec![0.0; geometry.padded()],
            lowered: vec![0.0; lowered],
        }
    }

    fn add(&mut self, image: &[f32], gradient: &[f32], winners: &[u8]) {
        let geometry = self.geometry;
        let shallow = geometry.is_shallow();
        let place = |pixel: usize| match shallow {
            true => pixel * geometry.kernel(),
            false => geometry.corner(pixel),
        };
        self.shares.clear();
        for_each_active(geometry, gradient, winners, |pixel, output, gradient| {
            self.shares.push(output, place(pixel), gradient);
            self.bias[output] += gradient;
        });
        geometry.pad(image, &mut self.padded);
        let run = geometry.run();
        let term_stride = geometry.padded_row();
        if shallow {
            lower(geometry, &self.padded, &mut self.lowered);
            let runs = Runs { rows: 1, length: geometry.kernel(), sum_stride: 0, term_stride: 0 };
            add_shares(&mut self.weight, &self.kernels, &self.lowered, &self.shares, runs);
        } else {
            let runs = Runs { rows: geometry.side, length: run, sum_stride: run, term_stride };
            add_shares(&mut self.weight, &self.kernels, &self.padded, &self.shares, runs);
        }
    }
}

/// Calls `visit` with the pixel, the output and the gradient of each value that has one.
fn for_each_active(geometry: &Geometry, gradient: &[f32], winners: &[u8], mut visit: impl FnMut(usize, usize, f32)) {
    let pooled = gradient.chunks_exact(geometry.outputs).zip(winners.chunks_exact(geometry.outputs));
    for (place, (gradient, winners)) in pooled.enumerate() {
        let half = geometry.width / 2;
        let first = 2 * (place / half * geometry.width + place % half);
        let four = [first, first + 1, first + geometry.width, first + geometry.width + 1];
        for (output, (gradient, winner)) in gradient.iter().zip(winners).enumerate() {
            if *winner < RECTIFIED && *gradient != 0.0 {
                visit(four[usize::from(*winner)], output, *gradient);
            }
        }
    }
}

fn add(sums: &mut [f32], terms: &[f32]) {
    for (sum, term) in sums.iter_mut().zip(terms) {
        *sum += term;
    }
}
