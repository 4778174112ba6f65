//! `mingle init`: gives this peer its identity and a configuration file that explains itself, and founds a swarm.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use mingle_peer::error::Context;
use mingle_peer::membership::{Membership, Swarm};
use mingle_peer::{ErrorKind, Home, Identity, Result};

use crate::cli::InitArgs;
use crate::provisional::Provisional;
use crate::{config, out};

/// Creates what is missing, and says so; the PeerId goes to stdout.
///
/// # Errors
/// Nothing is left of what a failed call created.
pub(super) fn execute(arguments: &InitArgs, json: bool) -> Result {
    let home = Home::at(arguments.home.home.as_deref())?;
    let before = Provisional::look(&home);
    create(arguments, json).inspect_err(|_| before.undo())
}

fn create(arguments: &InitArgs, json: bool) -> Result {
    let home = Home::create(arguments.home.home.as_deref())?;
    let path = home.identity();
    let identity = Identity::load_or_create(&path)?;
    let peer = identity.peer_id();
    let config = home.config();
    let wrote_config = write_config(&config)?;
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
            "config": config,
            "config_created": wrote_config,
        }));
        return Ok(());
    }
    let what = if identity.created { "created" } else { "kept" };
    eprintln!("{what} the identity {} (readable by its owner only)", path.display());
    let what = if wrote_config { "wrote" } else { "kept" };
    eprintln!("{what} the settings {}", config.display());
    out::line(peer);
    match &arguments.swarm {
        Some(name) => {
            eprintln!("founded the swarm {name}; this peer is its operator\nnext: mingle run, and mingle invite");
        }
        None => eprintln!("next: give this PeerId to whoever makes the plan: mingle plan bind PLAN --peer NODE={peer}"),
    }
    Ok(())
}

/// Founds a swarm, unless the home has one of this name already.
fn found(home: &Home, name: &str, identity: &Identity) -> Result {
    match Membership::of(home)? {
        Some(known) if known.swarm.name == name && known.swarm.operator()? == identity.peer_id() => Ok(()),
        _ => Membership::founder(Swarm::found(name, identity.peer_id())?).write(home),
    }
}

/// Writes the commented configuration where there is none; says whether it did.
fn write_config(path: &Path) -> Result<bool> {
    let doing = format!("cannot write the configuration {}", path.display());
    match File::create_new(path) {
        Ok(mut file) => {
            file.write_all(config::template().as_bytes())
                .and_then(|()| file.sync_all())
                .context(ErrorKind::BadInput, doing)?;
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error).context(ErrorKind::BadInput, doing),
    }
}
