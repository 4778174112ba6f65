//! `mingle evaluate`: compares designs, or methods of learning in rounds, by experiment.

mod methods;
mod parallel;

use std::num::NonZero;
use std::path::Path;

use mingle_builtin::errors;
use mingle_builtin::learners::learners;
use mingle_builtin::options::{GradientOptions, TrainingOptions};
use mingle_lab::evaluation::{Records, Run, RunRecord, Suite, Training, all_runs, page, summary};
use mingle_lab::methods::MethodSuite;
use mingle_lab::simulation::SwarmProgress;
use mingle_peer::Result;
use mingle_peer::output_file;

use super::threads_or_all;
use crate::cli::EvaluateArgs;
use crate::{out, topology};

/// Executes the missing runs of a suite, and writes its report.
pub(super) fn execute(arguments: &EvaluateArgs, json: bool) -> Result {
    match MethodSuite::read(&arguments.suite).map_err(errors::suite_error)? {
        Some(suite) => methods::execute(arguments, &suite, json),
        None => designs(arguments, json),
    }
}

fn designs(arguments: &EvaluateArgs, json: bool) -> Result {
    let suite = Suite::read(&arguments.suite).map_err(errors::suite_error)?;
    let runs = all_runs(&suite, topology::read)?;
    if arguments.list {
        runs.iter().for_each(|run| out::line(run.name()));
        return Ok(());
    }
    let folder = &arguments.output;
    output_file::make_folder(folder)?;
    let mut records: Records = Records::open(&folder.join("runs.jsonl")).map_err(errors::records_error)?;
    let missing: Vec<&Run> = runs.iter().filter(|run| records.get(&run.key()).is_none()).collect();
    if !json {
        out::line(format!("{}: {} runs, {} to do", suite.title, runs.len(), missing.len()));
    }
    let plans = folder.join("plans");
    output_file::make_folder(&plans)?;
    let names: Vec<String> = missing.iter().map(|run| run.name()).collect();
    let simulate = |at: usize, tell: &mut dyn FnMut(String)| -> Result<(RunRecord, String)> {
        let record = execute_run(missing[at], |progress| tell(standing(progress)))?;
        let ended = record.curve.last().map(standing).unwrap_or_default();
        Ok((record, ended))
    };
    parallel::run_all(&names, threads_or_all(arguments.threads).get(), simulate, |at, record: RunRecord| {
        let run = missing[at];
        let path = record.plan_file(&plans);
        if !path.exists() {
            let plan = run.plan().map_err(errors::simulation_error)?;
            output_file::write(&path, plan.to_json().as_bytes())?;
        }
        records.add(record).map_err(errors::records_error)
    })?;
    let done: Vec<&RunRecord> = runs.iter().filter_map(|run| records.get(&run.key())).collect();
    let report = folder.join("report.html");
    let html = page(&suite, &done, &plans, &command(&arguments.suite));
    output_file::write(&report, html.as_bytes())?;
    if json {
        done.iter().for_each(|record| out::line(serde_json::json!(record)));
    } else {
        out::line(format!("\n{}", summary(&suite, &done).trim_end()));
        remark!("wrote {}", report.display());
    }
    Ok(())
}

fn command(suite: &Path) -> String {
    format!("mingle evaluate {}", suite.display())
}

/// Simulates a run, on one thread.
fn execute_run(run: &Run, tell: impl FnMut(&SwarmProgress)) -> Result<RunRecord> {
    let nodes = run.plan().map_err(errors::simulation_error)?.node_count();
    let test_samples = run.training.test_samples.map(NonZero::get);
    let learners = learners(&training_of(run), nodes, test_samples, 1, |_| {})?;
    run.execute(learners, tell).map_err(errors::simulation_error)
}

/// The training of a run, as options of `run`.
fn training_of(run: &Run) -> TrainingOptions {
    let Training { data, task, model, batch_size, augment, learning_rate, momentum, weight_decay, device, .. } =
        run.training.clone();
    TrainingOptions {
        data,
        task,
        model,
        split: Some(run.split.split.clone()),
        weight: run.weight(),
        rounds: 1,
        batch_size,
        augment: augment.to_string(),
        optimizer: GradientOptions { momentum, weight_decay, ..GradientOptions::default() },
        learning_rate,
        seed: run.seed,
        device,
        evaluate_every: run.evaluate_every,
        ..TrainingOptions::default()
    }
}

fn standing(progress: &SwarmProgress) -> String {
    let SwarmProgress { round, slots, measured, .. } = progress;
    format!("round {round}, {slots} slots, {} {:.3}", measured.score(), measured.mean_score().unwrap_or(f64::NAN))
}
