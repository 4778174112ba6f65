//! Pending peers: admitted, and waiting for a plan that names them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use libp2p::PeerId;
use mingle_home::error::{Error, ErrorKind, Result};
use mingle_home::home::Home;
use mingle_home::small_file::{read_json, write_json};
use serde::{Deserialize, Serialize};

use crate::invite::{Claim, Invite};
use crate::requests::Waiting;
use crate::revocations::Revocations;
use crate::swarm::SwarmIdentity;

/// Most pending peers at a time.
const MAX_WAITING: usize = 1024;
/// Most invitations whose uses are counted.
const MAX_INVITES: usize = 1024;

/// The queue of pending peers, with the claims that admitted them.
#[derive(Debug)]
pub(crate) struct PendingPeers {
    path: PathBuf,
    waiting: Vec<PeerId>,
    /// The claim that admitted each of them.
    claims: BTreeMap<PeerId, Waiting>,
}

/// The peers that used each invitation, by its id in hexadecimal. The file is read each time: on the operator's machine
/// the running peer counts the peers that it admits, and `plan apply` those admitted by others.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Uses(BTreeMap<String, BTreeSet<String>>);

impl PendingPeers {
    /// The empty queue of a home; uses counted before still count.
    pub(crate) fn open(home: &Home) -> Result<Self> {
        let path = Uses::path(home);
        Uses::read(&path)?;
        Ok(Self { path, waiting: Vec::new(), claims: BTreeMap::new() })
    }

    /// Admits a peer with an invitation. Returns `true` if it is new here.
    ///
    /// # Errors
    /// The invitation is not valid, another peer's, or used up, or the queue is full.
    pub(crate) fn admit(&mut self, peer: PeerId, claim: &Claim, swarm: &SwarmIdentity) -> Result<bool> {
        claim.check(swarm, &peer)?;
        let mut used = Uses::read(&self.path)?;
        if used.count(&peer, &claim.invite)? {
            used.write(&self.path)?;
        }
        if self.claims.contains_key(&peer) {
            return Ok(false);
        }
        if self.waiting.len() >= MAX_WAITING {
            return Err(Error::new(ErrorKind::Refused, "too many peers wait already"));
        }
        self.waiting.push(peer);
        self.claims.insert(peer, Waiting::new(peer, claim.clone()));
        Ok(true)
    }

    /// Checks that an invitation has a use left for this peer, or was used by it; counts nothing.
    ///
    /// # Errors
    /// It is used up as far as this home knows, too many invitations are in use, or the count cannot be read.
    pub(crate) fn check_uses(&self, peer: &PeerId, invite: &Invite) -> Result {
        Uses::read(&self.path)?.count(peer, invite).map(drop)
    }

    /// The pending peers, in the order of their admission.
    pub(crate) fn waiting(&self) -> &[PeerId] {
        &self.waiting
    }

    /// The pending peers with the claims that admitted them, in the order of their admission.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Waiting> {
        self.waiting.iter().filter_map(|peer| self.claims.get(peer))
    }

    /// Removes pending peers that are members now, and those that were expelled or whose invitation is revoked.
    pub(crate) fn dismiss(&mut self, members: &BTreeSet<String>, revoked: &Revocations) {
        let Self { waiting, claims, .. } = self;
        waiting.retain(|peer| {
            let may_wait = claims.get(peer).is_some_and(|entry| revoked.check(peer, entry.invite()).is_ok());
            may_wait && !members.contains(&peer.to_string())
        });
        claims.retain(|peer, _| waiting.contains(peer));
    }
}

/// The peers among those reported as pending elsewhere that hold a valid invitation, in this order. Each is counted in
/// the operator's home.
///
/// # Errors
/// The count cannot be read or written.
pub fn entitled(home: &Home, swarm: &SwarmIdentity, revoked: &Revocations, told: &[Waiting]) -> Result<Vec<PeerId>> {
    let path = Uses::path(home);
    let mut used = Uses::read(&path)?;
    let mut found = Vec::new();
    for (peer, invite) in told.iter().take(MAX_WAITING).filter_map(|waiting| waiting.checked(swarm)) {
        let is_wanted = revoked.check(&peer, invite).is_ok() && !found.contains(&peer);
        if is_wanted && used.count(&peer, invite).is_ok() {
            found.push(peer);
        }
    }
    if !found.is_empty() {
        used.write(&path)?;
    }
    Ok(found)
}

impl Uses {
    fn path(home: &Home) -> PathBuf {
        home.root().join("invites-used.json")
    }

    fn read(path: &Path) -> Result<Self> {
        Ok(read_json(path, "holds no uses of invitations")?.unwrap_or_default())
    }

    /// Counts a peer that uses an invitation. Returns `true` if it is new.
    fn count(&mut self, peer: &PeerId, invite: &Invite) -> Result<bool> {
        let name = peer.to_string();
        let id = invite.id();
        let used = self.0.get(&id);
        if used.is_some_and(|used| used.contains(&name)) {
            return Ok(false);
        }
        if used.map_or(0, BTreeSet::len) >= invite.uses as usize {
            return Err(Error::new(ErrorKind::Refused, "this invitation is used up"));
        }
        if self.0.len() >= MAX_INVITES && !self.0.contains_key(&id) {
            return Err(Error::new(ErrorKind::Refused, "too many invitations are in use"));
        }
        self.0.entry(id).or_default().insert(name);
        Ok(true)
    }

