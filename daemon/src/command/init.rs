//! `mingle init`: creates the identity of this peer and a commented configuration file, and founds a swarm.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use mingle_peer::error::Context;
use mingle_peer::membership::{Membership, RecoveryKey, SwarmIdentity};
use mingle_peer::provisional::Provisional;
use mingle_peer::{Error, ErrorKind, Home, Identity, Result, owner_only};

use crate::cli::InitArgs;
use crate::{config, model_files, out};

/// Creates the missing files, and prints remarks on them; the PeerId goes to stdout.
///
/// # Errors
/// After a failure all files created by this call are removed.
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
    if let Some(file) = &arguments.from {
        keep_first_model(&home, file)?;
    }
    let config = home.config();
    let wrote_config = write_config(&config)?;
    if let Some(name) = &arguments.swarm {
        found(&home, name, &identity, arguments.recovery_key.as_deref())?;
    }
    if json {
        out::line(serde_json::json!({
            "schema": "mingle.identity/1",
            "peer": peer.to_string(),
            "created": identity.created,
            "key": path,
            "swarm": arguments.swarm,
            "recovery_key": arguments.recovery_key,
            "first_model": arguments.from.as_ref().map(|_| home.first_model()),
            "config": config,
            "config_created": wrote_config,
        }));
        return Ok(());
    }
    let what = if identity.created { "created" } else { "kept" };
    remark!("{what} the identity {} (readable by its owner only)", path.display());
    let what = if wrote_config { "wrote" } else { "kept" };
    remark!("{what} the settings {}", config.display());
    if let Some(file) = &arguments.from {
        remark!("copied {}: a run here begins with it", file.display());
    }
    if let Some(path) = &arguments.recovery_key {
        remark!(
            "wrote the recovery key {}: keep it where no peer runs; whoever has it can name another operator",
            path.display()
        );
    }
    out::line(peer);
    let home = arguments.home.home.as_ref().map_or_else(String::new, |home| format!(" --home {}", home.display()));
    match &arguments.swarm {
        Some(name) => {
            remark!(
                "founded the swarm {name}; this peer is its operator\nnext: mingle run{home}, and mingle invite{home}"
            );
        }
        None => remark!(
            "next: mingle join{home} TICKET; or give this PeerId to whoever makes the plan: mingle plan bind PLAN --peer NODE={peer}"
        ),
    }
    Ok(())
}

/// Founds a swarm, unless the home has one of this name already. A recovery key can be made only then.
fn found(home: &Home, name: &str, identity: &Identity, recovery_key: Option<&Path>) -> Result {
    let known = Membership::of(home)?;
    let is_founded = known
        .as_ref()
        .is_some_and(|known| known.swarm.name == name && known.swarm.founder().ok() == Some(identity.peer_id()));
    let Some(path) = recovery_key else {
        let found = || Membership::founder(SwarmIdentity::found(name, identity.peer_id())?).write(home);
        return if is_founded { Ok(()) } else { found() };
    };
    if let Some(known) = known {
        let message = format!("{} belongs to the swarm {} already", home.root().display(), known.swarm.name);
        return Err(Error::new(ErrorKind::Refused, message).hint(
            "a recovery key is made when a swarm is founded: found another one in a home of its own, with --home DIR",
        ));
    }
    let swarm = RecoveryKey::found(name, identity.peer_id(), path)?;
    Membership::founder(swarm).write(home).inspect_err(|_| {
        // The key of a swarm that does not exist.
        let _ = fs::remove_file(path);
    })
}

/// Copies the model that a run is to begin with into the home. A run that has begun there keeps its beginning.
fn keep_first_model(home: &Home, file: &Path) -> Result {
    model_files::read(file)?;
    if home.records().exists() {
        let message = format!("a run has begun in {}, and goes on as it began", home.root().display());
        return Err(Error::new(ErrorKind::Refused, message)
            .hint("give the new run a home of its own with --home DIR; or leave --from away, and say mingle run --fresh --begin-with FILE"));
    }
    let bytes = fs::read(file).context(ErrorKind::BadInput, format!("cannot read {}", file.display()))?;
    owner_only::write_file(&home.first_model(), &bytes)
}

/// Writes the commented configuration if there is none; returns `true` if it did.
fn write_config(path: &Path) -> Result<bool> {
    let doing = format!("cannot write the configuration {}", path.display());
    match owner_only::open(path, OpenOptions::new().write(true).create_new(true)) {
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
