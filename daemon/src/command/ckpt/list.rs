//! `mingle ckpt list`: the model and the records of a home, one per line.

use mingle_builtin::listing::{Listed, files_in};
use mingle_peer::{Home, Result, units};
use serde_json::Value;

use crate::cli::HomeArgs;
use crate::out;

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
        remark!("there is neither a model nor a record in {}", home.root().display());
        return Ok(());
    }
    out::line(format!("{:<24} {:>8} {:>8} {:>12} {:>12}  {}", "FILE", "RECORD", "ROUND", "WEIGHT", "BYTES", "STATE"));
    files.iter().for_each(|file| out::line(describe(file)));
    Ok(())
}

/// The table as an object.
pub(in crate::command) fn report(home: &Home) -> Result<Value> {
    let _still = home.hold_still()?;
    let files: Vec<Value> = files_in(home)?.iter().map(to_json).collect();
    Ok(serde_json::json!({ "schema": "mingle.ckpt-list/1", "home": home.root(), "files": files }))
}

fn describe(file: &Listed) -> String {
    let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
    let weight = file.weight_units.map_or_else(|| "-".to_owned(), |units| format!("{:.6}", units::weight(units)));
    let fault = file.state.fault().map_or_else(String::new, |fault| format!(": {fault}"));
    format!(
        "{:<24} {:>8} {:>8} {weight:>12} {:>12}  {}{fault}",
        file.file.display(),
        number(file.record),
        number(file.round),
        number(file.bytes),
        file.state.name(),
    )
}

fn to_json(file: &Listed) -> Value {
    serde_json::json!({
        "file": file.file,
        "record": file.record,
        "round": file.round,
        "weight_units": file.weight_units,
        "bytes": file.bytes,
        "state": file.state.name(),
        "fault": file.state.fault(),
    })
}
