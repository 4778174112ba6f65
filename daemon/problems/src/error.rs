//! What can be wrong with a problem file.

use std::io;
use std::path::PathBuf;

use mingle_graphs::ClientError;
use mingle_models::DeviceError;
use mingle_solving::RulesError;
use thiserror::Error;

/// Why nothing can be learned as a problem file has it.
#[derive(Debug, Error)]
pub enum ProblemFileError {
    /// The file cannot be read.
    #[error("cannot read the problem {}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Its text is not that of a file of its kind.
    #[error("the problem {} does not hold", .path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// Where, and what was expected.
        source: Box<toml::de::Error>,
    },
    /// A kind of problem that is not known: neither one of learning in rounds nor a convex one.
    #[error("the problem {}: kind = {kind:?}: choose one of {}", .path.display(), crate::known_kinds())]
    Kind {
        /// The file.
        path: PathBuf,
        /// The kind as it was written.
        kind: String,
    },
    /// A key has a value that cannot be.
    #[error("{0}")]
    Value(String),
    /// So many rounds cannot be.
    #[error("the problem does not hold")]
    Rules(#[from] RulesError),
    /// The network of node classification cannot be.
    #[error("the node classification does not hold")]
    Network(#[from] ClientError),
    /// What all peers have to agree on cannot be written down.
    #[error("the problem cannot be encoded")]
    Encoding(#[from] serde_json::Error),
    /// There is no such device.
    #[error("device = \"{name}\"")]
    Device {
        /// Its name.
        name: String,
        /// Why not.
        source: DeviceError,
    },
}
