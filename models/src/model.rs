//! The models: one per file, and the one enum that dispatches to them.
//!
//! A model maps a batch of feature rows `[batch, features]` to logits `[batch, classes]`. A language model maps rows of
//! tokens `[batch, context]` to logits `[batch * context, vocabulary]` of the tokens that follow each. Field names
//! follow PyTorch's habit (`fc1`, `conv1`), because checkpoints carry them.

mod cnn;
mod gpt;
mod gpt_size;
mod kind;
mod mlp;
mod resnet_lite;
mod softmax;

use burn::Tensor;
use burn::module::Module;

pub use gpt_size::{GptSize, GptSizeError};
pub use kind::{ModelError, ModelKind};

pub(crate) use cnn::Cnn;
pub(crate) use gpt::Gpt;
#[cfg(test)]
pub(crate) use gpt::attention;
pub(crate) use kind::Architecture;
pub(crate) use mlp::Mlp;
pub(crate) use resnet_lite::ResnetLite;
pub(crate) use softmax::Softmax;

/// Any of the models.
// There is one network at a time: the size of the small variants does not matter.
#[allow(clippy::large_enum_variant)]
#[derive(Module, Debug)]
pub(crate) enum BuiltinNetwork {
    /// Multinomial logistic regression.
    Softmax(Softmax),
    /// One hidden layer.
    Mlp(Mlp),
    /// Two convolutions, two linear layers.
    Cnn(Cnn),
    /// Bottleneck blocks with group norms.
    ResnetLite(ResnetLite),
    /// A transformer.
    Gpt(Gpt),
}

impl BuiltinNetwork {
    /// Logits `[batch, classes]` of a batch of feature rows `[batch, features]`; those of text as the module describes.
    pub(crate) fn forward(&self, features: Tensor<2>) -> Tensor<2> {
        match self {
            Self::Softmax(model) => model.forward(features),
            Self::Mlp(model) => model.forward(features),
            Self::Cnn(model) => model.forward(features),
            Self::ResnetLite(model) => model.forward(features),
            Self::Gpt(model) => model.forward(features),
        }
    }
}
