//! Kernels for the operations in which training on the processor spends its time.
//!
//! burn's flex backend takes 2.5 times as long as PyTorch for a convolutional network. The layers of such a network
//! come in blocks: convolve, keep the largest of each 2 x 2, rectify. At most one pixel in four of a block has a
//! gradient, so that the backward pass needs a quarter of the arithmetic at most. [`pooled_convolution`] computes a
//! block at once; other devices compute the same from burn's operations.
//!
//! A residual network spends it in convolutions and group norms: [`bottleneck`] and [`stem`] compute a block at once.
//!
//! A language model spends its time in matrix products, attention, layer norms and GELUs. Each of the last three is one
//! pass over memory here and several in burn.

mod attention;
mod backward;
mod exponential;
mod forward;
mod gelu;
mod geometry;
mod layer_norm;
mod linear;
mod operation;
mod pair_scores;
mod recycled;
mod residual;
mod rms_prop;
mod rows;
mod sparse;
mod tall;
mod tanh;
mod tape;
mod tensors;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod transformer_tests;

pub(crate) use attention::causal_attention;
pub(crate) use gelu::gelu;
pub(crate) use layer_norm::layer_norm;
pub(crate) use linear::{linear, product};
pub(crate) use operation::pooled_convolution;
pub use pair_scores::{Pairs, pair_scores};
pub(crate) use residual::{Normed, bottleneck, stem};
pub use rms_prop::{RmsProp, rms_prop};
pub use tall::{tall_product, transposed_product};
pub use tanh::tanh;
