//! What a swarm is: a name, a number that no other has, and the key of the one who may change its plan.

use std::fs;
use std::io;
use std::path::PathBuf;

use libp2p::identity::{Keypair, PublicKey};
use libp2p::{Multiaddr, PeerId};
use mingle_net::printable::is_unseen;
use serde::{Deserialize, Serialize};

use super::invite::Invite;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::home::{Home, write_file};

const SCHEMA: &str = "mingle.swarm/1";
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

/// What a home knows of its swarm.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Membership {
    schema: String,
    /// The swarm.
    pub swarm: Swarm,
    /// What lets this peer in, unless it is the operator.
    pub invite: Option<Invite>,
    /// Members that were up when this peer was invited.
    pub bootstrap: Vec<Multiaddr>,
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
    pub(super) fn checked(self) -> Result<Self> {
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

    pub(super) fn permits_to_ask(&self, peer: &PeerId, permission: &[u8]) -> bool {
        self.is_signed(&self.permission(peer), permission)
    }

    fn permission(&self, peer: &PeerId) -> Vec<u8> {
        [b"mingle 2026 may ask for progress".as_slice(), &self.id(), &peer.to_bytes()].concat()
    }
}

impl Membership {
    /// The operator's own.
    pub fn founder(swarm: Swarm) -> Self {
        Self { schema: SCHEMA.to_owned(), swarm, invite: None, bootstrap: Vec::new() }
    }

    /// A newcomer's.
    pub fn invited(swarm: Swarm, invite: Invite, bootstrap: Vec<Multiaddr>) -> Self {
        Self { schema: SCHEMA.to_owned(), swarm, invite: Some(invite), bootstrap }
    }

    /// What this home knows; none if it belongs to no swarm with an operator.
    pub fn of(home: &Home) -> Result<Option<Self>> {
        let path = path(home);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).context(ErrorKind::BadInput, format!("cannot read {}", path.display())),
        };
        let doing = format!("{} does not describe a swarm", path.display());
        let membership: Self = serde_json::from_str(&text).context(ErrorKind::Integrity, &doing)?;
        if membership.schema != SCHEMA {
            return Err(Error::new(ErrorKind::Integrity, format!("{doing} in the form {SCHEMA}")));
        }
        membership.swarm.clone().checked()?;
        Ok(Some(membership))
    }

    /// # Errors
    /// The home belongs to another swarm.
    pub fn check(&self, home: &Home) -> Result {
        if let Some(other) = Self::of(home)?.filter(|other| other.swarm != self.swarm) {
            return Err(Error::new(
                ErrorKind::Refused,
                format!("{} belongs to the swarm {} already", home.root().display(), other.swarm.name),
            )
            .hint("give this peer a home of its own with --home DIR"));
        }
        Ok(())
    }

    /// Remembers the swarm in the home.
    ///
    /// # Errors
    /// The home belongs to another swarm.
    pub fn write(&self, home: &Home) -> Result {
        self.check(home)?;
        let path = path(home);
        let text = serde_json::to_string_pretty(self).context(ErrorKind::Unexpected, "cannot encode the membership")?;
        write_file(&path, format!("{text}\n").as_bytes())
    }
}

fn path(home: &Home) -> PathBuf {
    home.root().join("swarm.json")
}

/// The key that a PeerId is: ed25519 keys are short enough to be their own name.
fn public_key(peer: &[u8]) -> Result<PublicKey> {
    let wrong = || Error::new(ErrorKind::Integrity, "the operator of the swarm is not named by an ed25519 key");
    let [0, length, key @ ..] = peer else { return Err(wrong()) };
    if key.len() != usize::from(*length) {
        return Err(wrong());
    }
    let key = PublicKey::try_decode_protobuf(key).map_err(|_| wrong())?;
    if key.to_peer_id().to_bytes() == peer { Ok(key) } else { Err(wrong()) }
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
    fn a_home_keeps_to_its_swarm() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(Some(folder.path())).unwrap();
        assert!(Membership::of(&home).unwrap().is_none());
        let operator = Keypair::generate_ed25519().public().to_peer_id();
        let swarm = Swarm::found("ward7", operator).unwrap();
        Membership::founder(swarm.clone()).write(&home).unwrap();
        assert_eq!(Membership::of(&home).unwrap().unwrap().swarm, swarm);
        let other = Membership::founder(Swarm::found("ward8", operator).unwrap());
        assert!(other.write(&home).unwrap_err().to_string().contains("ward7"));
        fs::write(path(&home), "{}").unwrap();
        assert!(Membership::of(&home).unwrap_err().is(ErrorKind::Integrity));
    }

    #[test]
    fn what_is_no_ed25519_key_is_no_operator() {
        for bytes in [&[][..], &[0], &[0, 3, 1], &[0x12, 0x20], &[0, 1, 7]] {
            assert!(public_key(bytes).is_err(), "{bytes:?}");
        }
    }
}
