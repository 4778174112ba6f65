//! A multilayer perceptron with one hidden layer of rectified linear units.

use burn::Tensor;
use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::Device;
use burn::tensor::activation::relu;

use crate::kernels::linear;

/// `logits = relu(x W1 + b1) W2 + b2`.
#[derive(Module, Debug)]
pub(crate) struct Mlp {
    fc1: Linear,
    fc2: Linear,
}

impl Mlp {
    /// A blank model; its tensors exist only once parameters are loaded.
    pub(crate) fn blank(features: usize, hidden: usize, classes: usize, device: &Device) -> Self {
        Self {
            fc1: LinearConfig::new(features, hidden).init(device),
            fc2: LinearConfig::new(hidden, classes).init(device),
        }
    }

    /// Logits `[batch, classes]` of feature rows `[batch, features]`.
    pub(crate) fn forward(&self, features: Tensor<2>) -> Tensor<2> {
        linear(&self.fc2, relu(linear(&self.fc1, features)))
    }
}
