//! `mingle ckpt verify`: whether files and homes can be relied on.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use mingle_builtin::task_file::TaskFile;
use mingle_models::Task;
use mingle_peer::records::{self, Sound};
use mingle_peer::results::Summary;
use mingle_peer::{Error, ErrorKind, Home, Result};

use super::inspect;
use crate::cli::CkptVerifyArgs;
use crate::{model_files, out};

/// Something that was looked at, and what came of it: what was found to hold, or what does not.
struct Verdict {
    path: PathBuf,
    result: Result<String, String>,
}

/// Checks everything that was named; the exit code says whether all of it holds.
pub(super) fn execute(arguments: &CkptVerifyArgs, json: bool) -> Result<ExitCode> {
    let mut verdicts = Vec::new();
    for path in &arguments.paths {
        if path.is_dir() {
            verify_home(&Home::at(Some(path))?, &mut verdicts)?;
        } else {
            let result = if inspect::is_record(path) { verify_record(path) } else { verify_model(path, None, None) };
            verdicts.push(Verdict { path: path.clone(), result: judged(result)? });
        }
    }
    print(&verdicts, json);
    let damaged = verdicts.iter().filter(|verdict| verdict.result.is_err()).count();
    match damaged {
        0 => Ok(ExitCode::SUCCESS),
        // The one object on standard output says it already.
        _ if json => Ok(ExitCode::from(ErrorKind::Integrity as u8)),
        _ => Err(Error::new(ErrorKind::Integrity, format!("{damaged} of {} do not hold", verdicts.len()))),
    }
}

fn verify_home(home: &Home, verdicts: &mut Vec<Verdict>) -> Result {
    let _still = home.hold_still()?;
    let before = verdicts.len();
    if home.model().exists() {
        let summary = home.summary().exists().then(|| Summary::read(&home.summary())).transpose();
        let task = TaskFile::last(home)?.map(|card| card.task()).transpose()?;
        let written = summary.map(|summary| summary.and_then(|it| it.model_blake3));
        let result = written.and_then(|written| verify_model(&home.model(), written, task.as_ref()));
        verdicts.push(Verdict { path: home.model(), result: judged(result)? });
    }
    if home.records().is_dir() {
        verdicts.push(Verdict { path: home.records(), result: judged(verify_records(home))? });
    }
    if verdicts.len() == before {
        let message = format!("there is neither a model nor a record in {}", home.root().display());
        return Err(Error::new(ErrorKind::BadInput, message));
    }
    Ok(())
}

/// A model file is a whole safetensors file of finite numbers, has the tensors of its task, and is the one that was written
/// by what it says itself and by the summary beside it.
fn verify_model(path: &Path, written: Option<String>, task: Option<&Task>) -> Result<String> {
    let file = model_files::read(path)?;
    let hash = model_files::hash(path)?;
    let damaged = |message: String| Err(Error::new(ErrorKind::Integrity, message));
    if let Some(difference) = task.and_then(|task| file.difference(task)) {
        return damaged(format!("it is no model of the task in this home: {difference}"));
    }
    if let Some(written) = written.as_ref().filter(|written| **written != hash) {
        return damaged(format!(
            "it is blake3:{hash}, and the summary beside it says that blake3:{written} was written"
        ));
    }
    let is_as_written = model_files::is_as_written(&file, path)?;
    if is_as_written == Some(false) {
        return damaged("its numbers are not those that were written: the checksum in it is another".to_owned());
    }
    let how = match (is_as_written, written) {
        (None, None) => "of which nobody says what they were when they were written",
        _ => "as they were written",
    };
    Ok(format!("model, {} finite parameters {how}: blake3:{}", file.parameter_count(), &hash[..8]))
}

fn verify_record(path: &Path) -> Result<String> {
    let outline = records::read_outline(path)?;
    Ok(format!("record {}, {} parameters, checksum right", outline.books.number, outline.dimension))
}

fn verify_records(home: &Home) -> Result<String> {
    Ok(match records::verify(&home.records())? {
        None => "records, none was ever written".to_owned(),
        Some(Sound { newest, owed_payloads }) => {
            format!("records, the newest is {newest}, with all {owed_payloads} payloads that it owes")
        }
    })
}

/// What does not hold is a verdict; what cannot be read at all is a failure of the command.
fn judged(result: Result<String>) -> Result<Result<String, String>> {
    match result {
        Ok(found) => Ok(Ok(found)),
        Err(failure) if failure.is(ErrorKind::Integrity) => Ok(Err(format!("{failure:#}"))),
        Err(failure) => Err(failure),
    }
}

fn print(verdicts: &[Verdict], json: bool) {
    if json {
        let verdict = |verdict: &Verdict| {
            let (found, fault) = (verdict.result.as_ref().ok(), verdict.result.as_ref().err());
            serde_json::json!({ "path": verdict.path, "holds": fault.is_none(), "found": found, "fault": fault })
        };
        let verdicts: Vec<_> = verdicts.iter().map(verdict).collect();
        out::line(serde_json::json!({ "schema": "mingle.ckpt-verify/1", "verdicts": verdicts }));
        return;
    }
    for Verdict { path, result } in verdicts {
        match result {
            Ok(found) => out::line(format!("ok       {}: {found}", path.display())),
            Err(fault) => out::line(format!("DAMAGED  {}: {fault}", path.display())),
        }
    }
}
