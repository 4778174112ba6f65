//! The swarm that a home belongs to, and what let its peer in.

use std::fs;
use std::io;
use std::path::PathBuf;

use libp2p::Multiaddr;
use mingle_home::error::{Context, Error, ErrorKind, Result};
use mingle_home::home::{Home, write_private_file};
use serde::{Deserialize, Serialize};

use crate::invite::SecretInvite;
use crate::swarm::Swarm;

const SCHEMA: &str = "mingle.swarm/2";

/// What a home knows of its swarm.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Membership {
    schema: String,
    /// The swarm.
    pub swarm: Swarm,
    /// What lets this peer in, unless it is the operator.
    pub invite: Option<SecretInvite>,
    /// Members that were up when this peer was invited.
    pub bootstrap: Vec<Multiaddr>,
}

impl Membership {
    /// The operator's own.
    pub fn founder(swarm: Swarm) -> Self {
        Self { schema: SCHEMA.to_owned(), swarm, invite: None, bootstrap: Vec::new() }
    }

    /// A newcomer's.
    pub fn invited(swarm: Swarm, invite: SecretInvite, bootstrap: Vec<Multiaddr>) -> Self {
        Self { schema: SCHEMA.to_owned(), swarm, invite: Some(invite), bootstrap }
    }

    /// What this home knows; none if it belongs to no swarm with an operator.
    pub fn of(home: &Home) -> Result<Option<Self>> {
        let path = path(home);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).context(ErrorKind::BadInput, format!("cannot read {}", path.display())),
        };
        let doing = format!("{} does not describe a swarm", path.display());
        let membership: Self = serde_json::from_str(&text).context(ErrorKind::Integrity, &doing)?;
        if membership.schema != SCHEMA {
            return Err(Error::new(ErrorKind::Integrity, format!("{doing} in the form {SCHEMA}")));
        }
        membership.swarm.clone().checked()?;
        Ok(Some(membership))
    }

    /// # Errors
    /// The home belongs to another swarm.
    pub fn check(&self, home: &Home) -> Result {
        if let Some(other) = Self::of(home)?.filter(|other| other.swarm != self.swarm) {
            return Err(Error::new(
                ErrorKind::Refused,
                format!("{} belongs to the swarm {} already", home.root().display(), other.swarm.name),
            )
            .hint("give this peer a home of its own with --home DIR"));
        }
        Ok(())
    }

    /// Remembers the swarm in the home.
    ///
    /// # Errors
    /// The home belongs to another swarm.
    pub fn write(&self, home: &Home) -> Result {
        self.check(home)?;
        let path = path(home);
        let text = serde_json::to_string_pretty(self).context(ErrorKind::Unexpected, "cannot encode the membership")?;
        // The invitation in it lets in whoever has it.
        write_private_file(&path, format!("{text}\n").as_bytes())
    }
}

fn path(home: &Home) -> PathBuf {
    home.root().join("swarm.json")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use libp2p::identity::Keypair;

    #[test]
    fn a_home_keeps_to_its_swarm() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        assert!(Membership::of(&home).unwrap().is_none());
        let operator = Keypair::generate_ed25519().public().to_peer_id();
        let swarm = Swarm::found("ward7", operator).unwrap();
        Membership::founder(swarm.clone()).write(&home).unwrap();
        assert_eq!(Membership::of(&home).unwrap().unwrap().swarm, swarm);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(path(&home)).unwrap().permissions().mode() & 0o777, 0o600);
        }
        let other = Membership::founder(Swarm::found("ward8", operator).unwrap());
        assert!(other.write(&home).unwrap_err().to_string().contains("ward7"));
        fs::write(path(&home), "{}").unwrap();
        assert!(Membership::of(&home).unwrap_err().is(ErrorKind::Integrity));
    }
}
