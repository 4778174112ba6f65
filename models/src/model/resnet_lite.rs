//! A residual network of about 1.5 million parameters, of bottleneck blocks (He et al. 2015,
//! figure 5, right):
//!
//! ```text
//! image [c, h, w] -> conv 3x3, 32 -> norm -> relu
//!                 -> 3 blocks of 128 -> 3 blocks of 256, half the sides -> 4 blocks of 512, half the sides
//!                 -> mean over pixels -> linear classes
//! block of n: conv 1x1, n/4 -> norm -> relu -> conv 3x3, n/4 -> norm -> relu -> conv 1x1, n -> norm, + input -> relu
//! ```
//!
//! The first block of a stage takes its step of 2 in the 3x3 convolution, and brings its input to
//! the new shape by a 1x1 convolution and a norm. On 32 x 32 colour images with 10 classes it has
//! 1,516,586 parameters.
//!
//! Normalization is over groups of 16 channels of one image (Wu and He 2018), not over the batch.
//! A batch norm keeps running means that no gradient reaches: they belong to the data of one peer,
//! and averaging them among peers whose data differ fits none of them (Hsieh et al. 2020, section
//! 5). A group norm keeps nothing.

use burn::Tensor;
use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{GroupNorm, GroupNormConfig, Linear, LinearConfig, PaddingConfig2d};
use burn::tensor::Device;
use burn::tensor::activation::relu;

use crate::kernels::{Normed, bottleneck, linear, stem};

const STEM: usize = 32;
/// Channels, blocks and the step of the first block of each stage.
const STAGES: [(usize, usize, usize); 3] = [(128, 3, 1), (256, 3, 2), (512, 4, 2)];
/// The factor by which a block narrows its channels for the 3x3 convolution.
const NARROWING: usize = 4;
const CHANNELS_PER_GROUP: usize = 16;

/// The factor by which the stages divide height and width.
pub(crate) const SIDE_DIVISOR: usize = 4;

/// A residual network of bottleneck blocks.
#[derive(Module, Debug)]
pub(crate) struct ResnetLite {
    conv1: Conv2d,
    norm1: GroupNorm,
    blocks: Vec<Bottleneck>,
    fc: Linear,
    image: [usize; 3],
}

impl ResnetLite {
    /// A blank model for images `[channels, height, width]`; its tensors exist only once parameters
    /// are loaded. Height and width are multiples of [`SIDE_DIVISOR`].
    pub(crate) fn blank(image: [usize; 3], classes: usize, device: &Device) -> Self {
        let mut blocks = Vec::new();
        let mut from = STEM;
        for (to, count, step) in STAGES {
            for block in 0..count {
                blocks.push(Bottleneck::blank(from, to, if block == 0 { step } else { 1 }, device));
                from = to;
            }
        }
        Self {
            conv1: convolution(image[0], STEM, 3, 1, device),
            norm1: norm(STEM, device),
            blocks,
            fc: LinearConfig::new(from, classes).init(device),
            image,
        }
    }

    /// Logits `[batch, classes]` of feature rows `[batch, channels * height * width]`.
    pub(crate) fn forward(&self, features: Tensor<2>) -> Tensor<2> {
        let [batch, _] = features.dims();
        let [channels, height, width] = self.image;
        let images = features.reshape([batch, channels, height, width]);
        let seen = self.seen_on_processor(images.clone()).unwrap_or_else(|| self.seen(images));
        linear(&self.fc, seen)
    }

    /// The means over the pixels of the last block's output, `[batch, 512]`.
    fn seen(&self, images: Tensor<4>) -> Tensor<2> {
        let mut seen = relu(self.norm1.forward(self.conv1.forward(images)));
        for block in &self.blocks {
            seen = block.forward(seen);
        }
        seen.flatten::<3>(2, 3).mean_dim(2).flatten(1, 2)
    }

    /// The same by the faster kernels, if the images are on burn's flex device.
    fn seen_on_processor(&self, images: Tensor<4>) -> Option<Tensor<2>> {
        let [_, _, mut height, mut width] = images.dims();
        let mut seen = stem(images, Normed { convolution: &self.conv1, norm: &self.norm1 })?;
        for block in &self.blocks {
            seen = bottleneck(seen, [height, width], block.layers(), block.shortcut.as_ref().map(Shortcut::layer))?;
            let [rows, columns] = block.conv2.stride;
            height /= rows;
            width /= columns;
        }
        Some(seen.mean_dim(2).flatten(1, 3))
    }
}

