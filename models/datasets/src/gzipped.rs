//! Files that may be gzipped, decompressed as they are read.

use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use mingle_plaintext::InputFile;

use crate::DataError;

/// One open file.
pub(crate) struct GzippedFile {
    /// The path that was opened, with or without `.gz`.
    pub(crate) path: PathBuf,
    bytes: Box<dyn Read>,
}

impl GzippedFile {
    /// Opens the first of the files called `name`, one of `variants`, or one of these with `.gz` behind it.
    pub(crate) fn open(directory: &Path, name: &'static str, variants: &[&str]) -> Result<Self, DataError> {
        for name in std::iter::once(&name).chain(variants) {
            for (path, gzipped) in [(directory.join(name), false), (directory.join(format!("{name}.gz")), true)] {
                match InputFile::open(&path) {
                    Ok(file) => return Ok(Self::of(path, gzipped, BufReader::new(file))),
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    Err(error) => return Err(DataError::Read { path, error }),
                }
            }
        }
        Err(DataError::Missing { directory: directory.to_owned(), name })
    }

    /// The file at `path`, whose content is read from `file`.
    pub(super) fn of(path: PathBuf, gzipped: bool, file: impl BufRead + 'static) -> Self {
        let bytes: Box<dyn Read> = if gzipped { Box::new(GzDecoder::new(file)) } else { Box::new(file) };
        Self { path, bytes }
    }

    /// The next bytes, fewer only at the end. Memory grows as they arrive.
    pub(crate) fn read_up_to(&mut self, limit: usize) -> Result<Vec<u8>, DataError> {
        let mut bytes = Vec::new();
        match self.bytes.by_ref().take(limit as u64).read_to_end(&mut bytes) {
            // A truncated gzip stream is a different error; here it ends early, and the caller counts the missing
            // bytes.
            Err(error) if error.kind() != ErrorKind::UnexpectedEof => {
                Err(DataError::Read { path: self.path.clone(), error })
            }
            _ => Ok(bytes),
        }
    }
}
