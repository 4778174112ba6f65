//! `--compare-alone`: compares the swarm's model with one trained on this peer's data alone.
//!
//! After the run, the peer trains the same model again on its own samples alone, and evaluates both models on its
//! held-out samples. By then the network is closed, so no other peer waits for it.

use std::path::PathBuf;

use mingle_builtin::compare_alone::{Compared, TrainedAs, compare_alone};
use mingle_builtin::options::TrainingOptions;
use mingle_peer::error::Context;
use mingle_peer::results::Summary;
use mingle_peer::training::MetricDirection;
use mingle_peer::{ErrorKind, Home, Result};
use tokio::sync::{oneshot, watch};

use crate::cli::RunArgs;
use crate::out;

/// A requested comparison.
pub(super) struct RequestedComparison {
    home: Home,
    training: TrainingOptions,
    trained_as: TrainedAs,
    begin_with: Option<PathBuf>,
}

impl RequestedComparison {
    /// The comparison of a run with these arguments, if requested.
    pub(super) fn of(arguments: &RunArgs, home: &Home, trained_as: TrainedAs) -> Option<Self> {
        let is_wanted = arguments.compares_alone() && !arguments.leaves;
        let begin_with = arguments.begin_with.clone();
        is_wanted.then(|| Self {
            home: home.clone(),
            training: arguments.training.clone().into(),
            trained_as,
            begin_with,
        })
    }

    /// Trains alone, prints both results and adds them to the summary in the home; gives up when the process is asked
    /// to stop.
    pub(super) async fn execute(self, mut summary: Summary, asked: &mut watch::Receiver<u32>, json: bool) -> Result {
        let Self { home, training, trained_as, begin_with } = self;
        let was_stopped = summary.rounds < summary.rounds_wanted || *asked.borrow() > 0;
        if was_stopped {
            out::remark("comparison this peer was stopped, and is not compared with itself alone");
            return Ok(());
        }
        out::remark(format_args!("comparison trains {} rounds on this peer's own data, alone", summary.rounds));
        let rounds = summary.rounds;
        let (sender, receiver) = oneshot::channel();
        // The thread ends with the process if its result is no longer awaited.
        let of = home.clone();
        std::thread::spawn(move || {
            sender.send(compare_alone(&of, training, &trained_as, rounds, begin_with.as_deref()))
        });
        let compared = tokio::select! {
            compared = receiver => compared.context(ErrorKind::Training, "the comparison broke off")??,
            _ = asked.changed() => {
                out::remark("comparison given up: this process is to stop");
                return Ok(());
            }
        };
        if let Some(metric) = compared.alone.metrics.first_not_finite() {
            out::remark(format_args!("comparison alone, the training diverges: {metric} is no finite number"));
            return Ok(());
        }
        print(&compared, json);
        summary.alone = Some(compared.alone);
        summary.write(&home)
    }
}

fn print(compared: &Compared, json: bool) {
    let Compared { swarm, alone } = compared;
    if json {
        out::line(serde_json::json!({ "schema": "mingle.comparison/1", "swarm": swarm, "alone": alone }));
    } else {
        out::line(table(compared));
    }
}

fn table(compared: &Compared) -> String {
    let Compared { swarm, alone } = compared;
    let head = format!("on {} held-out samples", alone.held_out_samples);
    let mut lines = vec![format!("{head:<28}{:>12}{:>12}", "this peer", "the swarm")];
    for (name, by_swarm) in swarm.iter() {
        let Some(by_itself) = alone.metrics.get(name) else { continue };
        let judgement = match MetricDirection::of(name) {
            Some(direction) if direction.is_better(by_swarm, by_itself) => "   better",
            Some(direction) if direction.is_better(by_itself, by_swarm) => "   worse",
            _ => "",
        };
        lines.push(format!("{name:<28}{by_itself:>12.4}{by_swarm:>12.4}{judgement}"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use mingle_peer::results::LocalBaseline;
    use mingle_peer::training::Metrics;

    #[test]
    fn less_of_a_loss_and_more_of_an_accuracy_are_better_and_of_a_name_without_direction_nothing_is_said() {
        let metrics =
            |values: [f64; 4]| -> Metrics { ["accuracy", "kappa", "loss", "rmse"].into_iter().zip(values).collect() };
        let alone =
            LocalBaseline { rounds: 3, local_steps: 2, held_out_samples: 77, metrics: metrics([0.5, 1.0, 0.75, 2.0]) };
        let table = table(&Compared { swarm: metrics([0.75, 2.0, 0.5, 2.5]), alone });
        let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["on", "77", "held-out", "samples", "this", "peer", "the", "swarm"]);
        assert_eq!(lines[1], ["accuracy", "0.5000", "0.7500", "better"]);
        assert_eq!(lines[2], ["kappa", "1.0000", "2.0000"]);
        assert_eq!(lines[3], ["loss", "0.7500", "0.5000", "better"]);
        assert_eq!(lines[4], ["rmse", "2.0000", "2.5000", "worse"]);
    }
}
