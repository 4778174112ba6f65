//! What can be wrong with interactions, a graph of them, and a recommender.

use std::io;
use std::path::PathBuf;

use mingle_spectra::SpectrumError;
use thiserror::Error;

/// Why something about a recommender cannot be done.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecommendError {
    /// A file cannot be read or written.
    #[error("cannot read or write {}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A line of a file says what cannot be.
    #[error("{}, line {line}: {reason}", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
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
        /// What they were called.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// More of something than fits.
    #[error("{what}: {count} are too many, at most {most}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there are.
        count: u64,
        /// How many may be.
        most: u64,
    },
    /// An option out of bounds.
    #[error("{option} = {value}: {bounds}")]
    Option {
        /// Its name.
        option: &'static str,
        /// What was given.
        value: f64,
        /// What may be.
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
    /// A part of a dealt graph in which nobody is left.
    #[error("part {part} of {parts} has no interactions: deal to fewer clients, or give each its own file")]
    EmptyPart {
        /// Which part, from 0.
        part: usize,
        /// How many there are.
        parts: usize,
    },
    /// The spectrum cannot be found.
    #[error("the spectrum of the interactions cannot be found")]
    Spectrum(#[from] SpectrumError),
    /// The device failed.
    #[error("the device failed: {0}")]
    Device(String),
    /// Bytes that are no state or model of this recommender.
    #[error("that is no {what}: {reason}")]
    Bytes {
        /// What was expected.
        what: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// A user that the recommender does not know.
    #[error("nobody is called {user} here; users are such as {examples}")]
    UnknownUser {
        /// Who was asked for.
        user: String,
        /// Some who are there.
        examples: String,
    },
}
