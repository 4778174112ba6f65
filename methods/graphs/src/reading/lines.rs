//! The lines of a file that may be gzipped.

use std::fs::File;
use std::io::{BufRead, ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::ReadError;

/// The most bytes of a line.
const LONGEST_LINE: u64 = 16 << 20;

/// An open text file.
pub(super) struct LineReader {
    pub(super) path: PathBuf,
    bytes: Box<dyn BufRead + Send>,
    line: usize,
    text: String,
}

impl LineReader {
    /// Opens `path` or else `path.gz`; `None` where neither exists.
    pub(super) fn open(path: &Path) -> Result<Option<Self>, ReadError> {
        let mut gzipped = path.as_os_str().to_owned();
        gzipped.push(".gz");
        for path in [path.to_owned(), PathBuf::from(gzipped)] {
            match File::open(&path) {
                Ok(file) => return Self::of(path, file).map(Some),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(source) => return Err(ReadError::Read { path, source }),
            }
        }
        Ok(None)
    }

    /// The lines of `file`; `path` names it in errors.
    pub(super) fn of(path: PathBuf, file: impl Read + Send + 'static) -> Result<Self, ReadError> {
        match mingle_plaintext::open(file) {
            Ok(bytes) => Ok(Self { path, bytes, line: 0, text: String::new() }),
            Err(source) => Err(ReadError::Read { path, source }),
        }
    }

    /// The next line without its end; `None` after the last.
    pub(super) fn next(&mut self) -> Result<Option<&str>, ReadError> {
        self.text.clear();
        self.line += 1;
        match self.bytes.by_ref().take(LONGEST_LINE).read_line(&mut self.text) {
            Ok(0) => Ok(None),
            Ok(length) if length as u64 == LONGEST_LINE => Err(self.fault("the line is longer than 16 MiB")),
            Ok(_) => Ok(Some(self.text.trim_end_matches(['\n', '\r']))),
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                Err(self.fault("it is no text in UTF-8: save the file as UTF-8"))
            }
            Err(source) => Err(ReadError::Read { path: self.path.clone(), source }),
        }
    }

    /// An error in the present line.
    pub(super) fn fault(&self, reason: impl Into<String>) -> ReadError {
        ReadError::Line { path: self.path.clone(), line: self.line, reason: reason.into() }
    }

    /// The number of the present line, from 1.
    pub(super) fn line(&self) -> usize {
        self.line
    }
}
