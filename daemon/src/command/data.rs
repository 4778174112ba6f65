//! `mingle data`: columns, classes and scaling of data, of one site or of several.

use std::path::{Path, PathBuf};

use mingle_builtin::card_file::{SUMS_SCHEMA, document, read_sums};
use mingle_builtin::task;
use mingle_models::{DataCard, FeatureScaling, TableSums};
use mingle_peer::error::Context;
use mingle_peer::output_file::OutputFile;
use mingle_peer::{Error, ErrorKind, Result};
use serde_json::Value;

use crate::cli::{DataCardArgs, DataCommand, DataSumsArgs};
use crate::out;

/// Executes the subcommand.
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
    let document = document(&card, DataCard::SCHEMA)?;
    let Some(path) = write(output, arguments.output.as_deref(), &document, json)? else { return Ok(()) };
    let whose = card.sites().map_or_else(
        || "these data".to_owned(),
        |sites| format!("the {} training rows of {} sites", sites.samples, sites.sites),
    );
    let what = match card.scaling() {
        FeatureScaling::Columns { .. } => format!("the names, and the mean and deviation of each column over {whose}"),
        FeatureScaling::Pixels { .. } => "the names of the classes and the scaling of pixels".to_owned(),
        FeatureScaling::Tokens => "the tokens of the text".to_owned(),
    };
    let (columns, classes) = (card.columns().len(), card.classes().len());
    if json {
        out::line(
            serde_json::json!({ "schema": DataCard::SCHEMA, "file": path, "columns": columns, "classes": classes }),
        );
    } else {
        let wanted = card
            .target()
            .map_or_else(|| format!("{classes} classes"), |target| format!("`{}` to predict", target.name()));
        out::line(format!("wrote {}: {columns} columns and {wanted}; it holds {what}", path.display()));
        out::remark(format_args!("next: give it to all peers, and start them with --card {}", path.display()));
    }
    Ok(())
}

/// The card of one data source by itself.
fn card_of_one(arguments: &DataCardArgs) -> Result<DataCard> {
    let raw = task::read(&arguments.data)?;
    let card = raw
        .card_for(arguments.task, arguments.seed)
        .context(ErrorKind::BadInput, format!("--data {}", arguments.data))?;
    raw.remarks().iter().for_each(|remark| out::remark(format_args!("note: {remark}")));
    Ok(card)
}

/// The card of all rows of several tables, of which only the sums are known.
fn card_of_sites(files: &[PathBuf]) -> Result<DataCard> {
    let mut all: Option<TableSums> = None;
    for path in files {
        let sums = read_sums(path)?;
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

/// Writes a document to its file and returns the path; prints it if there is no file.
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
