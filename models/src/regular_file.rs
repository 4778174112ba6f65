//! Opening of regular files: reading a pipe or a device might not end.

use std::fs::{self, File};
use std::io::{self, Error, ErrorKind};
use std::path::Path;

/// Opens a regular file to read it; refuses a folder, a pipe, a socket or a device.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    // Checked before the file is opened: opening a pipe blocks until it has a writer.
    if !fs::metadata(path)?.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "it is a folder, a pipe or a device, and no file"));
    }
    File::open(path)
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_has_no_end_is_refused_before_it_is_opened() {
        for path in ["/dev/zero", "/dev"] {
            assert_eq!(open(Path::new(path)).unwrap_err().kind(), ErrorKind::InvalidInput, "{path}");
        }
        assert_eq!(open(Path::new("/nowhere")).unwrap_err().kind(), ErrorKind::NotFound);
        let file = tempfile::NamedTempFile::new().unwrap();
        open(file.path()).unwrap();
    }
}
