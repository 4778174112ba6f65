//! `mingle stop`: ends the peer in a home in good order, and reports where its weight is.

use mingle_peer::api::client::Client;
use mingle_peer::api::{EndAnswer, Stopping, client};
use mingle_peer::{Error, ErrorKind, Home, Result, units};
use serde_json::json;

use crate::cli::StopArgs;
use crate::out;
use mingle_watch::goodbye::{self, Ended};

/// Sends the request, waits for the end of the process, and reports.
pub(super) fn execute(arguments: &StopArgs, json: bool) -> Result {
    let home = Home::at(arguments.home.home.as_deref())?;
    if arguments.for_all {
        return ask_for_the_end(&home, json);
    }
    let (stopping, ended) = client::block_on(async {
        let ending = goodbye::ask(&home, "/v1/stop");
        tokio::time::timeout(arguments.timeout, ending).await.unwrap_or_else(|_| {
            let span = units::time_span(arguments.timeout.as_secs_f64());
            Err(Error::new(ErrorKind::TimedOut, format!("the peer was asked to stop, and has not ended in {span}"))
                .hint("it may wait for neighbours that do not answer: mingle status shows them"))
        })
    })?;
    if let Some(message) = &ended.failure {
        return Err(Error::new(ErrorKind::Unexpected, format!("the peer has ended, but not in good order: {message}")));
    }
    let place = place(&home, &stopping, &ended);
    if json {
        out::line(json!({
            "schema": "mingle.stop/1",
            "round": ended.round,
            "rounds": stopping.rounds,
            "weight_units": ended.weight_units,
            "durable": stopping.durable,
            "records": stopping.durable.then(|| home.records()),
        }));
    } else {
        out::line(format!("stopped    round {} of {}: {place}", ended.round, stopping.rounds));
    }
    Ok(())
}

/// Asks the swarm to end its training before its last round.
fn ask_for_the_end(home: &Home, json: bool) -> Result {
    let answer: EndAnswer = client::block_on(async { Client::new(home).post("/v1/end").await })?;
    let words = match answer {
        EndAnswer::ForAll => "ending     the operator has decided: all peers mix their models, and end",
        EndAnswer::Asked => {
            "asked      the training ends once more than half of the members ask, if the operator's peer runs with --planning auto"
        }
        EndAnswer::Uncounted => {
            return Err(Error::new(
                ErrorKind::Refused,
                "this peer is the operator's, and does not plan its swarm: nobody counts who asks",
            )
            .hint("start it with --planning auto, and ask again"));
        }
        EndAnswer::Impossible => {
            return Err(Error::new(
                ErrorKind::Refused,
                "this peer cannot ask others to end: it trains no model, or its swarm has no operator",
            )
            .hint("mingle stop stops this peer alone"));
        }
    };
    if json {
        out::line(json!({ "schema": "mingle.stop-for-all/1", "answer": answer }));
    } else {
        out::line(words);
    }
    Ok(())
}

/// The place of the weight of a stopped peer.
fn place(home: &Home, stopping: &Stopping, ended: &Ended) -> String {
    let weight = units::weight(ended.weight_units);
    let records = home.records().display().to_string();
    match (stopping.durable, ended.round >= stopping.rounds) {
        (true, true) => format!("all rounds are done; its weight {weight:.4} is in {records}"),
        (true, false) => {
            format!("its weight {weight:.4} is in {records}, and it goes on from there when it is started again")
        }
        (false, true) => format!("all rounds are done; its weight {weight:.4} ended with its process"),
        (false, false) => {
            format!("its weight {weight:.4} ended with its process, and the others go on without it (--durability off)")
        }
    }
}
