//! The lines of a file that may be gzipped.

use std::io::{BufRead, ErrorKind, Read};
use std::path::PathBuf;

use mingle_plaintext::InputFile;

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
    /// Opens the one of these files that is there, as itself or as `path.gz`; `None` where none is.
    pub(super) fn open_one_of(paths: &[PathBuf]) -> Result<Option<Self>, ReadError> {
        let gzipped = |path: &PathBuf| {
            let mut gzipped = path.as_os_str().to_owned();
            gzipped.push(".gz");
            PathBuf::from(gzipped)
        };
        let mut found: Option<(PathBuf, InputFile)> = None;
        for path in paths.iter().flat_map(|path| [path.clone(), gzipped(path)]) {
            match InputFile::open(&path) {
                Ok(file) => {
                    if let Some((other, _)) = found {
                        return Err(ReadError::Twice { path: other, other: path });
                    }
                    found = Some((path, file));
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(source) => return Err(ReadError::Read { path, source }),
            }
        }
        found.map(|(path, file)| Self::of(path, file)).transpose()
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

    /// The present line.
    pub(super) fn text(&self) -> &str {
        self.text.trim_end_matches(['\n', '\r'])
    }

    /// The number of the present line, from 1.
    pub(super) fn line(&self) -> usize {
        self.line
    }
}
