//! The number of the present attempt at a problem, in a file: a process that is started again has to begin the next
//! one.

use std::fs;
use std::io;
use std::path::PathBuf;

use mingle_solving::Problem;

use crate::error::{Context, ErrorKind, Result};
use crate::home::{Home, write_file};

/// The file, and the plan and problem that it belongs to.
pub(super) struct AttemptFile {
    path: PathBuf,
    /// Hashes of the plan and the problem.
    about: String,
}

impl AttemptFile {
    /// The file in a home, for a plan and a problem.
    pub(super) fn of(home: &Home, plan_hash: &str, problem: &Problem) -> Result<Self> {
        let about = format!("{plan_hash} {}", hex::encode(problem.hash));
        Ok(Self { path: home.root().join("attempt"), about })
    }

    /// Returns the number of the attempt to begin: the first, or the one after that of a process that did not end in
    /// good order.
    pub(super) fn begin(&self) -> Result<u64> {
        let doing = format!("cannot read {}", self.path.display());
        let attempt = match fs::read_to_string(&self.path) {
            Ok(text) => self.last(&text).map_or(0, |last| last.saturating_add(1)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error).context(ErrorKind::BadInput, doing),
        };
        self.note(attempt)?;
        Ok(attempt)
    }

    /// Writes the number of the attempt under way.
    pub(super) fn note(&self, attempt: u64) -> Result {
        write_file(&self.path, format!("{attempt} {}\n", self.about).as_bytes())
    }

    /// Removes the file when the process ends in good order.
    pub(super) fn end(&self) -> Result {
        fs::remove_file(&self.path).context(ErrorKind::BadInput, format!("cannot remove {}", self.path.display()))
    }

    /// The attempt in the file, if it is of the same plan and problem.
    fn last(&self, text: &str) -> Option<u64> {
        let (attempt, about) = text.trim_end().split_once(' ')?;
        if about == self.about { attempt.parse().ok() } else { None }
    }
}
