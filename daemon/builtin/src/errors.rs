//! Conversions from library errors to `mingle_peer::Error`, with a kind and a hint.

use mingle_lab::comparison::ComparisonError;
use mingle_lab::evaluation::{RecordsError, SuiteError};
use mingle_lab::simulation::SimulationError;
use mingle_lab::solving::SwarmError;
use mingle_peer::solving::Explain;
use mingle_peer::{Error, ErrorKind};
use mingle_recommend::RecommendError;

/// The error of a simulation.
pub fn simulation_error(error: SimulationError) -> Error {
    let kind = match &error {
        SimulationError::NothingToTrain
        | SimulationError::Schedule(_)
        | SimulationError::Node(_)
        | SimulationError::NobodyHonest { .. }
        | SimulationError::Design { .. }
        | SimulationError::Target { .. } => ErrorKind::BadInput,
        SimulationError::OnlyWithLedger => {
            return Error::of(ErrorKind::BadInput, error)
                .hint("leave --ledger off, or --robust, --overlap and --attack away");
        }
        SimulationError::NothingToOverlap => {
            return Error::of(ErrorKind::BadInput, error)
                .hint("leave --overlap away, or take a plan of --method exact-average");
        }
        SimulationError::CodecWithoutLedger { codec } => {
            let message = format!("--ledger off sends f32 alone: textbooks know no {codec}");
            return Error::new(ErrorKind::BadInput, message).hint("leave --codec or --ledger off away");
        }
        SimulationError::Training { .. } | SimulationError::Evaluation(_) | SimulationError::Elsewhere { .. } => {
            ErrorKind::Training
        }
        SimulationError::StandsStill { .. } | SimulationError::Workers { .. } | SimulationError::Thread => {
            ErrorKind::Unexpected
        }
    };
    let averages_only = matches!(error, SimulationError::NothingToTrain);
    let error = Error::of(kind, error);
    if averages_only { error.hint("make one that trains: mingle plan make --local-steps 1") } else { error }
}

/// The error of a problem to be solved by all nodes in this process.
pub fn swarm_error(error: SwarmError) -> Error {
    match error {
        SwarmError::Problem(error) => error.explain(),
        SwarmError::Solve(error) => error.explain(),
        SwarmError::Plan(error) => error.explain(),
        SwarmError::Members(_) => Error::of(ErrorKind::Refused, error),
        SwarmError::Schedule(_) => Error::of(ErrorKind::BadInput, error),
        SwarmError::Learning { .. } => Error::of(ErrorKind::Training, error),
        SwarmError::Message { .. } | SwarmError::Unfinished => Error::of(ErrorKind::Unexpected, error),
    }
}

/// The error of a comparison of a robust model with its competitors.
pub fn comparison_error(error: ComparisonError) -> Error {
    match error {
        ComparisonError::Problem(error) => error.explain(),
        ComparisonError::Solve(error) => error.explain(),
        ComparisonError::NotRobust => Error::of(ErrorKind::BadInput, error),
        ComparisonError::Competitor { .. } => Error::of(ErrorKind::Training, error),
    }
}

/// The error of a suite file.
pub fn suite_error(error: SuiteError) -> Error {
    Error::of(ErrorKind::BadInput, error)
}

/// The error of a file of results.
pub fn records_error(error: RecordsError) -> Error {
    Error::of(ErrorKind::BadInput, error)
}

/// The error of a query to a recommender.
pub fn recommend_error(error: RecommendError) -> Error {
    let kind = if matches!(error, RecommendError::Bytes { .. }) { ErrorKind::Integrity } else { ErrorKind::BadInput };
    Error::of(kind, error)
}
