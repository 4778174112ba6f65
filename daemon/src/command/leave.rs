//! `mingle leave`: hands over all weight, and leaves for good.

use mingle_peer::api::client::{self, Client};
use mingle_peer::records::{self, Ending, RecordStore};
use mingle_peer::status::Status;
use mingle_peer::{Error, ErrorKind, Home, Result, units};
use serde_json::json;

use crate::cli::RunArgs;
use crate::out;
use mingle_watch::goodbye;

/// Asks the peer that runs in this home to leave. If none runs and the records hold weight, starts it with the options
/// of its last run, and it leaves as soon as its neighbours are connected. If there is nothing to hand over, nothing is
/// changed.
pub(super) fn execute(arguments: RunArgs, json: bool) -> Result {
    let home = Home::at(arguments.home.home.as_deref())?;
    let is_running = client::block_on(async { Client::new(&home).get::<Status>("/v1/status").await }).is_ok();
    if is_running {
        return ask(&home, json);
    }
    match what_is_left(&home, arguments.problem.is_some())? {
        Left::Weight => {
            super::run::execute(&RunArgs { leaves: true, fresh: false, continues: false, ..arguments }, json)
        }
        Left::Nothing { round, why } => {
            if json {
                out::line(json!({
                    "schema": "mingle.leave/1",
                    "round": round,
                    "weight_units_before": 0,
                    "weight_units": 0,
                    "nothing_to_hand_over": why,
                }));
            } else {
                out::line(format!("{why}: nothing to hand over, and nothing was changed"));
            }
            Ok(())
        }
    }
}

/// The obligations of a stopped peer towards others.
enum Left {
    /// Records of an unfinished run.
    Weight,
    /// No obligation.
    Nothing {
        /// Rounds done, if known.
        round: Option<u64>,
        /// The reason, in a few words.
        why: String,
    },
}

/// Inspects a home in which no peer runs.
///
/// # Errors
/// No peer ever ran there, or the records cannot be read.
fn what_is_left(home: &Home, solves: bool) -> Result<Left> {
    let root = home.root().display();
    if !home.identity().exists() {
        return Err(Error::new(ErrorKind::BadInput, format!("there is no peer in {root}"))
            .hint("name its folder with --home DIR"));
    }
    let _still = home.hold_still()?;
    if let Some(recovered) = RecordStore::look(&records::folder_of(home))?.load()? {
        return Ok(match Ending::find(home, recovered.record.books.number)? {
            None => Left::Weight,
            Some(Ending { rounds, left: true, .. }) => {
                let why = format!("this peer left after round {rounds}, and is no member any more");
                Left::Nothing { round: Some(rounds), why }
            }
            Some(Ending { rounds, .. }) => {
                Left::Nothing { round: Some(rounds), why: format!("this run is over, after {rounds} rounds") }
            }
        });
    }
    let nothing = |why: &str| Ok(Left::Nothing { round: None, why: why.to_owned() });
    if solves {
        return nothing("this peer solves a problem, for which nobody holds weight, and it does not run");
    }
    if home.model().exists() {
        return nothing("this run is over");
    }
    nothing("this peer does not run, and has no weight on its disk")
}

fn ask(home: &Home, json: bool) -> Result {
    let (before, ended) = client::block_on(goodbye::ask(home, "/v1/leave"))?;
    if let Some(message) = &ended.failure {
        return Err(Error::new(ErrorKind::Unexpected, format!("the peer has ended, but did not leave: {message}")));
    }
    if !ended.left {
        let weight = units::weight(ended.weight_units);
        return Err(Error::new(
            ErrorKind::Refused,
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
