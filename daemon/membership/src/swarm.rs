//! What a swarm is: a name, a number that no other has, and the key of the one who may change its plan.

use libp2p::PeerId;
use libp2p::identity::{Keypair, PublicKey};
use mingle_home::error::{Context, Error, ErrorKind, Result};
use mingle_home::identity;
use mingle_net::printable::is_unseen;
use serde::{Deserialize, Serialize};

/// Characters of a name.
const MAX_NAME: usize = 64;

/// The swarm that a home belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swarm {
    /// What people call it.
    pub name: String,
    nonce: [u8; 16],
    /// Whose signature makes a plan one of this swarm.
    operator: Vec<u8>,
}

impl Swarm {
    /// A new swarm.
    ///
    /// # Errors
    /// The name is empty, too long, or has characters that cannot be seen: controls, marks of direction, without width.
    pub fn found(name: &str, operator: PeerId) -> Result<Self> {
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce).context(ErrorKind::Unexpected, "the operating system gives no random numbers")?;
        Self { name: name.to_owned(), nonce, operator: operator.to_bytes() }.checked()
    }

    /// The swarm, if what was read can be one.
    pub(crate) fn checked(self) -> Result<Self> {
        let length = self.name.chars().count();
        if length == 0 || length > MAX_NAME || self.name.chars().any(is_unseen) {
            return Err(Error::new(
                ErrorKind::BadInput,
                format!("the name of a swarm has 1 to {MAX_NAME} characters, all of which can be seen"),
            ));
        }
        public_key(&self.operator)?;
        Ok(self)
    }

    /// What tells this swarm from all others.
    pub fn id(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("mingle 2026 swarm id");
        for part in [self.name.as_bytes(), &self.nonce, &self.operator] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        *hasher.finalize().as_bytes()
    }

    /// Who signs its plans.
    pub fn operator(&self) -> Result<PeerId> {
        Ok(self.key()?.to_peer_id())
    }

    /// The public key of the operator.
    pub fn key(&self) -> Result<PublicKey> {
        public_key(&self.operator)
    }

    /// Whether the operator signed these words.
    pub fn is_signed(&self, words: &[u8], signature: &[u8]) -> bool {
        self.key().is_ok_and(|key| key.verify(words, signature))
    }

    /// The operator's signature that this peer, which need be no member, may ask members where they stand.
    ///
    /// # Errors
    /// The key cannot sign.
    pub fn permit_to_ask(&self, peer: &PeerId, operator: &Keypair) -> Result<Vec<u8>> {
        operator.sign(&self.permission(peer)).context(ErrorKind::Unexpected, "cannot sign the permission")
    }

    pub(crate) fn permits_to_ask(&self, peer: &PeerId, permission: &[u8]) -> bool {
        self.is_signed(&self.permission(peer), permission)
    }

    fn permission(&self, peer: &PeerId) -> Vec<u8> {
        [b"mingle 2026 may ask for progress".as_slice(), &self.id(), &peer.to_bytes()].concat()
    }
}

/// The key of an operator.
fn public_key(peer: &[u8]) -> Result<PublicKey> {
    let key = PeerId::from_bytes(peer).ok().as_ref().and_then(identity::public_key);
    key.ok_or_else(|| Error::new(ErrorKind::Integrity, "the operator of the swarm is not named by an ed25519 key"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use libp2p::identity::Keypair;

    #[test]
    fn a_swarm_knows_the_signature_of_its_operator_and_no_other() {
        let (operator, other) = (Keypair::generate_ed25519(), Keypair::generate_ed25519());
        let swarm = Swarm::found("ward7", operator.public().to_peer_id()).unwrap();
        assert_eq!(swarm.operator().unwrap(), operator.public().to_peer_id());
        assert!(swarm.is_signed(b"words", &operator.sign(b"words").unwrap()));
        assert!(!swarm.is_signed(b"words", &other.sign(b"words").unwrap()));
        assert!(!swarm.is_signed(b"other words", &operator.sign(b"words").unwrap()));
        assert!(!swarm.is_signed(b"words", b"no signature"));
    }

    #[test]
    fn two_swarms_of_one_name_are_two_swarms() {
        let operator = Keypair::generate_ed25519().public().to_peer_id();
        let (first, second) = (Swarm::found("ward7", operator).unwrap(), Swarm::found("ward7", operator).unwrap());
        assert_ne!(first.id(), second.id());
        assert!(Swarm::found("", operator).is_err() && Swarm::found("a\nb", operator).is_err());
    }

    #[test]
    fn what_is_no_ed25519_key_is_no_operator() {
        for bytes in [&[][..], &[0], &[0, 3, 1], &[0x12, 0x20], &[0, 1, 7]] {
            assert!(public_key(bytes).is_err(), "{bytes:?}");
        }
    }
}
