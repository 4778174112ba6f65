//! The rounds that a peer has skipped in its run, kept over its processes.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::home::Home;
use crate::owner_only::write_file;
use crate::small_file;

/// Rounds that a peer skipped in its run, since its neighbours were too far ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedRounds {
    /// Their number.
    pub total: u64,
    /// The end of the last ones. A process that goes on from an older record may skip the same rounds again.
    until: u64,
}

impl SkippedRounds {
    /// Counts the rounds `from..to`, less those that are counted already.
    pub fn note(&mut self, from: u64, to: u64) {
        self.total = self.total.saturating_add(to.saturating_sub(from.max(self.until)));
        self.until = self.until.max(to);
    }
}

impl Home {
    /// Rounds that this peer has skipped in its run so far, over all its processes.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn skipped_rounds(&self) -> Result<SkippedRounds> {
        Ok(small_file::read_json(&self.skipped_file(), "is damaged")?.unwrap_or_default())
    }

    /// Keeps the rounds that this peer has skipped in its run, for a later process.
    pub fn keep_skipped_rounds(&self, skipped: SkippedRounds) -> Result {
        write_file(&self.skipped_file(), format!("{}\n", serde_json::json!(skipped)).as_bytes())
    }

    /// Forgets the skipped rounds, for a new run.
    pub fn forget_skipped_rounds(&self) -> Result {
        small_file::remove(&self.skipped_file())
    }

    fn skipped_file(&self) -> PathBuf {
        self.root().join("skipped.json")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn rounds_that_are_skipped_again_after_a_restart_count_once() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        let mut skipped = home.skipped_rounds().unwrap();
        skipped.note(10, 50);
        home.keep_skipped_rounds(skipped).unwrap();
        let mut again = home.skipped_rounds().unwrap();
        for (from, to, total) in [(12, 40, 40), (12, 60, 50), (70, 80, 60)] {
            again.note(from, to);
            assert_eq!(again.total, total, "{from} to {to}");
        }
        home.forget_skipped_rounds().unwrap();
        assert_eq!(home.skipped_rounds().unwrap().total, 0);
    }
}
