//! Errors of problem files of learning in rounds.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use mingle_models::DeviceError;
use mingle_solving::RulesError;

/// The reason for which a problem file cannot be learned from.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum ProblemFileError {
    /// The file cannot be read.
    #[error("cannot read the problem {}", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// The text is not a valid file of its kind.
    #[error("the problem {} does not hold", .path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// The place, and what was expected there.
        source: Box<toml::de::Error>,
    },
    /// The kind of problem is not known: neither one of learning in rounds nor a convex one.
    #[error("the problem {}: kind = {kind:?}: choose one of {known}", .path.display())]
    Kind { path: PathBuf, kind: String, known: String },
    /// An error that does not name the file in which it is.
    #[error("the problem {}", .path.display())]
    File { path: PathBuf, source: Box<Self> },
    /// A key has an invalid value.
    #[error("{0}")]
    Value(String),
    /// The number of rounds is out of range, or the rules are invalid otherwise.
    #[error("the problem does not hold")]
    Rules(#[from] RulesError),
    /// The options of the kind do not go together.
    #[error("the problem does not hold")]
    Options(#[source] Box<dyn Error + Send + Sync>),
    /// The part of the file that all peers have to agree on cannot be encoded.
    #[error("the problem cannot be encoded")]
    Encoding(#[from] serde_json::Error),
    /// The device does not exist.
    #[error("device = \"{name}\"")]
    Device { name: String, source: DeviceError },
}

impl ProblemFileError {
    /// The same error with the name of its file.
    pub(crate) fn of_file(self, path: &Path) -> Self {
        match self {
            Self::Unreadable { .. } | Self::Text { .. } | Self::Kind { .. } | Self::File { .. } => self,
            _ => Self::File { path: path.to_owned(), source: Box::new(self) },
        }
    }
}
