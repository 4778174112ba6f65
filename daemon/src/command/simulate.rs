//! `mingle simulate`: trains a swarm in this process by a plan, and reports the use of its slots.

mod stdio;
mod trainers;

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use mingle_builtin::errors;
use mingle_builtin::learners::learners;
use mingle_builtin::options::parse_policy;
use mingle_lab::simulation::{
    self, Attack, BETWEEN_EVALUATIONS, Conditions, Goal, Learners, MetricTarget, Received, Stop, SwarmProgress,
    recent_score,
};
use mingle_models::{Decay, SampleShape, Split, Task, Tokens};
use mingle_peer::error::Context;
use mingle_peer::{Error, ErrorKind, Result, encodings, medium, plan, units};
use mingle_planner::{DesignOptions, ExtraEdges, Method, Plan};
use mingle_protocol::{ChosenCodec, Codec, CodecChoice, Robust};
use serde::Serialize;

use super::{design_request, plan_make::parse_extra_edges, threads_or_all};
use crate::cli::{LastRounds, SimulateArgs, Switch};
use crate::{limits, out, topology};

/// Rounds without any stopping condition.
const USUAL_ROUNDS: u64 = 200;
/// Most rounds with another stopping condition.
const MOST_ROUNDS: u64 = 10_000_000;

/// The result of a simulation.
#[derive(Debug, Serialize)]
struct Report<'a> {
    schema: &'static str,
    plan: String,
    method: &'a str,
    nodes: usize,
    parameters: usize,
    codec: Codec,
    #[serde(skip_serializing_if = "Option::is_none")]
    codec_reason: Option<String>,
    momentum_across_rounds: f64,
    stop: Stop,
    #[serde(flatten)]
    end: &'a SwarmProgress,
    /// The time that these slots take on a shared channel of `--air-rate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds_on_air: Option<f64>,
    parcels: u64,
    lost_parcels: u64,
    /// Sum of the weights of all nodes.
    weight: f64,
    robust: Robust,
    #[serde(skip_serializing_if = "Option::is_none")]
    attack: Option<String>,
    attackers: usize,
    /// Parcels that honest nodes received, and clipped.
    received: Received,
    seconds: f64,
    /// Seconds spent in training and evaluation.
    training_seconds: f64,
}

/// Simulates with the training that the arguments name.
pub(super) fn execute(arguments: &SimulateArgs, json: bool) -> Result {
    match (arguments.train_elsewhere, &arguments.trainer) {
        (Some(parameters), _) => stdio::execute(arguments, parameters),
        (None, Some(command)) => trainers::execute(arguments, command, json),
        (None, None) => train(arguments, json),
    }
}

