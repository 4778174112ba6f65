//! Followers: peers with an invitation that get the model, and never take part.

use libp2p::{Multiaddr, PeerId};
use mingle_home::error::{Error, ErrorKind, Result};

use crate::invite::Claim;
use crate::service::MembershipService;

impl MembershipService {
    /// Checks that a peer may follow the model of this swarm: its invitation would let it in. No use is counted.
    ///
    /// # Errors
    /// The invitation is not to this swarm, another peer's, expired, revoked or used up, or the peer was expelled.
    pub fn check_follower(&self, peer: &PeerId, claim: &Claim) -> Result {
        self.read_authority();
        let swarm = self.swarm().ok_or_else(|| Error::new(ErrorKind::Refused, "this swarm has no operator"))?;
        self.check_claim(&swarm, peer, claim)
    }

    /// This peer and other members with known addresses, at most so many of each.
    pub async fn members_with_addresses(&self, members: usize, addresses: usize) -> Vec<(PeerId, Vec<Multiaddr>)> {
        let known = self.known().into_iter().filter(|peer| self.is_member(peer)).take(members).collect();
        let mut found = self.prober.whereabouts(known).await;
        found.iter_mut().for_each(|(_, known)| known.truncate(addresses));
        found.retain(|(_, known)| !known.is_empty());
        found
    }
}
