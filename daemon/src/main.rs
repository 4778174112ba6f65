//! `mingle`: serverless, peer-to-peer training along a planned directed graph.
//!
//! The binary is the only part of the project with a clock, sockets, files and threads. It joins the three libraries:
//! the planner's plan becomes the protocol's schedule in `plan.rs`, the models' training becomes the protocol's local
//! step in `trainer.rs`, and `driver.rs` runs the event loop around one node.

mod api;
mod cli;
mod command;
mod config;
mod driver;
mod encodings;
mod evaluation;
mod event_loop;
mod events;
mod failure;
mod home;
mod identity;
mod last_run;
mod limits;
mod meaning;
mod membership;
mod model_files;
mod objections;
mod out;
mod output_file;
mod place;
mod plan;
mod priority;
mod provisional;
mod records;
mod results;
mod service_manager;
mod signals;
mod simulation;
mod solving;
mod status;
mod task;
mod task_card;
mod task_file;
mod timeline;
mod topology;
mod trainer;
mod units;
mod wiring;

use std::process::ExitCode;

fn main() -> ExitCode {
    let matches = config::command_line().get_matches();
    start_logging();
    let json = matches.get_flag("json");
    match config::resolve(&matches, std::env::args_os()).and_then(command::execute) {
        Ok(code) => code,
        Err(failure) => {
            failure.print(json);
            failure.exit_code()
        }
    }
}

/// Logs of the libraries go to stderr; `MINGLE_LOG` chooses what is told, such as `debug` or `mingle=trace`.
fn start_logging() {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_env("MINGLE_LOG").unwrap_or_else(|_| EnvFilter::new("error"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}
