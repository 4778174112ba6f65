//! `mingle simulate --trainer COMMAND`: the nodes of a simulated swarm train in other programs, one for each node.
//!
//! Every node has a temporary home, where the trainer protocol is served as by a peer, and the command is started with
//! that home. The programs cannot tell the difference, and all train a round at the same time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Instant;

use mingle_builtin::errors;
use mingle_lab::simulation::{
    self, BETWEEN_EVALUATIONS, Conditions, NodeTraining, NodeWork, Rounds, SimulationError, SwarmMeans, disagreement,
};
use mingle_peer::error::Context;
use mingle_peer::status::{PeerState, StatusBoard};
use mingle_peer::training::{Budget, LocalTraining, MomentumStep, Patience};
use mingle_peer::{Error, ErrorKind, Result, plan};
use mingle_planner::Plan;
use mingle_trainer::{Desertion, LONG_WAIT, ScriptNodes, scripts_of};
use serde_json::{Value, json};

use crate::cli::SimulateArgs;
use crate::signals::StopSignals;
use crate::{event_loop, out};

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
    let rounds = super::rounds(arguments)?;
    let plan = super::plan_of(arguments)?;
    let momentum = plan::momentum(arguments.communication.momentum_across_rounds, &plan)?;
    let conditions =
        Conditions { momentum, rounds: Some(rounds), ends_with_mean: true, ..super::conditions(arguments)? };
    let simulation = Simulation {
        plan: Arc::new(plan),
        conditions,
        rounds,
        evaluate_every: arguments.evaluate_every.unwrap_or(BETWEEN_EVALUATIONS),
        json,
        began: Instant::now(),
        is_stopped: Arc::default(),
    };
    event_loop::run(async {
        let mut signals = StopSignals::listen(false)?;
        let nodes = ScriptNodes::start(command, simulation.plan.node_count(), rounds, |text| out::remark(text)).await?;
        let trained = simulation.run(&nodes, &mut signals).await;
        nodes.end(trained, signals.next()).await
    })
}

impl Simulation {
    /// Trains with the programs until the rounds are over, one has ended, or the user stops. Returns all final models.
    async fn run(&self, nodes: &ScriptNodes, signals: &mut StopSignals) -> Result<Vec<Arc<[f32]>>> {
        let trainings = nodes.attach(signals.next()).await?;
        let simulation = self.clone();
        let is_stopped = Arc::clone(&self.is_stopped);
        let trainers = Trainers { trainings, boards: nodes.boards(), desertions: nodes.desertions(), is_stopped };
        let mut work = tokio::task::spawn_blocking(move || simulation.train(trainers));
        let cause = tokio::select! {
            // A program that is gone says more than the training that fails without it.
            biased;
            cause = nodes.broken_off(signals.next()) => cause,
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
        noise: None,
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

fn failed(node: usize, error: &dyn std::fmt::Display) -> SimulationError {
    SimulationError::Elsewhere { reason: format!("node {node}: {error:#}") }
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
