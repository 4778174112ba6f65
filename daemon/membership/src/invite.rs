//! The operator's word that whoever brings it may wait to be planned in: for so many peers, until a certain time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use libp2p::identity::Keypair;
use mingle_home::error::{Context, Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use crate::swarm::Swarm;

/// An invitation to a swarm. Whoever has it can use it: it is a secret until it has expired or is used up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invite {
    /// Tells invitations apart.
    pub id: [u8; 16],
    /// Seconds since 1970.
    pub expires_unix_s: u64,
    /// How many peers it lets in.
    pub uses: u32,
    signature: Vec<u8>,
}

impl Invite {
    /// An invitation for `uses` peers that come within `lifetime`.
    pub fn sign(swarm: &Swarm, uses: u32, lifetime: Duration, operator: &Keypair) -> Result<Self> {
        let mut id = [0; 16];
        getrandom::fill(&mut id).context(ErrorKind::Unexpected, "the operating system gives no random numbers")?;
        let expires_unix_s = now_unix_s().saturating_add(lifetime.as_secs());
        let mut invite = Self { id, expires_unix_s, uses, signature: Vec::new() };
        invite.signature =
            operator.sign(&invite.words(swarm)).context(ErrorKind::Unexpected, "cannot sign an invitation")?;
        Ok(invite)
    }

    /// # Errors
    /// It is not an invitation to this swarm, or no longer.
    pub fn check(&self, swarm: &Swarm) -> Result {
        if !swarm.is_signed(&self.words(swarm), &self.signature) {
            return Err(Error::new(ErrorKind::Refused, format!("this invitation is not to the swarm {}", swarm.name)));
        }
        if now_unix_s() > self.expires_unix_s {
            return Err(Error::new(ErrorKind::Refused, "this invitation has expired")
                .hint("ask the operator of the swarm for another: mingle invite"));
        }
        Ok(())
    }

    fn words(&self, swarm: &Swarm) -> Vec<u8> {
        let mut words = b"mingle invite 1\0".to_vec();
        words.extend(swarm.id());
        words.extend(self.id);
        words.extend(self.expires_unix_s.to_le_bytes());
        words.extend(self.uses.to_le_bytes());
        words
    }
}

/// A clock that stands before 1970 makes every invitation valid for a while; it makes none valid for ever.
pub(crate) fn now_unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_invitation_holds_for_its_swarm_and_its_time_and_cannot_be_changed() {
        let operator = Keypair::generate_ed25519();
        let swarm = Swarm::found("ward7", operator.public().to_peer_id()).unwrap();
        let hour = Duration::from_secs(3600);
        let invite = Invite::sign(&swarm, 2, hour, &operator).unwrap();
        invite.check(&swarm).unwrap();
        assert!(Invite { uses: 3, ..invite.clone() }.check(&swarm).is_err());
        assert!(Invite { expires_unix_s: invite.expires_unix_s + 1, ..invite.clone() }.check(&swarm).is_err());
        let other = Swarm::found("ward7", operator.public().to_peer_id()).unwrap();
        assert!(invite.check(&other).unwrap_err().to_string().contains("not to the swarm"));
        let stranger = Keypair::generate_ed25519();
        assert!(Invite::sign(&swarm, 2, hour, &stranger).unwrap().check(&swarm).is_err());
        let mut past = Invite { expires_unix_s: 1, ..invite };
        past.signature = operator.sign(&past.words(&swarm)).unwrap();
        assert!(past.check(&swarm).unwrap_err().to_string().contains("expired"));
    }
}
