//! Execution of the runs of a suite, several at a time.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use mingle_peer::Result;

/// Executes all runs: every thread takes the next one, and results are kept as they come. After a failure no further
/// run begins. `execute` gets the number of a run and a callback for its progress, and returns its result and a
/// description for one line.
pub(super) fn run_all<R: Send>(
    names: &[String],
    threads: usize,
    execute: impl Fn(usize, &mut dyn FnMut(String)) -> Result<(R, String)> + Sync,
    mut keep: impl FnMut(usize, R) -> Result,
) -> Result {
    let display = Display::new(names.len());
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let (sender, results) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads.min(names.len()) {
            let sender = sender.clone();
            let display = &display;
            let execute = &execute;
            let next = &next;
            let failed = &failed;
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(name) = names.get(at) else { return };
                    let is_over = failed.load(Ordering::Relaxed);
                    // A receiver that is gone has failed itself.
                    if is_over || sender.send((at, display.follow(name, |tell| execute(at, tell)))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut outcome = Ok(());
        for (at, result) in results {
            let kept = result.and_then(|record| keep(at, record));
            if kept.is_err() {
                failed.store(true, Ordering::Relaxed);
            }
            outcome = outcome.and(kept);
        }
        display.all.finish_and_clear();
        outcome
    })
}

/// Progress display: on a terminal a line for all runs and one for each under way, elsewhere a line for each that has
/// ended.
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

    fn follow<R>(&self, name: &str, execute: impl FnOnce(&mut dyn FnMut(String)) -> Result<(R, String)>) -> Result<R> {
        let line = self.lines.add(ProgressBar::new_spinner());
        line.set_style(style("{spinner} {msg}"));
        line.set_message(format!("{name}: begins"));
        let result = execute(&mut |standing| line.set_message(format!("{name}: {standing}")));
        line.finish_and_clear();
        self.all.inc(1);
        let (record, ended) = result?;
        if !self.is_terminal {
            remark!("{} of {}: {name}: {ended}", self.all.position(), self.all.length().unwrap_or_default());
        }
        Ok(record)
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}
