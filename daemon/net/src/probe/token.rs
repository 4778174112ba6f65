//! The operator's permission for one peer to measure its link to another at given addresses, once and soon.

use std::collections::BTreeMap;
use std::time::Duration;

use libp2p::identity::{Keypair, PublicKey};
use libp2p::{Multiaddr, PeerId};
use serde::{Deserialize, Serialize};

use crate::error::ProbeError;

/// Lifetime of a token: it is used at once. Clocks may differ by as much.
const LIFETIME: Duration = Duration::from_secs(120);
/// Spent tokens that a peer remembers. Fewer are issued within their lifetime.
const MOST_SPENT: usize = 4096;

/// A signed permission to measure one link, once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeToken {
    /// Unique number of the token.
    nonce: [u8; 16],
    /// Hash of the addresses that may be dialled with it.
    addresses: [u8; 32],
    expires_unix_s: u64,
    signature: Vec<u8>,
}

/// The link that a token is for.
#[derive(Clone, Copy, Debug)]
pub struct ProbedLink<'a> {
    /// The swarm.
    pub swarm: &'a [u8],
    /// The measuring peer.
    pub from: PeerId,
    /// The measured peer.
    pub to: PeerId,
}

impl ProbeToken {
    /// Permits `from` to measure its link to `to`, which it may dial at these addresses, for two minutes from
    /// `now_unix_s`. Each token needs a `nonce` of its own.
    ///
    /// # Errors
    /// The key cannot sign.
    pub fn sign(
        link: &ProbedLink<'_>,
        addresses: &[Multiaddr],
        operator: &Keypair,
        now_unix_s: u64,
        nonce: [u8; 16],
    ) -> Result<Self, ProbeError> {
        let expires_unix_s = now_unix_s.saturating_add(LIFETIME.as_secs());
        let mut token = Self { nonce, addresses: hash_of(addresses), expires_unix_s, signature: Vec::new() };
        token.signature = operator.sign(&token.words(link))?;
        Ok(token)
    }

    /// Returns `true` if the operator of this swarm permits these two to measure their link now.
    pub fn holds(&self, link: &ProbedLink<'_>, operator: &PublicKey, now_unix_s: u64) -> bool {
        let latest = now_unix_s.saturating_add(2 * LIFETIME.as_secs());
        (now_unix_s..=latest).contains(&self.expires_unix_s) && operator.verify(&self.words(link), &self.signature)
    }

    /// The time at which it ends, in seconds since 1970.
    pub fn expires_unix_s(&self) -> u64 {
        self.expires_unix_s
    }

    /// Returns `true` if these are the addresses that the operator named.
    pub fn names(&self, addresses: &[Multiaddr]) -> bool {
        self.addresses == hash_of(addresses)
    }

    fn words(&self, link: &ProbedLink<'_>) -> Vec<u8> {
        let mut words = b"mingle probe 2\0".to_vec();
        words.extend(link.swarm);
        for peer in [link.from, link.to] {
            let bytes = peer.to_bytes();
            words.extend((bytes.len() as u64).to_le_bytes());
            words.extend(bytes);
        }
        words.extend(self.nonce);
        words.extend(self.addresses);
        words.extend(self.expires_unix_s.to_le_bytes());
        words
    }
}

fn hash_of(addresses: &[Multiaddr]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for address in addresses {
        hasher.update(&(address.len() as u64).to_le_bytes());
        hasher.update(address.as_ref());
    }
    *hasher.finalize().as_bytes()
}

/// Tokens that were used and have not expired.
#[derive(Debug, Default)]
pub struct SpentTokens(BTreeMap<[u8; 16], u64>);

impl SpentTokens {
    /// Spends a valid token. Returns `true` the first time; `false` also while too many are remembered.
    pub fn spend(&mut self, token: &ProbeToken, now_unix_s: u64) -> bool {
        self.0.retain(|_, expires| *expires >= now_unix_s);
        let has_room = self.0.len() < MOST_SPENT;
        has_room && self.0.insert(token.nonce, token.expires_unix_s).is_none()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const NOW: u64 = 1_800_000_000;

    #[test]
    fn a_token_holds_for_one_link_of_one_swarm_and_not_for_long() {
        let operator = Keypair::generate_ed25519();
        let key = operator.public();
        let (swarm, other) = ([1; 32], [2; 32]);
        let [ana, ben, cho] = [PeerId::random(), PeerId::random(), PeerId::random()];
        let link = |swarm, from, to| ProbedLink { swarm, from, to };
        let sign = |key: &Keypair| ProbeToken::sign(&link(&swarm, ana, ben), &[], key, NOW, [3; 16]).unwrap();
        let token = sign(&operator);
        let holds = |swarm, from, to, now| token.holds(&link(swarm, from, to), &key, now);
        assert!(
            holds(&swarm, ana, ben, NOW) && holds(&swarm, ana, ben, NOW + 120) && holds(&swarm, ana, ben, NOW - 120)
        );
        assert!(!holds(&swarm, ben, ana, NOW) && !holds(&swarm, ana, cho, NOW) && !holds(&other, ana, ben, NOW));
        assert!(!holds(&swarm, ana, ben, NOW + 121) && !holds(&swarm, ana, ben, NOW - 121));
        assert!(!sign(&Keypair::generate_ed25519()).holds(&link(&swarm, ana, ben), &key, NOW));
        let fresh = ProbeToken { nonce: [4; 16], ..token.clone() };
        assert!(!fresh.holds(&link(&swarm, ana, ben), &key, NOW), "its number is signed");
    }

    #[test]
    fn a_token_names_the_addresses_that_may_be_dialled() {
        let operator = Keypair::generate_ed25519();
        let address = |text: &str| text.parse::<Multiaddr>().unwrap();
        let [first, second] = ["/ip4/192.0.2.1/tcp/1", "/ip4/192.0.2.2/tcp/1"].map(address);
        let link = ProbedLink { swarm: &[1; 32], from: PeerId::random(), to: PeerId::random() };
        let named = [first.clone(), second.clone()];
        let swapped = [second, first.clone()];
        let token = ProbeToken::sign(&link, &named, &operator, NOW, [3; 16]).unwrap();
        assert!(token.names(&named));
        assert!(!token.names(&[]) && !token.names(&[first]) && !token.names(&swapped));
    }

    #[test]
    fn a_token_is_used_once_and_forgotten_when_it_has_expired() {
        let operator = Keypair::generate_ed25519();
        let link = ProbedLink { swarm: &[1; 32], from: PeerId::random(), to: PeerId::random() };
        let token = |number: u64| {
            let mut nonce = [0; 16];
            nonce[..8].copy_from_slice(&number.to_le_bytes());
            ProbeToken::sign(&link, &[], &operator, NOW, nonce).unwrap()
        };
        let mut spent = SpentTokens::default();
        assert!(spent.spend(&token(0), NOW) && !spent.spend(&token(0), NOW + 120));
        assert!((1..MOST_SPENT as u64).all(|number| spent.spend(&token(number), NOW)));
        assert!(!spent.spend(&token(1 << 40), NOW), "there is no room");
        assert!(spent.spend(&token(1 << 40), NOW + 121) && spent.0.len() == 1, "all others have expired");
    }
}
