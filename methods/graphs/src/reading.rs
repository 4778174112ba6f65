//! Graphs from files: text (edges, features and labels, gzipped or not) and numpy's `.npz`.
//!
//! | argument | files read |
//! | --- | --- |
//! | a folder | `edges.txt` or `edges.csv`; `features.svm`, or `features.csv` with `labels.csv` |
//! | a prefix such as `data/cora` | `data/cora.edges.txt`, `data/cora.features.svm` and so on |
//! | a file `*.npz` | `node_features`, `node_labels` and `edges`, as the heterophilous graphs of Platonov et al. (2023) have them |
//!
//! Arrays may also have the names of PyTorch Geometric, `x`, `y` and `edge_index` (`[2, edges]`). Text files may be
//! gzipped and end in `.gz`, begin with a byte order mark, or be in UTF-16. Nodes are numbered from 0. A label is a
//! whole number from 0; it is `-1` or empty where it is unknown.

mod lines;
mod npz;
mod text;

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::graph::GraphError;
use crate::node_data::{NodeData, NodeDataError};

/// The most numbers in all features together: a gibibyte of them.
const MOST_FEATURES: usize = 1 << 28;
/// The most edges of a list.
const MOST_EDGES: usize = 1 << 27;

/// Errors of reading a graph.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum ReadError {
    /// A file cannot be opened or read.
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    /// A required file does not exist.
    #[error("{} is not there, nor with .gz behind it", path.display())]
    Missing { path: PathBuf },
    /// The path is a single file of another kind.
    #[error(
        "{} is one file: a graph is a folder, or a prefix of files, with edges, features and labels, or an .npz of NumPy",
        path.display()
    )]
    OneFile { path: PathBuf },
    /// Two files hold the same part of the graph.
    #[error("{} and {} are both there: keep one", path.display(), other.display())]
    Twice { path: PathBuf, other: PathBuf },
    /// A line is malformed.
    #[error("{}, line {line}: {reason}", path.display())]
    Line { path: PathBuf, line: usize, reason: String },
    /// An array of an `.npz` is missing or malformed.
    #[error("{}, array {array}: {reason}", path.display())]
    Array { path: PathBuf, array: &'static str, reason: String },
    /// Edges do not fit the nodes.
    #[error("{}", path.display())]
    Graph { path: PathBuf, source: GraphError },
    /// Features or labels do not fit the graph.
    #[error("{}", path.display())]
    Data { path: PathBuf, source: NodeDataError },
}

/// Reads a graph from a folder, a prefix of files or an `.npz`. Text is `edges.txt` or `edges.csv`, with `features.svm`
/// or `features.csv` and `labels.csv`.
///
/// # Errors
///
/// The first error, with the file and the line, the array or the node.
pub fn read_graph(path: &Path) -> Result<NodeData, ReadError> {
    if path.extension().is_some_and(|extension| extension == "npz") {
        return npz::read(path);
    }
    if path.exists() && !path.is_dir() {
        return Err(ReadError::OneFile { path: path.to_owned() });
    }
    text::read(path)
}
