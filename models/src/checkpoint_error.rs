//! Errors of files of models.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::task::TaskError;

/// Room for names, shapes and metadata in a file.
pub(crate) const HEADER_MAX: u64 = 1 << 20;

/// Errors of writing or reading a checkpoint.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum CheckpointError {
    /// The parameters are not the task's.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// The parameters cannot be expressed in the format.
    #[error("cannot encode the model: {reason}")]
    Encode { reason: String },
    /// The file cannot be written.
    #[error("cannot write checkpoint {}: {error}", path.display())]
    Write { path: PathBuf, error: io::Error },
    /// The file cannot be read.
    #[error("cannot read checkpoint {}: {error}", path.display())]
    Read { path: PathBuf, error: io::Error },
    /// The file is larger than a checkpoint of the task can be.
    #[error("{} is no checkpoint of this model: it is larger than {limit} bytes", path.display())]
    Size {
        /// The file.
        path: PathBuf,
        /// The most bytes a checkpoint of the task can have.
        limit: u64,
    },
    /// The file is of another model.
    #[error("{} is no checkpoint of this model: {difference}", path.display())]
    Tensor { path: PathBuf, difference: TensorDifference },
    /// The file is damaged, or is no safetensors file.
    #[error("{} is no checkpoint of this model: {reason}", path.display())]
    Format { path: PathBuf, reason: String },
}

/// A difference between the tensors of a file and those of a task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum TensorDifference {
    /// A tensor of the model is not in the file.
    #[error("the model has a tensor {name}, which the file has not")]
    Missing { name: String },
    /// A tensor of the file is not in the model.
    #[error("the file has a tensor {name}, which the model has not")]
    Unknown { name: String },
    /// A tensor has other sides.
    #[error("tensor {name} is {} in the file and {} in the model", Shape(found), Shape(wanted))]
    Shape { name: String, found: Vec<usize>, wanted: Vec<usize> },
    /// A tensor has numbers of another type.
    #[error("tensor {name} holds {found} in the file; models here hold F32, F16 or BF16")]
    Type { name: String, found: String },
}

/// Sides written as `[64, 784]`.
struct Shape<'a>(&'a [usize]);

impl fmt::Display for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}
