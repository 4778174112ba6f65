//! The blocks of a residual network: convolutions, each followed by a group norm, with rectifiers and a shortcut.
//!
//! A block is one operation. It goes through its layers image by image, so that what lies between two layers stays in the
//! cache of a core and is never written to memory as a whole. Images are stored in *planes* of `LANES` channels,
//! `[channels / LANES, height * width, LANES]`: a plane is one group of the norm, and the channels of a pixel in it are one
//! or a few vectors. No product copies its factors: the module `product` reads the inputs under the kernel of each pixel in place.
//!
//! Gradients of weights are summed over a fixed number of images and then over these parts in order, so that the number of
//! threads changes no bit.

mod block;
mod group_norm;
mod layer;
mod patches;
mod product;
mod stem;
#[cfg(test)]
mod tests;

use burn::Tensor;
use burn::nn::GroupNorm;
use burn::nn::conv::Conv2d;

pub(crate) use block::bottleneck;
pub(crate) use stem::stem;

/// Channels in a plane, and in a group of the norm.
pub(super) const LANES: usize = 16;
/// The values of a pixel in a plane.
pub(super) type Lanes = [f32; LANES];

/// A convolution without a bias, and the norm that follows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Normed<'a> {
    pub(crate) convolution: &'a Conv2d,
    pub(crate) norm: &'a GroupNorm,
}

impl Normed<'_> {
    /// The weights, and the scale and shift of each channel as tensors with as many sides. `None` without scale or shift.
    fn tensors(self) -> Option<[Tensor<4>; 3]> {
        let weight = self.convolution.weight.val();
        let channels = weight.dims()[0];
        let of_norm = [self.norm.gamma.as_ref()?, self.norm.beta.as_ref()?];
        let [scale, shift] = of_norm.map(|tensor| tensor.val().reshape([1, 1, 1, channels]));
        Some([weight, scale, shift])
    }
}
