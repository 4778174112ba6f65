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

use crate::kernels::linear;

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
        let mut seen = relu(self.norm1.forward(self.conv1.forward(images)));
        for block in &self.blocks {
            seen = block.forward(seen);
        }
        linear(&self.fc, seen.flatten::<3>(2, 3).mean_dim(2).flatten(1, 2))
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
}

/// Brings the input of a block to the shape of its output.
#[derive(Module, Debug)]
struct Shortcut {
    conv: Conv2d,
    norm: GroupNorm,
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
