//! `mingle solve --trainer COMMAND`: the members of a training over sums train in other programs, one for each node.

use std::sync::Arc;

use futures::future::select_all;
use mingle_federated_training::{ModelDescription, SharedTraining, TrainingsOfNodes};
use mingle_lab::solving::Conditions;
use mingle_peer::error::Context;
use mingle_peer::training::{FederatedSettings, LocalTraining};
use mingle_peer::{Error, ErrorKind, Result, plan};
use mingle_planner::Plan;
use mingle_trainer::ScriptNodes;

use super::solve_rounds;
use crate::cli::SolveArgs;
use crate::signals::StopSignals;
use crate::{event_loop, out, rounds};

/// A training over sums whose nodes train in other programs.
struct ScriptsOverSums<'a> {
    arguments: &'a SolveArgs,
    settings: FederatedSettings,
    plan: Arc<Plan>,
    conditions: Conditions,
    json: bool,
}

/// Starts the command for each node, and trains to the last round.
pub(super) fn learn(arguments: &SolveArgs, command: &str, conditions: Conditions, json: bool) -> Result {
    let settings = mingle_problems::read_for_trainer(&arguments.problem).map_err(rounds::explain)?;
    let plan = Arc::new(plan::read(&arguments.plan)?);
    let work = ScriptsOverSums { arguments, settings, plan, conditions, json };
    event_loop::run(async {
        let mut signals = StopSignals::listen(false)?;
        let nodes =
            ScriptNodes::start(command, work.plan.node_count(), work.settings.rounds, |text| out::remark(text)).await?;
        let trained = work.run(&nodes, &mut signals).await;
        nodes.end(trained, signals.next()).await
    })
}

impl ScriptsOverSums<'_> {
    /// Trains with the programs until the rounds are over, one has ended, or the user stops. Returns all final models.
    async fn run(&self, nodes: &ScriptNodes, signals: &mut StopSignals) -> Result<Vec<Arc<[f32]>>> {
        let trainings = nodes.attach(signals.next()).await?;
        let model = describe(&trainings);
        let mut shared = Vec::new();
        let mut failures = Vec::new();
        let mut ends = Vec::new();
        for training in trainings {
            let (training, failed, end) = SharedTraining::new(training);
            shared.push(training);
            failures.push(failed);
            ends.push(end);
        }
        let (first, others) =
            shared.split_first().ok_or_else(|| Error::new(ErrorKind::BadInput, "the plan has no node"))?;
        let task = Arc::new(TrainingsOfNodes::new(&self.settings, &model, first, others)?);
        let arguments = self.arguments.clone();
        let plan = Arc::clone(&self.plan);
        let Self { conditions, json, .. } = *self;
        let mut work =
            tokio::task::spawn_blocking(move || solve_rounds::learn(&arguments, task, &plan, conditions, json));
        let failed = select_all(failures.iter_mut().map(|failed| Box::pin(failed.recv())));
        let cause = tokio::select! {
            // A program that is gone says more than the training that fails without it.
            biased;
            cause = nodes.broken_off(signals.next()) => cause,
            (failure, node, _) = failed => of_node(node, failure),
            learned = &mut work => {
                learned.context(ErrorKind::Unexpected, "the simulation has stopped")??;
                let lost = || Error::new(ErrorKind::Unexpected, "the training has ended without a model");
                return shared.iter().map(|training| training.last().ok_or_else(lost)).collect();
            }
        };
        // Trainings that wait for an answer end with this, and the work with them.
        drop(ends);
        let _ = work.await;
        Err(cause)
    }
}

/// The model of the scripts, which all have alike.
fn describe(trainings: &[Box<dyn LocalTraining>]) -> ModelDescription {
    let layout = trainings.first().map(|training| training.layout());
    // A layout always has an encoding.
    let encoded = serde_json::to_vec(&layout).unwrap_or_default();
    let parameters = layout.map_or(0, |layout| layout.dimension());
    ModelDescription {
        hash: *blake3::hash(&encoded).as_bytes(),
        text: format!("the scripts' model, {parameters} parameters"),
    }
}

/// The failure of a node's training.
fn of_node(node: usize, failure: Option<Error>) -> Error {
    let failure = failure.map_or_else(|| "its training has ended".to_owned(), |failure| format!("{failure:#}"));
    Error::new(ErrorKind::Training, format!("node {node}: {failure}"))
}
