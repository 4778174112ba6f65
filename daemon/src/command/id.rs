//! `mingle id`: prints this peer's PeerId.

use mingle_peer::{Home, Identity, Result};

use crate::cli::HomeArgs;
use crate::out;

/// Prints the PeerId, and nothing else, on stdout.
pub(super) fn execute(arguments: &HomeArgs, json: bool) -> Result {
    let home = Home::at(arguments.home.as_deref())?;
    let peer = Identity::load(&home.identity())?.peer_id();
    if json {
        out::line(serde_json::json!({ "schema": "mingle.identity/1", "peer": peer.to_string() }));
    } else {
        out::line(peer);
    }
    Ok(())
}
