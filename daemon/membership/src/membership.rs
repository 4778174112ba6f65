//! The swarm that a home belongs to, with the invitation of its peer.

use std::path::{Path, PathBuf};

use libp2p::Multiaddr;
use mingle_home::error::{Context, Error, ErrorKind, Result};
use mingle_home::home::Home;
use mingle_home::small_file::{read_text, write_json};
use serde::{Deserialize, Serialize};

use crate::authority::Authority;
use crate::invite::SecretInvite;
use crate::swarm::SwarmIdentity;

const SCHEMA: &str = "mingle.swarm/3";

/// The membership of a home in its swarm.
#[derive(Clone, Debug)]
pub struct Membership {
    /// The swarm, with its newest authority certificate.
    pub swarm: SwarmIdentity,
    /// The invitation of this peer, unless it may sign for the swarm.
    pub invite: Option<SecretInvite>,
    /// Addresses of members that were up when this peer was invited.
    pub bootstrap: Vec<Multiaddr>,
}

/// The form of `Membership` on disk.
#[derive(Serialize, Deserialize)]
struct File {
    schema: String,
    swarm: SwarmIdentity,
    authority: Authority,
    invite: Option<SecretInvite>,
    bootstrap: Vec<Multiaddr>,
}

impl Membership {
    /// The membership of the operator, or of its delegate.
    pub fn founder(swarm: SwarmIdentity) -> Self {
        Self { swarm, invite: None, bootstrap: Vec::new() }
    }

    /// The membership of a newcomer.
    pub fn invited(swarm: SwarmIdentity, invite: SecretInvite, bootstrap: Vec<Multiaddr>) -> Self {
        Self { swarm, invite: Some(invite), bootstrap }
    }

    /// The membership that a home records; `None` if it belongs to no swarm with an operator.
    pub fn of(home: &Home) -> Result<Option<Self>> {
        let path = path(home);
        read_text(&path)?.map(|text| Self::parse(&text, &path)).transpose()
    }

    /// Parses the text of the file at `path`.
    pub(crate) fn parse(text: &str, path: &Path) -> Result<Self> {
        let doing = format!("{} does not describe a swarm", path.display());
        let File { schema, swarm, authority, invite, bootstrap } =
            serde_json::from_str(text).context(ErrorKind::Integrity, &doing)?;
        if schema != SCHEMA {
            return Err(Error::new(ErrorKind::Integrity, format!("{doing} in the form {SCHEMA}")));
        }
        let mut swarm = swarm.checked()?;
        if authority != Authority::default() && !swarm.learn(&authority) {
            let message = format!("{doing}: its operator has not signed who may sign for it");
            return Err(Error::new(ErrorKind::Integrity, message));
        }
        Ok(Self { swarm, invite, bootstrap })
    }

    /// Stores a newer authority certificate in a home that belongs to the swarm. Returns `true` if it is newer there.
    ///
    /// # Errors
    /// The home cannot be read or written.
    pub fn remember(home: &Home, swarm: &SwarmIdentity) -> Result<bool> {
        let Some(mut known) = Self::of(home)?.filter(|known| known.swarm.is(swarm)) else { return Ok(false) };
        let is_news = known.swarm.learn(swarm.authority());
        if is_news {
            known.write(home)?;
        }
        Ok(is_news)
    }

    /// Checks that the home belongs to this swarm, or to none.
    ///
    /// # Errors
    /// The home belongs to another swarm.
    pub fn check(&self, home: &Home) -> Result {
        if let Some(other) = Self::of(home)?.filter(|other| !other.swarm.is(&self.swarm)) {
            return Err(Error::new(
                ErrorKind::Refused,
                format!("{} belongs to the swarm {} already", home.root().display(), other.swarm.name),
            )
            .hint("give this peer a home of its own with --home DIR"));
        }
        Ok(())
    }

    /// Stores the membership in the home; a newer authority certificate there is kept.
    ///
    /// # Errors
    /// The home belongs to another swarm.
    pub fn write(&self, home: &Home) -> Result {
        self.check(home)?;
        let mut swarm = self.swarm.clone();
        if let Some(known) = Self::of(home)? {
            swarm.learn(known.swarm.authority());
        }
        let file = File {
            schema: SCHEMA.to_owned(),
            authority: swarm.authority().clone(),
            swarm,
            invite: self.invite.clone(),
            bootstrap: self.bootstrap.clone(),
        };
        // Private to the owner: the invitation in the file admits any bearer.
        write_json(&path(home), &file, "the membership")
    }
}

fn path(home: &Home) -> PathBuf {
    home.root().join("swarm.json")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use super::*;
    use crate::swarm::Signer;
    use libp2p::identity::Keypair;

    #[test]
    fn a_home_keeps_to_its_swarm() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        assert!(Membership::of(&home).unwrap().is_none());
        let operator = Keypair::generate_ed25519().public().to_peer_id();
        let swarm = SwarmIdentity::found("ward7", operator).unwrap();
        Membership::founder(swarm.clone()).write(&home).unwrap();
        assert_eq!(Membership::of(&home).unwrap().unwrap().swarm, swarm);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(path(&home)).unwrap().permissions().mode() & 0o777, 0o600);
        }
        let other = Membership::founder(SwarmIdentity::found("ward8", operator).unwrap());
        assert!(other.write(&home).unwrap_err().to_string().contains("ward7"));
        fs::write(path(&home), "{}").unwrap();
        assert!(Membership::of(&home).unwrap_err().is(ErrorKind::Integrity));
    }

    #[test]
    fn a_home_never_forgets_who_may_sign_and_believes_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        let [operator, delegate] = [(); 2].map(|()| Keypair::generate_ed25519());
        let swarm = SwarmIdentity::found("ward7", operator.public().to_peer_id()).unwrap();
        let mut signer = Signer::new(swarm.clone(), operator).unwrap();
        signer.delegate(Some(&delegate.public().to_peer_id()), 7).unwrap();
        assert!(!Membership::remember(&home, signer.swarm()).unwrap(), "the home belongs to no swarm");
        Membership::founder(swarm.clone()).write(&home).unwrap();
        assert!(Membership::remember(&home, signer.swarm()).unwrap());
        assert!(!Membership::remember(&home, signer.swarm()).unwrap() && !Membership::remember(&home, &swarm).unwrap());
        // A process that has not received it writes what it knows.
        Membership::founder(swarm).write(&home).unwrap();
        assert_eq!(Membership::of(&home).unwrap().unwrap().swarm, *signer.swarm());
        let text = fs::read_to_string(path(&home)).unwrap();
        fs::write(path(&home), text.replace("\"not_after_unix_s\": 7", "\"not_after_unix_s\": 8")).unwrap();
        assert!(Membership::of(&home).unwrap_err().to_string().contains("has not signed who may sign"));
    }
}
