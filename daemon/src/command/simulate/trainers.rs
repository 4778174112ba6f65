//! `mingle simulate --trainer COMMAND`: the nodes of a simulated swarm train in other programs, one for each node.
//!
//! Every node has a temporary home, where the trainer protocol is served as by a peer, and the command is started with
//! that home. The programs cannot tell the difference, and all train a round at the same time.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use futures::future::{join_all, select_all, try_join_all};
use mingle_builtin::errors;
use mingle_lab::simulation::{
    self, Conditions, NodeTraining, NodeWork, Rounds, SimulationError, SwarmMeans, disagreement,
};
use mingle_peer::error::Context;
use mingle_peer::events::{Event, EventSink};
use mingle_peer::status::{PeerState, StatusBoard};
use mingle_peer::training::{Budget, LocalTraining, MomentumStep, Patience};
use mingle_peer::{Error, ErrorKind, Result, plan};
use mingle_planner::Plan;
use mingle_trainer::{Desertion, SimulatedNode, attached_trainings};
use serde_json::{Value, json};

use crate::cli::SimulateArgs;
use crate::signals::StopSignals;
use crate::{event_loop, out};

/// The wait for a script after which it is named, and again after twice that.
const LONG_WAIT: Duration = Duration::from_secs(10);

/// A simulation whose nodes train in other programs.
#[derive(Clone)]
struct Simulation {
    plan: Arc<Plan>,
    conditions: Conditions,
    rounds: u64,
    evaluate_every: u64,
    json: bool,
    began: Instant,
    /// Set when no answer of a trainer is waited for any more.
    is_stopped: Arc<AtomicBool>,
}

/// Starts the command for each node, and trains to the last round.
pub(super) fn execute(arguments: &SimulateArgs, command: &str, json: bool) -> Result {
    if command.trim().is_empty() {
        return Err(Error::new(ErrorKind::BadInput, "--trainer has no command")
            .hint("--trainer 'python train.py' starts one for each node"));
    }
    let rounds = super::rounds(arguments)?;
    let plan = super::plan_of(arguments)?;
    let momentum = plan::momentum(arguments.momentum_across_rounds, &plan)?;
    let conditions =
        Conditions { momentum, rounds: Some(rounds), ends_with_mean: true, ..super::conditions(arguments)? };
    let simulation = Simulation {
        plan: Arc::new(plan),
        conditions,
        rounds,
        evaluate_every: arguments.evaluate_every,
        json,
        began: Instant::now(),
        is_stopped: Arc::default(),
    };
    let homes = tempfile::Builder::new().prefix("mingle-").tempdir();
    let homes = homes.context(ErrorKind::BadInput, "cannot create homes for the nodes")?;
    event_loop::run(async {
        let mut signals = StopSignals::listen(false)?;
        let count = simulation.plan.node_count();
        let opened = (0..count).map(|node| SimulatedNode::open(homes.path(), node, rounds, printing(node)));
        let nodes = try_join_all(opened).await?;
        nodes.iter().for_each(|node| node.launch(command, count));
        let trained = simulation.run(&nodes, &mut signals).await;
        simulation.end(nodes, trained, &mut signals).await
    })
}

impl Simulation {
    /// Trains with the programs until the rounds are over, one has ended, or the user stops. Returns all final models.
    async fn run(&self, nodes: &[SimulatedNode], signals: &mut StopSignals) -> Result<Vec<Arc<[f32]>>> {
        let trainings = tokio::select! {
            attached = attached_trainings(nodes) => attached?,
            reason = signals.next() => return Err(stopped(reason)),
            never = remark_who_is_late(nodes) => match never {},
        };
        let simulation = self.clone();
        let boards = nodes.iter().map(SimulatedNode::board).collect();
        let desertions = nodes.iter().map(SimulatedNode::desertion).collect();
        let trainers = Trainers { trainings, boards, desertions, is_stopped: Arc::clone(&self.is_stopped) };
        let mut work = tokio::task::spawn_blocking(move || simulation.train(trainers));
        let deserted = select_all(nodes.iter().map(SimulatedNode::deserted));
        let cause = tokio::select! {
            // A program that is gone says more than the training that fails without it.
            biased;
            (gone, ..) = deserted => gone,
            reason = signals.next() => stopped(reason),
            trained = &mut work => {
                let (models, report) = trained.context(ErrorKind::Unexpected, "the simulation has stopped")??;
                out::line(report);
                return Ok(models);
            }
        };
        self.is_stopped.store(true, Ordering::Relaxed);
        // It ends with an error that the cause explains.
        let _ = work.await;
        Err(cause)
    }

