//! `mingle stop`: ends the peer in a home in good order, and says where its weight is.

use std::fs::File;
use std::path::Path;

use serde_json::json;
use tokio::sync::oneshot;

use crate::api::Stopping;
use crate::api::client::{self, Client};
use crate::cli::StopArgs;
use crate::events::{Event, EventLine};
use crate::failure::{Failure, Kind, OrFail, Outcome};
use crate::home::Home;
use crate::{out, units};

/// How a peer ended, by its own last words.
struct Ended {
    round: u64,
    weight_units: u64,
    /// Why it could not end in good order.
    failure: Option<String>,
}

/// Asks, waits for the end of the process, and reports.
pub(super) fn execute(arguments: &StopArgs, json: bool) -> Outcome {
    let home = Home::at(arguments.home.home.as_deref())?;
    let (stopping, ended) = client::block_on(async {
        let ending = stop(&home);
        tokio::time::timeout(arguments.timeout, ending).await.unwrap_or_else(|_| {
            let span = units::time_span(arguments.timeout.as_secs_f64());
            Err(Failure::new(Kind::TimedOut, format!("the peer was asked to stop, and has not ended in {span}"))
                .hint("it may wait for neighbours that do not answer: mingle status shows them"))
        })
    })?;
    if let Some(message) = &ended.failure {
        return Err(Failure::new(Kind::Unexpected, format!("the peer has ended, but not in good order: {message}")));
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

/// Where the weight of a stopped peer is.
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

async fn stop(home: &Home) -> Outcome<(Stopping, Ended)> {
    let client = Client::new(home);
    // Opened before it is asked, so that its last words are not missed.
    let mut events = client.follow("/v1/events").await?;
    let stopping: Stopping = client.post("/v1/stop").await?;
    let mut ended = Ended { round: stopping.round, weight_units: stopping.weight_units, failure: None };
    let mut has_said = false;
    while let Some(text) = events.next().await {
        match serde_json::from_str::<EventLine>(&text).map(|line| line.event) {
            Ok(Event::Done { round, weight_units, .. }) => {
                (ended.round, ended.weight_units, has_said) = (round, weight_units, true);
            }
            Ok(Event::Failed { message, .. }) => (ended.failure, has_said) = (Some(message), true),
            _ => {}
        }
    }
    if !has_said {
        ended.failure = Some("it was killed, or crashed, while it stopped".to_owned());
    }
    end_of_process(&home.root().join("lock")).await?;
    Ok((stopping, ended))
}

/// Waits until nobody holds the lock of the home.
async fn end_of_process(lock: &Path) -> Outcome {
    let doing = format!("cannot wait for {}", lock.display());
    let file = File::open(lock).or_fail(Kind::BadInput, &doing)?;
    let (sender, ended) = oneshot::channel();
    // A thread of its own: a wait for a lock cannot be called off, and must not keep this command from ending.
    std::thread::spawn(move || sender.send(file.lock_shared()));
    match ended.await {
        Ok(locked) => locked.or_fail(Kind::Unexpected, doing),
        Err(_) => Err(Failure::new(Kind::Unexpected, doing)),
    }
}
