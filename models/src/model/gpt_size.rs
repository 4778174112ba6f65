//! The size of a language model, as written by the user.

use std::fmt;
use std::str::FromStr;

/// Layers, heads, width and context of a GPT.
///
/// ```
/// use mingle_models::ModelKind;
///
/// // What is left out is as in nanoGPT's setting for processors.
/// let model: ModelKind = "gpt:layers=2,width=64".parse()?;
/// assert_eq!(model.to_string(), "gpt:layers=2,heads=4,width=64,context=64");
/// # Ok::<(), mingle_models::ModelError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GptSize {
    layers: usize,
    heads: usize,
    width: usize,
    context: usize,
}

impl Default for GptSize {
    fn default() -> Self {
        Self { layers: 4, heads: 4, width: 128, context: 64 }
    }
}

impl GptSize {
    const LAYERS_MAX: usize = 128;
    const HEADS_MAX: usize = 128;
    const WIDTH_MAX: usize = 1 << 14;
    const CONTEXT_MAX: usize = 1 << 13;

    /// Blocks of attention and perceptron, one after the other.
    pub fn layers(&self) -> usize {
        self.layers
    }

    /// Heads of attention in each block; they divide the width.
    pub fn heads(&self) -> usize {
        self.heads
    }

    /// The length of the vector of a token between blocks.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The most tokens that the model sees at once.
    pub fn context(&self) -> usize {
        self.context
    }

    /// An estimate of the numbers that a training step on so many windows keeps for the backward pass; it saturates.
    pub(crate) fn activations(&self, windows: usize, vocabulary: usize) -> usize {
        /// Vectors as wide as the model that a block keeps: its inputs, queries, keys, values, and four times the width, twice.
        const VECTORS_IN_BLOCK: usize = 16;
        let in_block = VECTORS_IN_BLOCK * self.width + self.heads * self.context;
        let of_token = self.layers * in_block + 4 * self.width + 3 * vocabulary;
        windows.saturating_mul(self.context).saturating_mul(of_token)
    }

    fn set(&mut self, option: &str) -> Result<(), String> {
        let (name, value) = option.split_once('=').ok_or_else(|| format!("{option:?} is not NAME=NUMBER"))?;
        let (field, most) = match name {
            "layers" => (&mut self.layers, Self::LAYERS_MAX),
            "heads" => (&mut self.heads, Self::HEADS_MAX),
            "width" => (&mut self.width, Self::WIDTH_MAX),
            "context" => (&mut self.context, Self::CONTEXT_MAX),
            _ => return Err(format!("{name:?} is none of layers, heads, width and context")),
        };
        match value.parse::<usize>() {
            Ok(value) if (1..=most).contains(&value) => *field = value,
            _ => return Err(format!("{name}={value} must be a whole number from 1 to {most}")),
        }
        Ok(())
    }
}

/// A text that is no valid size of a language model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("gpt:{text}: {why}")]
pub struct GptSizeError {
    /// The size as written.
    pub text: String,
    /// The reason.
    pub why: String,
}

/// Parses the part after `gpt:`.
impl FromStr for GptSize {
    type Err = GptSizeError;

    fn from_str(text: &str) -> Result<Self, GptSizeError> {
        let wrong = |why| GptSizeError { text: text.to_owned(), why };
        let mut size = Self::default();
        for option in text.split(',') {
            size.set(option).map_err(wrong)?;
        }
        if size.width % size.heads != 0 {
            return Err(wrong(format!("heads={} do not divide width={}", size.heads, size.width)));
        }
        Ok(size)
    }
}

impl fmt::Display for GptSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { layers, heads, width, context } = self;
        write!(f, "layers={layers},heads={heads},width={width},context={context}")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_size_survives_its_text_and_what_is_left_out_is_usual() {
        let size: GptSize = "context=32,layers=2,heads=2,width=16".parse().unwrap();
        assert_eq!(size, GptSize { layers: 2, heads: 2, width: 16, context: 32 });
        assert_eq!(size.to_string().parse(), Ok(size));
        assert_eq!("layers=4".parse(), Ok(GptSize::default()));
    }

    #[test]
    fn sizes_that_cannot_be_are_refused_with_the_reason() {
        for (text, why) in [
            ("heads=3", "heads=3 do not divide width=128"),
            ("layers=0", "layers=0 must be a whole number from 1 to 128"),
            ("width=1e9", "width=1e9 must be a whole number from 1 to 16384"),
            ("context=99999999999999999999", "from 1 to 8192"),
            ("depth=3", "\"depth\" is none of layers, heads, width and context"),
            ("", "\"\" is not NAME=NUMBER"),
        ] {
            let says = text.parse::<GptSize>().unwrap_err().to_string();
            assert!(says.contains(why), "{says}");
        }
    }
}