    /// Trains to the last round, and prints every evaluation. Returns all final models, and the report.
    fn train(&self, mut trainers: Trainers) -> Result<(Vec<Arc<[f32]>>, String)> {
        let initial = trainers.trainings[0].initial();
        let initial = initial.map_err(|error| Error::new(ErrorKind::Training, format!("node 0: {error:#}")))?;
        let mut swarm = simulation::found(&self.plan, &initial, self.conditions).map_err(errors::simulation_error)?;
        let mut round = 0;
        loop {
            round = (round + self.evaluate_every).min(self.rounds);
            swarm.advance(round, &mut trainers).map_err(errors::simulation_error)?;
            let models = swarm.models();
            let measured = trainers.evaluate(&models).map_err(errors::simulation_error)?;
            self.print(&mut *swarm, round, &measured, &models);
            if round == self.rounds {
                let report = self.report(&mut *swarm, &measured, &models)?;
                return Ok((models, report));
            }
        }
    }

    /// Prints an evaluation.
    fn print(&self, swarm: &mut dyn Rounds, round: u64, measured: &SwarmMeans, models: &[Arc<[f32]>]) {
        let (tally, apart) = (swarm.tally(), finite_disagreement(models));
        if !self.json {
            let apart = apart.map_or_else(|| "none".to_owned(), |apart| format!("{apart:.1e}"));
            let values = in_columns(measured);
            return out::line(format!("round {round:>5}   slots {:>7}{values}   disagreement {apart}", tally.slots));
        }
        let mut progress = json!({
            "schema": "mingle.simulation-progress/1",
            "round": round,
            "slots": tally.slots,
            "link_bytes": tally.link_bytes,
            "disagreement": apart,
        });
        extend(&mut progress, measured);
        out::line(progress);
    }

    /// The report after the last round: a sentence, or an object of JSON.
    fn report(&self, swarm: &mut dyn Rounds, measured: &SwarmMeans, models: &[Arc<[f32]>]) -> Result<String> {
        let tally = swarm.tally();
        let round = self.rounds;
        let parameters = models.first().map_or(0, |model| model.len());
        let chosen = super::codec(&self.plan, self.conditions, parameters)?;
        if !self.json {
            return Ok(format!(
                "{round} rounds of {} nodes, {parameters} parameters, {}: {} slots, {:.1} MB on links",
                models.len(),
                chosen.codec,
                tally.slots,
                mingle_peer::units::megabytes(tally.link_bytes)
            ));
        }
        let mut report = json!({
            "schema": "mingle.simulation/1",
            "plan": self.plan.hash().to_string(),
            "method": self.plan.method(),
            "nodes": models.len(),
            "parameters": parameters,
            "codec": chosen.codec,
            "codec_reason": chosen.reason(),
            "momentum_across_rounds": self.conditions.momentum,
            "stop": "rounds",
            "round": round,
            "slots": tally.slots,
            "link_bytes": tally.link_bytes,
            "disagreement": finite_disagreement(models),
            "parcels": tally.parcels,
            "lost_parcels": tally.lost_parcels,
            "weight": tally.weight,
            "seconds": self.began.elapsed().as_secs_f64(),
        });
        extend(&mut report, measured);
        Ok(report.to_string())
    }

    /// Ends the run of every program: with its final model, or with the error. An interrupt ends the programs at once.
    async fn end(
        &self,
        nodes: Vec<SimulatedNode>,
        trained: Result<Vec<Arc<[f32]>>>,
        signals: &mut StopSignals,
    ) -> Result {
        let ends: Vec<_> = match &trained {
            Ok(models) => nodes.iter().zip(models).map(|(node, model)| node.end(model, self.rounds)).collect(),
            Err(error) => nodes.iter().map(|node| node.break_off(error)).collect(),
        };
        let mut ended = join_all(ends);
        tokio::select! {
            _ = &mut ended => {}
            _ = signals.next() => {
                nodes.iter().for_each(SimulatedNode::hurry);
                ended.await;
            }
        }
        join_all(nodes.into_iter().map(SimulatedNode::close)).await;
        trained.map(drop)
    }
}

/// The trainings of all nodes.
struct Trainers {
    trainings: Vec<Box<dyn LocalTraining>>,
    boards: Vec<StatusBoard>,
    desertions: Vec<Desertion>,
    is_stopped: Arc<AtomicBool>,
}

impl Trainers {
    /// The means of the metrics of all nodes' models, each evaluated by the program of its node.
    fn evaluate(&mut self, models: &[Arc<[f32]>]) -> Result<SwarmMeans, SimulationError> {
        let patience = Patience::unless(Arc::clone(&self.is_stopped));
        let work = self.trainings.iter_mut().zip(models).enumerate().collect();
        let judged = at_once(work, |node, (training, model)| {
            let evaluated = training.evaluate(model, &patience).map_err(|error| failed(node, &error))?;
            Ok(evaluated.metrics.iter().map(|(name, value)| (name.to_owned(), value)).collect::<BTreeMap<_, _>>())
        })?;
        Ok(SwarmMeans::of_metrics(&judged))
    }
}

impl NodeTraining for Trainers {
    fn train(&mut self, jobs: &[NodeWork]) -> Result<Vec<Vec<f32>>, SimulationError> {
        let patience = Patience::unless(Arc::clone(&self.is_stopped));
        let mut wanted = jobs.iter().peekable();
        let mut work = Vec::with_capacity(jobs.len());
        for (node, training) in self.trainings.iter_mut().enumerate() {
            if let Some(job) = wanted.next_if(|job| job.node == node) {
                self.boards[node].update(|status| (status.state, status.round) = (PeerState::Training, job.round));
                work.push((node, (training, job, &self.desertions[node])));
            }
        }
        at_once(work, |_, (training, job, is_deserted)| train(&mut **training, job, &patience, is_deserted))
    }

