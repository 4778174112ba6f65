//! What a swarm can learn in rounds, as a problem file says it.
//!
//! [`read`] opens a problem file and gives the [`RoundTask`] that it speaks of, which a peer, a test or the lab runs:
//!
//! | `kind` | what is learned | from |
//! | --- | --- | --- |
//! | `recommendation` | a recommender for each peer ([`Recommendation`]) | `mingle-recommend` |
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

use mingle_solving::RoundTask;

pub use error::ProblemFileError;
pub use file::{RoundFile, open_device, parse, read_file};
pub use learned::{learned_files, learned_table, round_line};
pub use nodes::{NodesFile, NodesTask, SharingName, read_graph};
pub use recommendation::{Method, RECOMMENDER, Recommendation, RecommendationFile};

/// What a problem file has a swarm learn in rounds; none where its `kind` is another. Spectra of recommenders are kept in
/// `spectra`, unless the file says where.
///
/// # Errors
/// The file cannot be read, or says what cannot be.
pub fn read(path: &Path, spectra: Option<PathBuf>) -> Result<Option<Arc<dyn RoundTask>>, ProblemFileError> {
    match file::read_text(path)? {
        Some(text) => task(&text, path, spectra),
        None => Ok(None),
    }
}

/// As [`read`], of a text that stands for the file `path`: paths in it are relative to that file's folder.
///
/// # Errors
/// It says what cannot be.
pub fn task(text: &str, path: &Path, spectra: Option<PathBuf>) -> Result<Option<Arc<dyn RoundTask>>, ProblemFileError> {
    let task: Arc<dyn RoundTask> = match file::kind_of(text).as_deref() {
        Some(RecommendationFile::KIND) => {
            Arc::new(Recommendation::new(parse(text, path)?, file::folder_of(path)?, spectra)?)
        }
        Some(NodesFile::KIND) => Arc::new(NodesTask::new(parse(text, path)?, file::folder_of(path)?)?),
        _ => return Ok(None),
    };
    Ok(Some(task))
}

/// What methods a kind of problem is usually compared by: their names, and the lines of the problem file that choose them. None
/// for other kinds.
pub fn usual_methods(kind: &str) -> &'static [(&'static str, &'static str)] {
    match kind {
        RecommendationFile::KIND => RecommendationFile::USUAL_METHODS,
        NodesFile::KIND => NodesFile::USUAL_METHODS,
        _ => &[],
    }
}
