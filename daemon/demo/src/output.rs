//! The demo's folder: its files, and a check that it overwrites no folder that is not a demo's.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use mingle_models::ObjectiveKind;
use mingle_peer::error::Context;
use mingle_peer::{Error, ErrorKind, Result, output_file};
use serde::Serialize;

use crate::metric;
use crate::tally::SwarmRow;

/// The file that marks a demo's folder.
const MARKER: &str = ".mingle-demo";

/// The folder that the demo writes.
pub struct Output {
    root: PathBuf,
    events: RefCell<File>,
}

impl Output {
    /// Makes the folder new. Files of an earlier demo are removed; a folder with other contents is refused.
    pub(crate) fn create(root: &Path) -> Result<Self> {
        let doing = format!("cannot write to {}", root.display());
        output_file::make_folder(root)?;
        if fs::read_dir(root).context(ErrorKind::BadInput, &doing)?.next().is_some() {
            if !root.join(MARKER).exists() {
                return Err(Error::new(
                    ErrorKind::BadInput,
                    format!("{} holds something that is not a demo's: it is left alone", root.display()),
                )
                .hint("name another folder with --output DIR"));
            }
            remove_all_in(root).context(ErrorKind::BadInput, &doing)?;
        }
        fs::create_dir_all(root.join("peers")).context(ErrorKind::BadInput, &doing)?;
        fs::write(root.join(MARKER), "").context(ErrorKind::BadInput, &doing)?;
        let events = File::create(root.join("events.jsonl")).context(ErrorKind::BadInput, &doing)?;
        Ok(Self { root: root.to_path_buf(), events: RefCell::new(events) })
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The plan that all peers ran.
    pub fn plan(&self) -> PathBuf {
        self.root.join("plan.json")
    }

    /// The problem file, where there is one.
    pub fn problem(&self) -> PathBuf {
        self.root.join("problem.toml")
    }

    /// The home of one peer.
    pub fn home(&self, node: usize) -> PathBuf {
        self.root.join("peers").join(node.to_string())
    }

    /// Appends the swarm's state after a round to `events.jsonl`.
    pub(crate) fn append_row(&self, row: &SwarmRow, objective: ObjectiveKind) -> Result {
        #[derive(Serialize)]
        struct Line<'a> {
            schema: &'static str,
            #[serde(flatten)]
            row: &'a SwarmRow,
        }
        let line = Line { schema: "mingle.demo.round/1", row };
        let text = metric::to_json(&line, objective)?;
        writeln!(self.events.borrow_mut(), "{text}")
            .context(ErrorKind::BadInput, format!("cannot write {}", self.root.join("events.jsonl").display()))
    }

    /// Writes a file of the folder, whole or not at all.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result {
        output_file::write(&self.root.join(name), bytes)
    }
}

/// Empties a folder without removing it: it may be reached by a link, or be a mount point.
fn remove_all_in(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_folder_of_something_else_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("thesis.tex"), "years of work").unwrap();
        let error = Output::create(folder.path()).err().unwrap();
        assert!(error.to_string().contains("left alone"), "{error}");
        assert_eq!(fs::read_to_string(folder.path().join("thesis.tex")).unwrap(), "years of work");
    }

    #[test]
    fn what_an_earlier_demo_left_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("demo");
        Output::create(&root).unwrap().write("old.txt", b"old").unwrap();
        Output::create(&root).unwrap();
        assert!(!root.join("old.txt").exists() && root.join("peers").exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_behind_a_link_is_used_and_the_link_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (link, real) = (folder.path().join("link"), folder.path().join("real"));
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink("real", &link).unwrap();
        for name in ["first", "second"] {
            Output::create(&link).unwrap().write(name, b"").unwrap();
            assert!(link.is_symlink() && real.join(name).exists(), "{name}");
        }
        assert!(!real.join("first").exists());
    }
}
