//! `mingle doctor`: checks whether a peer could run here, and gives advice where it could not.
//!
//! Everything is tried, not guessed: ports are bound, the disk is written to and synced, the data are read, the device
//! is opened. Nothing outside this machine is contacted.

mod training;

use std::process::ExitCode;

use mingle_doctor::{Check, CheckVerdict, disk, identity, machine, network};
use mingle_models::Task;
use mingle_peer::{ErrorKind, Home, Result};
use serde_json::Value;

use crate::cli::{ConfigPathArgs, DoctorArgs, multiaddrs};
use crate::config;
use crate::out;

/// Runs all checks and prints a line for each. The exit code is 4 if something has to be changed before a peer can run.
pub(super) fn execute(arguments: &DoctorArgs, json: bool) -> Result<ExitCode> {
    let checks = examine(&arguments.peer, arguments.data.as_deref(), arguments.model.as_deref())?;
    let failed = checks.iter().filter(|check| check.verdict == CheckVerdict::Fail).count();
    if json {
        out::line(to_json(&checks));
    } else {
        checks.iter().for_each(out::line);
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(ErrorKind::BadInput as u8) })
}

/// The checks for a bug report.
pub(super) fn report(arguments: &ConfigPathArgs) -> Result<Value> {
    examine(arguments, None, None).map(|checks| to_json(&checks))
}

fn to_json(checks: &[Check]) -> Value {
    let failed = checks.iter().filter(|check| check.verdict == CheckVerdict::Fail).count();
    let checks: Vec<Value> = checks.iter().map(Check::to_json).collect();
    serde_json::json!({ "schema": "mingle.doctor/1", "failed": failed, "checks": checks })
}

fn examine(arguments: &ConfigPathArgs, data: Option<&str>, model: Option<&str>) -> Result<Vec<Check>> {
    let home = Home::at(arguments.home.home.as_deref())?;
    let mut checks = Vec::new();
    let file = match config::find(arguments.home.home.as_deref(), arguments.config.as_deref()) {
        Ok(file) => {
            checks.push(training::config(file.as_ref()));
            file
        }
        Err(failure) => {
            let advice = "mend those lines; the checks below are for a peer with the defaults";
            checks.push(Check::fail("config", format!("{failure:#}"), advice));
            None
        }
    };
    let mut run = config::run_arguments(Some(home.root()), file.as_ref())?;
    run.training.samples.data = data.map_or(run.training.samples.data, str::to_owned);
    run.training.model = model.map_or(run.training.model, str::to_owned);
    checks.push(identity::examine(&home));
    checks.extend(identity::exposures(&home));
    checks.push(training::device(&run.training.device));
    let (task, data) = training::data(&run.training.into());
    checks.extend(data);
    let parameters = task.as_ref().map_or(0, Task::parameter_count);
    checks.extend(network::examine(&home, &multiaddrs(&run.listen))?);
    checks.push(machine::clock(&home));
    checks.extend(disk::examine(&home, parameters));
    checks.push(machine::memory(parameters));
    checks.extend(machine::open_files());
    Ok(checks)
}
