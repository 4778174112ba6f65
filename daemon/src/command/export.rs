//! `mingle export`: writes the model of a stopped peer, in PyTorch's names and shapes.
//!
//! A finished run left a model file. An interrupted one has its records: the newest contains the node's ratio, whatever
//! is under way between peers.

use std::collections::BTreeMap;
use std::path::Path;

use mingle_builtin::round_count::RoundCount;
use mingle_builtin::task_card::{Card, layout_of};
use mingle_builtin::task_file::TaskFile;
use mingle_models::{Checkpoint, Task, meaning};
use mingle_peer::error::Context;
use mingle_peer::output_file::OutputFile;
use mingle_peer::records::{self, Ending, RecordStore};
use mingle_peer::training::PersonalLayers;
use mingle_peer::{Error, ErrorKind, Home, Result, units};
use mingle_protocol::Record;

use crate::cli::ExportArgs;
use crate::{model_files, out};

/// An exported model.
struct Exported {
    /// The bytes of the model file.
    file: Vec<u8>,
    /// The file or the record from which it was exported.
    source: String,
    /// Rounds done; `None` if the plan, which defines the steps of a round, is gone.
    round: Option<u64>,
    parameters: usize,
    /// `true` if the run was over.
    is_final: bool,
}

/// Writes the file and prints a description.
pub(super) fn execute(arguments: &ExportArgs, json: bool) -> Result {
    let output = OutputFile::at(&arguments.output)?;
    let home = Home::at(arguments.home.home.as_deref())?;
    let _still = home.hold_still()?;
    let recovered = RecordStore::look(&records::folder_of(&home))?.load()?;
    let exported = match recovered {
        Some(recovered) if Ending::find(&home, recovered.record.books.number)?.is_none() => {
            export_record(&home, &recovered.record)?
        }
        _ => export_final(&home)?,
    };
    let Exported { file, source, round, parameters, is_final } = exported;
    output.write(&file)?;
    // The hash of the bytes written, not of the file: a pipe cannot be read again.
    let hash = blake3::hash(&file).to_hex().to_string();
    if json {
        out::line(serde_json::json!({
            "schema": "mingle.export/1",
            "file": arguments.output,
            "source": source,
            "round": round,
            "final": is_final,
            "parameters": parameters,
            "blake3": hash,
        }));
        return Ok(());
    }
    let round = round.map_or_else(|| "an unknown round".to_owned(), |round| format!("round {round}"));
    let what = if is_final { "the end of its run" } else { "where it stopped" };
    out::line(format!("wrote {}: the model after {round}, {what}", arguments.output.display()));
    out::line(format!("from {source}; {parameters} parameters, blake3:{}", &hash[..8]));
    Ok(())
}

/// Exports the model of the newest record.
fn export_record(home: &Home, record: &Record) -> Result<Exported> {
    let books = &record.books;
    let exists = |path: &Path| records::counting_file(home, path).exists();
    if exists(&home.trainer()) && !exists(&home.task()) {
        return Err(trained_by_a_script(home));
    }
    let card = TaskFile::find(home, &books.task)?;
    let task = card.task()?;
    let parameters = whole_model(&card, &task, record)?;
    let round = RoundCount::of(home).and_then(|count| count.rounds_at(books));
    let mut metadata = BTreeMap::from([
        ("plan".to_owned(), hex::encode(books.generation.plan_hash)),
        ("record".to_owned(), books.number.to_string()),
        ("step".to_owned(), books.step.to_string()),
        ("weight".to_owned(), units::exact_weight(u128::from(books.mass.units()))),
    ]);
    metadata.extend(meaning::metadata(&card.data, card.model));
    metadata.extend(round.map(|round| ("rounds".to_owned(), round.to_string())));
    let checkpoint = Checkpoint { parameters, metadata };
    let file = checkpoint.to_bytes(&task).context(ErrorKind::BadInput, "cannot write the model")?;
    let source = format!("record {} in {}", books.number, home.records().display());
    Ok(Exported { file, source, round, parameters: task.parameter_count(), is_final: false })
}

/// The error for records whose numbers have a meaning for a script alone.
fn trained_by_a_script(home: &Home) -> Error {
    let model = home.model();
    let hint = if model.is_file() {
        format!("{} is the model with which it stopped last", model.display())
    } else {
        format!("start it with its script once more and stop it: it writes {}", model.display())
    };
    let message = "a script trains this peer, and its records do not have the names and shapes of the model";
    Error::new(ErrorKind::BadInput, message).hint(hint)
}

/// The model of a record, with the personal layers of its peer if there are any.
fn whole_model(card: &Card, task: &Task, record: &Record) -> Result<Vec<f32>> {
    let shared = record.believed_ratio().to_vec();
    if card.personal.is_empty() {
        check_length(task, record)?;
        return Ok(shared);
    }
    PersonalLayers::recorded(&layout_of(task), &card.personal, &shared, &record.books.host)
        .context(ErrorKind::Integrity, "cannot put the model of the record together")
}

/// Checks the length of a record. One with a valid checksum has the length of its task, unless it was forged.
fn check_length(task: &Task, record: &Record) -> Result {
    let (found, wanted) = (record.numerator.len(), task.parameter_count());
    if found == wanted {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Integrity, format!("the record has {found} parameters, its task {wanted}")))
}

/// Exports the model file that the run left.
fn export_final(home: &Home) -> Result<Exported> {
    let path = home.model();
    if !path.exists() {
        let message = format!("there is neither a model nor a record in {}", home.root().display());
        return Err(
            Error::new(ErrorKind::BadInput, message).hint("name the folder that the peer was given with --home DIR")
        );
    }
    let model = model_files::read(&path)?;
    let file = std::fs::read(&path).context(ErrorKind::BadInput, format!("cannot read {}", path.display()))?;
    let round = model.metadata.get("rounds").and_then(|round| round.parse().ok());
    let source = path.display().to_string();
    let parameters = model.parameter_count();
    Ok(Exported { file, source, round, parameters, is_final: true })
}
