//! Errors of interactions, their graphs, and recommenders.

use std::io;
use std::path::PathBuf;

use mingle_spectra::SpectrumError;
use thiserror::Error;

/// Errors of reading interactions, training and recommending.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecommendError {
    /// A file cannot be read or written.
    #[error("cannot read or write {}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A line of a file is malformed.
    #[error("{}, line {line}: {reason}", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The reason.
        reason: String,
    },
    /// A file without interactions.
    #[error("{}: there are no interactions in it", .path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// Planted interactions that cannot be drawn.
    #[error("{text}: {reason}")]
    Planted {
        /// The text that names them.
        text: String,
        /// The reason.
        reason: String,
    },
    /// There is more of something than is accepted.
    #[error("{what}: {count} are too many, at most {most}")]
    TooMany {
        /// The things that are too many.
        what: &'static str,
        /// Their number.
        count: u64,
        /// The most that is accepted.
        most: u64,
    },
    /// An option out of bounds.
    #[error("{option} = {value}: {bounds}")]
    Option {
        /// The name of the option.
        option: &'static str,
        /// The value given.
        value: f64,
        /// The accepted values.
        bounds: &'static str,
    },
    /// The graph is too small for the filter.
    #[error(
        "{nodes} users and items are too few for a filter of {filters} frequencies: give frequencies = {} or less, or this client more interactions",
        nodes.saturating_sub(1)
    )]
    FewNodes {
        /// Users and items.
        nodes: usize,
        /// Frequencies of the filter.
        filters: usize,
    },
    /// A part of a dealt graph has no interactions.
    #[error("part {part} of {parts} has no interactions: deal to fewer clients, or give each its own file")]
    EmptyPart {
        /// The part, from 0.
        part: usize,
        /// The number of parts.
        parts: usize,
    },
    /// The spectrum cannot be computed.
    #[error("the spectrum of the interactions cannot be found")]
    Spectrum(#[from] SpectrumError),
    /// The device failed.
    #[error("the device failed: {0}")]
    Device(String),
    /// Bytes that are no state or model of this recommender.
    #[error("that is no {what}: {reason}")]
    Bytes {
        /// The expected content.
        what: &'static str,
        /// The reason.
        reason: String,
    },
    /// A user that the recommender does not know.
    #[error("nobody is called {user} here; users are such as {examples}")]
    UnknownUser {
        /// The user requested.
        user: String,
        /// Some of the users that exist.
        examples: String,
    },
}
