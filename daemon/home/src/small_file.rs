//! Small files of a home, which may be missing: read whole, replaced whole, in JSON.

use std::path::Path;
use std::{fs, io};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Context, Error, ErrorKind, Result};
use crate::owner_only::write_file;

/// The text of a file; none where there is no such file.
///
/// # Errors
/// It cannot be read, or is not UTF-8.
pub fn read_text(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).context(ErrorKind::BadInput, format!("cannot read {}", path.display())),
    }
}

/// The value in a JSON file; none where there is no such file. `fault` is said of a file with anything else, as in
/// "holds no addresses".
///
/// # Errors
/// It cannot be read, or holds something else.
pub fn read_json<T: DeserializeOwned>(path: &Path, fault: &str) -> Result<Option<T>> {
    let Some(text) = read_text(path)? else { return Ok(None) };
    serde_json::from_str(&text).map(Some).context(ErrorKind::Integrity, format!("{} {fault}", path.display()))
}

/// Writes a value as JSON into a file that its owner alone can read, whole or not at all. `what` names the value in an
/// error, as in "the addresses".
///
/// # Errors
/// The value cannot be encoded, or the file cannot be written.
pub fn write_json(path: &Path, value: &(impl Serialize + ?Sized), what: &str) -> Result {
    let text = serde_json::to_string_pretty(value).context(ErrorKind::Unexpected, format!("cannot encode {what}"))?;
    write_file(path, format!("{text}\n").as_bytes())
}

/// Removes a file that may be missing.
///
/// # Errors
/// It cannot be removed.
pub fn remove(path: &Path) -> Result {
    or_missing(fs::remove_file(path))
        .map_err(|error| Error::new(ErrorKind::BadInput, format!("cannot remove {}: {error}", path.display())))
}

/// Takes a file or folder that is not there for one that has been dealt with.
pub(crate) fn or_missing(done: io::Result<()>) -> io::Result<()> {
    done.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_missing_file_is_none_and_a_damaged_one_an_error_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("numbers.json");
        let read = || read_json::<Vec<u8>>(&path, "holds no numbers");
        assert!(read_text(&path).unwrap().is_none() && read().unwrap().is_none());
        write_json(&path, &[1, 2], "the numbers").unwrap();
        assert_eq!(read_text(&path).unwrap().unwrap(), "[\n  1,\n  2\n]\n");
        assert_eq!(read().unwrap(), Some(vec![1, 2]));
        fs::write(&path, "[1, ").unwrap();
        let damaged = read().unwrap_err();
        assert!(damaged.is(ErrorKind::Integrity) && damaged.to_string().ends_with("numbers.json holds no numbers"));
        fs::write(&path, b"\xff").unwrap();
        assert!(read_text(&path).unwrap_err().is(ErrorKind::BadInput));
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert!(remove(folder.path()).unwrap_err().to_string().starts_with("cannot remove"));
    }
}