    fn write(&self, path: &Path) -> Result {
        write_json(path, self, "the invitations")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use libp2p::identity::Keypair;
    use std::time::Duration;

    use crate::invite::SecretInvite;
    use crate::swarm::Signer;

    #[test]
    fn an_invitation_lets_in_as_many_peers_as_it_says_also_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        let operator = Keypair::generate_ed25519();
        let swarm = SwarmIdentity::found("ward7", operator.public().to_peer_id()).unwrap();
        let signer = Signer::new(swarm.clone(), operator).unwrap();
        let invite = SecretInvite::sign(&signer, 2, Duration::from_secs(60)).unwrap();
        let claim = |peer: &PeerId| invite.claim(&swarm, peer).unwrap();
        let [ana, ben, cho] = [PeerId::random(), PeerId::random(), PeerId::random()];
        let mut pending_peers = PendingPeers::open(&home).unwrap();
        assert!(pending_peers.admit(ana, &claim(&ana), &swarm).unwrap());
        assert!(!pending_peers.admit(ana, &claim(&ana), &swarm).unwrap(), "it waits already");
        assert!(pending_peers.admit(ben, &claim(&ben), &swarm).unwrap());
        assert!(pending_peers.admit(cho, &claim(&cho), &swarm).unwrap_err().to_string().contains("used up"));
        assert!(pending_peers.check_uses(&cho, &invite.invite).is_err());
        assert!(pending_peers.check_uses(&ben, &invite.invite).is_ok(), "it has used it");
        assert_eq!(pending_peers.waiting(), [ana, ben]);
        pending_peers.dismiss(&[ana.to_string()].into(), &Revocations::default());
        assert_eq!(pending_peers.waiting(), [ben]);

        let mut pending_peers = PendingPeers::open(&home).unwrap();
        assert!(pending_peers.admit(cho, &claim(&cho), &swarm).is_err());
        assert!(pending_peers.admit(ben, &claim(&ben), &swarm).unwrap(), "it may come back");
    }

    #[test]
    fn who_waits_with_an_invitation_that_is_revoked_is_sent_away_with_the_next_plan() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        let operator = Keypair::generate_ed25519();
        let swarm = SwarmIdentity::found("ward7", operator.public().to_peer_id()).unwrap();
        let signer = Signer::new(swarm.clone(), operator).unwrap();
        let invite = || SecretInvite::sign(&signer, 2, Duration::from_secs(60)).unwrap();
        let (kept, revoked) = (invite(), invite());
        let [ana, ben, cho] = [(); 3].map(|()| PeerId::random());
        let mut pending_peers = PendingPeers::open(&home).unwrap();
        for (invite, peer) in [(&kept, ana), (&revoked, ben), (&kept, cho)] {
            assert!(pending_peers.admit(peer, &invite.claim(&swarm, &peer).unwrap(), &swarm).unwrap());
        }
        let mut list = Revocations::default();
        list.revoke(&revoked.invite.id());
        list.expel(&cho);
        pending_peers.dismiss(&BTreeSet::new(), &list);
        assert_eq!(pending_peers.waiting(), [ana]);
        assert_eq!(pending_peers.entries().count(), 1);
    }

    #[test]
    fn the_operator_believes_the_invitations_of_those_who_wait_and_not_who_tells_of_them() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        let operator = Keypair::generate_ed25519();
        let swarm = SwarmIdentity::found("ward7", operator.public().to_peer_id()).unwrap();
        let signer = Signer::new(swarm.clone(), operator).unwrap();
        let invite = |uses| SecretInvite::sign(&signer, uses, Duration::from_secs(60)).unwrap();
        let (two, one, revoked) = (invite(2), invite(1), invite(5));
        let waiting = |secret: &SecretInvite, peer: PeerId| Waiting::new(peer, secret.claim(&swarm, &peer).unwrap());
        let [ana, ben, cho, dov, eve] = [(); 5].map(|()| PeerId::random());
        let mut list = Revocations::default();
        list.revoke(&revoked.invite.id());
        list.expel(&dov);
        let stolen = Waiting::new(eve, two.claim(&swarm, &ana).unwrap());
        let other = Keypair::generate_ed25519();
        let of_other = SwarmIdentity::found("ward7", other.public().to_peer_id()).unwrap();
        let made_up = SecretInvite::sign(&Signer::new(of_other, other).unwrap(), 9, Duration::from_secs(60)).unwrap();
        let told = [
            waiting(&two, ana),
            stolen,
            waiting(&made_up, eve),
            waiting(&revoked, eve),
            waiting(&two, dov),
            waiting(&two, ben),
            waiting(&two, ben),
            waiting(&two, cho),
            waiting(&one, cho),
        ];
        assert_eq!(entitled(&home, &swarm, &list, &told).unwrap(), [ana, ben, cho]);
        // Peers that other members admitted count here as well.
        let mut own = PendingPeers::open(&home).unwrap();
        assert!(own.admit(eve, &one.claim(&swarm, &eve).unwrap(), &swarm).unwrap_err().to_string().contains("used up"));
        assert!(own.admit(cho, &one.claim(&swarm, &cho).unwrap(), &swarm).unwrap());
    }
}
