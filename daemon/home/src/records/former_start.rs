//! The files of a home that belong to its run and are none of its records, while another run begins beside it: the task and
//! the options of the next start, the rounds that were skipped, and the best model.
//!
//! A run that takes the place of another writes its own before its first record is on the disk. The former ones are in
//! `records.next/former/` by then, and count until that folder has become `records/`: a process that ends before leaves
//! the run before as it was.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Context, ErrorKind, Result};
use crate::home::Home;
use crate::owner_only::sync_folder;
use crate::small_file::or_missing;

const FOLDER: &str = "former";
/// The folder until all files are in it.
const INCOMPLETE: &str = "former.new";
/// The files, in the home and in the folder.
const FILES: [&str; 5] = ["options.json", "task.json", "trainer.json", "skipped.json", "best.safetensors"];

/// The file that counts of those which belong to a run: `path` in the home, or the former one while another run begins.
pub fn counting_file(home: &Home, path: &Path) -> PathBuf {
    let folder = folder(home);
    match path.file_name() {
        Some(name) if folder.is_dir() => folder.join(name),
        _ => path.to_owned(),
    }
}

/// Keeps the files of the run before until the new one has its first record.
pub(super) fn keep(home: &Home) -> io::Result<()> {
    let incomplete = home.next_records().join(INCOMPLETE);
    fs::create_dir(&incomplete)?;
    for name in FILES {
        or_missing(link(&home.root().join(name), &incomplete.join(name)))?;
    }
    sync_folder(&incomplete)?;
    fs::rename(&incomplete, folder(home))?;
    sync_folder(&home.next_records())
}

/// Puts the files of the run before back, if another one has ended before its first record.
pub(super) fn put_back(home: &Home) -> Result {
    let folder = folder(home);
    if !folder.is_dir() {
        return Ok(());
    }
    let doing = format!("cannot put the files back that are in {}", folder.display());
    let put_all_back = || {
        FILES.iter().try_for_each(|name| put_file_back(&folder.join(name), &home.root().join(name)))?;
        sync_folder(home.root())?;
        remove(&home.next_records())
    };
    put_all_back().context(ErrorKind::BadInput, doing)
}

/// Removes the former files from a folder of records.
pub(super) fn remove(records: &Path) -> io::Result<()> {
    or_missing(fs::remove_dir_all(records.join(FOLDER)))
}

/// Replaces a file by the former one, or removes it if there was none.
fn put_file_back(former: &Path, path: &Path) -> io::Result<()> {
    let beside = path.with_added_extension("former");
    or_missing(fs::remove_file(&beside))?;
    match link(former, &beside) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => or_missing(fs::remove_file(path)),
        linked => linked.and_then(|()| fs::rename(&beside, path)).and_then(|()| or_missing(fs::remove_file(&beside))),
    }
}

/// Gives a file a second name, or copies it where the file system knows none. These files are replaced and never changed.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Err(error),
        _ => fs::copy(from, to).and_then(|_| File::options().write(true).open(to)?.sync_all()),
    })
}

fn folder(home: &Home) -> PathBuf {
    home.next_records().join(FOLDER)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn write(home: &Home, name: &str, text: &str) {
        crate::home::write_file(&home.root().join(name), text.as_bytes()).unwrap();
    }

    /// The files of a home, by name, as far as they are there.
    fn files(home: &Home) -> Vec<(&'static str, String)> {
        let read = |name| Some((name, fs::read_to_string(home.root().join(name)).ok()?));
        FILES.into_iter().filter_map(read).collect()
    }

    /// The files that count.
    fn counting(home: &Home) -> Vec<(&'static str, String)> {
        let path = |name| counting_file(home, &home.root().join(name));
        FILES.into_iter().filter_map(|name| Some((name, fs::read_to_string(path(name)).ok()?))).collect()
    }

    /// A home in which another run begins, and the files of the run before.
    fn begun() -> (tempfile::TempDir, Home, Vec<(&'static str, String)>) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        write(&home, "task.json", "old task");
        write(&home, "best.safetensors", "old best");
        write(&home, "skipped.json", "3");
        let before = files(&home);
        fs::create_dir(home.next_records()).unwrap();
        keep(&home).unwrap();
        write(&home, "task.json", "new task");
        write(&home, "trainer.json", "new layout");
        fs::remove_file(home.root().join("best.safetensors")).unwrap();
        (folder, home, before)
    }

    #[test]
    fn the_files_of_the_run_before_count_and_are_put_back_however_often_the_process_ends_on_the_way() {
        let (_folder, home, before) = begun();
        assert_eq!(counting(&home), before);
        // Ended after some of the files.
        for count in 0..=FILES.len() {
            let former = self::folder(&home);
            let some = FILES[..count].iter();
            some.for_each(|name| put_file_back(&former.join(name), &home.root().join(name)).unwrap());
            assert_eq!(counting(&home), before, "after {count} files");
        }
        put_back(&home).unwrap();
        assert_eq!((files(&home), counting(&home)), (before.clone(), before.clone()));
        put_back(&home).unwrap();
        assert_eq!(files(&home), before, "put back twice");
        let others = fs::read_dir(home.root())
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|extension| extension == "former"));
        assert_eq!(others.count(), 0);
    }

    #[test]
    fn the_files_of_the_new_run_count_from_its_first_record_on() {
        let (_folder, home, _) = begun();
        let new = files(&home);
        fs::rename(home.next_records(), home.records()).unwrap();
        assert_eq!(counting(&home), new);
        put_back(&home).unwrap();
        assert_eq!(files(&home), new);
        remove(&home.records()).unwrap();
        assert_eq!(fs::read_dir(home.records()).unwrap().count(), 0);
    }
}
