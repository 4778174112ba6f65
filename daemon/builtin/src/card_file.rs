//! Files of data cards (the meaning of columns and classes) and of sums of tables.

use std::io::Read;
use std::path::Path;

use mingle_models::{DataCard, TableSums};
use mingle_peer::error::Context;
use mingle_peer::task::MAX_CARD_BYTES;
use mingle_peer::{Error, ErrorKind, Result};
use mingle_plaintext::InputFile;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The schema of a file of sums.
pub const SUMS_SCHEMA: &str = "mingle.table-sums/1";
/// Largest file: numbers take more room as text than in a card on the wire.
const MAX_BYTES: u64 = 8 * MAX_CARD_BYTES as u64;

/// A card or sums as the document of such a file.
///
/// # Errors
/// The value cannot be encoded.
pub fn document(value: &impl Serialize, schema: &str) -> Result<Value> {
    let mut document = serde_json::to_value(value).context(ErrorKind::Unexpected, "cannot encode it")?;
    document["schema"] = Value::from(schema);
    Ok(document)
}

/// Reads the card in a file.
///
/// # Errors
/// The file cannot be read, or holds no card.
pub fn read_card(path: &Path) -> Result<DataCard> {
    read(path, DataCard::SCHEMA, "--card", "`mingle data card --data DATA -o FILE` writes one")
}

/// Reads the sums in a file.
///
/// # Errors
/// The file cannot be read, or holds no sums.
pub fn read_sums(path: &Path) -> Result<TableSums> {
    read(path, SUMS_SCHEMA, "--sums", "`mingle data sums --data csv:FILE -o FILE` writes them")
}

/// Reads a document of this schema.
fn read<T: DeserializeOwned>(path: &Path, schema: &str, option: &str, hint: &str) -> Result<T> {
    let doing = format!("{option} {}", path.display());
    let mut text = String::new();
    let file = InputFile::open(path).context(ErrorKind::BadInput, &doing)?;
    file.take(MAX_BYTES).read_to_string(&mut text).context(ErrorKind::BadInput, &doing)?;
    let mut document: Value = serde_json::from_str(&text).context(ErrorKind::BadInput, &doing)?;
    let found = document.as_object_mut().and_then(|fields| fields.remove("schema"));
    if found != Some(Value::from(schema)) {
        let what = if schema == DataCard::SCHEMA { "is no card of data" } else { "has no sums of a table" };
        return Err(Error::new(ErrorKind::BadInput, format!("{doing} {what}")).hint(hint));
    }
    serde_json::from_value(document).context(ErrorKind::BadInput, doing)
}
