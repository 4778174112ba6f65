//! `mingle`: serverless, peer-to-peer training along a planned directed graph.
//!
//! The binary reads the command line and the configuration, prints, and ends with an exit code. The library
//! `mingle-peer` implements the peer, `mingle-builtin` the built-in models as its local training.

#[macro_use]
mod out;

mod arguments;
mod cli;
mod command;
mod config;
mod event_loop;
mod exit;
mod model_files;
mod printer;
mod rounds;
mod signals;
mod solving_report;
mod topology;

use std::process::ExitCode;

use mingle_builtin::limits;

fn main() -> ExitCode {
    let matches = match config::command_line().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => return exit::usage(&error),
    };
    start_logging();
    mingle_plaintext::report_long_waits_with(|sentence| out::remark(sentence));
    let json = matches.get_flag("json");
    if let Some(advice) = config::former::of_variable(config::former::is_set) {
        let failure = mingle_peer::Error::new(mingle_peer::ErrorKind::BadInput, advice);
        exit::print(&failure, json);
        return exit::code(&failure);
    }
    match config::resolve(&matches, std::env::args_os()).and_then(command::execute) {
        Ok(code) => code,
        Err(failure) => {
            exit::print(&failure, json);
            exit::code(&failure)
        }
    }
}

/// Logs of the libraries go to stderr; `MINGLE_LOG` is the filter, such as `debug` or `mingle=trace`.
fn start_logging() {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_env("MINGLE_LOG").unwrap_or_else(|_| EnvFilter::new("error"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).log_internal_errors(false).init();
}
