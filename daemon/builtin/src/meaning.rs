//! Metadata of a model file on the meaning of its inputs and outputs, sufficient to predict from raw samples.
//!
//! | key | contents |
//! | --- | --- |
//! | `model` | the model, as `--model` writes it |
//! | `classes` | the names of the classes in the order of the outputs, as a JSON list |
//! | `columns` | the names of the columns in the order of the inputs, as a JSON list; empty for images |
//! | `scaling` | how raw values become inputs, as a JSON object: `pixels` with `scale` and `offset`, or `columns` with `means` and `deviations` |
//! | `shape` | of one sample, as a JSON object |
//! | `target` | of a regression: the quantity that the output stands for, as a JSON object with `name`, `mean` and `deviation` |
//! | `meaning_blake3` | BLAKE3 of the entries above, in hexadecimal, by which a change is found; other programs may add further keys |

use std::collections::BTreeMap;
use std::path::Path;

use mingle_models::{DataCard, ModelFile};
use mingle_peer::{Error, ErrorKind, Result};
use serde_json::{Value, json};

use crate::task_card::Card;

const MODEL: &str = "model";
/// The fields of a card of data, each under a key of its own.
const DATA: [&str; 4] = ["classes", "columns", "scaling", "shape"];
/// The field of a regression alone.
const TARGET: &str = "target";

/// The checksum of the others.
const CHECKSUM: &str = "meaning_blake3";

/// The metadata for the models of a task.
pub fn of(card: &Card) -> BTreeMap<String, String> {
    // Values in memory always have an encoding.
    let data = serde_json::to_value(&card.data).unwrap_or_default();
    let entry = |key: &str| (key.to_owned(), data.get(key).map(Value::to_string).unwrap_or_default());
    let mut entries: BTreeMap<String, String> = DATA.map(entry).into();
    if card.data.target().is_some() {
        entries.extend([entry(TARGET)]);
    }
    entries.insert(MODEL.to_owned(), card.model.to_string());
    entries.insert(CHECKSUM.to_owned(), checksum(&entries));
    entries
}

/// The checksum of the entries on the meaning, whatever others there are.
fn checksum(entries: &BTreeMap<String, String>) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("mingle 2026 meaning of a model");
    for key in DATA.into_iter().chain([TARGET, MODEL]) {
        let Some(text) = entries.get(key) else { continue };
        for part in [key, text] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
    }
    hasher.finalize().to_hex().to_string()
}

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
