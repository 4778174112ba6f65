//! Errors of problem files and of the tables that they name.

use std::io;
use std::path::PathBuf;

use mingle_solver::{AllocationError, RegressionError, TableError};
use thiserror::Error;

use super::file_error::FileError;
use crate::learning::LearningError;

/// A problem that cannot be solved as its file and its tables have it.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum ProblemError {
    /// The file cannot be read.
    #[error("cannot read the problem {}", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// The file is longer than any problem.
    #[error("cannot read the problem {}: {bytes} bytes are too many", .path.display())]
    TooLong { path: PathBuf, bytes: u64 },
    /// The file describes an invalid problem.
    #[error("the problem {} does not hold", .path.display())]
    File { path: PathBuf, source: FileError },
    /// A node's data cannot be used for learning.
    #[error("node {node} cannot learn")]
    Learning { node: String, source: LearningError },
    /// A node's preference is not convex, or has contradictory bounds.
    #[error("the problem {} does not hold", .path.display())]
    Preference { path: PathBuf, source: AllocationError },
    /// Budgets contradict each other, or the costs have no least value.
    #[error("the problem {} cannot be solved", .path.display())]
    Unsolvable { path: PathBuf, source: AllocationError },
    /// The plan does not link two members of a clique both ways.
    #[error("{}: clique {clique} is none of the plan: {one} and {other} do not hear each other", .path.display())]
    NotLinked { path: PathBuf, clique: String, one: String, other: String },
    /// The tables of two nodes have different columns.
    #[error("the tables of {first} and {other} do not fit together: {first_columns} against {other_columns}")]
    Columns { first: String, other: String, first_columns: String, other_columns: String },
    /// The name of a node would be a path as the name of a file.
    #[error("a node called `{name}` cannot have a file of its name")]
    FileName { name: String },
    /// A table cannot be used.
    #[error("the table {} cannot be used", .path.display())]
    Table { path: PathBuf, source: TableFileError },
    /// The samples of a site do not fit the robust model.
    #[error("the samples of site {node} do not fit")]
    Samples { node: String, source: Box<SampleError> },
    /// A table has fewer rows than there are nodes.
    #[error("{rows} rows cannot be dealt out to {nodes} nodes")]
    TooFewRows { rows: usize, nodes: usize },
}

/// Faults of the file of a table.
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

/// A table that does not fit the robust model.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SampleError {
    /// A sample is outside the box.
    #[error("row {row}, column `{column}`: {value} is outside the support, {lower} to {upper}")]
    OutsideBox {
        /// The row, counted from 1 below the names of the columns.
        row: usize,
        /// The column.
        column: String,
        /// The value there.
        value: f64,
        /// The lower bound.
        lower: f64,
        /// The upper bound.
        upper: f64,
    },
    /// A sample is beyond a half-space.
    #[error("row {row} exceeds bound {half_space} of the support by {by:.3e}")]
    OutsideHalfSpace {
        /// The row, counted from 1.
        row: usize,
        /// The half-space, counted from 1 in the order of the file.
        half_space: usize,
        /// The excess.
        by: f64,
    },
    /// A half-space names a column that the model does not use.
    #[error("a half-space names the column `{0}`, which the model does not use")]
    NoColumn(String),
}
