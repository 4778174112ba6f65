//! Graphs from files: text (edges, features and labels, gzipped or not) and numpy's `.npz`.
//!
//! | what is named | what is read |
//! | --- | --- |
//! | a folder | `edges.txt` or `edges.csv`; `features.svm`, or `features.csv` with `labels.csv` |
//! | a prefix such as `data/cora` | `data/cora.edges.txt`, `data/cora.features.svm` and so on |
//! | a file `*.npz` | `node_features`, `node_labels` and `edges`, as the heterophilous graphs of Platonov et al. (2023) have them |
//!
//! Also with the names of PyTorch Geometric, `x`, `y` and `edge_index` (`[2, edges]`). Text files may be gzipped and end in `.gz`, begin with a
//! byte order mark, or be in UTF-16. Nodes are numbered from 0; a label is a whole number from 0, `-1` or nothing where it is not known.

mod lines;
mod npz;
mod text;

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::graph::GraphError;
use crate::node_data::{NodeData, NodeDataError};

/// Numbers in all features together, at most: a gibibyte.
const MOST_FEATURES: usize = 1 << 28;
/// Lines of a list of edges, at most.
const MOST_EDGES: usize = 1 << 27;

/// Why a graph cannot be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// A file cannot be opened or read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file that is needed is not there.
    #[error("{} is not there, nor with .gz behind it", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// A line is no line of its file.
    #[error("{}, line {line}: {reason}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// An array of an `.npz` is missing or another than expected.
    #[error("{}, array {array}: {reason}", path.display())]
    Array {
        /// The file.
        path: PathBuf,
        /// The array.
        array: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// Edges do not go with nodes.
    #[error("{}: {source}", path.display())]
    Graph {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: GraphError,
    },
    /// Features or labels do not go with edges.
    #[error("{}: {source}", path.display())]
    Data {
        /// The folder or file.
        path: PathBuf,
        /// What is wrong.
        source: NodeDataError,
    },
}

/// Reads a graph from a folder, a prefix of files or an `.npz`; see the module.
///
/// # Errors
///
/// What is wrong, with the file and the line, the array or the node.
pub fn read_graph(path: &Path) -> Result<NodeData, ReadError> {
    if path.extension().is_some_and(|extension| extension == "npz") {
        return npz::read(path);
    }
    text::read(path)
}
