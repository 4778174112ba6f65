//! `mingle-air`: an emulated shared radio for network namespaces, and rounds of plans on it in virtual time.

mod cli;
mod compare;
mod janitor;
mod run;

use std::error::Error;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use clap::Parser as _;
use mingle_air::live;
use mingle_planner::Topology;

use self::cli::{AirTask, Arguments, ExecArguments};

/// The environment variable with the prefix of an air, for the commands that run on it.
const AIR_VARIABLE: &str = "MINGLE_AIR";

/// An error of any part, to be printed with its sources.
type Failure = Box<dyn Error>;

fn main() -> ExitCode {
    let done = match Arguments::parse().task {
        AirTask::Run(arguments) => run::run(&arguments),
        AirTask::Exec(arguments) => exec(&arguments),
        AirTask::Clean => Ok(clean()),
        AirTask::Compare(arguments) => compare::compare(&arguments),
        AirTask::Draw(arguments) => compare::draw(&arguments),
        AirTask::Janitor { prefix } => janitor::serve(&prefix),
    };
    done.unwrap_or_else(|error| {
        eprintln!("mingle-air: {error}");
        let mut source = error.source();
        while let Some(cause) = source {
            eprintln!("  because: {cause}");
            source = cause.source();
        }
        ExitCode::from(2)
    })
}

/// Becomes a command in the namespace of a node; returns where that fails.
fn exec(arguments: &ExecArguments) -> Result<ExitCode, Failure> {
    let prefix = match &arguments.air {
        Some(prefix) => prefix.clone(),
        None => match &live::airs()[..] {
            [only] => only.clone(),
            [] => return Err("no air is running: start one with mingle-air run".into()),
            several => {
                return Err(format!("several airs are running: choose one with --air {}", several.join(" or ")).into());
            }
        },
    };
    let namespace = live::namespace_name(&prefix, arguments.node);
    if live::air_of_namespace(&namespace).is_none() {
        return Err(format!("{prefix} is no air: names are like mair4711").into());
    }
    let error = Command::new("ip").args(["netns", "exec", &namespace]).args(&arguments.command).exec();
    Err(format!("ip netns exec did not start: {error}").into())
}

fn clean() -> ExitCode {
    for prefix in live::clean_stale() {
        println!("removed {prefix}");
    }
    ExitCode::SUCCESS
}

/// Reads the base graph that an argument names: a generator expression, or a file in a format of the planner.
fn topology(text: &str) -> Result<Topology, Failure> {
    let path = Path::new(text);
    if !path.exists() && Topology::looks_like_generator(text) {
        return Topology::generate(text).map_err(|error| format!("the graph {text} cannot be made: {error}").into());
    }
    let content = std::fs::read_to_string(path).map_err(|error| {
        format!("the graph {text} cannot be read: {error}; name a file, or a generator such as rg:n=6,r=0.7,seed=1")
    })?;
    Topology::parse(&content).map_err(|error| format!("the graph {text} cannot be used: {error}").into())
}
