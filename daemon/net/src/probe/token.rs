//! The operator's word that one peer may measure its link to another, now.

use std::time::Duration;

use libp2p::PeerId;
use libp2p::identity::{Keypair, PublicKey};
use serde::{Deserialize, Serialize};

use crate::error::ProbeError;

/// It is used at once; clocks may differ by this much.
const LIFETIME: Duration = Duration::from_secs(120);

/// Permission to measure one link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeToken {
    expires_unix_s: u64,
    signature: Vec<u8>,
}

impl ProbeToken {
    /// Lets `from` measure its link to `to`, in the swarm with this identifier, from `now_unix_s` on for two minutes.
    ///
    /// # Errors
    /// The key cannot sign.
    pub fn sign(
        swarm: &[u8],
        from: PeerId,
        to: PeerId,
        operator: &Keypair,
        now_unix_s: u64,
    ) -> Result<Self, ProbeError> {
        let expires_unix_s = now_unix_s.saturating_add(LIFETIME.as_secs());
        let signature = operator.sign(&words(swarm, from, to, expires_unix_s))?;
        Ok(Self { expires_unix_s, signature })
    }

    /// Whether the operator of this swarm lets these two measure their link now.
    pub fn holds(&self, swarm: &[u8], from: PeerId, to: PeerId, operator: &PublicKey, now_unix_s: u64) -> bool {
        let latest = now_unix_s.saturating_add(2 * LIFETIME.as_secs());
        (now_unix_s..=latest).contains(&self.expires_unix_s)
            && operator.verify(&words(swarm, from, to, self.expires_unix_s), &self.signature)
    }
}

fn words(swarm: &[u8], from: PeerId, to: PeerId, expires_unix_s: u64) -> Vec<u8> {
    let mut words = b"mingle probe 1\0".to_vec();
    words.extend(swarm);
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
    fn a_token_holds_for_one_link_of_one_swarm_and_not_for_long() {
        const NOW: u64 = 1_800_000_000;
        let operator = Keypair::generate_ed25519();
        let key = operator.public();
        let (swarm, other) = ([1; 32], [2; 32]);
        let [ana, ben, cho] = [PeerId::random(), PeerId::random(), PeerId::random()];
        let token = ProbeToken::sign(&swarm, ana, ben, &operator, NOW).unwrap();
        let holds = |swarm: &[u8], from, to, now| token.holds(swarm, from, to, &key, now);
        assert!(
            holds(&swarm, ana, ben, NOW) && holds(&swarm, ana, ben, NOW + 120) && holds(&swarm, ana, ben, NOW - 120)
        );
        assert!(!holds(&swarm, ben, ana, NOW) && !holds(&swarm, ana, cho, NOW) && !holds(&other, ana, ben, NOW));
        assert!(!holds(&swarm, ana, ben, NOW + 121) && !holds(&swarm, ana, ben, NOW - 121));
        let forged = ProbeToken::sign(&swarm, ana, ben, &Keypair::generate_ed25519(), NOW).unwrap();
        assert!(!forged.holds(&swarm, ana, ben, &key, NOW));
    }
}
