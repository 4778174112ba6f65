//! `mingle leave`: hand over all weight, and go for good.

use serde_json::json;

use super::goodbye;
use crate::api::client::{self, Client};
use crate::cli::RunArgs;
use crate::failure::{Failure, Kind, Outcome};
use crate::home::Home;
use crate::status::Status;
use crate::{out, units};

/// Asks the peer that runs in this home; where none does, starts it with the options that it was run with, and as soon as
/// its neighbours are there, it leaves.
pub(super) fn execute(arguments: RunArgs, json: bool) -> Outcome {
    let home = Home::at(arguments.home.home.as_deref())?;
    let is_running = client::block_on(async { Client::new(&home).get::<Status>("/v1/status").await }).is_ok();
    if is_running { ask(&home, json) } else { super::run::execute(&RunArgs { leaves: true, ..arguments }, json) }
}

fn ask(home: &Home, json: bool) -> Outcome {
    let (before, ended) = client::block_on(goodbye::ask(home, "/v1/leave"))?;
    if let Some(message) = &ended.failure {
        return Err(Failure::new(Kind::Unexpected, format!("the peer has ended, but did not leave: {message}")));
    }
    if !ended.left {
        let weight = units::weight(ended.weight_units);
        return Err(Failure::new(
            Kind::Refused,
            format!("the peer has ended with its weight {weight:.4}: nobody was left to take it"),
        ));
    }
    if json {
        out::line(json!({
            "schema": "mingle.leave/1",
            "round": ended.round,
            "rounds": before.rounds,
            "weight_units_before": before.weight_units,
            "weight_units": ended.weight_units,
        }));
    } else {
        out::line(format!("left       after round {}: all weight is handed over, and the others know", ended.round));
    }
    Ok(())
}