/// Trains until the goal is reached; prints every evaluation.
fn train(arguments: &SimulateArgs, json: bool) -> Result {
    let began = Instant::now();
    let mut conditions = conditions(arguments)?;
    let rounds = rounds(arguments)?;
    let plan = plan_of(arguments)?;
    conditions.momentum = plan::momentum(arguments.communication.momentum_across_rounds, &plan)?;
    conditions.rounds = Some(rounds).filter(|rounds| arguments.last_rounds == LastRounds::Mix && *rounds < MOST_ROUNDS);
    let threads = threads_or_all(arguments.threads).get();
    let test_samples = arguments.test_samples.map(std::num::NonZero::get);
    let remark = |remark: &String| out::remark(format_args!("note: {remark}"));
    let mut learners = learners(&arguments.training(rounds), plan.node_count(), test_samples, threads, remark)?;
    let initial = learners.initial();
    let mut swarm = simulation::found(&plan, &initial, conditions).map_err(errors::simulation_error)?;
    let tokens = tokens(&learners);
    let evaluate_every =
        arguments.evaluate_every.unwrap_or_else(|| learners.rounds_between_evaluations(plan.local_steps()));
    let goal = Goal { evaluate_every, ..goal(arguments, rounds, learners.task())? };
    let chosen = codec(&plan, conditions, initial.len())?;
    let on_air = |rate| medium::air_forecast(&plan, rate, CodecChoice::Fixed(chosen.codec), initial.len());
    let air = arguments.air_rate.map(on_air).transpose()?;
    if !json {
        introduce(&plan, &learners, conditions)?;
    }
    let (curve, stop) = goal
        .pursue(&mut *swarm, &mut learners, |progress| tell(progress, tokens, json))
        .map_err(errors::simulation_error)?;
    let (tally, learnt) = (swarm.tally(), learners.time_spent());
    let Some(end) = curve.last() else { return Ok(()) };
    let report = Report {
        schema: "mingle.simulation/1",
        plan: plan.hash().to_string(),
        method: plan.method(),
        nodes: plan.node_count(),
        parameters: initial.len(),
        codec: chosen.codec,
        codec_reason: chosen.reason(),
        momentum_across_rounds: conditions.momentum,
        stop,
        end,
        seconds_on_air: air.map(|air| end.slots as f64 * air.seconds_per_slot),
        parcels: tally.parcels,
        lost_parcels: tally.lost_parcels,
        weight: tally.weight,
        robust: arguments.communication.robust,
        attack: arguments.attack.map(|lie| lie.to_string()),
        attackers: conditions.attack.map_or(0, |attack| attack.attackers),
        received: tally.received,
        seconds: began.elapsed().as_secs_f64(),
        training_seconds: learnt.as_secs_f64(),
    };
    if json {
        let mut object = serde_json::json!(report);
        // Mean accuracy, or r2, over the last three evaluations.
        object[format!("recent_{}", end.measured.score())] = recent_score(&curve).into();
        out::line(object);
    } else {
        conclude(&report, goal.target, tokens, (began.elapsed(), learnt));
    }
    Ok(())
}

fn conditions(arguments: &SimulateArgs) -> Result<Conditions> {
    limits::check("local-steps", arguments.mixing.local_steps.into(), 0..=limits::MOST_LOCAL_STEPS)?;
    limits::check("max-slots", arguments.max_slots.unwrap_or(1), 1..=u64::MAX)?;
    if !(0.0..1.0).contains(&arguments.loss) {
        return Err(Error::new(
            ErrorKind::BadInput,
            format!("--loss {}: give a share from 0 to below 1", arguments.loss),
        ));
    }
    if arguments.ledger == Switch::Off && arguments.wait.is_some() {
        let message = "--wait says whom a node of the ledger waits for, and there is none with --ledger off";
        return Err(Error::new(ErrorKind::BadInput, message).hint("leave one of the two away"));
    }
    Ok(Conditions {
        ledger: arguments.ledger == Switch::On,
        policy: arguments.wait.as_deref().map(parse_policy).transpose()?,
        loss: arguments.loss,
        codec: arguments.communication.codec,
        robust: arguments.communication.robust,
        overlap: arguments.communication.overlap,
        // Once the plan is known.
        momentum: 0.0,
        attack: arguments
            .attack
            .zip(arguments.attackers)
            .map(|(lie, attackers)| Attack { lie, attackers: attackers.get() }),
        seed: arguments.seed,
        rounds: None,
        ends_with_mean: false,
    })
}

/// Most rounds to run.
fn rounds(arguments: &SimulateArgs) -> Result<u64> {
    let SimulateArgs { epochs, max_slots, .. } = *arguments;
    if epochs.is_some_and(|epochs| epochs.is_nan() || epochs <= 0.0) {
        return Err(Error::new(ErrorKind::BadInput, "--epochs must be a positive number"));
    }
    let is_bounded = arguments.target()?.is_some() || epochs.is_some() || max_slots.is_some();
    if is_bounded && arguments.rounds.is_none() && matches!(arguments.optimizer.schedule, Decay::Cosine { .. }) {
        let message = "--schedule cosine falls to 0 at the last round, and only --rounds says which that is";
        return Err(Error::new(ErrorKind::BadInput, message).hint("add --rounds, or choose another --schedule"));
    }
    Ok(arguments.rounds.unwrap_or(if is_bounded { MOST_ROUNDS } else { USUAL_ROUNDS }))
}

