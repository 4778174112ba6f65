//! Problem files of learning in rounds, and the tasks that they describe.
//!
//! [`read`] opens a problem file and returns its [`RoundTask`], which a peer, a test or the lab runs:
//!
//! | `kind` | what is learned | from |
//! | --- | --- | --- |
//! | `recommendation` | a recommender for each peer | `mingle-recommend` |
//! | `node-classification` | a personal classifier of nodes for each peer | `mingle-graphs` |
//! | `training` | one model for all, built in or of another program, with noise that all share | `mingle-models`, `mingle-federated` |
//!
//! A new kind is a folder of `kinds/` and its line in `kinds.rs`. The folder has the form of its file and its
//! [`RoundTask`], whose learner is a [`RoundLearning`](mingle_solving::RoundLearning). Convex problems, which are solved by
//! iterations instead of rounds, are [`mingle_solving::Problem`].
//!
//! ```
//! # fn main() -> Result<(), mingle_problems::ProblemFileError> {
//! let text = "kind = \"node-classification\"\ndata = \"two-characters\"\nrounds = 3";
//! let file = std::env::temp_dir().join("problem.toml");
//! let task = mingle_problems::task(text, &file, None)?.expect("a kind that is learned in rounds");
//! assert_eq!(task.rules().rounds(), 3);
//! # Ok(())
//! # }
//! ```

mod dealt;
mod error;
mod file;
mod kinds;
mod learned;
#[cfg(test)]
mod mutated_inputs;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mingle_federated::FederatedSettings;
use mingle_solving::RoundTask;

pub use error::ProblemFileError;
pub use kinds::{RECOMMENDER, kinds_in_rounds, known_kinds, read_graph, usual_methods};
pub use learned::{learned_files, learned_table, round_line};

/// Reads the task of learning in rounds from a problem file. None if its `kind` is one of
/// [`CONVEX_KINDS`](mingle_solving::CONVEX_KINDS), or it has no `kind`. Spectra of recommenders are cached in `spectra`,
/// unless the file names a folder.
///
/// # Errors
/// The file cannot be read, has an invalid value, or has a kind that is not known.
pub fn read(path: &Path, spectra: Option<PathBuf>) -> Result<Option<Arc<dyn RoundTask>>, ProblemFileError> {
    match file::read_text(path)? {
        Some(text) => task(&text, path, spectra).map_err(|error| error.of_file(path)),
        None => Ok(None),
    }
}

/// Reads the settings of a training whose model is that of another program: `kind = "training"`, `model = "trainer"`.
///
/// # Errors
/// The file cannot be read, is about something else, or has an invalid value.
pub fn read_for_trainer(path: &Path) -> Result<FederatedSettings, ProblemFileError> {
    let text = file::read_text(path)?.unwrap_or_default();
    kinds::settings_for_trainer(&text, path).map_err(|error| error.of_file(path))
}

/// As [`read`], of a text that stands for the file `path`: paths in it are relative to that file's folder.
///
/// # Errors
/// The text has an invalid value, or a kind that is not known.
pub fn task(text: &str, path: &Path, spectra: Option<PathBuf>) -> Result<Option<Arc<dyn RoundTask>>, ProblemFileError> {
    match file::kind_of(text) {
        Some(kind) => kinds::RoundKind::task(kind, text, path, spectra),
        None => Ok(None),
    }
}
