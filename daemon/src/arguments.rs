//! What can be seen to be wrong with the arguments of `run` before anything is read or started: on the command line, and in a
//! configuration file.

use mingle_peer::{Error, ErrorKind, Result};
use mingle_protocol::{Codec, WaitPolicy};

use crate::cli::RunArgs;
use crate::{limits, task};

/// Refuses what no run can use.
///
/// # Errors
/// The option, and what it may be.
pub(crate) fn check(arguments: &RunArgs) -> Result {
    task::check_arguments(&arguments.training)?;
    if arguments.largest_norm.is_some_and(|norm| norm.is_nan() || norm <= 0.0) {
        return Err(Error::new(ErrorKind::BadInput, "--largest-norm must be a positive number"));
    }
    if arguments.problem.is_some() && arguments.codec != Codec::F32 {
        return Err(Error::new(
            ErrorKind::BadInput,
            "--codec is for models: what peers that solve a problem say is exact",
        )
        .hint("leave --codec or --problem away"));
    }
    let RunArgs { bootstrap_timeout_s, gather_s, deadline_ms, time_box_ms, training_deadline_s, drain_ms, .. } =
        *arguments;
    limits::check("bootstrap-timeout-s", bootstrap_timeout_s, 1..=limits::LONGEST_WAIT_S)?;
    limits::check("gather-s", gather_s, 0..=limits::LONGEST_WAIT_S)?;
    limits::check("deadline-ms", deadline_ms, 1..=limits::LONGEST_WAIT_MS)?;
    limits::check("training-deadline-s", training_deadline_s, 1..=limits::LONGEST_WAIT_S)?;
    limits::check("drain-ms", drain_ms, 0..=limits::LONGEST_WAIT_MS)?;
    time_box_ms.map_or(Ok(()), |time_box_ms| limits::check("time-box-ms", time_box_ms, 1..=limits::LONGEST_WAIT_MS))?;
    parse_policy(&arguments.wait).map(drop)
}

/// `sync`, `bounded:STALENESS` or `async`.
pub(crate) fn parse_policy(text: &str) -> Result<WaitPolicy> {
    let parsed = match text.split_once(':') {
        None if text == "sync" => Some(WaitPolicy::Sync),
        None if text == "async" => Some(WaitPolicy::Async),
        Some(("bounded", staleness)) => staleness
            .parse()
            .ok()
            .filter(|staleness| *staleness <= limits::LARGEST_STALENESS)
            .map(|staleness| WaitPolicy::Bounded { staleness }),
        _ => None,
    };
    parsed.ok_or_else(|| {
        Error::new(
            ErrorKind::BadInput,
            format!("--wait {text}: choose sync, bounded:STALENESS (such as bounded:4) or async"),
        )
    })
}
