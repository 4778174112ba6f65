//! `mingle init`: gives this peer its identity, and founds a swarm.

use crate::cli::InitArgs;
use crate::failure::Outcome;
use crate::home::Home;
use crate::identity::Identity;
use crate::membership::{Membership, Swarm};
use crate::out;

/// Creates the identity, or says that there is one; the PeerId goes to stdout.
pub(super) fn execute(arguments: &InitArgs, json: bool) -> Outcome {
    let home = Home::create(arguments.home.home.as_deref())?;
    let path = home.identity();
    let identity = Identity::load_or_create(&path)?;
    let peer = identity.peer_id();
    if let Some(name) = &arguments.swarm {
        found(&home, name, &identity)?;
    }
    if json {
        out::line(serde_json::json!({
            "schema": "mingle.identity/1",
            "peer": peer.to_string(),
            "created": identity.created,
            "key": path,
            "swarm": arguments.swarm,
        }));
        return Ok(());
    }
    let what = if identity.created { "created" } else { "kept" };
    eprintln!("{what} the identity {} (readable by its owner only)", path.display());
    out::line(peer);
    match &arguments.swarm {
        Some(name) => {
            eprintln!("founded the swarm {name}; this peer is its operator\nnext: mingle run, and mingle invite")
        }
        None => eprintln!("next: give this PeerId to whoever makes the plan: mingle plan bind PLAN --peer NODE={peer}"),
    }
    Ok(())
}

/// Founds a swarm, unless the home has one of this name already.
fn found(home: &Home, name: &str, identity: &Identity) -> Outcome {
    match Membership::of(home)? {
        Some(known) if known.swarm.name == name && known.swarm.operator()? == identity.peer_id() => Ok(()),
        _ => Membership::founder(Swarm::found(name, identity.peer_id())?).write(home),
    }
}
