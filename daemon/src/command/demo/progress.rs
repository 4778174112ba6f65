//! Progress output of the demo: one moving line on a terminal, one line per evaluated round anywhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use mingle_demo::{DemoEvent, DemoOptions, SwarmRow, Unaided, Watcher, metric};
use mingle_models::{DataSource, ObjectiveKind};
use mingle_peer::units;
use mingle_planner::Plan;

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
    /// Prints a description of the swarm, and starts the bar.
    pub(crate) fn start(options: &DemoOptions, plan: &Plan, json: bool) -> Self {
        let training = &options.training;
        // Without a terminal on stderr the bar draws nothing.
        let target = if json { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(training.rounds), target);
        let style = ProgressStyle::with_template("{spinner} {bar:30} {pos}/{len} rounds  {elapsed}  {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let progress = Self { bar, json, peers: options.peers, objective: training.task };
        let split = match training.data.parse() {
            Ok(DataSource::Text(_)) => "in contiguous parts".to_owned(),
            _ => format!("split {}", training.split.as_deref().unwrap_or("none")),
        };
        progress.note(&format!(
            "swarm    {} peer processes on this machine, data {} {split}, model {}, seed {}",
            options.peers, training.data, training.model, training.seed
        ));
        progress.note(&describe(plan));
        progress.bar.set_message("starting");
        progress
    }

    /// Reports that every peer has its neighbours.
    fn all_joined(&self, elapsed: Duration) {
        let seconds = elapsed.as_secs_f64();
        self.note(&format!("joined   all {} peers, {seconds:.2} s after the first was started", self.peers));
    }

    /// Advances the bar to the round that a peer has done.
    fn round(&self, round: u64) {
        if round > self.bar.position() {
            self.bar.set_position(round);
        }
    }

    /// Prints a round that the whole swarm has reported.
    fn row(&self, row: &SwarmRow) {
        if self.json {
            if let Ok(text) = metric::to_json(row, self.objective) {
                out::line(text);
            }
            return;
        }
        self.note(&sentence(row, metric::name(self.objective)));
        self.bar.set_message(format!("mean {:.3}  worst {:.3}", row.mean_accuracy, row.worst_accuracy));
    }

    /// Shows which comparison is trained.
    fn compares(&self, with: Unaided) {
        let what = match with {
            Unaided::Peer { node, peers } => format!("peer {node} of {peers} alone"),
            Unaided::AllData => "all data in one place".to_owned(),
        };
        self.bar.set_message(format!("for comparison: {what}"));
        self.bar.tick();
    }

    /// Prints a line that stays.
    pub(crate) fn note(&self, line: &str) {
        if self.json {
            return;
        }
        self.bar.suspend(|| remark!("{line}"));
    }

    /// Removes the moving line.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Watcher for Progress {
    fn see(&self, event: &DemoEvent<'_>) {
        match *event {
            DemoEvent::Joined { after } => self.all_joined(after),
            DemoEvent::Round(round) => self.round(round),
            DemoEvent::Row(row) => self.row(row),
            DemoEvent::Killed { node, round } => {
                self.note(&format!("round {round:>4}   peer {node} killed (SIGKILL)"));
            }
            DemoEvent::StartedAgain { node, round, weight_units } => {
                let weight = units::weight(weight_units);
                self.note(&format!(
                    "round {round:>4}   peer {node} started again, with weight {weight:.6} from its disk"
                ));
            }
            DemoEvent::Warned { node, message } => self.note(&format!("warning  peer {node}: {message}")),
            DemoEvent::Late { node, message } => self.note(&format!("peer {node}: {message}")),
            DemoEvent::Trains(with) => self.compares(with),
            DemoEvent::Stops => self.clear(),
        }
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

/// A row for people. If the sum of weights is not whole, parcels are in flight, or the share of a dead peer is missing.
fn sentence(row: &SwarmRow, metric: &str) -> String {
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
