//! Errors of interactions, their graphs, and recommenders.

use std::io;
use std::path::PathBuf;

use mingle_spectra::SpectrumError;
use thiserror::Error;

/// Errors of reading interactions, training and recommending.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum RecommendError {
    /// A file cannot be read or written.
    #[error("cannot read or write {}", .path.display())]
    Io { path: PathBuf, source: io::Error },
    /// A line of a file is malformed.
    #[error("{}, line {line}: {reason}", .path.display())]
    Line { path: PathBuf, line: u64, reason: String },
    /// A file without interactions.
    #[error("{}: there are no interactions in it", .path.display())]
    Empty { path: PathBuf },
    /// Planted interactions that cannot be drawn.
    #[error("{text}: {reason}")]
    Planted { text: String, reason: String },
    /// There is more of something than is accepted.
    #[error("{what}: {count} are too many, at most {most}")]
    TooMany { what: &'static str, count: u64, most: u64 },
    /// An option out of bounds.
    #[error("{option} = {value}: {bounds}")]
    Option { option: &'static str, value: f64, bounds: &'static str },
    /// The graph is too small for the filter.
    #[error(
        "{nodes} users and items are too few for a filter of {filters} frequencies: give frequencies = {} or less, or this client more interactions",
        nodes.saturating_sub(1)
    )]
    FewNodes { nodes: usize, filters: usize },
    /// A part of a dealt graph has no interactions.
    #[error("part {part} of {parts} has no interactions: deal to fewer clients, or give each its own file")]
    EmptyPart { part: usize, parts: usize },
    /// The spectrum cannot be computed.
    #[error("the spectrum of the interactions cannot be found")]
    Spectrum(#[from] SpectrumError),
    /// The device failed.
    #[error("the device failed: {0}")]
    Device(String),
    /// Bytes that are no state or model of this recommender.
    #[error("that is no {what}: {reason}")]
    Bytes { what: &'static str, reason: String },
    /// A user that the recommender does not know.
    #[error("nobody is called {user} here; users are such as {examples}")]
    UnknownUser { user: String, examples: String },
}
