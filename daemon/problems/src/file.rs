//! The common form of problem files of learning in rounds: TOML with a `kind`, of a bounded length.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use mingle_models::{Device, DeviceName};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ProblemFileError;

/// The longest file of this form.
const MOST_BYTES: u64 = 1 << 20;
/// Placeholder for the name of the node in the name of its data.
pub(crate) const NODE: &str = "{node}";

/// A problem file of one kind.
pub trait RoundFile: DeserializeOwned {
    /// The value of `kind` in such a file.
    const KIND: &str;
    /// The methods by which this kind is usually compared: their names, and the lines of the file that choose them.
    const USUAL_METHODS: &[(&str, &str)];
}

/// Reads a file of a kind, with the folder that it is in. None where it is of another kind.
///
/// # Errors
/// It cannot be read, or has invalid or unknown entries.
pub fn read_file<F: RoundFile>(path: &Path) -> Result<Option<(F, PathBuf)>, ProblemFileError> {
    match read_text(path)? {
        Some(text) if kind_of(&text).as_deref() == Some(F::KIND) => Ok(Some((parse(&text, path)?, folder_of(path)?))),
        _ => Ok(None),
    }
}

/// The text of a file; none where it is too long for a problem file, or not UTF-8.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>, ProblemFileError> {
    let unreadable = |source| ProblemFileError::Unreadable { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes)).map_err(unreadable)?;
    Ok(if bytes.len() as u64 > MOST_BYTES { None } else { String::from_utf8(bytes).ok() })
}

/// The folder of a file, as an absolute path.
pub(crate) fn folder_of(path: &Path) -> Result<PathBuf, ProblemFileError> {
    let absolute = std::path::absolute(path);
    let absolute = absolute.map_err(|source| ProblemFileError::Unreadable { path: path.to_owned(), source })?;
    Ok(absolute.parent().map(Path::to_owned).unwrap_or_default())
}

/// The `kind` of a problem file's text.
pub(crate) fn kind_of(text: &str) -> Option<String> {
    let table: toml::Table = toml::from_str(text).ok()?;
    table.get("kind").and_then(toml::Value::as_str).map(str::to_owned)
}

/// Parses a text that stands for the file `path`.
///
/// # Errors
/// It has invalid or unknown entries.
pub fn parse<F: RoundFile>(text: &str, path: &Path) -> Result<F, ProblemFileError> {
    toml::from_str(text).map_err(|source| ProblemFileError::Text { path: path.to_owned(), source: Box::new(source) })
}

/// Opens the device that a file names.
///
/// # Errors
/// No device has that name.
pub fn open_device(name: &str) -> Result<Device, ProblemFileError> {
    let parsed = name.parse::<DeviceName>();
    parsed.and_then(|parsed| parsed.open()).map_err(|source| ProblemFileError::Device { name: name.to_owned(), source })
}

/// BLAKE3 of the part of a file that all peers have to agree on.
pub(crate) fn shared_hash(shared: &impl Serialize) -> Result<[u8; 32], ProblemFileError> {
    Ok(*blake3::hash(&serde_json::to_vec(shared)?).as_bytes())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{NodesFile, RecommendationFile};

    #[test]
    fn a_file_is_read_by_its_kind_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("problem.toml");
        std::fs::write(&path, "kind = \"recommendation\"\ndata = \"all.csv\"").unwrap();
        assert!(read_file::<NodesFile>(&path).unwrap().is_none());
        let (file, beside) = read_file::<RecommendationFile>(&path).unwrap().unwrap();
        assert_eq!((file.data.as_str(), beside.as_path()), ("all.csv", folder.path()));
        std::fs::write(&path, "kind = \"recommendation\"\nrank = 3").unwrap();
        let error = read_file::<RecommendationFile>(&path).unwrap_err();
        assert!(
            matches!(&error, ProblemFileError::Text { source, .. } if source.to_string().contains("rank")),
            "{error}"
        );
        for other in [&b"kind = "[..], b"\xff\xfe", &vec![b'#'; MOST_BYTES as usize + 1]] {
            std::fs::write(&path, other).unwrap();
            assert!(read_file::<RecommendationFile>(&path).unwrap().is_none());
        }
        assert!(read_file::<NodesFile>(folder.path()).is_err());
    }
}
