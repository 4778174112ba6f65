//! `mingle ckpt list`: the model and the records of a home, one a line.

use std::fs;
use std::path::PathBuf;

use mingle_peer::records::{self, Condition, RecordFile};
use mingle_peer::{Home, Result, plan, units};
use mingle_protocol::Schedule;
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
    state: Condition,
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
        let schedule = schedule_in(home);
        files.extend(records::list(&home.records())?.into_iter().map(|file| listed(home, file, schedule.as_ref())));
    }
    Ok(files)
}

fn model_in(home: &Home) -> Option<Listed> {
    let path = home.model();
    let bytes = fs::metadata(&path).ok()?.len();
    let (round, state) = match model_files::read(&path) {
        Ok(file) => (file.metadata.get("rounds").and_then(|round| round.parse().ok()), Condition::Whole),
        Err(failure) => (None, Condition::Damaged(format!("{failure:#}"))),
    };
    let file = PathBuf::from(path.file_name()?);
    Some(Listed { file, record: None, round, weight_units: None, bytes: Some(bytes), state })
}

/// The plan of a home, by its hash, as a schedule.
fn schedule_in(home: &Home) -> Option<([u8; 32], Schedule)> {
    let plan = plan::read(&home.plan()).ok()?;
    Some((*plan.hash().as_bytes(), plan::schedule(&plan).ok()?))
}

fn listed(home: &Home, record: RecordFile, schedule: Option<&([u8; 32], Schedule)>) -> Listed {
    let RecordFile { path, bytes, condition, outline } = record;
    let books = outline.map(|outline| outline.books);
    let round = books.as_ref().and_then(|books| {
        let (hash, schedule) = schedule?;
        (*hash == books.generation.plan_hash).then(|| books.step / schedule.round_length())
    });
    Listed {
        file: path.strip_prefix(home.root()).unwrap_or(&path).to_path_buf(),
        record: books.as_ref().map(|books| books.number),
        round,
        weight_units: books.map(|books| books.mass.units()),
        bytes,
        state: condition,
    }
}
