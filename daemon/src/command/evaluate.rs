//! `mingle evaluate`: designs compared by experiment.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::EvaluateArgs;
use crate::evaluation::{Record, Records, Run, Suite, all_runs, page, summary};
use crate::failure::{Kind, OrFail, Outcome};
use crate::{home, out, plan};

/// Runs what is missing of a suite, and writes its report.
pub(super) fn execute(arguments: &EvaluateArgs, json: bool) -> Outcome {
    let suite = Suite::read(&arguments.suite)?;
    let runs = all_runs(&suite)?;
    if arguments.list {
        runs.iter().for_each(|run| out::line(run.name()));
        return Ok(());
    }
    let folder = &arguments.output;
    fs::create_dir_all(folder).or_fail(Kind::BadInput, format!("cannot make the folder {}", folder.display()))?;
    let mut records = Records::open(&folder.join("runs.jsonl"))?;
    let missing: Vec<&Run> = runs.iter().filter(|run| records.get(&run.key()).is_none()).collect();
    if !json {
        out::line(format!("{}: {} runs, {} to do", suite.title, runs.len(), missing.len()));
    }
    let plans = folder.join("plans");
    fs::create_dir_all(&plans).or_fail(Kind::BadInput, format!("cannot make the folder {}", plans.display()))?;
    run_all(&missing, threads(arguments), |run, record| {
        let path = record.plan_file(&plans);
        if !path.exists() {
            plan::write(run.plan()?, &path)?;
        }
        records.add(record)
    })?;
    let done: Vec<&Record> = runs.iter().filter_map(|run| records.get(&run.key())).collect();
    let report = folder.join("report.html");
    let html = page(&suite, &done, &plans, &command(&arguments.suite));
    home::write_atomically(&report, html.as_bytes())
        .or_fail(Kind::BadInput, format!("cannot write {}", report.display()))?;
    if json {
        done.iter().for_each(|record| out::line(serde_json::json!(record)));
    } else {
        out::line(format!("\n{}", summary(&suite, &done).trim_end()));
        eprintln!("wrote {}", report.display());
    }
    Ok(())
}

fn command(suite: &Path) -> String {
    format!("mingle evaluate {}", suite.display())
}

fn threads(arguments: &EvaluateArgs) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    arguments.threads.map_or_else(cores, std::num::NonZero::get)
}

/// Every thread takes the next run that nobody has; results are kept as they come. After a failure nothing new is begun.
fn run_all(runs: &[&Run], threads: usize, mut keep: impl FnMut(&Run, Record) -> Outcome) -> Outcome {
    let bar = progress(runs.len());
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, results) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads.min(runs.len()) {
            let sender = sender.clone();
            scope.spawn(|| {
                let sender = sender;
                while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // Whoever listens has failed itself.
                    if failed.load(Ordering::Relaxed) || sender.send((*run, run.execute())).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut outcome = Ok(());
        for (run, result) in results {
            bar.set_message(run.name());
            bar.inc(1);
            let kept = result.and_then(|record| keep(run, record));
            if kept.is_err() {
                failed.store(true, Ordering::Relaxed);
            }
            outcome = outcome.and(kept);
        }
        bar.finish_and_clear();
        outcome
    })
}

/// A line on a terminal, nothing elsewhere.
fn progress(runs: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(runs as u64), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {pos}/{len} runs, {msg}, {eta} to go") {
        bar.set_style(style);
    }
    bar
}
