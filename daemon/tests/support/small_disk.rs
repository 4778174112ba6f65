//! A disk that a test can fill up: a file system in memory, mounted over a folder.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::text;

/// Room for a peer that trains a small model, and for little else.
const SIZE: &str = "size=1m";

/// A folder on a disk of its own, for as long as this lives.
pub(crate) struct SmallDisk {
    folder: PathBuf,
}

impl SmallDisk {
    /// Moves a folder to a small disk. Panics where this system does not let us mount one.
    pub(crate) fn under(folder: &Path) -> Self {
        let aside = tempfile::tempdir().unwrap();
        copy(folder, aside.path());
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", SIZE, "tmpfs", text(folder)]).output();
        let is_mounted = mounted.is_ok_and(|output| output.status.success());
        assert!(is_mounted, "a disk that can be filled up cannot be mounted here (run as root)");
        let disk = Self { folder: folder.to_path_buf() };
        copy(aside.path(), folder);
        disk
    }

    /// Fills the disk up.
    pub(crate) fn fill(&self) {
        let mut filler = File::create(self.filler()).unwrap();
        // The last bytes one by one: a file system in memory counts only pages, but another may count bytes.
        for piece in [&[0; 4096][..], &[0]] {
            let full = loop {
                if let Err(error) = filler.write_all(piece) {
                    break error;
                }
            };
            assert_eq!(full.kind(), ErrorKind::StorageFull);
        }
    }

    /// Makes room again.
    pub(crate) fn free(&self) {
        fs::remove_file(self.filler()).unwrap();
    }

    fn filler(&self) -> PathBuf {
        self.folder.join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a test that fails may leave a file open.
        let _ = Command::new("umount").args(["-l", text(&self.folder)]).status();
    }
}

/// Copies the content of a folder, with its permissions.
fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").args(["-a", text(&from.join(".")), text(to)]).status().unwrap();
    assert!(copied.success());
}
