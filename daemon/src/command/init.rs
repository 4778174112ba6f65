//! `mingle init`: gives this peer its identity.

use crate::cli::HomeArgs;
use crate::failure::Outcome;
use crate::home::Home;
use crate::identity::Identity;
use crate::out;

/// Creates the identity, or says that there is one; the PeerId goes to stdout.
pub(super) fn execute(arguments: &HomeArgs, json: bool) -> Outcome {
    let home = Home::create(arguments.home.as_deref())?;
    let path = home.identity();
    let identity = Identity::load_or_create(&path)?;
    let peer = identity.peer_id();
    if json {
        out::line(serde_json::json!({
            "schema": "mingle.identity/1",
            "peer": peer.to_string(),
            "created": identity.created,
            "key": path,
        }));
        return Ok(());
    }
    let what = if identity.created { "created" } else { "kept" };
    eprintln!("{what} the identity {} (readable by its owner only)", path.display());
    out::line(peer);
    eprintln!("next: give this PeerId to whoever makes the plan: mingle plan bind PLAN --peer NODE={peer}");
    Ok(())
}
