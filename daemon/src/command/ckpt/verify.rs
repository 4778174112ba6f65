//! `mingle ckpt verify`: whether files and homes can be relied on.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::inspect;
use crate::cli::CkptVerifyArgs;
use crate::failure::{Failure, Kind, Outcome};
use crate::home::Home;
use crate::records::RecordStore;
use crate::results::Summary;
use crate::{model_files, out};

/// Something that was looked at, and what came of it: what was found to hold, or what does not.
struct Verdict {
    path: PathBuf,
    result: Result<String, String>,
}

/// Checks everything that was named; the exit code says whether all of it holds.
pub(super) fn execute(arguments: &CkptVerifyArgs, json: bool) -> Outcome<ExitCode> {
    let mut verdicts = Vec::new();
    for path in &arguments.paths {
        if path.is_dir() {
            verify_home(&Home::at(Some(path))?, &mut verdicts)?;
        } else {
            let result = if inspect::is_record(path) { verify_record(path) } else { verify_model(path, None) };
            verdicts.push(Verdict { path: path.clone(), result: judged(result)? });
        }
    }
    print(&verdicts, json);
    let damaged = verdicts.iter().filter(|verdict| verdict.result.is_err()).count();
    match damaged {
        0 => Ok(ExitCode::SUCCESS),
        // The one object on standard output says it already.
        _ if json => Ok(ExitCode::from(Kind::Integrity as u8)),
        _ => Err(Failure::new(Kind::Integrity, format!("{damaged} of {} do not hold", verdicts.len()))),
    }
}

fn verify_home(home: &Home, verdicts: &mut Vec<Verdict>) -> Outcome {
    let _still = home.hold_still()?;
    let before = verdicts.len();
    if home.model().exists() {
        let summary = home.summary().exists().then(|| Summary::read(&home.summary())).transpose();
        let result = summary.and_then(|summary| verify_model(&home.model(), summary.and_then(|it| it.model_blake3)));
        verdicts.push(Verdict { path: home.model(), result: judged(result)? });
    }
    if home.records().is_dir() {
        verdicts.push(Verdict { path: home.records(), result: judged(verify_records(home))? });
    }
    if verdicts.len() == before {
        let message = format!("there is neither a model nor a record in {}", home.root().display());
        return Err(Failure::new(Kind::BadInput, message));
    }
    Ok(())
}

/// A model file is a whole safetensors file of finite numbers, and the one that its summary says was written.
fn verify_model(path: &Path, written: Option<String>) -> Outcome<String> {
    let file = model_files::read(path)?;
    let hash = model_files::hash(path)?;
    let parameters = file.parameter_count();
    match written {
        Some(written) if written != hash => Err(Failure::new(
            Kind::Integrity,
            format!("it is blake3:{hash}, and the summary beside it says that blake3:{written} was written"),
        )),
        Some(_) => Ok(format!("model, {parameters} finite parameters, as it was written: blake3:{}", &hash[..8])),
        None => Ok(format!("model, {parameters} finite parameters, blake3:{}", &hash[..8])),
    }
}

fn verify_record(path: &Path) -> Outcome<String> {
    let outline = inspect::read_record(path)?;
    Ok(format!("record {}, {} parameters, checksum right", outline.books.number, outline.dimension))
}

/// The records of a home hold together: the newest is whole, and so is all it owes.
fn verify_records(home: &Home) -> Outcome<String> {
    Ok(match RecordStore::look(&home.records())?.load()? {
        None => "records, none was ever written".to_owned(),
        Some(recovered) => {
            let (number, owed) = (recovered.record.books.number, recovered.payloads.len());
            format!("records, the newest is {number}, with all {owed} payloads that it owes")
        }
    })
}

/// What does not hold is a verdict; what cannot be read at all is a failure of the command.
fn judged(result: Outcome<String>) -> Outcome<Result<String, String>> {
    match result {
        Ok(found) => Ok(Ok(found)),
        Err(failure) if failure.is(Kind::Integrity) => Ok(Err(failure.to_string())),
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