    fn threads(&self) -> usize {
        1
    }
}

/// Trains a round with the program of a node, however long it takes: virtual time does not pass.
fn train(
    training: &mut dyn LocalTraining,
    job: &NodeWork,
    patience: &Patience,
    is_deserted: &Desertion,
) -> Result<Vec<f32>, SimulationError> {
    let budget = Budget {
        round: job.round,
        local_steps: job.steps,
        rounds_left: job.rounds_left,
        last_factor: job.last_factor,
        // The simulated swarm adds it.
        momentum: MomentumStep::default(),
        patience: patience.clone(),
    };
    loop {
        let trained = training.train(&job.from, &budget).map_err(|error| failed(job.node, &error))?;
        if patience.is_stopped() {
            return Err(failed(job.node, &"it is not waited for any more"));
        }
        if trained.steps == 0 && is_deserted() {
            return Err(failed(job.node, &"its trainer has ended before the last round"));
        }
        if trained.steps > 0 || !training.is_absent() {
            return Ok(trained.change);
        }
    }
}

/// Does the work of all nodes at the same time, as their programs are processes of their own; results are in order.
fn at_once<T: Send, R: Send>(
    items: Vec<(usize, T)>,
    work: impl Fn(usize, T) -> Result<R, SimulationError> + Sync,
) -> Result<Vec<R>, SimulationError> {
    let work = &work;
    let (done, ended) = mpsc::channel();
    let nodes = items.iter().map(|(node, _)| *node).collect();
    std::thread::scope(|scope| {
        let start = |(node, item)| {
            let done = done.clone();
            scope.spawn(move || {
                let result = work(node, item);
                // The receiver waits for all.
                let _ = done.send(node);
                result
            })
        };
        let running: Vec<_> = items.into_iter().map(start).collect();
        // A thread that panics says nothing, and its sender is gone.
        drop(done);
        wait_for_all(nodes, &ended);
        let joined = running.into_iter().map(|thread| thread.join().map_err(|_| SimulationError::Thread)?);
        joined.collect()
    })
}

/// Waits until all nodes are done, and says which are late.
fn wait_for_all(mut late: BTreeSet<usize>, ended: &Receiver<usize>) {
    let mut patience = LONG_WAIT;
    while !late.is_empty() {
        match ended.recv_timeout(patience) {
            Ok(node) => drop(late.remove(&node)),
            Err(RecvTimeoutError::Timeout) => {
                out::remark(format_args!("waiting for an answer of {}", scripts_of(&late)));
                patience *= 2;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Says which scripts have not attached, for as long as it is polled.
async fn remark_who_is_late(nodes: &[SimulatedNode]) -> Infallible {
    let mut patience = LONG_WAIT;
    loop {
        tokio::time::sleep(patience).await;
        let late =
            nodes.iter().enumerate().filter(|(_, node)| !node.has_attached()).map(|(number, _)| number).collect();
        out::remark(format_args!("waiting for {} to attach", scripts_of(&late)));
        patience *= 2;
    }
}

/// Words such as `the scripts of nodes 1, 3`.
fn scripts_of(nodes: &BTreeSet<usize>) -> String {
    let numbers: Vec<String> = nodes.iter().map(usize::to_string).collect();
    match &numbers[..] {
        [number] => format!("the script of node {number}"),
        _ => format!("the scripts of nodes {}", numbers.join(", ")),
    }
}

fn failed(node: usize, error: &dyn std::fmt::Display) -> SimulationError {
    SimulationError::Elsewhere { reason: format!("node {node}: {error:#}") }
}

fn stopped(reason: &str) -> Error {
    Error::new(ErrorKind::Forced, format!("the simulation was stopped: {reason}"))
}

/// The disagreement of models; none where it is not finite.
fn finite_disagreement(models: &[Arc<[f32]>]) -> Option<f64> {
    Some(disagreement(models)).filter(|apart| apart.is_finite())
}

/// Adds the means to an object.
fn extend(object: &mut Value, measured: &SwarmMeans) {
    for (name, value) in measured.iter() {
        object[name] = value.into();
    }
}

/// The means in columns, such as `   mean_accuracy 0.913`.
fn in_columns(measured: &SwarmMeans) -> String {
    let column = |(name, value): (&str, Option<f64>)| format!("   {name} {:.4}", value.unwrap_or(f64::NAN));
    measured.iter().map(column).collect()
}

/// A sink that prints the lines of a node's program, and warnings about it.
fn printing(node: usize) -> EventSink {
    Box::new(move |event, _| match event {
        Event::TrainerSaid { line } => out::remark(format_args!("node {node}: {line}")),
        Event::Warning { message } => out::remark(format_args!("node {node}: warning: {message}")),
        _ => {}
    })
}
