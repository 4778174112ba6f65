//! Multinomial logistic regression: one linear layer. Convex, so its optimum is a reference.

use burn::Tensor;
use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::Device;

use crate::kernels::linear;

/// `logits = x W + b`; the softmax itself is part of the loss.
#[derive(Module, Debug)]
pub(crate) struct Softmax {
    linear: Linear,
}

impl Softmax {
    /// A blank model; its tensors exist only once parameters are loaded.
    pub(crate) fn blank(features: usize, classes: usize, device: &Device) -> Self {
        Self { linear: LinearConfig::new(features, classes).init(device) }
    }

    /// Logits `[batch, classes]` of feature rows `[batch, features]`.
    pub(crate) fn forward(&self, features: Tensor<2>) -> Tensor<2> {
        linear(&self.linear, features)
    }
}
