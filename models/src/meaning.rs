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

use mingle_datasets::DataCard;
use serde_json::Value;

use crate::model::ModelKind;

/// The key of the model.
pub const MODEL: &str = "model";
/// The fields of a card of data, each under a key of its own.
pub const DATA: [&str; 4] = ["classes", "columns", "scaling", "shape"];
/// The field of a regression alone.
pub const TARGET: &str = "target";
/// The checksum of the others.
pub const CHECKSUM: &str = "meaning_blake3";

/// The metadata of a model for data with this card.
pub fn metadata(card: &DataCard, model: ModelKind) -> BTreeMap<String, String> {
    // Values in memory always have an encoding.
    let data = serde_json::to_value(card).unwrap_or_default();
    let entry = |key: &str| (key.to_owned(), data.get(key).map(Value::to_string).unwrap_or_default());
    let mut entries: BTreeMap<String, String> = DATA.map(entry).into();
    if card.target().is_some() {
        entries.extend([entry(TARGET)]);
    }
    entries.insert(MODEL.to_owned(), model.to_string());
    entries.insert(CHECKSUM.to_owned(), checksum(&entries));
    entries
}

/// The checksum of the entries on the meaning, whatever others there are.
pub fn checksum(entries: &BTreeMap<String, String>) -> String {
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