/// The stopping conditions, with models for this task.
fn goal(arguments: &SimulateArgs, rounds: u64, task: &Task) -> Result<Goal> {
    let SimulateArgs { epochs, max_slots, .. } = *arguments;
    let doing = |target| format!("--target {target} cannot be");
    let check = |target: MetricTarget| target.check(task).context(ErrorKind::BadInput, doing(target));
    let target = arguments.target()?.map(check).transpose()?;
    Ok(Goal { target, epochs, max_slots, rounds, evaluate_every: BETWEEN_EVALUATIONS })
}

/// The plan of a file, or one that is designed here, by default with the seed of everything else.
fn plan_of(simulation: &SimulateArgs) -> Result<Plan> {
    let arguments = &simulation.mixing;
    if let Some(path) = &arguments.plan {
        return plan::read(path);
    }
    let Some(text) = &arguments.topology else {
        // clap requires one of the two.
        return Err(Error::new(ErrorKind::BadInput, "give --plan, or --topology to make one for"));
    };
    let topology = topology::read(text)?;
    let extra_edges = parse_extra_edges(&arguments.extra_edges)?;
    let method: Method =
        arguments.method.parse().context(ErrorKind::BadInput, format!("--method {}", arguments.method))?;
    let method = if method == Method::Auto && extra_edges != ExtraEdges::Auto { Method::NguyenHe } else { method };
    let options = DesignOptions {
        extra_edges,
        seed: arguments.plan_seed.unwrap_or(simulation.seed),
        medium: design_request::parse_medium(&arguments.medium)?,
        coded_share: design_request::coded_share(simulation.communication.codec),
        local_steps: arguments.local_steps,
        heterogeneity: match arguments.heterogeneity {
            Some(heterogeneity) => heterogeneity,
            None => heterogeneity_of(&simulation.split)?,
        },
        ..DesignOptions::default()
    };
    mingle_planner::design(&topology, method, &options).context(ErrorKind::BadInput, "cannot design a plan")
}

/// The heterogeneity for `auto` of data with this split.
fn heterogeneity_of(split: &str) -> Result<f64> {
    let split: Split = split.parse().context(ErrorKind::BadInput, format!("--split {split}"))?;
    Ok(simulation::heterogeneity(split))
}

fn introduce(plan: &Plan, learners: &Learners, conditions: Conditions) -> Result {
    let task = learners.task();
    out::line(format!(
        "plan     {}, {} nodes, {}  blake3:{}",
        plan.method(),
        plan.node_count(),
        rounds_of(plan),
        plan.hash().short()
    ));
    out::line(format!("task     {} for {}, {} parameters", task.model(), task.shape(), task.parameter_count()));
    if conditions.ledger {
        let schedule = plan::schedule(plan)?;
        let momentum = conditions.momentum;
        let lines = encodings::introduce(&schedule, conditions.codec, task.parameter_count(), momentum);
        lines.iter().for_each(out::line);
    }
    if conditions.momentum > 0.0 {
        out::line(format!("momentum {} across rounds", conditions.momentum));
    }
    Ok(())
}

/// The codec of the nodes. Textbook push-sum sends f32.
fn codec(plan: &Plan, conditions: Conditions, parameters: usize) -> Result<ChosenCodec> {
    match (conditions.codec, conditions.ledger) {
        (CodecChoice::Auto, false) => Ok(ChosenCodec::asked(Codec::F32)),
        (choice, _) => Ok(choice.under(&plan::schedule(plan)?, parameters)),
    }
}

