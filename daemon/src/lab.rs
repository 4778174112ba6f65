//! Where the lab meets the command line: what is trained becomes learners, and errors of the lab get a kind and a hint.

use mingle_lab::comparison::ComparisonError;
use mingle_lab::evaluation::{RecordsError, SuiteError};
use mingle_lab::simulation::{Learners, SimulationError, Subject};
use mingle_lab::solving::SwarmError;
use mingle_models::{Samples, Split, Trainer};
use mingle_peer::error::Context;
use mingle_peer::solving::Explain;
use mingle_peer::{Error, ErrorKind, Result};

use crate::cli::TrainingArgs;
use crate::task::{self, Parts};

/// Deals the data to `nodes` nodes of a simulated swarm; models are judged on the first `test_samples` of the held-out data.
///
/// # Errors
/// Names that mean nothing, data that cannot be read or are too few, a device that is not there.
pub(crate) fn learners(
    training: &TrainingArgs,
    nodes: usize,
    test_samples: Option<usize>,
    threads: usize,
) -> Result<Learners> {
    task::check_arguments(training)?;
    let device = task::open_device(&training.device)?;
    let mut parts = Parts::load(&training.data, training.task, training.seed)?;
    let split = training.split.clone().unwrap_or_else(|| Split::Iid.to_string());
    parts.deal(&split, nodes, training.seed)?;
    let training = &TrainingArgs { weight: parts.weight(training.weight, nodes)?, ..training.clone() };
    let task = parts.task(&training.model)?;
    let subject = Subject {
        task,
        device: device.clone(),
        test: first(&parts.test, test_samples),
        train_samples: parts.all().len(),
        seed: training.seed,
        rates: training.optimizer.rates(training.learning_rate, training.rounds)?,
    };
    Learners::new(subject, nodes, threads, |node, shard| {
        let options = task::trainer_options(training, task, &device, node)?;
        Trainer::new(options, parts.part(shard)).context(ErrorKind::BadInput, "cannot train")
    })
}

/// As many of the samples as are wanted.
fn first(samples: &Samples, wanted: Option<usize>) -> Samples {
    match wanted.filter(|wanted| *wanted < samples.len()) {
        Some(wanted) => samples.select(&(0..wanted).collect::<Vec<_>>()),
        None => samples.clone(),
    }
}

/// The error of a simulation, for whoever asked for it on the command line.
pub(crate) fn simulation_error(error: SimulationError) -> Error {
    let kind = match &error {
        SimulationError::NothingToTrain
        | SimulationError::Schedule(_)
        | SimulationError::Node(_)
        | SimulationError::NobodyHonest { .. }
        | SimulationError::Design { .. }
        | SimulationError::Target { .. } => ErrorKind::BadInput,
        SimulationError::ReceivingWithoutLedger => {
            return Error::of(ErrorKind::BadInput, error).hint("leave --ledger off, or --robust and --attack away");
        }
        SimulationError::CodecWithoutLedger { codec } => {
            let message = format!("--ledger off sends f32 alone: textbooks know no {codec}");
            return Error::new(ErrorKind::BadInput, message).hint("leave --codec or --ledger off away");
        }
        SimulationError::Training { .. } | SimulationError::Evaluation(_) => ErrorKind::Training,
        SimulationError::StandsStill { .. } | SimulationError::Thread => ErrorKind::Unexpected,
    };
    let averages_only = matches!(error, SimulationError::NothingToTrain);
    let error = Error::of(kind, error);
    if averages_only { error.hint("make one that trains: mingle plan make --local-steps 1") } else { error }
}

/// The error of a problem that all nodes were to solve in this process.
pub(crate) fn swarm_error(error: SwarmError) -> Error {
    match error {
        SwarmError::Problem(error) => error.explain(),
        SwarmError::Solve(error) => error.explain(),
        SwarmError::Plan(error) => error.explain(),
        SwarmError::Schedule(_) => Error::of(ErrorKind::BadInput, error),
        SwarmError::Learning { .. } => Error::of(ErrorKind::Training, error),
        SwarmError::Message { .. } | SwarmError::Unfinished => Error::of(ErrorKind::Unexpected, error),
    }
}

/// The error of a robust model beside its competitors.
pub(crate) fn comparison_error(error: ComparisonError) -> Error {
    match error {
        ComparisonError::Problem(error) => error.explain(),
        ComparisonError::Solve(error) => error.explain(),
        ComparisonError::NotRobust => Error::of(ErrorKind::BadInput, error),
        ComparisonError::Competitor { .. } => Error::of(ErrorKind::Training, error),
    }
}

/// The error of a suite file.
pub(crate) fn suite_error(error: SuiteError) -> Error {
    Error::of(ErrorKind::BadInput, error)
}

/// The error of a file of results.
pub(crate) fn records_error(error: RecordsError) -> Error {
    Error::of(ErrorKind::BadInput, error)
}
