//! Provisional files of a command in a home: kept if it succeeds, removed otherwise.

use std::fs;
use std::path::{Path, PathBuf};

use crate::home::Home;

/// Files that the first minutes of a peer leave in an existing home.
const FIRST_FILES: [&str; 11] = [
    "identity.key",
    "config.toml",
    "first.safetensors",
    "swarm.json",
    "task.json",
    "trainer.json",
    "trainer-tcp.json",
    "trainer-crashes.json",
    "options.json",
    "addresses.json",
    "events.jsonl",
];

/// The state of a home before a command.
pub struct Provisional {
    root: PathBuf,
    /// Folders that did not exist, the outermost first; the last is the home.
    missing_folders: Vec<PathBuf>,
    missing_files: Vec<PathBuf>,
}

impl Provisional {
    /// Records which folders and files exist.
    pub fn look(home: &Home) -> Self {
        let root = home.root().to_path_buf();
        let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
        let mut missing_folders: Vec<PathBuf> =
            root.ancestors().take_while(is_missing).map(Path::to_path_buf).collect();
        missing_folders.reverse();
        let missing_files = FIRST_FILES.map(|name| root.join(name)).into_iter().filter(|path| !path.exists()).collect();
        Self { root, missing_folders, missing_files }
    }

    /// Removes the files and folders created since. Failures are ignored: there is another failure to report.
    pub fn undo(self) {
        if self.missing_folders.is_empty() {
            for file in &self.missing_files {
                let _ = fs::remove_file(file);
            }
            return;
        }
        let _ = fs::remove_dir_all(&self.root);
        for folder in self.missing_folders.iter().rev() {
            // This fails if another process has put something there meanwhile.
            let _ = fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_was_made_is_removed_and_what_was_there_stays() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(Some(&folder.path().join("a/b"))).unwrap();
        let before = Provisional::look(&home);
        let home = Home::create(Some(home.root())).unwrap();
        fs::write(home.identity(), "key").unwrap();
        fs::write(folder.path().join("a/other"), "of somebody else").unwrap();
        before.undo();
        assert!(!home.root().exists() && folder.path().join("a/other").exists());

        let home = Home::create(Some(home.root())).unwrap();
        fs::write(home.identity(), "key").unwrap();
        let before = Provisional::look(&home);
        fs::write(home.config(), "").unwrap();
        fs::write(home.trainer(), "").unwrap();
        before.undo();
        assert!(home.identity().exists() && !home.config().exists() && !home.trainer().exists());
    }
}
