//! The shape of one sample.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::vocabulary::Tokens;

/// The shape of one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SampleShape {
    /// A row of numbers.
    Flat {
        /// The number of features.
        features: usize,
    },
    /// An image, stored channel by channel and row by row.
    Image {
        /// 1 for grey, 3 for colour.
        channels: usize,
        /// Rows of pixels.
        height: usize,
        /// Columns of pixels.
        width: usize,
    },
    /// A token of a text. A model sees windows of them.
    Text {
        /// The kind of token.
        tokens: Tokens,
    },
}

impl SampleShape {
    /// The numbers in one sample.
    pub fn features(&self) -> usize {
        match *self {
            Self::Flat { features } => features,
            Self::Text { .. } => 1,
            Self::Image { channels, height, width } => channels.saturating_mul(height).saturating_mul(width),
        }
    }
}

impl fmt::Display for SampleShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flat { features } => write!(f, "{features}"),
            Self::Image { channels, height, width } => write!(f, "{channels}x{height}x{width}"),
            Self::Text { tokens } => write!(f, "text in {tokens}"),
        }
    }
}
