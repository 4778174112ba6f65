//! The models by name.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use super::{BuiltinNetwork, Cnn, Gpt, GptSize, GptSizeError, Mlp, ResnetLite, Softmax, cnn, resnet_lite};
use mingle_datasets::SampleShape;

/// The model to train, as written by the user.
///
/// | text | model |
/// | --- | --- |
/// | `softmax` | multinomial logistic regression |
/// | `mlp`, `mlp:hidden=128` | one hidden layer of rectified linear units, 64 wide by default |
/// | `cnn` | the convolutional network of McMahan et al. 2017; images only |
/// | `resnet-lite` | a residual network of 1.5 million parameters with group norms; images only |
/// | `gpt`, `gpt:layers=4,heads=4,width=128,context=64` | a language model of the GPT-2 kind; text only |
///
/// ```
/// use mingle_models::ModelKind;
///
/// assert_eq!("mlp:hidden=32".parse::<ModelKind>()?.to_string(), "mlp:hidden=32");
/// assert!("resnet".parse::<ModelKind>().is_err());
/// # Ok::<(), mingle_models::ModelError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ModelKind {
    /// Multinomial logistic regression.
    Softmax,
    /// A multilayer perceptron with one hidden layer.
    Mlp {
        /// Units in the hidden layer.
        hidden: NonZeroUsize,
    },
    /// Two convolutions and two linear layers.
    Cnn,
    /// Ten bottleneck blocks with group norms.
    ResnetLite,
    /// A transformer that predicts the next token.
    Gpt(GptSize),
}

/// A model that is not known, or not for the samples.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum ModelError {
    /// The text names no model.
    #[error(
        "unknown model {0:?}: write softmax, mlp, mlp:hidden=N (N up to 65536), cnn, resnet-lite or gpt:layers=N,heads=N,width=N,context=N"
    )]
    Unknown(String),
    /// The size of a language model is not valid.
    #[error(transparent)]
    Size(#[from] GptSizeError),
    /// The model cannot take samples of this shape.
    #[error("model {model} needs {wanted}, but the samples have shape {found}")]
    Shape { model: ModelKind, wanted: &'static str, found: SampleShape },
}

/// The largest hidden layer accepted: a typing error should not ask for all memory.
const HIDDEN_MAX: usize = 1 << 16;

/// The hidden layer of a plain `mlp`.
const HIDDEN_DEFAULT: NonZeroUsize = NonZeroUsize::new(64).expect("64 is not zero");

impl ModelKind {
    /// The layers of this model for samples of `shape`.
    pub(crate) fn architecture(self, shape: SampleShape) -> Result<Architecture, ModelError> {
        let features = shape.features();
        match self {
            Self::Gpt(size) if matches!(shape, SampleShape::Text { .. }) => Ok(Architecture::Gpt(size)),
            Self::Gpt(_) => {
                Err(ModelError::Shape { model: self, wanted: "text, such as --data text:FILE", found: shape })
            }
            _ if matches!(shape, SampleShape::Text { .. }) => {
                Err(ModelError::Shape { model: self, wanted: "numbers or images: text is for gpt", found: shape })
            }
            Self::Softmax => Ok(Architecture::Softmax { features }),
            Self::Mlp { hidden } => Ok(Architecture::Mlp { features, hidden: hidden.get() }),
            Self::Cnn => Ok(Architecture::Cnn { image: self.divisible_image(shape, cnn::SIDE_DIVISOR)? }),
            Self::ResnetLite => {
                Ok(Architecture::ResnetLite { image: self.divisible_image(shape, resnet_lite::SIDE_DIVISOR)? })
            }
        }
    }

    /// The sides of an image whose height and width are multiples of `divisor`.
    fn divisible_image(self, shape: SampleShape, divisor: usize) -> Result<[usize; 3], ModelError> {
        match shape {
            SampleShape::Image { channels, height, width } if height % divisor == 0 && width % divisor == 0 => {
                Ok([channels, height, width])
            }
            _ => Err(ModelError::Shape {
                model: self,
                wanted: "an image whose height and width are multiples of 4, such as 1x28x28",
                found: shape,
            }),
        }
    }
}

/// The layers of a model, with the sizes of its samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Architecture {
    /// See [`Softmax`].
    Softmax { features: usize },
    /// See [`Mlp`].
    Mlp { features: usize, hidden: usize },
    /// See [`Cnn`].
    Cnn { image: [usize; 3] },
    /// See [`ResnetLite`].
    ResnetLite { image: [usize; 3] },
    /// See [`Gpt`].
    Gpt(GptSize),
}

impl Architecture {
    /// A network without values.
    pub(crate) fn blank(self, classes: usize, device: &Device) -> BuiltinNetwork {
        match self {
            Self::Softmax { features } => BuiltinNetwork::Softmax(Softmax::blank(features, classes, device)),
            Self::Mlp { features, hidden } => BuiltinNetwork::Mlp(Mlp::blank(features, hidden, classes, device)),
            Self::Cnn { image } => BuiltinNetwork::Cnn(Cnn::blank(image, classes, device)),
            Self::ResnetLite { image } => BuiltinNetwork::ResnetLite(ResnetLite::blank(image, classes, device)),
            Self::Gpt(size) => BuiltinNetwork::Gpt(Gpt::blank(size, classes, device)),
        }
    }
}

impl FromStr for ModelKind {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Self, ModelError> {
        let unknown = || ModelError::Unknown(text.to_owned());
        match text {
            "softmax" => Ok(Self::Softmax),
            "mlp" => Ok(Self::Mlp { hidden: HIDDEN_DEFAULT }),
            "cnn" => Ok(Self::Cnn),
            "resnet-lite" => Ok(Self::ResnetLite),
            "gpt" => Ok(Self::Gpt(GptSize::default())),
            _ => {
                if let Some(size) = text.strip_prefix("gpt:") {
                    return Ok(Self::Gpt(size.parse()?));
                }
                let hidden = text.strip_prefix("mlp:hidden=").ok_or_else(unknown)?;
                let hidden: NonZeroUsize = hidden.parse().map_err(|_| unknown())?;
                if hidden.get() > HIDDEN_MAX {
                    return Err(unknown());
                }
                Ok(Self::Mlp { hidden })
            }
        }
    }
}

mingle_datasets::text_form!(ModelKind, ModelError);

impl fmt::Display for ModelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Softmax => f.write_str("softmax"),
            Self::Mlp { hidden } if *hidden == HIDDEN_DEFAULT => f.write_str("mlp"),
            Self::Mlp { hidden } => write!(f, "mlp:hidden={hidden}"),
            Self::Cnn => f.write_str("cnn"),
            Self::ResnetLite => f.write_str("resnet-lite"),
            Self::Gpt(size) => write!(f, "gpt:{size}"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn every_model_name_reads_back_as_it_prints() {
        for text in ["softmax", "mlp", "mlp:hidden=1", "mlp:hidden=65536", "cnn", "resnet-lite"] {
            assert_eq!(text.parse::<ModelKind>().unwrap().to_string(), text);
        }
        assert_eq!("mlp:hidden=64".parse::<ModelKind>().unwrap(), "mlp".parse().unwrap());
        for text in ["", "MLP", "mlp:", "mlp:hidden=0", "mlp:hidden=65537", "mlp:hidden=-1", "cnn:3", "resnet"] {
            let error = text.parse::<ModelKind>().unwrap_err();
            assert_eq!(error, ModelError::Unknown(text.into()));
        }
    }
}
