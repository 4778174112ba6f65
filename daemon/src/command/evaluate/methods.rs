//! Comparison of methods of learning in rounds, over seeds.

use std::path::Path;
use std::sync::Arc;

use mingle_builtin::errors;
use mingle_lab::evaluation::Records;
use mingle_lab::methods::{
    MethodEntry, MethodRecord, MethodRun, MethodSuite, all_method_runs, compare_methods, html, markdown, text,
};
use mingle_peer::error::Context;
use mingle_peer::{Error, ErrorKind, Result, output_file, plan};
use mingle_planner::{DesignOptions, Method, Plan, Topology};
use mingle_solving::{RoundRecord, RoundTask};

use super::super::threads_or_all;
use super::{command, parallel};
use crate::cli::EvaluateArgs;
use crate::out;
use crate::rounds::SPECTRA;

/// Metrics shown while a run is under way.
const TOLD: usize = 3;

/// Executes the missing runs of a suite, and writes its report.
pub(super) fn execute(arguments: &EvaluateArgs, suite: &MethodSuite, json: bool) -> Result {
    let runs = all_method_runs(suite, usual_methods, plan_of(suite)?, &arguments.suite).map_err(errors::suite_error)?;
    if arguments.list {
        runs.iter().for_each(|run| out::line(run.name()));
        return Ok(());
    }
    let folder = &arguments.output;
    output_file::make_folder(folder)?;
    let mut records: Records<MethodRecord> =
        Records::open(&folder.join("runs.jsonl")).map_err(errors::records_error)?;
    let missing: Vec<&MethodRun> = runs.iter().filter(|run| records.get(&run.key()).is_none()).collect();
    if !json {
        out::line(format!("{}: {} runs, {} to do", suite.title, runs.len(), missing.len()));
    }
    let names: Vec<String> = missing.iter().map(|run| run.name()).collect();
    let learn = |at: usize, tell: &mut dyn FnMut(String)| {
        let task = open(missing[at], suite, folder)?;
        let metrics = task.rules().metrics().to_vec();
        let told = |record: &RoundRecord| tell(standing(record.round, &metrics, &record.mean));
        let record = missing[at].execute(task, told).map_err(errors::swarm_error)?;
        let ended = standing(record.best_round, &record.metrics, &record.mean);
        Ok((record, ended))
    };
    parallel::run_all(&names, threads_or_all(arguments.threads).get(), learn, |_, record| {
        records.add(record).map_err(errors::records_error)
    })?;
    let done: Vec<&MethodRecord> = runs.iter().filter_map(|run| records.get(&run.key())).collect();
    let comparison = compare_methods(suite, &done);
    let encoded =
        serde_json::to_string_pretty(&comparison).context(ErrorKind::Unexpected, "cannot encode the report")?;
    output_file::write(&folder.join("report.json"), format!("{encoded}\n").as_bytes())?;
    output_file::write(&folder.join("report.md"), markdown(&comparison).as_bytes())?;
    let report = folder.join("report.html");
    output_file::write(&report, html(&comparison, &done, &command(&arguments.suite)).as_bytes())?;
    if json {
        done.iter().for_each(|record| out::line(serde_json::json!(record)));
        out::line(serde_json::json!(comparison));
    } else {
        out::line(format!("\n{}", text(&comparison).trim_end()));
        remark!("wrote {}, report.md and report.json beside it", report.display());
    }
    Ok(())
}

/// The plan of the suite, or one on which every client has a link to every other.
fn plan_of(suite: &MethodSuite) -> Result<Plan> {
    let Some(clients) = suite.clients else {
        return plan::read(suite.plan.as_deref().unwrap_or(&suite.problem));
    };
    let doing = || format!("clients = {clients}");
    let topology = Topology::generate(&format!("complete:n={clients}")).context(ErrorKind::BadInput, doing())?;
    mingle_planner::design(&topology, Method::ExactAverage, &DesignOptions::default())
        .context(ErrorKind::BadInput, doing())
}

/// The task of a run. Spectra that it computes are kept in the folder of the results.
fn open(run: &MethodRun, suite: &MethodSuite, output: &Path) -> Result<Arc<dyn RoundTask>> {
    let doing = || format!("{} with method {} does not hold", suite.problem.display(), run.method);
    let text = toml::to_string(&run.problem).context(ErrorKind::Unexpected, "cannot encode the problem")?;
    let task = mingle_problems::task(&text, &suite.problem, Some(output.join(SPECTRA)));
    task.context(ErrorKind::BadInput, doing())?.ok_or_else(|| {
        let message = format!("{} is learned in no rounds", suite.problem.display());
        Error::new(ErrorKind::BadInput, message).hint(format!(
            "a suite of methods has a problem of kind = {}",
            mingle_problems::kinds_in_rounds().join(" or ")
        ))
    })
}

/// The usual methods for this kind of problem.
fn usual_methods(problem: &toml::Table) -> Vec<MethodEntry> {
    let kind = problem.get("kind").and_then(toml::Value::as_str).unwrap_or_default();
    let entry = |(name, set): &(&str, &str)| MethodEntry {
        name: (*name).to_owned(),
        set: toml::from_str(set).unwrap_or_default(),
    };
    mingle_problems::usual_methods(kind).iter().map(entry).collect()
}

fn standing(round: u64, metrics: &[String], values: &[Option<f64>]) -> String {
    let cell = |(name, value): (&String, &Option<f64>)| Some(format!(", {name} {:.4}", (*value)?));
    let cells: Vec<String> = metrics.iter().zip(values).take(TOLD).filter_map(cell).collect();
    format!("round {round}{}", cells.concat())
}
