//! `mingle status` and `mingle peers`: the present state of a running peer.

use mingle_peer::api::client::{self, Client};
use mingle_peer::error::Context;
use mingle_peer::status::Status;
use mingle_peer::{ErrorKind, Home, Result};
use mingle_watch::status_lines::{summary, table};

use crate::cli::HomeArgs;
use crate::out;

/// Prints the snapshot.
pub(super) fn execute(arguments: &HomeArgs, json: bool) -> Result {
    let status = snapshot(arguments)?;
    if json {
        out::line(serde_json::to_string(&status).context(ErrorKind::Unexpected, "cannot write the snapshot")?);
    } else {
        summary(&status).iter().for_each(out::line);
        table(&status.neighbours).iter().for_each(out::line);
    }
    Ok(())
}

/// Prints the neighbours.
pub(super) fn peers(arguments: &HomeArgs, json: bool) -> Result {
    let status = snapshot(arguments)?;
    if json {
        out::line(mingle_peer::api::peers_object(&status.neighbours));
    } else {
        table(&status.neighbours).iter().for_each(out::line);
    }
    Ok(())
}

fn snapshot(arguments: &HomeArgs) -> Result<Status> {
    let home = Home::at(arguments.home.as_deref())?;
    client::block_on(async { Client::new(&home).get("/v1/status").await })
}
