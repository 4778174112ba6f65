//! Peers that were let in and wait until a plan names them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::PathBuf;

use libp2p::PeerId;
use mingle_home::error::{Context, Error, ErrorKind, Result};
use mingle_home::home::{Home, write_file};
use serde::{Deserialize, Serialize};

use crate::invite::Invite;
use crate::revocations::Revocations;
use crate::swarm::Swarm;

/// Peers that wait at the same time.
const MAX_WAITING: usize = 1024;
/// Invitations whose use is counted.
const MAX_INVITES: usize = 1024;

/// The waiting room, and who came in with which invitation.
#[derive(Debug)]
pub(crate) struct PendingPeers {
    path: PathBuf,
    waiting: Vec<PeerId>,
    used: Uses,
}

/// Who used an invitation, by its id in hexadecimal.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
struct Uses(BTreeMap<String, BTreeSet<String>>);

impl PendingPeers {
    /// The waiting room of a home: empty, but what was used before stays used.
    pub(crate) fn open(home: &Home) -> Result<Self> {
        let path = home.root().join("invites-used.json");
        let doing = format!("cannot read {}", path.display());
        let used = match fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text).context(ErrorKind::Integrity, doing)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Uses::default(),
            Err(error) => return Err(error).context(ErrorKind::BadInput, doing),
        };
        Ok(Self { path, waiting: Vec::new(), used })
    }

    /// Lets a peer in that brings an invitation. Returns whether it is new here.
    ///
    /// # Errors
    /// The invitation does not hold, is used up, or the room is full.
    pub(crate) fn admit(&mut self, peer: PeerId, invite: &Invite, swarm: &Swarm) -> Result<bool> {
        invite.check(swarm)?;
        let name = peer.to_string();
        let id = hex::encode(invite.id);
        let used = self.used.0.get(&id);
        if !used.is_some_and(|used| used.contains(&name)) {
            if used.is_some_and(|used| used.len() >= invite.uses as usize) || invite.uses == 0 {
                return Err(Error::new(ErrorKind::Refused, "this invitation is used up"));
            }
            if self.used.0.len() >= MAX_INVITES && !self.used.0.contains_key(&id) {
                return Err(Error::new(ErrorKind::Refused, "too many invitations are in use"));
            }
            self.used.0.entry(id).or_default().insert(name);
            self.write()?;
        }
        if self.waiting.contains(&peer) {
            return Ok(false);
        }
        if self.waiting.len() >= MAX_WAITING {
            return Err(Error::new(ErrorKind::Refused, "too many peers wait already"));
        }
        self.waiting.push(peer);
        Ok(true)
    }

    /// Those who wait, in the order in which they came.
    pub(crate) fn waiting(&self) -> &[PeerId] {
        &self.waiting
    }

    /// These are members now, and those are turned away.
    pub(crate) fn dismiss(&mut self, members: &BTreeSet<String>, revoked: &Revocations) {
        self.waiting.retain(|peer| !members.contains(&peer.to_string()) && !revoked.has_peer(peer));
    }

    fn write(&self) -> Result {
        let text =
            serde_json::to_string_pretty(&self.used).context(ErrorKind::Unexpected, "cannot encode the invitations")?;
        write_file(&self.path, format!("{text}\n").as_bytes())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use libp2p::identity::Keypair;
    use std::time::Duration;

    #[test]
    fn an_invitation_lets_in_as_many_peers_as_it_says_also_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        let operator = Keypair::generate_ed25519();
        let swarm = Swarm::found("ward7", operator.public().to_peer_id()).unwrap();
        let invite = Invite::sign(&swarm, 2, Duration::from_secs(60), &operator).unwrap();
        let [ana, ben, cho] = [PeerId::random(), PeerId::random(), PeerId::random()];
        let mut pending_peers = PendingPeers::open(&home).unwrap();
        assert!(pending_peers.admit(ana, &invite, &swarm).unwrap());
        assert!(!pending_peers.admit(ana, &invite, &swarm).unwrap(), "it waits already");
        assert!(pending_peers.admit(ben, &invite, &swarm).unwrap());
        assert!(pending_peers.admit(cho, &invite, &swarm).unwrap_err().to_string().contains("used up"));
        assert_eq!(pending_peers.waiting(), [ana, ben]);
        pending_peers.dismiss(&[ana.to_string()].into(), &Revocations::default());
        assert_eq!(pending_peers.waiting(), [ben]);

        let mut pending_peers = PendingPeers::open(&home).unwrap();
        assert!(pending_peers.admit(cho, &invite, &swarm).is_err());
        assert!(pending_peers.admit(ben, &invite, &swarm).unwrap(), "it may come back");
    }
}
