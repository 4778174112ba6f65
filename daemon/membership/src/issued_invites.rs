//! The invitations that an operator has issued, to list and to revoke them.

use std::path::PathBuf;

use mingle_home::error::{Error, ErrorKind, Result};
use mingle_home::home::Home;
use mingle_home::small_file::{read_json, write_json};
use serde::{Deserialize, Serialize};

use crate::invite::Invite;
use crate::times::now_unix_s;

/// An issued invitation, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuedInvite {
    /// Id, in hexadecimal.
    pub id: String,
    /// Number of peers that it admits.
    pub uses: u32,
    /// End of its validity, in seconds since 1970.
    pub expires_unix_s: u64,
}

/// The issued invitations that have not expired, in the order of issue.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IssuedInvites(Vec<IssuedInvite>);

impl IssuedInvites {
    /// The invitations that the operator's home keeps.
    ///
    /// # Errors
    /// The file cannot be read, or holds no such list.
    pub fn of(home: &Home) -> Result<Self> {
        let mut all: Self = read_json(&path(home), "holds no list of invitations")?.unwrap_or_default();
        let now = now_unix_s();
        all.0.retain(|invite| invite.expires_unix_s >= now);
        Ok(all)
    }

    /// Adds an invitation and saves the list.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, invite: &Invite, home: &Home) -> Result {
        let &Invite { uses, expires_unix_s, .. } = invite;
        self.0.push(IssuedInvite { id: invite.id(), uses, expires_unix_s });
        write_json(&path(home), self, "the invitations")
    }

    /// Iterates over the invitations.
    pub fn iter(&self) -> impl Iterator<Item = &IssuedInvite> {
        self.0.iter()
    }

    /// The invitation whose id begins with `beginning`.
    ///
    /// # Errors
    /// No invitation does, or more than one.
    pub fn find(&self, beginning: &str) -> Result<&IssuedInvite> {
        let mut found = self.0.iter().filter(|invite| invite.id.starts_with(beginning));
        let wrong = |why| {
            Error::new(ErrorKind::BadInput, format!("{why} invitation begins with `{beginning}`"))
                .hint("mingle invite --list names those that can still be used")
        };
        let first = found.next().ok_or_else(|| wrong("no"))?;
        if found.next().is_some() { Err(wrong("more than one")) } else { Ok(first) }
    }
}

fn path(home: &Home) -> PathBuf {
    home.root().join("invites.json")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use libp2p::identity::Keypair;

    use super::*;
    use crate::invite::SecretInvite;
    use crate::swarm::{Signer, SwarmIdentity};

    #[test]
    fn invitations_are_remembered_until_they_expire() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        let operator = Keypair::generate_ed25519();
        let swarm = SwarmIdentity::found("ward7", operator.public().to_peer_id()).unwrap();
        let lasting = |hours: u64| Duration::from_secs(3600 * hours);
        let signer = Signer::new(swarm, operator).unwrap();
        let invite = |hours: u64| SecretInvite::sign(&signer, 2, lasting(hours)).unwrap().invite;
        let (first, second) = (invite(1), invite(2));
        let mut past = invite(1);
        past.expires_unix_s = 1;
        for invite in [&first, &past, &second] {
            IssuedInvites::of(&home).unwrap().add(invite, &home).unwrap();
        }
        let issued = IssuedInvites::of(&home).unwrap();
        assert_eq!(issued.iter().map(|invite| invite.id.clone()).collect::<Vec<_>>(), [first.id(), second.id()]);
        assert_eq!(issued.find(&second.id()[..12]).unwrap().uses, 2);
        assert!(issued.find("").unwrap_err().to_string().contains("more than one"));
        assert!(issued.find("nothing").unwrap_err().to_string().starts_with("no invitation"));
    }
}
