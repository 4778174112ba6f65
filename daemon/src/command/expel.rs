//! `mingle expel`: expels peers, which may not come back.

use libp2p::PeerId;
use mingle_peer::membership::known_revocations;
use mingle_peer::{Error, ErrorKind, Home, Result};

use super::operator::signer_of;
use crate::cli::ExpelArgs;
use crate::out;

/// Adds the peers to the revocations that accompany every plan of the operator, or removes them.
pub(super) fn execute(arguments: &ExpelArgs, json: bool) -> Result {
    let home = Home::at(arguments.home.home.as_deref())?;
    let signer = signer_of(&home)?;
    signer.check_time()?;
    let mut revoked = known_revocations(&home, &signer)?;
    let mut changed: Vec<&PeerId> = Vec::new();
    for peer in &arguments.peers {
        if !arguments.undo && signer.swarm().role_of(peer).is_some() {
            let message = "the operator of a swarm and its delegate cannot be expelled from it";
            return Err(Error::new(ErrorKind::BadInput, message));
        }
        let is_news = if arguments.undo { revoked.readmit(peer) } else { revoked.expel(peer) };
        if is_news {
            changed.push(peer);
        }
    }
    revoked.keep(&home)?;
    if json {
        let changed: Vec<String> = changed.iter().map(ToString::to_string).collect();
        out::line(serde_json::json!({ "schema": "mingle.expel/1", "undo": arguments.undo, "changed": changed }));
        return Ok(());
    }
    for peer in &arguments.peers {
        let was_so = !changed.contains(&peer);
        out::line(match (arguments.undo, was_so) {
            (false, false) => format!("{peer} may not come back"),
            (false, true) => format!("{peer} was expelled already"),
            (true, false) => format!("{peer} may come back with an invitation"),
            (true, true) => format!("{peer} was not expelled"),
        });
    }
    if !changed.is_empty() {
        remark!(
            "members hear of it with the next plan: within seconds where this peer runs with --planning auto, else with \
             mingle plan apply --without PEERID"
        );
    }
    Ok(())
}
