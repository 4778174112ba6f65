//! The demo's folder: its files, and a check that it overwrites no folder that is not a demo's.

mod former;

use std::cell::{Cell, RefCell};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use mingle_models::ObjectiveKind;
use mingle_peer::error::Context;
use mingle_peer::events::Event;
use mingle_peer::{Error, ErrorKind, Result, output_file};
use serde::Serialize;

use crate::metric;
use crate::tally::SwarmRow;

/// The file that marks a demo's folder.
const MARKER: &str = ".mingle-demo";

/// The folder that the demo writes.
pub struct Output {
    root: PathBuf,
    phase: Cell<Phase>,
    events: RefCell<Option<File>>,
}

/// The progress of a demo, as far as its folder depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The folder may be used, and is as it was.
    Checked,
    /// It has files of this demo; those of an earlier one are set aside, and come back if this one fails.
    Made,
    /// Peers have made progress: the files of an earlier demo are gone.
    Begun,
}

impl Output {
    /// The folder at this path, as it is.
    ///
    /// # Errors
    /// It is no folder, cannot be written to, or has other contents than a demo's.
    pub(crate) fn at(root: &Path) -> Result<Self> {
        output_file::check_folder(root)?;
        let is_used = root.exists()
            && fs::read_dir(root).context(ErrorKind::BadInput, cannot_write_to(root))?.next().is_some()
            && !former::is_there(root);
        if is_used && !root.join(MARKER).exists() {
            return Err(Error::new(
                ErrorKind::BadInput,
                format!("{} holds something that is not a demo's: it is left alone", root.display()),
            )
            .hint("name another folder with --output DIR"));
        }
        Ok(Self { root: root.to_path_buf(), phase: Cell::new(Phase::Checked), events: RefCell::default() })
    }

    /// Makes the folder new. Files of an earlier demo are set aside until peers of this one have made progress; if it
    /// fails before, they are put back.
    pub(crate) fn make(&self) -> Result {
        let root = &self.root;
        let doing = || cannot_write_to(root);
        output_file::make_folder(root)?;
        self.phase.set(Phase::Made);
        // Those of a demo that was killed.
        former::put_back(root).and_then(|()| former::set_aside(root)).context(ErrorKind::BadInput, doing())?;
        fs::create_dir_all(root.join("peers")).context(ErrorKind::BadInput, doing())?;
        fs::write(root.join(MARKER), "").context(ErrorKind::BadInput, doing())?;
        let events = File::create(root.join("events.jsonl")).context(ErrorKind::BadInput, doing())?;
        self.events.replace(Some(events));
        Ok(())
    }

    /// Notes an event of a peer. The first progress of any of them removes the files of an earlier demo.
    pub(crate) fn note(&self, event: &Event) -> Result {
        let is_progress = matches!(
            event,
            Event::Round { .. }
                | Event::Evaluated { .. }
                | Event::Done { .. }
                | Event::Measured { .. }
                | Event::Iterated { .. }
                | Event::Learned { .. }
                | Event::Solved(_)
        );
        if !is_progress || self.phase.get() != Phase::Made {
            return Ok(());
        }
        self.phase.set(Phase::Begun);
        former::let_go(&self.root).context(ErrorKind::BadInput, cannot_write_to(&self.root))
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

    /// The log of a peer, where it is once this demo has failed.
    pub(crate) fn log_of_failed(&self, node: usize) -> PathBuf {
        let log = Path::new("peers").join(node.to_string()).join("log.txt");
        let comes_back = self.phase.get() == Phase::Made && former::is_there(&self.root);
        if comes_back { self.root.join(former::FAILED).join(log) } else { self.root.join(log) }
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
        let mut events = self.events.borrow_mut();
        let written = events.as_mut().map_or(Ok(()), |events| writeln!(events, "{text}"));
        written.context(ErrorKind::BadInput, format!("cannot write {}", self.root.join("events.jsonl").display()))
    }

    /// Like [`write`](Self::write), and makes the folders that the name speaks of.
    pub(crate) fn write_below(&self, name: &str, bytes: &[u8]) -> Result {
        let folder = self.root.join(Path::new(name).parent().unwrap_or(Path::new("")));
        fs::create_dir_all(&folder).context(ErrorKind::BadInput, cannot_write_to(&folder))?;
        self.write(name, bytes)
    }

    /// Writes a file of the folder, whole or not at all.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result {
        output_file::write(&self.root.join(name), bytes)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.phase.get() == Phase::Made {
            // A failure leaves them set aside, where the next demo finds them.
            let _ = former::put_back(&self.root);
        }
    }
}

fn cannot_write_to(root: &Path) -> String {
    format!("cannot write to {}", root.display())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn made(root: &Path) -> Output {
        let output = Output::at(root).unwrap();
        output.make().unwrap();
        output
    }

    /// Writes a file of a demo whose peers make progress.
    fn run(root: &Path, name: &str) {
        let output = made(root);
        output.note(&Event::Warning { message: "slow".to_owned() }).unwrap();
        assert_eq!(output.phase.get(), Phase::Made);
        output.write(name, name.as_bytes()).unwrap();
        output.note(&Event::Iterated { iteration: 1, residual: 1.0, gap: None }).unwrap();
        assert_eq!(output.log_of_failed(3), root.join("peers/3/log.txt"));
    }

    #[test]
    fn a_folder_of_something_else_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("thesis.tex"), "years of work").unwrap();
        let error = Output::at(folder.path()).err().unwrap();
        assert!(error.to_string().contains("left alone"), "{error}");
        assert_eq!(fs::read_to_string(folder.path().join("thesis.tex")).unwrap(), "years of work");
    }

    #[test]
    fn what_an_earlier_demo_left_is_replaced_once_peers_make_progress_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("demo");
        run(&root, "old.txt");
        for _ in 0..2 {
            let failing = made(&root);
            assert!(!root.join("old.txt").exists());
            failing.write("new.txt", b"new").unwrap();
            assert_eq!(failing.log_of_failed(3), root.join("failed/peers/3/log.txt"));
            drop(failing);
            assert_eq!(fs::read_to_string(root.join("old.txt")).unwrap(), "old.txt");
            assert!(root.join("failed/new.txt").exists() && !root.join("new.txt").exists());
        }
        // A demo that is killed cannot put anything back: the next one does.
        std::mem::forget(made(&root));
        assert!(!root.join("old.txt").exists());
        drop(made(&root));
        assert!(root.join("old.txt").exists());
        run(&root, "new.txt");
        assert!(root.join("new.txt").exists() && root.join("peers").exists());
        assert!(!root.join("old.txt").exists() && !root.join("failed").exists() && !former::is_there(&root));
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_behind_a_link_is_used_and_the_link_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (link, real) = (folder.path().join("link"), folder.path().join("real"));
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink("real", &link).unwrap();
        for name in ["first", "second"] {
            run(&link, name);
            assert!(link.is_symlink() && real.join(name).exists(), "{name}");
        }
        assert!(!real.join("first").exists());
    }
}
