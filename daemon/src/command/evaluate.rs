//! `mingle evaluate`: designs compared by experiment.

use std::io::IsTerminal;
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use mingle_lab::evaluation::{Record, Records, Run, Suite, Training, all_runs, page, summary};
use mingle_lab::simulation::Progress;
use mingle_peer::Result;
use mingle_peer::output_file;

use crate::cli::{EvaluateArgs, OptimizerArgs, PrivacyArgs, TrainingArgs, WeightArg};
use crate::{lab, out, topology};

/// Runs what is missing of a suite, and writes its report.
pub(super) fn execute(arguments: &EvaluateArgs, json: bool) -> Result {
    let suite = Suite::read(&arguments.suite).map_err(lab::suite_error)?;
    let runs = all_runs(&suite, topology::read)?;
    if arguments.list {
        runs.iter().for_each(|run| out::line(run.name()));
        return Ok(());
    }
    let folder = &arguments.output;
    output_file::make_folder(folder)?;
    let mut records = Records::open(&folder.join("runs.jsonl")).map_err(lab::records_error)?;
    let missing: Vec<&Run> = runs.iter().filter(|run| records.get(&run.key()).is_none()).collect();
    if !json {
        out::line(format!("{}: {} runs, {} to do", suite.title, runs.len(), missing.len()));
    }
    let plans = folder.join("plans");
    output_file::make_folder(&plans)?;
    run_all(&missing, threads(arguments), |run, record| {
        let path = record.plan_file(&plans);
        if !path.exists() {
            let plan = run.plan().map_err(lab::simulation_error)?;
            output_file::write(&path, plan.to_json().as_bytes())?;
        }
        records.add(record).map_err(lab::records_error)
    })?;
    let done: Vec<&Record> = runs.iter().filter_map(|run| records.get(&run.key())).collect();
    let report = folder.join("report.html");
    let html = page(&suite, &done, &plans, &command(&arguments.suite));
    output_file::write(&report, html.as_bytes())?;
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
    let cores = || std::thread::available_parallelism().map_or(1, NonZero::get);
    arguments.threads.map_or_else(cores, NonZero::get)
}

/// Every thread takes the next run that nobody has; results are kept as they come. After a failure nothing new is begun.
fn run_all(runs: &[&Run], threads: usize, mut keep: impl FnMut(&Run, Record) -> Result) -> Result {
    let display = Display::new(runs.len());
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, results) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads.min(runs.len()) {
            let (sender, display) = (sender.clone(), &display);
            let (next, failed) = (&next, &failed);
            scope.spawn(move || {
                while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // Whoever listens has failed itself.
                    if failed.load(Ordering::Relaxed) || sender.send((*run, display.execute(run))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut outcome = Ok(());
        for (run, result) in results {
            let kept = result.and_then(|record| keep(run, record));
            if kept.is_err() {
                failed.store(true, Ordering::Relaxed);
            }
            outcome = outcome.and(kept);
        }
        display.all.finish_and_clear();
        outcome
    })
}

/// On a terminal, a line for all runs and one for each that is under way; elsewhere, a line for each that has ended.
struct Display {
    lines: MultiProgress,
    all: ProgressBar,
    is_terminal: bool,
}

impl Display {
    fn new(runs: usize) -> Self {
        let lines = MultiProgress::new();
        let all = lines.add(ProgressBar::new(runs as u64));
        all.set_style(style("{bar:30} {pos}/{len} runs, {eta} to go"));
        Self { lines, all, is_terminal: std::io::stderr().is_terminal() }
    }

    fn execute(&self, run: &Run) -> Result<Record> {
        let line = self.lines.add(ProgressBar::new_spinner());
        line.set_style(style("{spinner} {msg}"));
        line.set_message(format!("{}: begins", run.name()));
        let result = execute_run(run, |progress| line.set_message(format!("{}: {}", run.name(), standing(progress))));
        line.finish_and_clear();
        self.all.inc(1);
        if let (Ok(record), false) = (&result, self.is_terminal) {
            let ended = record.curve.last().map(standing).unwrap_or_default();
            eprintln!("{} of {}: {}: {ended}", self.all.position(), self.all.length().unwrap_or_default(), run.name());
        }
        result
    }
}

/// Simulates a run, on one thread.
fn execute_run(run: &Run, tell: impl FnMut(&Progress)) -> Result<Record> {
    let nodes = run.plan().map_err(lab::simulation_error)?.node_count();
    let test_samples = run.training.test_samples.map(NonZero::get);
    let learners = lab::learners(&training_of(run), nodes, test_samples, 1)?;
    run.execute(learners, tell).map_err(lab::simulation_error)
}

/// What a run trains, in the words of `run`.
fn training_of(run: &Run) -> TrainingArgs {
    let Training { data, task, model, batch_size, augment, learning_rate, momentum, weight_decay, device, .. } =
        run.training.clone();
    TrainingArgs {
        data,
        task,
        model,
        split: Some(run.split.split.clone()),
        weight: WeightArg::Equal,
        rounds: 1,
        batch_size,
        augment: augment.to_string(),
        optimizer: OptimizerArgs { momentum, weight_decay, ..OptimizerArgs::default() },
        learning_rate,
        seed: run.seed,
        device,
        evaluate_every: run.evaluate_every,
        privacy: PrivacyArgs::default(),
        personal: Vec::new(),
    }
}

fn standing(progress: &Progress) -> String {
    let Progress { round, slots, measured, .. } = progress;
    format!("round {round}, {slots} slots, {} {:.3}", measured.score(), measured.mean_score().unwrap_or(f64::NAN))
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}
