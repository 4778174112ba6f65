//! The kinds of problems that are learned in rounds.
//!
//! A kind is a folder here, and its line in [`KINDS`]: files of that kind can then be read, solved, run by peers and
//! compared with others, and its example is among the inputs that tests mutate.

mod node_classification;
mod recommendation;
#[cfg(test)]
mod toy;
mod training;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mingle_solving::{CONVEX_KINDS, RoundTask};

use crate::ProblemFileError;
use crate::file::{RoundFile, folder_of, parse};
pub use node_classification::read_graph;
pub use recommendation::RECOMMENDER;
pub(crate) use training::settings_for_trainer;

/// All kinds.
pub(crate) const KINDS: &[RoundKind] = &[
    RoundKind::of::<recommendation::RecommendationFile>(),
    RoundKind::of::<node_classification::NodesFile>(),
    RoundKind::of::<training::TrainingFile>(),
    #[cfg(test)]
    RoundKind::of::<toy::ToyFile>(),
];

/// A kind of problem that is learned in rounds.
#[derive(Debug)]
pub(crate) struct RoundKind {
    /// The value of `kind` in its files.
    pub(crate) name: &'static str,
    usual_methods: &'static [(&'static str, &'static str)],
    #[cfg(test)]
    pub(crate) example: &'static str,
    read: ReadTask,
}

/// The task of a text that stands for the file of a path; the last argument is a folder for what takes long to compute.
type ReadTask = fn(&str, &Path, Option<PathBuf>) -> Result<Arc<dyn RoundTask>, ProblemFileError>;

impl RoundKind {
    /// The kind with files of this form.
    const fn of<F: RoundFile>() -> Self {
        Self {
            name: F::KIND,
            usual_methods: F::USUAL_METHODS,
            #[cfg(test)]
            example: F::EXAMPLE,
            read: |text, path, cache| parse::<F>(text, path)?.task(folder_of(path)?, cache),
        }
    }

    /// The kind of this name.
    fn named(name: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// The task of a problem file of the kind; none where `name` is that of a convex problem.
    ///
    /// # Errors
    /// No kind has that name, or the text has an invalid value.
    pub(crate) fn task(
        name: String,
        text: &str,
        path: &Path,
        cache: Option<PathBuf>,
    ) -> Result<Option<Arc<dyn RoundTask>>, ProblemFileError> {
        match Self::named(&name) {
            Some(kind) => (kind.read)(text, path, cache).map(Some),
            None if CONVEX_KINDS.contains(&name.as_str()) => Ok(None),
            None => Err(ProblemFileError::Kind { path: path.to_owned(), kind: name, known: known_kinds().join(", ") }),
        }
    }
}

/// The names of the kinds that are learned in rounds.
pub fn kinds_in_rounds() -> Vec<&'static str> {
    KINDS.iter().map(|kind| kind.name).collect()
}

/// The names of all kinds of problems: convex ones and those of learning in rounds.
pub fn known_kinds() -> Vec<&'static str> {
    CONVEX_KINDS.into_iter().chain(kinds_in_rounds()).collect()
}

/// The methods by which a kind of problem is usually compared: their names, and the lines of the problem file that
/// choose them. Empty for other kinds.
pub fn usual_methods(kind: &str) -> &'static [(&'static str, &'static str)] {
    RoundKind::named(kind).map_or(&[], |kind| kind.usual_methods)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use super::*;
    use crate::task;

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

    #[test]
    fn names_of_kinds_are_distinct_and_usual_methods_are_entries_of_their_files() {
        let names = known_kinds();
        for (at, kind) in names.iter().enumerate() {
            assert!(!names[..at].contains(kind), "{kind} twice");
        }
        for kind in KINDS {
            for (method, lines) in usual_methods(kind.name) {
                let chosen: toml::Table = toml::from_str(lines).unwrap();
                let mut file: toml::Table = toml::from_str(kind.example).unwrap();
                file.extend(chosen);
                let text = toml::to_string(&file).unwrap();
                let found = task(&text, Path::new("problem.toml"), None);
                assert!(matches!(found, Ok(Some(_))), "{}, {method}: {:?}", kind.name, found.err());
            }
        }
    }

    /// The toy is read, learned, compared and mutated as all kinds are: see `toy` and `mutated_inputs`. Here: what it took.
    #[test]
    fn a_kind_is_added_by_a_folder_and_its_line_of_the_registry() {
        let mut lines = Vec::new();
        let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.ends_with("kinds/toy") {
                    continue;
                }
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text = fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
                let names = code.lines().filter(|line| line.contains("toy") || line.contains("Toy"));
                lines.extend(names.map(|line| line.trim().to_owned()));
            }
        }
        assert_eq!(lines, ["mod toy;", "RoundKind::of::<toy::ToyFile>(),"]);
    }
}
