//! The common form of problem files of learning in rounds: TOML with a `kind`, of a bounded length.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mingle_models::{Device, DeviceName};
use mingle_plaintext::InputFile;
use mingle_solving::RoundTask;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ProblemFileError;

/// The longest file of this form.
const MOST_BYTES: u64 = 1 << 20;
/// Placeholder for the name of the node in the name of its data.
pub(crate) const NODE: &str = "{node}";

/// A problem file of one kind.
pub(crate) trait RoundFile: DeserializeOwned {
    /// The value of `kind` in such a file.
    const KIND: &str;
    /// The methods by which this kind is usually compared: their names, and the lines of the file that choose them.
    const USUAL_METHODS: &[(&str, &str)];
    /// A valid file with many entries, for tests of all kinds.
    #[cfg(test)]
    const EXAMPLE: &str;

    /// The task of a file in this folder. What takes long to compute from the data may be kept in `cache`.
    ///
    /// # Errors
    /// An entry has an invalid value.
    fn task(self, folder: PathBuf, cache: Option<PathBuf>) -> Result<Arc<dyn RoundTask>, ProblemFileError>;
}

/// The text of a file; none where it is too long for a problem file, or not UTF-8.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>, ProblemFileError> {
    let unreadable = |source| ProblemFileError::Unreadable { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    InputFile::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes)).map_err(unreadable)?;
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
pub(crate) fn parse<F: RoundFile>(text: &str, path: &Path) -> Result<F, ProblemFileError> {
    toml::from_str(text).map_err(|source| ProblemFileError::Text { path: path.to_owned(), source: Box::new(source) })
}

/// Opens the device that a file names.
///
/// # Errors
/// No device has that name.
pub(crate) fn open_device(name: &str) -> Result<Device, ProblemFileError> {
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
    use crate::read;

    #[test]
    fn a_file_is_read_by_its_kind_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("problem.toml");
        std::fs::write(&path, "kind = \"recommendation\"\ndata = \"all.csv\"").unwrap();
        assert_eq!(read(&path, None).unwrap().unwrap().title(), "Recommenders");
        std::fs::write(&path, "kind = \"recommendation\"\nrank = 3").unwrap();
        let error = read(&path, None).unwrap_err();
        assert!(
            matches!(&error, ProblemFileError::Text { source, .. } if source.to_string().contains("rank")),
            "{error}"
        );
        std::fs::write(&path, "kind = \"training\"").unwrap();
        let error = read(&path, None).unwrap_err();
        assert_eq!(error.to_string(), format!("the problem {}", path.display()));
        let ProblemFileError::File { source, .. } = error else { panic!("no file is named") };
        assert!(source.to_string().starts_with("a training needs data"), "{source}");
        for other in [&b"kind = "[..], b"\xff\xfe", &vec![b'#'; MOST_BYTES as usize + 1]] {
            std::fs::write(&path, other).unwrap();
            assert!(read(&path, None).unwrap().is_none());
        }
        assert!(read(folder.path(), None).is_err());
    }
}
