//! `mingle ckpt list`: the model and the records of a home, one a line.

use std::fs;
use std::path::{Path, PathBuf};

use mingle_peer::error::Context;
use mingle_peer::records::{Contents, RecordFolder};
use mingle_peer::{ErrorKind, Home, Result, plan, units};
use mingle_protocol::record::{Outline, SlotContent, survey};
use serde_json::Value;

use crate::cli::HomeArgs;
use crate::{model_files, out};

/// Prints the table.
pub(super) fn execute(arguments: &HomeArgs, json: bool) -> Result {
    let home = Home::at(arguments.home.as_deref())?;
    if json {
        out::line(report(&home)?);
        return Ok(());
    }
    let _still = home.hold_still()?;
    let files = files_in(&home)?;
    if files.is_empty() {
        eprintln!("there is neither a model nor a record in {}", home.root().display());
        return Ok(());
    }
    out::line(format!("{:<24} {:>8} {:>8} {:>12} {:>12}  {}", "FILE", "RECORD", "ROUND", "WEIGHT", "BYTES", "STATE"));
    files.iter().for_each(|file| out::line(file.describe()));
    Ok(())
}

/// The table as an object.
pub(in crate::command) fn report(home: &Home) -> Result<Value> {
    let _still = home.hold_still()?;
    let files: Vec<Value> = files_in(home)?.iter().map(Listed::to_json).collect();
    Ok(serde_json::json!({ "schema": "mingle.ckpt-list/1", "home": home.root(), "files": files }))
}

/// A file with a model or a record.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Listed {
    /// Below the home.
    file: PathBuf,
    /// The number of the record.
    record: Option<u64>,
    /// Rounds done.
    round: Option<u64>,
    /// The push-sum weight, in units.
    weight_units: Option<u64>,
    /// The length of the file.
    bytes: Option<u64>,
    /// Whether it can be relied on, in a word or two.
    state: State,
}

/// How a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// Its checksum is right; its peer would go on from it.
    Newest,
    /// Its checksum is right.
    Whole,
    /// Nothing was written to it yet.
    Empty,
    /// A crash cut its write off; nobody was told of what was in it.
    Torn,
    /// It cannot be relied on.
    Damaged(String),
}

impl State {
    fn name(&self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::Whole => "whole",
            Self::Empty => "empty",
            Self::Torn => "torn",
            Self::Damaged(_) => "damaged",
        }
    }

    fn fault(&self) -> Option<&str> {
        match self {
            Self::Damaged(fault) => Some(fault),
            _ => None,
        }
    }
}

impl Listed {
    fn describe(&self) -> String {
        let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
        let weight = self.weight_units.map_or_else(|| "-".to_owned(), |units| format!("{:.6}", units::weight(units)));
        let fault = self.state.fault().map_or_else(String::new, |fault| format!(": {fault}"));
        format!(
            "{:<24} {:>8} {:>8} {weight:>12} {:>12}  {}{fault}",
            self.file.display(),
            number(self.record),
            number(self.round),
            number(self.bytes),
            self.state.name(),
        )
    }

    fn to_json(&self) -> Value {
        serde_json::json!({
            "file": self.file,
            "record": self.record,
            "round": self.round,
            "weight_units": self.weight_units,
            "bytes": self.bytes,
            "state": self.state.name(),
            "fault": self.state.fault(),
        })
    }
}

/// The model of a home and its records, slot by slot.
fn files_in(home: &Home) -> Result<Vec<Listed>> {
    let mut files: Vec<Listed> = model_in(home).into_iter().collect();
    if home.records().is_dir() {
        let doing = format!("cannot read the records in {}", home.records().display());
        let folder = RecordFolder::at(&home.records());
        let contents = folder.read().context(ErrorKind::BadInput, doing)?;
        files.extend(records_in(home, &folder, &contents));
    }
    Ok(files)
}

fn model_in(home: &Home) -> Option<Listed> {
    let path = home.model();
    let bytes = length(&path)?;
    let (round, state) = match model_files::read(&path) {
        Ok(file) => (file.metadata.get("rounds").and_then(|round| round.parse().ok()), State::Whole),
        Err(failure) => (None, State::Damaged(format!("{failure:#}"))),
    };
    let file = PathBuf::from(path.file_name()?);
    Some(Listed { file, record: None, round, weight_units: None, bytes: Some(bytes), state })
}

fn records_in(home: &Home, folder: &RecordFolder, contents: &Contents) -> Vec<Listed> {
    let found = survey(&contents.slots);
    let survey = found.as_ref().ok().and_then(Option::as_ref);
    let schedule =
        plan::read(&home.plan()).ok().and_then(|plan| Some((*plan.hash().as_bytes(), plan::schedule(&plan).ok()?)));
    let round = |outline: &Outline| {
        let (hash, schedule) = schedule.as_ref()?;
        (*hash == outline.books.generation.plan_hash).then(|| outline.books.step / schedule.round_length())
    };
    let listed = |(slot, content): (usize, &SlotContent)| {
        let path = folder.file(slot);
        let file = path.strip_prefix(home.root()).unwrap_or(&path).to_path_buf();
        let outline = if let SlotContent::Holds(outline) = content { Some(outline) } else { None };
        let state = match content {
            SlotContent::Holds(_) if survey.is_some_and(|survey| survey.newest == slot) => State::Newest,
            SlotContent::Holds(_) => State::Whole,
            SlotContent::Empty => State::Empty,
            SlotContent::Unreadable if survey.is_some_and(|survey| survey.torn == Some(slot)) => State::Torn,
            SlotContent::Unreadable => State::Damaged(contents.faults.get(&slot).cloned().unwrap_or_default()),
        };
        Listed {
            bytes: length(&path),
            file,
            record: outline.map(|outline| outline.books.number),
            round: outline.and_then(|outline| round(outline)),
            weight_units: outline.map(|outline| outline.books.mass.units()),
            state,
        }
    };
    contents.slots.iter().enumerate().map(listed).collect()
}

fn length(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|file| file.len())
}
