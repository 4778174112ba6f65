//! The attempt at a problem that a home is in: a process that is started again has to begin the next one.

use std::fs;
use std::io;
use std::path::PathBuf;

use mingle_solving::Problem;

use crate::error::{Context, ErrorKind, Result};
use crate::home::{Home, write_file};

/// The file, and what it is about.
pub(super) struct AttemptFile {
    path: PathBuf,
    /// The plan and the problem.
    about: String,
}

impl AttemptFile {
    /// That of a home, for a plan and a problem.
    pub(super) fn of(home: &Home, plan_hash: &str, problem: &Problem) -> Result<Self> {
        let about = format!("{plan_hash} {}", hex::encode(problem.hash));
        Ok(Self { path: home.root().join("attempt"), about })
    }

    /// The attempt to begin: the first, or the one after that of a process that never ended in good order.
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

    /// Remembers the attempt under way.
    pub(super) fn note(&self, attempt: u64) -> Result {
        write_file(&self.path, format!("{attempt} {}\n", self.about).as_bytes())
    }

    /// The process ends in good order.
    pub(super) fn end(&self) -> Result {
        fs::remove_file(&self.path).context(ErrorKind::BadInput, format!("cannot remove {}", self.path.display()))
    }

    /// The attempt that the file speaks of, if it is about the same.
    fn last(&self, text: &str) -> Option<u64> {
        let (attempt, about) = text.trim_end().split_once(' ')?;
        if about == self.about { attempt.parse().ok() } else { None }
    }
}
