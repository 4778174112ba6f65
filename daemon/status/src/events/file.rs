//! The event file of a home: every start of its peer appends to it, and a full one is rotated.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use mingle_home::owner_only;

/// Bytes of the present file at most, but for its last line; the older one is as long.
pub(super) const MOST_BYTES: u64 = 4 << 20;
/// The longest line, except for one that names very many nodes.
const LONG_LINE_BYTES: u64 = 64 << 10;

/// A file of lines that begins anew when it is full; the full one replaces the older one.
pub(super) struct EventFile {
    path: PathBuf,
    older: PathBuf,
    file: File,
    /// Bytes of whole lines.
    bytes: u64,
    most_bytes: u64,
}

impl EventFile {
    /// Opens the file at `path` for appending, or creates it. A partial line at its end, left by a killed process, is
    /// cut off.
    ///
    /// # Errors
    /// It cannot be read or written.
    pub(super) fn open(path: &Path, older: &Path, most_bytes: u64) -> io::Result<Self> {
        let mut file = open(path)?;
        let length = file.metadata()?.len();
        let end = end_of_last_line(&mut file, length)?;
        if let Some(end) = end.filter(|end| *end < length) {
            file.set_len(end)?;
        }
        let path = path.to_path_buf();
        let older = older.to_path_buf();
        let mut file = Self { path, older, file, bytes: end.unwrap_or(length), most_bytes };
        if end.is_none() {
            // The file does not contain lines of events.
            file.turn()?;
        }
        Ok(file)
    }

    /// Adds a line. The file ends with a whole line even if there is no room for this one.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn push(&mut self, text: &str) -> io::Result<()> {
        let line = format!("{text}\n");
        if self.bytes > 0 && self.bytes + line.len() as u64 > self.most_bytes {
            self.turn()?;
        }
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            // Shortening a file takes no room. If it fails as well, the next start cuts the line off.
            let _ = self.file.set_len(self.bytes);
            return Err(error);
        }
        self.bytes += line.len() as u64;
        Ok(())
    }

    /// Moves the file to the place of the older one, and begins a new one.
    fn turn(&mut self) -> io::Result<()> {
        fs::rename(&self.path, &self.older)?;
        self.file = open(&self.path)?;
        self.bytes = 0;
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<File> {
    owner_only::open(path, OpenOptions::new().read(true).append(true).create(true))
}

/// The end of the last whole line; none where there is no line in bytes that should hold several.
fn end_of_last_line(file: &mut File, length: u64) -> io::Result<Option<u64>> {
    let start = length.saturating_sub(LONG_LINE_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(LONG_LINE_BYTES).read_to_end(&mut bytes)?;
    let last = bytes.iter().rposition(|byte| *byte == b'\n');
    Ok(last.map(|last| start + last as u64 + 1).or((start == 0).then_some(0)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    struct Files {
        folder: tempfile::TempDir,
    }

    impl Files {
        fn new() -> Self {
            Self { folder: tempfile::tempdir().unwrap() }
        }

        fn paths(&self) -> (PathBuf, PathBuf) {
            (self.folder.path().join("events.jsonl"), self.folder.path().join("events.1.jsonl"))
        }

        fn open(&self, most_bytes: u64) -> EventFile {
            let (path, older) = self.paths();
            EventFile::open(&path, &older, most_bytes).unwrap()
        }

        fn texts(&self) -> (String, String) {
            let (path, older) = self.paths();
            (fs::read_to_string(path).unwrap(), fs::read_to_string(older).unwrap_or_default())
        }
    }

    #[test]
    fn several_starts_are_one_after_the_other_and_half_a_line_is_cut_off() {
        let files = Files::new();
        files.open(100).push("one").unwrap();
        fs::write(files.paths().0, "one\n{\"half").unwrap();
        let mut second = files.open(100);
        second.push("two").unwrap();
        assert_eq!(files.texts(), ("one\ntwo\n".to_owned(), String::new()));
        fs::write(files.paths().0, "{\"half").unwrap();
        files.open(100).push("three").unwrap();
        assert_eq!(files.texts().0, "three\n");
    }

    #[test]
    fn both_files_together_hold_the_last_lines_and_stay_bounded() {
        let files = Files::new();
        for start in 0..10 {
            let mut file = files.open(40);
            (0..10).for_each(|line| file.push(&format!("start {start} line {line}")).unwrap());
            let (present, older) = files.texts();
            assert!(present.len() <= 40 && older.len() <= 40, "{present}{older}");
            let last = format!("start {start} line 8\nstart {start} line 9\n");
            assert!(format!("{older}{present}").ends_with(&last), "{older}{present}");
        }
        let long = "x".repeat(100);
        files.open(40).push(&long).unwrap();
        assert_eq!(files.texts().0, format!("{long}\n"), "a line that is longer has a file of its own");
    }

    #[cfg(unix)]
    #[test]
    fn events_are_not_written_through_a_link_that_somebody_put_there() {
        let files = Files::new();
        let (path, older) = files.paths();
        let precious = files.folder.path().join("precious");
        fs::write(&precious, "kept").unwrap();
        std::os::unix::fs::symlink(&precious, &path).unwrap();
        let refusal = EventFile::open(&path, &older, 100).err().unwrap();
        assert!(refusal.to_string().contains("symbolic link"), "{refusal}");
        assert_eq!(fs::read_to_string(&precious).unwrap(), "kept");
    }

    #[test]
    fn a_file_of_something_else_is_put_aside() {
        let files = Files::new();
        let noise = "x".repeat(1 << 17);
        fs::write(files.paths().0, &noise).unwrap();
        files.open(1 << 20).push("one").unwrap();
        assert_eq!(files.texts(), ("one\n".to_owned(), noise));
    }
}
