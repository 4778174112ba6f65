//! Checks of the arguments of `run`, from the command line and a configuration file, before anything is read or
//! started.

use std::time::Duration;

use mingle_builtin::options::parse_policy;
use mingle_builtin::task;
use mingle_peer::solving::SumPolicy;
use mingle_peer::{Error, ErrorKind, Result};

use crate::cli::{OF_BUILT_IN_MODELS, Planning, RunArgs};
use crate::limits;

/// Refuses arguments that no run can use.
///
/// # Errors
/// Names the option and its possible values.
pub(crate) fn check(arguments: &RunArgs) -> Result {
    if arguments.trainer.is_none() {
        check_no_trainer(arguments)?;
    }
    check_planning(arguments)?;
    check_sums(arguments)?;
    check_each(arguments)
}

/// Refuses options about sums where there are none.
fn check_sums(arguments: &RunArgs) -> Result {
    let SumPolicy { plain, least_members } = arguments.sums.into();
    if arguments.problem.is_some() || arguments.leaves || !plain && least_members.is_none() {
        return Ok(());
    }
    let option = if plain { "--plain-sums" } else { "--least-members" };
    Err(Error::new(ErrorKind::BadInput, format!("{option} is for --problem FILE: training by push-sum sums nothing"))
        .hint("name the problem, or leave the option out, also in config.toml"))
}

/// Refuses invalid values of single options. For a configuration file, whose settings others complete.
///
/// # Errors
/// Names the option and its possible values.
pub(crate) fn check_each(arguments: &RunArgs) -> Result {
    task::check_options(&arguments.training.clone().into())?;
    if arguments.max_norm.is_some_and(|norm| norm.is_nan() || norm <= 0.0) {
        return Err(Error::new(ErrorKind::BadInput, "--max-norm must be a positive number"));
    }
    if let Some(local_steps) = arguments.local_steps {
        limits::check("local-steps", local_steps.into(), 1..=limits::MOST_LOCAL_STEPS)?;
    }
    check_trainer(arguments)?;
    check_times(arguments)?;
    parse_policy(&arguments.wait).map(drop)
}

/// Refuses `--local-steps` unless this peer makes the plans: otherwise the plan has the number.
fn check_planning(arguments: &RunArgs) -> Result {
    if arguments.local_steps.is_none() || arguments.planning == Planning::Auto {
        return Ok(());
    }
    let message =
        "--local-steps is for --planning auto, on the operator's peer: elsewhere the plan says how many a round has";
    Err(Error::new(ErrorKind::BadInput, message)
        .hint("make a plan with them: mingle plan make --local-steps N; or leave the option out, also in config.toml"))
}

/// Refuses options of the built-in models if another program trains.
fn check_trainer(arguments: &RunArgs) -> Result {
    let Some(trainer) = &arguments.trainer else { return Ok(()) };
    if trainer.trim().is_empty() {
        return Err(Error::new(ErrorKind::BadInput, "--trainer has no command")
            .hint("--trainer attach waits for a trainer; --trainer 'python train.py' starts one"));
    }
    match OF_BUILT_IN_MODELS.concat().into_iter().find(|key| arguments.given.keys.contains(*key)) {
        None => Ok(()),
        Some(key) => {
            let option = key.replace('_', "-");
            let message = format!(
                "--{option} is about the built-in models, and with --trainer another program says what is trained"
            );
            Err(Error::new(ErrorKind::BadInput, message).hint(format!(
                "leave --{option} away; it may also come from the last run in this home, or from its config.toml: then use another home, or take it out there"
            )))
        }
    }
}

/// Refuses options of a trainer if there is none.
fn check_no_trainer(arguments: &RunArgs) -> Result {
    let option = if arguments.trainer_tcp.is_some() {
        "--trainer-tcp"
    } else if arguments.given.keys.contains("trainer_crashes") {
        "--trainer-crashes"
    } else {
        return Ok(());
    };
    let message = format!("{option} is about another program that trains, and there is none without --trainer");
    Err(Error::new(ErrorKind::BadInput, message).hint(format!(
        "say --trainer attach or --trainer COMMAND too; or leave {option} away: it may also come from the last run in this home, or from its config.toml",
    )))
}

fn check_times(arguments: &RunArgs) -> Result {
    use limits::{LONGEST_EVICTION, LONGEST_JOIN, LONGEST_WAIT, SHORTEST_TIME};
    use limits::{SHORTEST_EVICTION, SHORTEST_EVICTION_FROM_PROBLEM};
    let shortest_eviction =
        if arguments.problem.is_some() { SHORTEST_EVICTION_FROM_PROBLEM } else { SHORTEST_EVICTION };
    limits::check_time("bootstrap-timeout", arguments.bootstrap_timeout, SHORTEST_TIME..=LONGEST_JOIN)?;
    limits::check_time("join-timeout", arguments.join_timeout, Duration::ZERO..=LONGEST_JOIN)?;
    limits::check_time("evict-after", arguments.evict_after, shortest_eviction..=LONGEST_EVICTION)?;
    limits::check_time("deadline", arguments.deadline, SHORTEST_TIME..=LONGEST_WAIT)?;
    limits::check_time("training-deadline", arguments.training_deadline, SHORTEST_TIME..=LONGEST_JOIN)?;
    limits::check_time("shutdown-timeout", arguments.shutdown_timeout, Duration::ZERO..=LONGEST_WAIT)?;
    let time_box = arguments.time_box;
    time_box.map_or(Ok(()), |time_box| limits::check_time("time-box", time_box, SHORTEST_TIME..=LONGEST_WAIT))
}
