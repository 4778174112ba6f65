//! The convolutional network of the federated averaging paper (McMahan et al. 2017, section 3):
//!
//! ```text
//! image [c, h, w] -> conv 5x5, 32 -> relu -> pool 2x2 -> conv 5x5, 64 -> relu -> pool 2x2
//!                 -> linear 512 -> relu -> linear classes
//! ```
//!
//! Both convolutions keep height and width (padding 2), each pooling halves them. On 28 x 28 grey
//! images with 10 classes it has 1,663,370 parameters, the figure the paper gives.

use burn::Tensor;
use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::pool::{MaxPool2d, MaxPool2dConfig};
use burn::nn::{Linear, LinearConfig, PaddingConfig2d};
use burn::tensor::Device;
use burn::tensor::activation::relu;

use crate::kernels::{linear, pooled_convolution};

const KERNEL: [usize; 2] = [5, 5];
const CHANNELS: [usize; 2] = [32, 64];
const HIDDEN: usize = 512;

/// The factor by which the two poolings divide height and width.
pub(crate) const SIDE_DIVISOR: usize = 4;

/// Two convolutions and two linear layers.
#[derive(Module, Debug)]
pub(crate) struct Cnn {
    conv1: Conv2d,
    conv2: Conv2d,
    fc1: Linear,
    fc2: Linear,
    pool: MaxPool2d,
    image: [usize; 3],
}

impl Cnn {
    /// A blank model for images `[channels, height, width]`; its tensors exist only once parameters
    /// are loaded. Height and width are multiples of [`SIDE_DIVISOR`].
    pub(crate) fn blank(image: [usize; 3], classes: usize, device: &Device) -> Self {
        let [channels, height, width] = image;
        let convolution =
            |from, to| Conv2dConfig::new([from, to], KERNEL).with_padding(PaddingConfig2d::Same).init(device);
        let pooled = CHANNELS[1] * (height / SIDE_DIVISOR) * (width / SIDE_DIVISOR);
        Self {
            conv1: convolution(channels, CHANNELS[0]),
            conv2: convolution(CHANNELS[0], CHANNELS[1]),
            fc1: LinearConfig::new(pooled, HIDDEN).init(device),
            fc2: LinearConfig::new(HIDDEN, classes).init(device),
            pool: MaxPool2dConfig::new([2, 2]).with_strides([2, 2]).init(),
            image,
        }
    }

    /// Logits `[batch, classes]` of feature rows `[batch, channels * height * width]`.
    pub(crate) fn forward(&self, features: Tensor<2>) -> Tensor<2> {
        let [batch, _] = features.dims();
        let [channels, height, width] = self.image;
        let images = features.reshape([batch, channels, height, width]);
        let seen = self.seen_on_processor(images.clone()).unwrap_or_else(|| self.seen(images));
        linear(&self.fc2, relu(linear(&self.fc1, seen.flatten(1, 3))))
    }

    /// The outputs of both convolutions, `[batch, 64, height / 4, width / 4]`.
    fn seen(&self, images: Tensor<4>) -> Tensor<4> {
        // Pooling before the rectifier gives the same values (both keep order) on a quarter of the pixels.
        let first = relu(self.pool.forward(self.conv1.forward(images)));
        relu(self.pool.forward(self.conv2.forward(first)))
    }

    /// The outputs of both convolutions by the faster kernel, if the images are on burn's flex device.
    fn seen_on_processor(&self, images: Tensor<4>) -> Option<Tensor<4>> {
        let block = |images, conv: &Conv2d| pooled_convolution(images, conv.weight.val(), conv.bias.as_ref()?.val());
        let first = block(images.permute([0, 2, 3, 1]), &self.conv1)?;
        Some(block(first, &self.conv2)?.permute([0, 3, 1, 2]))
    }
}
