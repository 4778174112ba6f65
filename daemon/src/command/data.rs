//! `mingle data`: what the columns, classes and scaling of data are, of one site or of several.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use mingle_models::{DataCard, Scaling, TableSums};
use mingle_peer::error::Context;
use mingle_peer::output_file::OutputFile;
use mingle_peer::{Error, ErrorKind, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::cli::{DataCardArgs, DataCommand, DataSumsArgs};
use crate::task_card::MAX_CARD_BYTES;
use crate::{out, task};

const CARD_SCHEMA: &str = "mingle.data-card/1";
const SUMS_SCHEMA: &str = "mingle.table-sums/1";
/// Numbers take more room as text.
const MAX_BYTES: u64 = 8 * MAX_CARD_BYTES as u64;

/// Does what is wanted with data.
pub(super) fn execute(command: &DataCommand, json: bool) -> Result {
    match command {
        DataCommand::Card(arguments) => write_card(arguments, json),
        DataCommand::Sums(arguments) => write_sums(arguments, json),
    }
}

fn write_card(arguments: &DataCardArgs, json: bool) -> Result {
    let output = arguments.output.as_deref().map(OutputFile::at).transpose()?;
    let card = if arguments.sums.is_empty() { card_of_one(arguments)? } else { card_of_sites(&arguments.sums)? };
    for column in card.constant_columns() {
        out::remark(format_args!(
            "note: column `{column}` never varies in these data: its feature is 0 for all who take this card"
        ));
    }
    let document = document(&card, CARD_SCHEMA)?;
    let Some(path) = write(output, arguments.output.as_deref(), &document, json)? else { return Ok(()) };
    let whose = card.sites().map_or_else(
        || "these data".to_owned(),
        |sites| format!("the {} training rows of {} sites", sites.samples, sites.sites),
    );
    let what = match card.scaling() {
        Scaling::Columns { .. } => format!("the names, and the mean and deviation of each column over {whose}"),
        Scaling::Pixels { .. } => "the names of the classes and the scaling of pixels".to_owned(),
        Scaling::Tokens => "the tokens of the text".to_owned(),
    };
    let (columns, classes) = (card.columns().len(), card.classes().len());
    if json {
        out::line(serde_json::json!({ "schema": CARD_SCHEMA, "file": path, "columns": columns, "classes": classes }));
    } else {
        let wanted = card
            .target()
            .map_or_else(|| format!("{classes} classes"), |target| format!("`{}` to predict", target.name()));
        out::line(format!("wrote {}: {columns} columns and {wanted}; it holds {what}", path.display()));
        out::remark(format_args!("next: give it to all peers, and start them with --card {}", path.display()));
    }
    Ok(())
}

/// The card that one data source has by itself.
fn card_of_one(arguments: &DataCardArgs) -> Result<DataCard> {
    let raw = task::read(&arguments.data)?;
    let card = raw
        .card_for(arguments.task, arguments.seed)
        .context(ErrorKind::BadInput, format!("--data {}", arguments.data))?;
    raw.remarks().iter().for_each(|remark| out::remark(format_args!("note: {remark}")));
    Ok(card)
}

/// The card of all rows of several tables, of which only sums are known.
fn card_of_sites(files: &[PathBuf]) -> Result<DataCard> {
    let mut all: Option<TableSums> = None;
    for path in files {
        let sums: TableSums =
            read(path, SUMS_SCHEMA, "--sums", "`mingle data sums --data csv:FILE -o FILE` writes them")?;
        let doing = || format!("--sums {} does not go with those before it", path.display());
        all = Some(match all {
            None => sums,
            Some(before) => before.plus(&sums).context(ErrorKind::BadInput, doing())?,
        });
    }
    let all = all.ok_or_else(|| Error::new(ErrorKind::BadInput, "--sums needs a file"))?;
    all.card().context(ErrorKind::BadInput, "the sites of --sums have no card")
}

fn write_sums(arguments: &DataSumsArgs, json: bool) -> Result {
    let output = arguments.output.as_deref().map(OutputFile::at).transpose()?;
    let raw = task::read(&arguments.data)?;
    let sums =
        raw.sums(arguments.task, arguments.seed).context(ErrorKind::BadInput, format!("--data {}", arguments.data))?;
    raw.remarks().iter().for_each(|remark| out::remark(format_args!("note: {remark}")));
    let document = document(&sums, SUMS_SCHEMA)?;
    let Some(path) = write(output, arguments.output.as_deref(), &document, json)? else { return Ok(()) };
    let (columns, samples) = (sums.columns().len(), sums.samples());
    if json {
        out::line(serde_json::json!({ "schema": SUMS_SCHEMA, "file": path, "columns": columns, "samples": samples }));
    } else {
        out::line(format!(
            "wrote {}: of {columns} columns the sums of {samples} training rows and of their squares, and what the labels are; no row",
            path.display()
        ));
        out::remark("next: with those of all sites, mingle data card --sums FILE... -o card.json");
    }
    Ok(())
}

fn document(value: &impl Serialize, schema: &str) -> Result<Value> {
    let mut document = serde_json::to_value(value).context(ErrorKind::Unexpected, "cannot encode it")?;
    document["schema"] = Value::from(schema);
    Ok(document)
}

/// Writes a document to its file, and returns that; without one, prints it.
fn write<'a>(
    output: Option<OutputFile>,
    path: Option<&'a Path>,
    document: &Value,
    json: bool,
) -> Result<Option<&'a Path>> {
    let pretty = || serde_json::to_string_pretty(document).context(ErrorKind::Unexpected, "cannot encode it");
    match (output, path) {
        (Some(output), Some(path)) => {
            output.write(format!("{}\n", pretty()?).as_bytes())?;
            Ok(Some(path))
        }
        _ => {
            out::line(if json { document.to_string() } else { pretty()? });
            Ok(None)
        }
    }
}

/// Reads a card that [`write_card`] wrote.
///
/// # Errors
/// It cannot be read, or is no card.
pub(crate) fn read_card(path: &Path) -> Result<DataCard> {
    read(path, CARD_SCHEMA, "--card", "`mingle data card --data DATA -o FILE` writes one")
}

/// Reads a document of this schema.
fn read<T: DeserializeOwned>(path: &Path, schema: &str, option: &str, hint: &str) -> Result<T> {
    let doing = format!("{option} {}", path.display());
    let mut text = String::new();
    let file = File::open(path).context(ErrorKind::BadInput, &doing)?;
    file.take(MAX_BYTES).read_to_string(&mut text).context(ErrorKind::BadInput, &doing)?;
    let mut document: Value = serde_json::from_str(&text).context(ErrorKind::BadInput, &doing)?;
    let found = document.as_object_mut().and_then(|fields| fields.remove("schema"));
    if found != Some(Value::from(schema)) {
        let what = if schema == CARD_SCHEMA { "is no card of data" } else { "has no sums of a table" };
        return Err(Error::new(ErrorKind::BadInput, format!("{doing} {what}")).hint(hint));
    }
    serde_json::from_value(document).context(ErrorKind::BadInput, doing)
}
