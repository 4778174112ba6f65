//! The operator's word that one peer may measure its link to another, now.

use std::time::Duration;

use libp2p::PeerId;
use libp2p::identity::Keypair;
use serde::{Deserialize, Serialize};

use crate::failure::{Kind, OrFail, Outcome};
use crate::membership::{Swarm, now_unix_s};

/// It is used at once; clocks may differ by this much.
const LIFETIME: Duration = Duration::from_secs(120);

/// Permission to measure one link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Warrant {
    expires_unix_s: u64,
    signature: Vec<u8>,
}

impl Warrant {
    /// Lets `from` measure its link to `to`.
    pub(crate) fn sign(swarm: &Swarm, from: PeerId, to: PeerId, operator: &Keypair) -> Outcome<Self> {
        let expires_unix_s = now_unix_s().saturating_add(LIFETIME.as_secs());
        let signature = operator
            .sign(&words(swarm, from, to, expires_unix_s))
            .or_fail(Kind::Unexpected, "cannot sign a permission to measure")?;
        Ok(Self { expires_unix_s, signature })
    }

    /// Whether the operator of this swarm lets these two measure their link now.
    pub(crate) fn holds(&self, swarm: &Swarm, from: PeerId, to: PeerId) -> bool {
        let now = now_unix_s();
        let is_timely = now <= self.expires_unix_s && self.expires_unix_s <= now.saturating_add(2 * LIFETIME.as_secs());
        is_timely && swarm.is_signed(&words(swarm, from, to, self.expires_unix_s), &self.signature)
    }
}

fn words(swarm: &Swarm, from: PeerId, to: PeerId, expires_unix_s: u64) -> Vec<u8> {
    let mut words = b"mingle probe 1\0".to_vec();
    words.extend(swarm.id());
    for peer in [from, to] {
        let bytes = peer.to_bytes();
        words.extend((bytes.len() as u64).to_le_bytes());
        words.extend(bytes);
    }
    words.extend(expires_unix_s.to_le_bytes());
    words
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_warrant_holds_for_one_link_of_one_swarm_and_not_for_long() {
        let operator = Keypair::generate_ed25519();
        let swarm = Swarm::found("ward7", operator.public().to_peer_id()).unwrap();
        let other = Swarm::found("ward7", operator.public().to_peer_id()).unwrap();
        let [ana, ben, cho] = [PeerId::random(), PeerId::random(), PeerId::random()];
        let warrant = Warrant::sign(&swarm, ana, ben, &operator).unwrap();
        assert!(warrant.holds(&swarm, ana, ben));
        assert!(!warrant.holds(&swarm, ben, ana) && !warrant.holds(&swarm, ana, cho));
        assert!(!warrant.holds(&other, ana, ben));
        assert!(!Warrant::sign(&swarm, ana, ben, &Keypair::generate_ed25519()).unwrap().holds(&swarm, ana, ben));
        for expires_unix_s in [now_unix_s() - 1, now_unix_s() + 1_000_000] {
            let signature = operator.sign(&words(&swarm, ana, ben, expires_unix_s)).unwrap();
            assert!(!Warrant { expires_unix_s, signature }.holds(&swarm, ana, ben));
        }
    }
}
