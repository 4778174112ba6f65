//! The meaning of a model's inputs and outputs, read from the metadata of its file. [`mingle_models::meaning`] has the keys.

use std::path::Path;

use mingle_models::meaning::{CHECKSUM, DATA, TARGET, checksum};
use mingle_models::{DataCard, ModelFile};
use mingle_peer::{Error, ErrorKind, Result};
use serde_json::json;

/// The card of the data for the model in the file at `path`; `None` if the file has no such metadata.
///
/// # Errors
/// [`ErrorKind::Integrity`] if the metadata are incomplete, or not a card.
pub fn read(file: &ModelFile, path: &Path) -> Result<Option<DataCard>> {
    let said = |key: &&str| file.metadata.contains_key(*key);
    if !DATA.iter().chain([&TARGET]).any(said) {
        return Ok(None);
    }
    if let Some(missing) = DATA.iter().find(|key| !said(key)) {
        return Err(unreadable(path, &format!("it says what some of them are, and nothing of `{missing}`")));
    }
    if file.metadata.get(CHECKSUM).is_some_and(|written| *written != checksum(&file.metadata)) {
        return Err(unreadable(path, "they are not those that were written: the checksum in it is another"));
    }
    let mut data = json!({});
    for key in DATA.into_iter().chain([TARGET]) {
        let Some(text) = file.metadata.get(key) else { continue };
        data[key] = serde_json::from_str(text).map_err(|error| unreadable(path, &format!("`{key}`: {error}")))?;
    }
    serde_json::from_value(data).map(Some).map_err(|error| unreadable(path, &error.to_string()))
}

fn unreadable(path: &Path, reason: &str) -> Error {
    let message =
        format!("{}: its metadata about columns, classes and scaling cannot be used: {reason}", path.display());
    Error::new(ErrorKind::Integrity, message).hint(
        "the file is damaged, or another program has changed it: take another copy, or let mingle export write the model again",
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use mingle_models::meaning::MODEL;

    use super::*;

    fn file(change: impl FnOnce(&mut BTreeMap<String, String>)) -> ModelFile {
        let entries = [
            ("classes", r#"["no","yes"]"#),
            ("columns", r#"["a"]"#),
            ("scaling", r#"{"columns":{"means":[0.5],"deviations":[2.0]}}"#),
            ("shape", r#"{"flat":{"features":1}}"#),
        ];
        let mut metadata = entries.map(|(key, text)| (key.to_owned(), text.to_owned())).into();
        change(&mut metadata);
        ModelFile { tensors: Vec::new(), metadata, bytes: 0 }
    }

    #[test]
    fn metadata_that_were_changed_are_refused_and_further_ones_are_not() {
        let path = Path::new("m.safetensors");
        let mut written = file(|metadata| drop(metadata.insert(MODEL.to_owned(), "softmax".to_owned())));
        written.metadata.insert(CHECKSUM.to_owned(), checksum(&written.metadata));
        written.metadata.insert("format".to_owned(), "pt".to_owned());
        assert!(read(&written, path).unwrap().is_some());
        written.metadata.insert("classes".to_owned(), r#"["yes","no"]"#.to_owned());
        let failure = read(&written, path).unwrap_err();
        assert!(failure.is(ErrorKind::Integrity) && failure.to_string().contains("checksum"), "{failure:#}");
    }

    #[test]
    fn metadata_that_is_no_card_is_an_error_and_metadata_that_says_nothing_is_none() {
        let path = Path::new("m.safetensors");
        assert_eq!(read(&file(|_| ()), path).unwrap().unwrap().classes(), ["no", "yes"]);
        assert_eq!(read(&file(BTreeMap::clear), path).unwrap(), None);
        for (key, text) in [
            ("classes", r#"["no","yes""#),
            ("classes", r#"["no","no"]"#),
            ("classes", r#"["no",7]"#),
            ("classes", r#"["no"]"#),
            ("classes", "[]"),
            ("columns", r#"["a","b"]"#),
            ("scaling", r#""none""#),
            ("shape", "{}"),
            ("target", "7"),
        ] {
            let spoilt = file(|metadata| drop(metadata.insert(key.to_owned(), text.to_owned())));
            let failure = read(&spoilt, path).unwrap_err();
            assert!(failure.is(ErrorKind::Integrity) && failure.to_string().contains("m.safetensors"), "{failure:#}");
        }
        let half = file(|metadata| drop(metadata.remove("columns")));
        assert!(read(&half, path).unwrap_err().to_string().contains("`columns`"));
    }
}