fn rounds_of(plan: &Plan) -> String {
    let rounds = plan.steps().len() / plan.round_length();
    match plan.forecast().slots_per_period {
        0 => format!("{} steps a round", plan.round_length()),
        slots if rounds == 1 => format!("{slots} slots a round"),
        slots => format!("{slots} slots in {rounds} rounds"),
    }
}

/// The kind of token of the data, if they are a text.
fn tokens(learners: &Learners) -> Option<Tokens> {
    match learners.task().shape() {
        SampleShape::Text { tokens } => Some(tokens),
        _ => None,
    }
}

fn tell(progress: &SwarmProgress, tokens: Option<Tokens>, json: bool) {
    if json {
        let mut object = serde_json::json!(progress);
        object["schema"] = "mingle.simulation-progress/1".into();
        out::line(object);
        return;
    }
    let measured = &progress.measured;
    let in_bits = tokens.and_then(|tokens| Some((tokens, measured.mean(tokens.metric())?)));
    let in_bits =
        in_bits.map_or_else(String::new, |(tokens, bits)| format!("   {bits:.3} bits per {}", tokens.singular()));
    let in_units = measured.mean("rmse").map_or_else(String::new, |rmse| format!("   rmse {rmse:.4}"));
    let line = format!(
        "round {:>5}   slots {:>7}   epochs {:>6.2}{in_bits}   {} {:.3} mean {:.3} worst{in_units}   disagreement {}",
        progress.round,
        progress.slots,
        progress.epochs,
        measured.score(),
        measured.mean_score().unwrap_or(f64::NAN),
        measured.worst_score().unwrap_or(f64::NAN),
        progress.disagreement.map_or_else(|| "none".to_owned(), |apart| format!("{apart:.1e}")),
    );
    // A terminal shows the progress in place; only the end is kept.
    if stderr().is_terminal() { out::progress(line) } else { out::line(line) }
}

/// A summary of the parcels that honest nodes received.
fn receiving(report: &Report<'_>) -> String {
    let Received { from_honest, clipped_from_honest, from_attackers, clipped_from_attackers } = report.received;
    let mut line = format!("robust {}: {clipped_from_honest} of {from_honest} honest parcels clipped", report.robust);
    if let Some(attack) = &report.attack {
        line += &format!(", {clipped_from_attackers} of {from_attackers} from {} x {attack}", report.attackers);
    }
    line
}

fn conclude(
    report: &Report<'_>,
    target: Option<MetricTarget>,
    tokens: Option<Tokens>,
    (took, learnt): (Duration, Duration),
) {
    if stderr().is_terminal() {
        remark!();
    }
    let end = report.end;
    let measured = &end.measured;
    let what = match (report.stop, target) {
        (Stop::Target, Some(target)) => format!("{target} reached"),
        (_, Some(target)) => format!("{target} not reached"),
        _ if tokens.is_some() => format!("validation loss {:.4}", measured.mean("loss").unwrap_or(f64::NAN)),
        _ => format!("{} {:.3}", measured.score(), measured.mean_score().unwrap_or(f64::NAN)),
    };
    out::line(format!(
        "{what} after {} slots{}: {} rounds, {:.2} epochs, {:.1} MB on links",
        end.slots,
        report.seconds_on_air.map_or_else(String::new, |seconds| format!(" ({seconds:.1} s on the air)")),
        end.round,
        end.epochs,
        units::megabytes(end.link_bytes)
    ));
    if report.lost_parcels > 0 {
        let share = report.lost_parcels as f64 / report.parcels as f64;
        out::line(format!("{} of {} parcels were lost, {:.1} %", report.lost_parcels, report.parcels, 100.0 * share));
    }
    out::line(format!("weights of all nodes: {:.6} of {}", report.weight, report.nodes));
    if report.robust != Robust::Off || report.attackers > 0 {
        out::line(receiving(report));
    }
    let others = took.saturating_sub(learnt).as_secs_f64() / took.as_secs_f64();
    remark!("{:.1} s, {:.0} % of them neither training nor evaluation", took.as_secs_f64(), 100.0 * others);
}
