//! From the gradient of pooled outputs to those of weights, biases and images.
//!
//! Each value of the gradient belongs to one pixel, the winner of its four, and to none where the
//! output was rectified. So instead of matrix products over all pixels, each value adds a multiple
//! of the inputs that its kernel met to the gradient of the weights, and a multiple of the weights
//! to the gradient of those inputs.

use pulp::Arch;
use rayon::prelude::*;

use super::forward::{RECTIFIED, lower};
use super::geometry::Geometry;

/// Images whose gradients are added up one after the other. These sums are then added in order, so
/// that the bits do not depend on the number of threads.
const IMAGES_AT_ONCE: usize = 8;

/// Sums kept in registers.
const LANES: usize = 32;

/// The gradients of the weights, `[outputs, channels, side, side]`, and of the biases, given the
/// `gradient` of the output and which pixels won.
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
        add(&mut weight, 1.0, &part.weight);
        add(&mut bias, 1.0, &part.bias);
    }
    (geometry.from_by_output(&weight), bias)
}

/// The gradient of the images, `[batch, height, width, channels]`.
pub(crate) fn of_images(geometry: &Geometry, weight: &[f32], gradient: &[f32], winners: &[u8]) -> Vec<f32> {
    let weight = geometry.by_output(weight);
    let batch = gradient.len() / geometry.pooled();
    let mut images = vec![0.0; batch * geometry.image()];
    images
        .par_chunks_exact_mut(geometry.image())
        .zip(gradient.par_chunks_exact(geometry.pooled()).zip(winners.par_chunks_exact(geometry.pooled())))
        .for_each_init(
            || (Active::new(geometry), vec![0.0; geometry.padded()]),
            |(active, padded), (image, (gradient, winners))| {
                active.gather(geometry, gradient, winners, |y, x| geometry.corner(y, x));
                padded.fill(0.0);
                Arch::new().dispatch(|| add_to_image(geometry, active, &weight, padded));
                geometry.unpad(padded, image);
            },
        );
    images
}

/// Adds the weights of each output to what its active pixels saw.
#[inline(always)]
fn add_to_image(geometry: &Geometry, active: &Active, weight: &[f32], padded: &mut [f32]) {
    let (run, padded_row) = (geometry.run(), geometry.padded_row());
    for (output, weight) in weight.chunks_exact(geometry.kernel()).enumerate() {
        for &(corner, gradient) in active.of(output) {
            for (row, weight) in weight.chunks_exact(run).enumerate() {
                add(&mut padded[corner + row * padded_row..][..run], gradient, weight);
            }
        }
    }
}

/// The gradients of weights and biases over some images.
struct WeightSums<'a> {
    geometry: &'a Geometry,
    /// `[outputs, side, side, channels]`.
    weight: Vec<f32>,
    bias: Vec<f32>,
    active: Active,
    padded: Vec<f32>,
    /// Every kernel's inputs in a row, where the kernel has few.
    lowered: Vec<f32>,
}

impl<'a> WeightSums<'a> {
    fn new(geometry: &'a Geometry) -> Self {
        let lowered = if geometry.is_shallow() { geometry.height * geometry.width * geometry.kernel() } else { 0 };
        Self {
            geometry,
            weight: vec![0.0; geometry.outputs * geometry.kernel()],
            bias: vec![0.0; geometry.outputs],
            active: Active::new(geometry),
            padded: vec![0.0; geometry.padded()],
            lowered: vec![0.0; lowered],
        }
    }

    fn add(&mut self, image: &[f32], gradient: &[f32], winners: &[u8]) {
        let geometry = self.geometry;
        geometry.pad(image, &mut self.padded);
        if geometry.is_shallow() {
            lower(geometry, &self.padded, &mut self.lowered);
            let place = |y, x| (y * geometry.width + x) * geometry.kernel();
            self.active.gather(geometry, gradient, winners, place);
        } else {
            self.active.gather(geometry, gradient, winners, |y, x| geometry.corner(y, x));
        }
        Arch::new().dispatch(|| self.add_active());
    }

    #[inline(always)]
    fn add_active(&mut self) {
        let geometry = self.geometry;
        for (output, weight) in self.weight.chunks_exact_mut(geometry.kernel()).enumerate() {
            let active = self.active.of(output);
            for &(_, gradient) in active {
                self.bias[output] += gradient;
            }
            if geometry.is_shallow() {
                add_runs(weight, &self.lowered, active);
                continue;
            }
            for (row, weight) in weight.chunks_exact_mut(geometry.run()).enumerate() {
                add_runs(weight, &self.padded[row * geometry.padded_row()..], active);
            }
        }
    }
}

/// Adds to `sums` the run of `inputs` at the place of each active pixel, times its gradient.
#[inline(always)]
fn add_runs(sums: &mut [f32], inputs: &[f32], active: &[(usize, f32)]) {
    let (blocks, rest) = sums.as_chunks_mut::<LANES>();
    let mut begin = 0;
    for sums in blocks {
        let mut total = *sums;
        for &(place, gradient) in active {
            add(&mut total, gradient, &inputs[place + begin..][..LANES]);
        }
        *sums = total;
        begin += LANES;
    }
    if !rest.is_empty() {
        for &(place, gradient) in active {
            add(rest, gradient, &inputs[place + begin..][..rest.len()]);
        }
    }
}

/// `sums += factor * terms`.
#[inline(always)]
fn add(sums: &mut [f32], factor: f32, terms: &[f32]) {
    for (sum, term) in sums.iter_mut().zip(terms) {
        *sum += factor * term;
    }
}

/// The pixels of one image that have a gradient, output by output.
struct Active {
    /// Where the inputs of a pixel are, and its gradient; room for as many as an output can have.
    pixels: Vec<(usize, f32)>,
    room: usize,
    counts: Vec<usize>,
}

impl Active {
    fn new(geometry: &Geometry) -> Self {
        let room = geometry.height / 2 * (geometry.width / 2);
        Self { pixels: vec![(0, 0.0); room * geometry.outputs], room, counts: vec![0; geometry.outputs] }
    }

    fn of(&self, output: usize) -> &[(usize, f32)] {
        &self.pixels[output * self.room..][..self.counts[output]]
    }

    /// `place` says where the inputs of the pixel in a row and a column are.
    fn gather(&mut self, geometry: &Geometry, gradient: &[f32], winners: &[u8], place: impl Fn(usize, usize) -> usize) {
        self.counts.fill(0);
        let pooled = gradient.chunks_exact(geometry.outputs).zip(winners.chunks_exact(geometry.outputs));
        for (pixel, (gradient, winners)) in pooled.enumerate() {
            let (y, x) = (2 * (pixel / (geometry.width / 2)), 2 * (pixel % (geometry.width / 2)));
            let four = [place(y, x), place(y, x + 1), place(y + 1, x), place(y + 1, x + 1)];
            let lists = self.pixels.chunks_exact_mut(self.room).zip(&mut self.counts);
            for ((pixels, count), (gradient, winner)) in lists.zip(gradient.iter().zip(winners)) {
                if *winner < RECTIFIED && *gradient != 0.0 {
                    pixels[*count] = (four[usize::from(*winner)], *gradient);
                    *count += 1;
                }
            }
        }
    }
}
