//! States after the last rounds of learning, as files in the home: one per round, written whole or not at all.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use mingle_solving::{LearningError, MOST_STATE_BYTES, RoundStore};

use crate::error::{Context, ErrorKind, Result};
use crate::home::write_file;
use crate::owner_only::{create_private, open_to_read};

/// The part of a file's name after the round.
const SUFFIX: &str = ".state";
/// Largest file that is read: a state, and the metrics of all rounds before it.
const MOST_BYTES: u64 = MOST_STATE_BYTES as u64 + (1 << 30);

/// The files of one home.
#[derive(Debug)]
pub(super) struct RoundFiles {
    folder: PathBuf,
}

impl RoundFiles {
    /// The files in this folder, which is made if it does not exist; if `fresh`, files of an earlier run are removed.
    pub(super) fn open(folder: PathBuf, fresh: bool) -> Result<Self> {
        let doing = || format!("cannot keep rounds in {}", folder.display());
        create_private(&folder).context(ErrorKind::BadInput, doing())?;
        let mut files = Self { folder };
        if fresh {
            files.retain(&BTreeSet::new());
        }
        Ok(files)
    }

    fn path(&self, round: u64) -> PathBuf {
        self.folder.join(format!("{round}{SUFFIX}"))
    }
}

impl RoundStore for RoundFiles {
    fn held(&self) -> BTreeSet<u64> {
        let round = |entry: io::Result<fs::DirEntry>| {
            let name = entry.ok()?.file_name();
            name.to_str()?.strip_suffix(SUFFIX)?.parse().ok()
        };
        fs::read_dir(&self.folder).into_iter().flatten().filter_map(round).collect()
    }

    fn load(&self, round: u64) -> std::result::Result<Vec<u8>, LearningError> {
        let path = self.path(round);
        read(&path).map_err(|error| LearningError(format!("cannot read {}: {error}", path.display())))
    }

    fn keep(&mut self, round: u64, bytes: &[u8]) -> std::result::Result<(), LearningError> {
        write_file(&self.path(round), bytes).map_err(|failure| LearningError(format!("{failure:#}")))
    }

    fn retain(&mut self, rounds: &BTreeSet<u64>) {
        for round in self.held().difference(rounds) {
            // A leftover file is of a round to which no peer returns, or is offered again: it is harmless.
            let _ = fs::remove_file(self.path(*round));
        }
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open_to_read(path)?;
    if file.metadata()?.len() > MOST_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "longer than any state"));
    }
    let mut bytes = Vec::new();
    file.by_ref().take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn rounds_outlive_the_process_until_they_are_let_go_or_a_fresh_run_begins() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("rounds");
        let mut files = RoundFiles::open(folder.clone(), false).unwrap();
        for round in 1..=4 {
            files.keep(round, &[round as u8; 9]).unwrap();
        }
        fs::write(folder.join("notes.txt"), "mine").unwrap();
        files.retain(&BTreeSet::from([3, 4]));
        let again = RoundFiles::open(folder.clone(), false).unwrap();
        assert_eq!(again.held(), BTreeSet::from([3, 4]));
        assert_eq!(again.load(4).unwrap(), [4; 9]);
        assert!(again.load(1).unwrap_err().to_string().contains("1.state"));
        assert!(RoundFiles::open(folder.clone(), true).unwrap().held().is_empty());
        assert!(folder.join("notes.txt").exists());
    }
}
