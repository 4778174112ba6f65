//! The choice of a table and of its label column.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// A table and its label column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvSource {
    /// The file.
    pub path: PathBuf,
    /// The label column.
    pub label: LabelColumn,
}

/// The choice of the label column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LabelColumn {
    /// The last one.
    #[default]
    Last,
    /// The one with this name in the header.
    Named(String),
    /// The one at this place, counted from 1.
    Numbered(NonZeroUsize),
}

impl fmt::Display for LabelColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Last => f.write_str("at the end"),
            Self::Named(name) => write!(f, "named {name:?}"),
            Self::Numbered(number) => write!(f, "number {number}"),
        }
    }
}
