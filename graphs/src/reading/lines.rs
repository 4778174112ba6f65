//! The lines of a file that may be gzipped, one after the other.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use super::ReadError;

/// Bytes of a line, at most.
const LONGEST_LINE: u64 = 16 << 20;

/// An open text file.
pub(super) struct Lines {
    pub(super) path: PathBuf,
    bytes: Box<dyn BufRead>,
    line: usize,
    text: String,
}

impl Lines {
    /// Opens `path` or else `path.gz`; nothing where neither is there.
    pub(super) fn open(path: &Path) -> Result<Option<Self>, ReadError> {
        let mut gzipped = path.as_os_str().to_owned();
        gzipped.push(".gz");
        for (path, is_gzipped) in [(path.to_owned(), false), (PathBuf::from(gzipped), true)] {
            match File::open(&path) {
                Ok(file) if is_gzipped => {
                    let unpacked = MultiGzDecoder::new(BufReader::new(file));
                    return Ok(Some(Self::of(path, BufReader::new(unpacked))));
                }
                Ok(file) => return Ok(Some(Self::of(path, BufReader::new(file)))),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(source) => return Err(ReadError::Read { path, source }),
            }
        }
        Ok(None)
    }

    /// The lines of what is read from the file at `path`.
    pub(super) fn of(path: PathBuf, bytes: impl BufRead + 'static) -> Self {
        Self { path, bytes: Box::new(bytes), line: 0, text: String::new() }
    }

    /// The next line without its end; nothing after the last.
    pub(super) fn next(&mut self) -> Result<Option<&str>, ReadError> {
        self.text.clear();
        self.line += 1;
        match self.bytes.by_ref().take(LONGEST_LINE).read_line(&mut self.text) {
            Ok(0) => Ok(None),
            Ok(length) if length as u64 == LONGEST_LINE => Err(self.fault("the line is longer than 16 MiB")),
            Ok(_) => Ok(Some(self.text.trim_end_matches(['\n', '\r']))),
            Err(error) if error.kind() == ErrorKind::InvalidData => Err(self.fault("it is no text in UTF-8")),
            Err(source) => Err(ReadError::Read { path: self.path.clone(), source }),
        }
    }

    /// Something wrong with the line of now.
    pub(super) fn fault(&self, reason: impl Into<String>) -> ReadError {
        ReadError::Line { path: self.path.clone(), line: self.line, reason: reason.into() }
    }

    /// Which line that is.
    pub(super) fn line(&self) -> usize {
        self.line
    }
}
