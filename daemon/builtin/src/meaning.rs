//! What a model file says of the numbers in it: so that somebody who has nothing else can predict raw samples.
//!
//! | key | what it holds |
//! | --- | --- |
//! | `model` | the model, as `--model` writes it |
//! | `classes` | the names of the classes in the order of the outputs, as a JSON list |
//! | `columns` | the names of the columns in the order of the inputs, as a JSON list; empty for images |
//! | `scaling` | how raw values become inputs, as a JSON object: `pixels` with `scale` and `offset`, or `columns` with `means` and `deviations` |
//! | `shape` | of one sample, as a JSON object |
//! | `target` | of a regression: the quantity that the output stands for, as a JSON object with `name`, `mean` and `deviation` |

use std::collections::BTreeMap;

use mingle_models::{DataCard, ModelFile};
use serde_json::{Value, json};

use crate::task_card::Card;

const MODEL: &str = "model";
/// The fields of a card of data, each under a key of its own.
const DATA: [&str; 4] = ["classes", "columns", "scaling", "shape"];
/// The field of a regression alone.
const TARGET: &str = "target";

/// The entries for the models of a task.
pub fn of(card: &Card) -> BTreeMap<String, String> {
    // What is in memory has an encoding.
    let data = serde_json::to_value(&card.data).unwrap_or_default();
    let entry = |key: &str| (key.to_owned(), data.get(key).map(Value::to_string).unwrap_or_default());
    let mut entries: BTreeMap<String, String> = DATA.map(entry).into();
    if card.data.target().is_some() {
        entries.extend([entry(TARGET)]);
    }
    entries.insert(MODEL.to_owned(), card.model.to_string());
    entries
}

/// The card of the data that the model in a file is for; none where the file does not say, or says something that is none.
pub fn read(file: &ModelFile) -> Option<DataCard> {
    let mut data = json!({});
    for key in DATA {
        data[key] = serde_json::from_str(file.metadata.get(key)?).ok()?;
    }
    if let Some(target) = file.metadata.get(TARGET) {
        data[TARGET] = serde_json::from_str(target).ok()?;
    }
    serde_json::from_value(data).ok()
}
