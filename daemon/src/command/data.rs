//! `mingle data card`: what the columns, classes and scaling of data are.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use mingle_models::{DataCard, Scaling};
use mingle_peer::error::Context;
use mingle_peer::output_file::OutputFile;
use mingle_peer::{Error, ErrorKind, Result};
use serde_json::Value;

use crate::cli::{DataCardArgs, DataCommand};
use crate::task_card::MAX_CARD_BYTES;
use crate::{out, task};

const SCHEMA: &str = "mingle.data-card/1";
/// Numbers take more room as text.
const MAX_BYTES: u64 = 8 * MAX_CARD_BYTES as u64;

/// Does what is wanted with data.
pub(super) fn execute(command: &DataCommand, json: bool) -> Result {
    let DataCommand::Card(arguments) = command;
    write_card(arguments, json)
}

fn write_card(arguments: &DataCardArgs, json: bool) -> Result {
    let output = arguments.output.as_deref().map(OutputFile::at).transpose()?;
    let raw = task::read(&arguments.data)?;
    let card = raw
        .card_for(arguments.task, arguments.seed)
        .context(ErrorKind::BadInput, format!("--data {}", arguments.data))?;
    for remark in raw.remarks() {
        out::remark(format_args!("note: {remark}"));
    }
    for column in card.constant_columns() {
        out::remark(format_args!(
            "note: column `{column}` never varies in these data: its feature is 0 for all who take this card"
        ));
    }
    let mut document = serde_json::to_value(&card).context(ErrorKind::Unexpected, "cannot encode the card")?;
    document["schema"] = Value::from(SCHEMA);
    let (Some(output), Some(path)) = (output, &arguments.output) else {
        let text = if json { document.to_string() } else { pretty(&document)? };
        out::line(text);
        return Ok(());
    };
    output.write(format!("{}\n", pretty(&document)?).as_bytes())?;
    let what = match card.scaling() {
        Scaling::Columns { .. } => "the names, and the mean and deviation of each column over these data",
        Scaling::Pixels { .. } => "the names of the classes and the scaling of pixels",
        Scaling::Tokens => "the tokens of the text",
    };
    let (columns, classes) = (card.columns().len(), card.classes().len());
    if json {
        out::line(serde_json::json!({ "schema": SCHEMA, "file": path, "columns": columns, "classes": classes }));
    } else {
        let wanted = card
            .target()
            .map_or_else(|| format!("{classes} classes"), |target| format!("`{}` to predict", target.name()));
        out::line(format!("wrote {}: {columns} columns and {wanted}; it holds {what}", path.display()));
        out::remark(format_args!("next: give it to all peers, and start them with --card {}", path.display()));
    }
    Ok(())
}

fn pretty(document: &Value) -> Result<String> {
    serde_json::to_string_pretty(document).context(ErrorKind::Unexpected, "cannot encode the card")
}

/// Reads a card that [`write_card`] wrote.
///
/// # Errors
/// It cannot be read, or is no card.
pub(crate) fn read_card(path: &Path) -> Result<DataCard> {
    let doing = format!("--card {}", path.display());
    let mut text = String::new();
    let file = File::open(path).context(ErrorKind::BadInput, &doing)?;
    file.take(MAX_BYTES).read_to_string(&mut text).context(ErrorKind::BadInput, &doing)?;
    let mut document: Value = serde_json::from_str(&text).context(ErrorKind::BadInput, &doing)?;
    let schema = document.as_object_mut().and_then(|fields| fields.remove("schema"));
    if schema != Some(Value::from(SCHEMA)) {
        return Err(Error::new(ErrorKind::BadInput, format!("{doing} is no card of data"))
            .hint("`mingle data card --data DATA -o FILE` writes one"));
    }
    serde_json::from_value(document).context(ErrorKind::BadInput, doing)
}
