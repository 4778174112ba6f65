//! Problem files of learning in rounds, and the tasks that they describe.
//!
//! [`read`] opens a problem file and returns its [`RoundTask`], which a peer, a test or the lab runs:
//!
//! | `kind` | what is learned | from |
//! | --- | --- | --- |
//! | `recommendation` | a recommender for each peer ([`RecommendationProblem`]) | `mingle-recommend` |
//! | `node-classification` | a personal classifier of nodes for each peer ([`NodesTask`]) | `mingle-graphs` |
//!
//! A new kind is a module here: its file, which implements [`RoundFile`], and its [`RoundTask`], whose learner is a
//! [`RoundLearning`](mingle_solving::RoundLearning). Convex problems, which are solved by iterations instead of rounds, are
//! [`mingle_solving::Problem`].
//!
//! ```
//! # fn main() -> Result<(), mingle_problems::ProblemFileError> {
//! let folder = std::env::temp_dir();
//! let file: mingle_problems::NodesFile =
//!     mingle_problems::parse("kind = \"node-classification\"\ndata = \"two-characters\"\nrounds = 3", &folder)?;
//! let task = mingle_problems::NodesTask::new(file, folder)?;
//! assert_eq!(mingle_solving::RoundTask::rules(&task).rounds(), 3);
//! # Ok(())
//! # }
//! ```

mod dealt;
mod error;
mod file;
mod learned;
#[cfg(test)]
mod mutated_inputs;
mod nodes;
mod recommendation;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mingle_solving::{CONVEX_KINDS, RoundTask};

pub use error::ProblemFileError;
pub use file::{RoundFile, open_device, parse, read_file};
pub use learned::{learned_files, learned_table, round_line};
pub use nodes::{NodesFile, NodesTask, SharingName, read_graph};
pub use recommendation::{AggregationMethod, RECOMMENDER, RecommendationFile, RecommendationProblem};

/// Reads the task of learning in rounds from a problem file. None if its `kind` is one of [`CONVEX_KINDS`], or it has
/// no `kind`. Spectra of recommenders are cached in `spectra`, unless the file names a folder.
///
/// # Errors
/// The file cannot be read, has an invalid value, or has a kind that is not known.
pub fn read(path: &Path, spectra: Option<PathBuf>) -> Result<Option<Arc<dyn RoundTask>>, ProblemFileError> {
    match file::read_text(path)? {
        Some(text) => task(&text, path, spectra),
        None => Ok(None),
    }
}

/// As [`read`], of a text that stands for the file `path`: paths in it are relative to that file's folder.
///
/// # Errors
/// The text has an invalid value, or a kind that is not known.
pub fn task(text: &str, path: &Path, spectra: Option<PathBuf>) -> Result<Option<Arc<dyn RoundTask>>, ProblemFileError> {
    let Some(kind) = file::kind_of(text) else { return Ok(None) };
    if CONVEX_KINDS.contains(&kind.as_str()) {
        return Ok(None);
    }
    match LEARNED_KINDS.iter().find(|(name, _)| *name == kind) {
        Some((_, task)) => task(text, path, spectra).map(Some),
        None => Err(ProblemFileError::Kind { path: path.to_owned(), kind }),
    }
}

/// The task of a text of one kind, which stands for a file; the last argument is the cache of spectra.
type ReadTask = fn(&str, &Path, Option<PathBuf>) -> Result<Arc<dyn RoundTask>, ProblemFileError>;

/// The kinds of learning in rounds, as their files name them, with their tasks.
const LEARNED_KINDS: [(&str, ReadTask); 2] = [
    (RecommendationFile::KIND, |text, path, spectra| {
        Ok(Arc::new(RecommendationProblem::new(parse(text, path)?, file::folder_of(path)?, spectra)?))
    }),
    (NodesFile::KIND, |text, path, _| Ok(Arc::new(NodesTask::new(parse(text, path)?, file::folder_of(path)?)?))),
];

/// The names of all kinds of problems: convex ones and those of learning in rounds.
pub fn known_kinds() -> Vec<&'static str> {
    CONVEX_KINDS.into_iter().chain(LEARNED_KINDS.iter().map(|(name, _)| *name)).collect()
}

/// The methods by which a kind of problem is usually compared: their names, and the lines of the problem file that
/// choose them. Empty for other kinds.
pub fn usual_methods(kind: &str) -> &'static [(&'static str, &'static str)] {
    match kind {
        RecommendationFile::KIND => RecommendationFile::USUAL_METHODS,
        NodesFile::KIND => NodesFile::USUAL_METHODS,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_kind_that_is_not_known_is_answered_with_all_that_are() {
        let task = |kind: &str| task(&format!("kind = \"{kind}\""), Path::new("problem.toml"), None);
        let message = task("kmeans").unwrap_err().to_string();
        assert!(message.contains("problem.toml") && message.contains("kmeans"), "{message}");
        assert!(known_kinds().len() > CONVEX_KINDS.len());
        for kind in known_kinds() {
            assert!(message.contains(kind), "{kind}: {message}");
            assert!(!matches!(task(kind), Err(ProblemFileError::Kind { .. })), "{kind}");
        }
    }
}
