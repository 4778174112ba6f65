//! The operator's revocations: peers that may not come back, and invitations that admit no further peer.
//!
//! The operator keeps the list in its home. Each plan that it signs carries the list, so that every member that follows
//! the plan refuses the same peers.

use std::collections::BTreeSet;
use std::path::PathBuf;

use libp2p::PeerId;
use mingle_home::error::{Error, ErrorKind, Result};
use mingle_home::home::Home;
use mingle_home::small_file::{read_json, write_json};
use mingle_planner::Plan;
use serde::{Deserialize, Serialize};

use crate::invite::Invite;

/// Most entries, which fit beside the largest plan.
pub const MAX_REVOKED: usize = 10_000;

/// Revoked peers and invitations, each by its printed name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revocations {
    /// PeerIds.
    peers: BTreeSet<String>,
    /// Ids of invitations, in hexadecimal.
    invites: BTreeSet<String>,
}

impl Revocations {
    /// The list that a home keeps; empty if there is none.
    ///
    /// # Errors
    /// The file cannot be read, or is not such a list.
    pub fn of(home: &Home) -> Result<Self> {
        Ok(Self::kept(home)?.unwrap_or_default())
    }

    /// The list that a home keeps; `None` if it has lost it, or never had one. Then the list of the newest plan counts.
    ///
    /// # Errors
    /// The file cannot be read, or is not such a list.
    pub fn kept(home: &Home) -> Result<Option<Self>> {
        read_json(&path(home), "holds no list of revocations")
    }

    /// Adds all entries of another list.
    pub(crate) fn join(&mut self, other: Self) {
        self.peers.extend(other.peers);
        self.invites.extend(other.invites);
    }

    /// Stores the list in the home.
    ///
    /// # Errors
    /// The list is too long to go with a plan, or cannot be written.
    pub fn keep(&self, home: &Home) -> Result {
        let entries = self.peers.len() + self.invites.len();
        if entries > MAX_REVOKED {
            let message = format!("{entries} peers and invitations are revoked; a plan carries {MAX_REVOKED}");
            return Err(Error::new(ErrorKind::BadInput, message)
                .hint("invitations that have expired need not be revoked: take them out of revoked.json"));
        }
        write_json(&path(home), self, "the revocations")
    }

    /// Expels a peer, which may not come back. Returns `true` if that is new.
    pub fn expel(&mut self, peer: &PeerId) -> bool {
        self.peers.insert(peer.to_string())
    }

    /// Lets an expelled peer come back, with an invitation. Returns `true` if it was expelled.
    pub fn readmit(&mut self, peer: &PeerId) -> bool {
        self.peers.remove(&peer.to_string())
    }

    /// Revokes the invitation with this id, in hexadecimal: it admits no further peer. Returns `true` if that is new.
    pub fn revoke(&mut self, invite: &str) -> bool {
        self.invites.insert(invite.to_owned())
    }

    /// Returns `true` if this peer was expelled.
    pub fn has_peer(&self, peer: &PeerId) -> bool {
        !self.peers.is_empty() && self.peers.contains(&peer.to_string())
    }

    /// Returns `true` if the invitation with this id, in hexadecimal, was revoked.
    pub fn has_invite(&self, id: &str) -> bool {
        self.invites.contains(id)
    }

    /// Checks that neither the peer nor its invitation is revoked.
    ///
    /// # Errors
    /// The peer was expelled, or its invitation revoked.
    pub(crate) fn check(&self, peer: &PeerId, invite: &Invite) -> Result {
        if self.has_peer(peer) {
            return Err(Error::new(ErrorKind::Refused, "the operator of the swarm has expelled this peer"));
        }
        if self.has_invite(&invite.id()) {
            return Err(Error::new(ErrorKind::Refused, "the operator of the swarm has revoked this invitation"));
        }
        Ok(())
    }

    /// The first member of a plan that was expelled.
    pub fn first_in<'a>(&self, plan: &'a Plan) -> Option<&'a str> {
        plan.nodes().filter_map(|(_, peer)| peer).find(|peer| self.peers.contains(*peer))
    }

    /// Hash of the list, which the operator's signature covers.
    pub(crate) fn hash(&self) -> [u8; 32] {
        // Two sets of strings: postcard can write them.
        *blake3::hash(&postcard::to_stdvec(self).unwrap_or_default()).as_bytes()
    }
}

fn path(home: &Home) -> PathBuf {
    home.root().join("revoked.json")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use super::*;

    #[test]
    fn what_is_revoked_stays_so_until_it_is_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        assert_eq!(Revocations::kept(&home).unwrap(), None);
        let mut list = Revocations::of(&home).unwrap();
        let (peer, other) = (PeerId::random(), PeerId::random());
        assert!(list.expel(&peer) && !list.expel(&peer) && list.revoke("00ff"));
        let before = list.hash();
        list.keep(&home).unwrap();
        let mut read = Revocations::of(&home).unwrap();
        assert_eq!(read, list);
        assert!(read.has_peer(&peer) && !read.has_peer(&other) && read.has_invite("00ff"));
        assert!(read.readmit(&peer) && !read.has_peer(&peer));
        assert_ne!(read.hash(), before);
    }

    #[test]
    fn a_list_that_no_plan_can_carry_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        let mut list = Revocations::default();
        for id in 0..=MAX_REVOKED {
            list.revoke(&format!("{id:032x}"));
        }
        assert!(list.keep(&home).unwrap_err().to_string().contains("10001 peers and invitations"));
        fs::write(path(&home), "[]").unwrap();
        assert!(Revocations::of(&home).unwrap_err().is(ErrorKind::Integrity));
    }
}
