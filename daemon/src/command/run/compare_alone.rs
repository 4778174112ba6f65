//! `--compare-alone`: what this peer's data would have come to without the others, beside what the swarm came to.
//!
//! Once the run is over, the peer trains the same model once more, on its own samples alone, and judges both models on its held-out
//! samples. That happens when the network is closed: nobody waits for it.

use std::sync::{Arc, OnceLock};

use mingle_models::{Checkpoint, Evaluator};
use mingle_peer::error::Context;
use mingle_peer::results::{Alone, Summary};
use mingle_peer::training::{Direction, Metrics};
use mingle_peer::{Error, ErrorKind, Home, Result, plan};
use tokio::sync::{oneshot, watch};

use super::data_task::overwrite;
use crate::alone::train_alone;
use crate::cli::{RunArgs, TrainingArgs};
use crate::out;
use crate::task::{self, LocalTask, Parts};
use crate::task_file::TaskFile;

/// The node that a peer trained as, and of how many; known once training has begun.
pub(super) type TrainedAs = Arc<OnceLock<(usize, usize)>>;

/// A comparison that is wanted.
pub(super) struct Comparison {
    home: Home,
    training: TrainingArgs,
    trained_as: TrainedAs,
}

/// Both models on the same samples.
struct Compared {
    swarm: Metrics,
    alone: Alone,
}

impl Comparison {
    /// The comparison of a run with these arguments, if it is wanted.
    pub(super) fn of(arguments: &RunArgs, home: &Home, trained_as: TrainedAs) -> Option<Self> {
        let is_wanted = arguments.compares_alone() && !arguments.leaves;
        is_wanted.then(|| Self { home: home.clone(), training: arguments.training.clone(), trained_as })
    }

    /// Trains alone, prints both and adds them to the summary in the home; gives up when somebody asks the process to stop.
    pub(super) async fn execute(self, mut summary: Summary, asked: &mut watch::Receiver<u32>, json: bool) -> Result {
        let home = self.home.clone();
        let was_stopped = summary.rounds < summary.rounds_wanted || *asked.borrow() > 0;
        if was_stopped {
            out::remark("comparison this peer was stopped, and is not compared with itself alone");
            return Ok(());
        }
        out::remark(format_args!("comparison trains {} rounds on this peer's own data, alone", summary.rounds));
        let rounds = summary.rounds;
        let (sender, receiver) = oneshot::channel();
        // A thread that ends with the process, if nobody waits for it any more.
        std::thread::spawn(move || sender.send(self.compare(rounds)));
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
        compared.print(json);
        summary.alone = Some(compared.alone);
        summary.write(&home)
    }

    fn compare(self, rounds: u64) -> Result<Compared> {
        let missing = |what: &str| Error::new(ErrorKind::Unexpected, format!("there is no {what} to compare by"));
        let card = TaskFile::last(&self.home)?.ok_or_else(|| missing("task in the home"))?;
        let &(node, nodes) = self.trained_as.get().ok_or_else(|| missing("training"))?;
        let mut training = self.training;
        overwrite(&mut training, &card);
        training.rounds = rounds;
        let data = format!("--data {}", training.data);
        let raw = task::read(&training.data)?;
        let mut parts = Parts::held_to(raw, &card.data, card.seed).context(ErrorKind::BadInput, data)?;
        if let Some(split) = &training.split {
            parts.deal(split, nodes, training.seed)?;
        }
        let local_steps = plan::read(&self.home.plan())?.local_steps();
        let LocalTask { task, device, train, test } =
            LocalTask::new(&training, &parts, node, task::open_device(&training.device)?)?;
        drop(parts);
        let options = task::trainer_options(&training, task, &device, node)?;
        let alone = train_alone(&training, options, train, local_steps)?;
        let evaluator = Evaluator::new(task, &device);
        let judge = |parameters: &[f32]| -> Result<Metrics> {
            let judged = evaluator.evaluate(parameters, &test).context(ErrorKind::Training, "cannot compare")?;
            Ok(judged.metrics().into_iter().collect())
        };
        // Of the file: it has the personal layers too.
        let swarm = Checkpoint::load(&self.home.model(), &task).context(ErrorKind::BadInput, "cannot compare")?;
        let (swarm, metrics) = (judge(&swarm.parameters)?, judge(&alone)?);
        Ok(Compared { swarm, alone: Alone { rounds, local_steps, held_out_samples: test.len(), metrics } })
    }
}

impl Compared {
    fn print(&self, json: bool) {
        let Self { swarm, alone } = self;
        if json {
            out::line(serde_json::json!({ "schema": "mingle.comparison/1", "swarm": swarm, "alone": alone }));
        } else {
            out::line(self.table());
        }
    }

    fn table(&self) -> String {
        let Self { swarm, alone } = self;
        let head = format!("on {} held-out samples", alone.held_out_samples);
        let mut lines = vec![format!("{head:<28}{:>12}{:>12}", "this peer", "the swarm")];
        for (name, by_swarm) in swarm.iter() {
            let Some(by_itself) = alone.metrics.get(name) else { continue };
            let judgement = match Direction::of(name) {
                Some(direction) if direction.is_better(by_swarm, by_itself) => "   better",
                Some(direction) if direction.is_better(by_itself, by_swarm) => "   worse",
                _ => "",
            };
            lines.push(format!("{name:<28}{by_itself:>12.4}{by_swarm:>12.4}{judgement}"));
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_of_a_loss_and_more_of_an_accuracy_are_better_and_of_a_name_without_direction_nothing_is_said() {
        let metrics =
            |values: [f64; 4]| -> Metrics { ["accuracy", "kappa", "loss", "rmse"].into_iter().zip(values).collect() };
        let alone = Alone { rounds: 3, local_steps: 2, held_out_samples: 77, metrics: metrics([0.5, 1.0, 0.75, 2.0]) };
        let table = Compared { swarm: metrics([0.75, 2.0, 0.5, 2.5]), alone }.table();
        let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["on", "77", "held-out", "samples", "this", "peer", "the", "swarm"]);
        assert_eq!(lines[1], ["accuracy", "0.5000", "0.7500", "better"]);
        assert_eq!(lines[2], ["kappa", "1.0000", "2.0000"]);
        assert_eq!(lines[3], ["loss", "0.7500", "0.5000", "better"]);
        assert_eq!(lines[4], ["rmse", "2.0000", "2.5000", "worse"]);
    }
}
