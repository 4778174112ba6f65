//! What can be wrong with a problem.

use std::io;
use std::path::PathBuf;

use mingle_solver::{AllocationError, RegressionError, TableError};
use thiserror::Error;

use super::{FileError, SampleError};
use crate::learning::LearningError;

/// A problem that cannot be solved as its file and its tables have it.
#[derive(Debug, Error)]
pub enum ProblemError {
    /// The file cannot be read.
    #[error("cannot read the problem {}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file is longer than any problem.
    #[error("cannot read the problem {}: {bytes} bytes are too many", .path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Its length.
        bytes: u64,
    },
    /// The file says what cannot be.
    #[error("the problem {} does not hold", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What it is.
        source: FileError,
    },
    /// What a node would learn from cannot be used.
    #[error("node {node} cannot learn")]
    Learning {
        /// The node, by name.
        node: String,
        /// Why not.
        source: LearningError,
    },
    /// What a node wants is not convex, or within no bounds.
    #[error("the problem {} does not hold", .path.display())]
    Preference {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: AllocationError,
    },
    /// Budgets contradict each other, or the costs have no least value.
    #[error("the problem {} cannot be solved", .path.display())]
    Unsolvable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: AllocationError,
    },
    /// Two members of a clique whom the plan does not link.
    #[error("{}: clique {clique} is none of the plan: {one} and {other} do not hear each other", .path.display())]
    NotLinked {
        /// The file.
        path: PathBuf,
        /// The clique.
        clique: String,
        /// The name of a member.
        one: String,
        /// The name of another.
        other: String,
    },
    /// Two nodes' tables have other columns.
    #[error("the tables of {first} and {other} do not fit together: {first_columns} against {other_columns}")]
    Columns {
        /// The name of a node.
        first: String,
        /// The name of another.
        other: String,
        /// The columns of the one.
        first_columns: String,
        /// The columns of the other.
        other_columns: String,
    },
    /// The name of a node that would be a path.
    #[error("a node called `{name}` cannot have a file of its name")]
    FileName {
        /// The name.
        name: String,
    },
    /// A table that cannot be used.
    #[error("the table {} cannot be used", .path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: TableFileError,
    },
    /// Samples that do not fit the robust model.
    #[error("the samples of site {node} do not fit")]
    Samples {
        /// The name of the site.
        node: String,
        /// Why not.
        source: Box<SampleError>,
    },
    /// A table with fewer rows than nodes.
    #[error("{rows} rows cannot be dealt out to {nodes} nodes")]
    TooFewRows {
        /// Its rows.
        rows: usize,
        /// The nodes.
        nodes: usize,
    },
}

/// What is wrong with the file of a table.
#[derive(Debug, Error)]
pub enum TableFileError {
    /// It cannot be opened.
    #[error(transparent)]
    Open(#[from] io::Error),
    /// It is no table of numbers.
    #[error(transparent)]
    Table(#[from] TableError),
    /// Its columns do not fit the regression.
    #[error(transparent)]
    Regression(#[from] RegressionError),
}
