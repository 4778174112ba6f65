//! What the demo shows while it runs: one moving line on a terminal, one line per evaluated round anywhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use mingle_models::{DataSource, ObjectiveKind};
use mingle_peer::units;
use mingle_planner::Plan;

use super::metric;
use super::tally::Row;
use crate::cli::DemoArgs;
use crate::out;

/// Width of the accuracy bar behind each line.
const BAR_CELLS: usize = 20;

/// Shows the demo's progress; with JSON, rows go to stdout as objects and nothing else is shown.
pub(crate) struct Progress {
    bar: ProgressBar,
    json: bool,
    peers: usize,
    objective: ObjectiveKind,
}

impl Progress {
    /// Says what is about to run.
    pub(crate) fn start(arguments: &DemoArgs, plan: &Plan, json: bool) -> Self {
        // Without a terminal on stderr the bar draws nothing.
        let target = if json { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(arguments.rounds()), target);
        let style = ProgressStyle::with_template("{spinner} {bar:30} {pos}/{len} rounds  {elapsed}  {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let progress = Self { bar, json, peers: arguments.peers, objective: arguments.task };
        let split = match arguments.data.parse() {
            Ok(DataSource::Text(_)) => "in contiguous parts".to_owned(),
            _ => format!("split {}", arguments.split),
        };
        progress.note(&format!(
            "swarm    {} peer processes on this machine, data {} {split}, model {}, seed {}",
            arguments.peers, arguments.data, arguments.model, arguments.seed
        ));
        progress.note(&describe(plan));
        progress.bar.set_message("starting");
        progress
    }

    /// Every peer has its neighbours.
    pub(crate) fn all_joined(&self, elapsed: Duration) {
        let seconds = elapsed.as_secs_f64();
        self.note(&format!("joined   all {} peers, {seconds:.2} s after the first was started", self.peers));
    }

    /// Some peer has done this many rounds.
    pub(crate) fn round(&self, round: u64) {
        if round > self.bar.position() {
            self.bar.set_position(round);
        }
    }

    /// The whole swarm has reported a round.
    pub(crate) fn row(&self, row: &Row) {
        if self.json {
            if let Ok(text) = metric::to_json(row, self.objective) {
                out::line(text);
            }
            return;
        }
        self.note(&sentence(row, metric::name(self.objective)));
        self.bar.set_message(format!("mean {:.3}  worst {:.3}", row.mean_accuracy, row.worst_accuracy));
    }

    /// Shows what is trained for comparison.
    pub(crate) fn for_comparison(&self) -> impl Fn(&str) + Send + 'static {
        let bar = self.bar.clone();
        move |what| {
            bar.set_message(format!("for comparison: {what}"));
            bar.tick();
        }
    }

    /// A line that stays.
    pub(crate) fn note(&self, line: &str) {
        if self.json {
            return;
        }
        self.bar.suspend(|| eprintln!("{line}"));
    }

    /// Takes the moving line away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

fn describe(plan: &Plan) -> String {
    let forecast = plan.forecast();
    let lambda = forecast.lambda_2.map_or_else(|| "unknown".to_owned(), |value| format!("{value:.3}"));
    format!(
        "plan     {}: {} base edges, {} links, {} slots a round, |lambda2| {lambda}  blake3:{}",
        plan.method(),
        plan.base().edges().len(),
        forecast.links,
        forecast.slots_per_period,
        plan.hash().short()
    )
}

/// A row for a person. A sum of weights that is not whole has parcels in flight, or a dead peer's share missing.
fn sentence(row: &Row, metric: &str) -> String {
    let disagreement = row.disagreement.map_or_else(|| "      -".to_owned(), |value| format!("{value:.1e}"));
    format!(
        "round {:>4}   {metric} {:.3} mean {:.3} worst   disagreement {disagreement}   sum of weights {:.6}   {}",
        row.round,
        row.mean_accuracy,
        row.worst_accuracy,
        units::weight(row.weight_units),
        bar(row.mean_accuracy),
    )
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)] // clamped to 0..=1
fn bar(share: f64) -> String {
    let full = (share.clamp(0.0, 1.0) * BAR_CELLS as f64).round() as usize;
    format!("▕{}{}▏", "█".repeat(full), " ".repeat(BAR_CELLS - full))
}