/// Three convolutions with a residual connection.
#[derive(Module, Debug)]
struct Bottleneck {
    conv1: Conv2d,
    norm1: GroupNorm,
    conv2: Conv2d,
    norm2: GroupNorm,
    conv3: Conv2d,
    norm3: GroupNorm,
    shortcut: Option<Shortcut>,
}

impl Bottleneck {
    fn blank(from: usize, to: usize, step: usize, device: &Device) -> Self {
        let narrow = to / NARROWING;
        Self {
            conv1: convolution(from, narrow, 1, 1, device),
            norm1: norm(narrow, device),
            conv2: convolution(narrow, narrow, 3, step, device),
            norm2: norm(narrow, device),
            conv3: convolution(narrow, to, 1, 1, device),
            norm3: norm(to, device),
            shortcut: (from != to)
                .then(|| Shortcut { conv: convolution(from, to, 1, step, device), norm: norm(to, device) }),
        }
    }

    /// The block's output `[batch, to, height / step, width / step]` for its input `[batch, from, height, width]`.
    fn forward(&self, input: Tensor<4>) -> Tensor<4> {
        let seen = relu(self.norm1.forward(self.conv1.forward(input.clone())));
        let seen = relu(self.norm2.forward(self.conv2.forward(seen)));
        let seen = self.norm3.forward(self.conv3.forward(seen));
        let input = match &self.shortcut {
            Some(shortcut) => shortcut.norm.forward(shortcut.conv.forward(input)),
            None => input,
        };
        relu(seen + input)
    }

    fn layers(&self) -> [Normed<'_>; 3] {
        let layers = [(&self.conv1, &self.norm1), (&self.conv2, &self.norm2), (&self.conv3, &self.norm3)];
        layers.map(|(convolution, norm)| Normed { convolution, norm })
    }
}

/// Brings the input of a block to the shape of its output.
#[derive(Module, Debug)]
struct Shortcut {
    conv: Conv2d,
    norm: GroupNorm,
}

impl Shortcut {
    fn layer(&self) -> Normed<'_> {
        Normed { convolution: &self.conv, norm: &self.norm }
    }
}

/// A convolution without a bias, which the norm that follows would remove.
fn convolution(from: usize, to: usize, side: usize, step: usize, device: &Device) -> Conv2d {
    let margin = side / 2;
    Conv2dConfig::new([from, to], [side, side])
        .with_stride([step, step])
        .with_padding(PaddingConfig2d::Explicit(margin, margin, margin, margin))
        .with_bias(false)
        .init(device)
}

fn norm(channels: usize, device: &Device) -> GroupNorm {
    GroupNormConfig::new(channels / CHANNELS_PER_GROUP, channels).init(device)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use burn::optim::GradientsParams;
    use burn::tensor::TensorData;

    use super::*;
    use crate::flatten::{number_parameters, unflatten};
    use crate::initialization::initial_parameters;

    #[test]
    fn the_kernels_compute_what_burn_does_and_all_gradients() {
        let device = Device::flex().autodiff();
        let blank = number_parameters(ResnetLite::blank([3, 8, 12], 10, &Device::flex()));
        let network = unflatten(blank.clone(), &initial_parameters(&blank, 1), &device);
        let pixels: Vec<f32> = (0..2 * 3 * 8 * 12).map(|at| ((at * 37) % 101) as f32 / 50.0 - 1.0).collect();
        let images = Tensor::<4>::from_data(TensorData::new(pixels, [2, 3, 8, 12]), &device);
        let run = |seen: Tensor<2>| {
            let factors = Tensor::<2>::from_data(
                TensorData::new((0..1024).map(|at| ((at * 29) % 67) as f32 / 33.0 - 1.0).collect(), [2, 512]),
                &device,
            );
            let gradients = (seen.clone() * factors).sum().backward();
            let gradients = GradientsParams::from_grads(gradients, &network);
            let [conv1, last] = [&network.conv1, &network.blocks[0].conv2]
                .map(|layer| gradients.get::<4>(layer.weight.id).unwrap().into_data().try_into_vec::<f32>().unwrap());
            [seen.into_data().try_into_vec::<f32>().unwrap(), conv1, last]
        };
        let found = run(network.seen_on_processor(images.clone()).unwrap());
        let expected = run(network.seen(images));
        for (found, expected) in found.iter().zip(&expected) {
            let most = expected.iter().fold(0.0f32, |most, value| most.max(value.abs()));
            assert!(most > 0.0);
            let apart = found.iter().zip(expected).map(|(one, other)| (one - other).abs()).fold(0.0, f32::max);
            assert!(apart < 1e-4 * most, "{apart} of {most}");
        }
    }
}
