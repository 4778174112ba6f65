//! The identity of a swarm: a name, a unique number, the founder's key, and the recovery key, which may name another
//! operator; with its newest authority certificate.

use std::fmt;

use libp2p::PeerId;
use libp2p::identity::{Keypair, PublicKey};
use mingle_home::error::{Context, Error, ErrorKind, Result};
use mingle_home::identity;
use mingle_net::printable::is_unseen;
use serde::{Deserialize, Serialize};

use crate::authority::{Authority, Key, Role, key_of, public_key};
use crate::times::{beside_now, date, now_unix_s};

/// Most characters of a name.
const MAX_NAME: usize = 64;

/// The swarm that a home belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwarmIdentity {
    /// Name for people.
    pub name: String,
    nonce: [u8; 16],
    /// PeerId of the founder, the operator until the recovery key names another.
    operator: Vec<u8>,
    /// The key that may name another operator.
    #[serde(default)]
    recovery: Option<Key>,
    /// The newest authority certificate. It is sent beside the swarm, not in it.
    #[serde(skip)]
    authority: Authority,
}

/// The operator's permission for a peer that need not be a member to ask members for their progress and the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permission {
    signature: Vec<u8>,
    pub(crate) authority: Authority,
}

/// The reason why a signature does not count in a swarm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotSigned {
    /// Signed by no key that could ever sign, as far as is known.
    ByAnybody,
    /// Signed by a key that was replaced.
    ByFormer,
    /// Signed by a delegate whose time was over at this time, in seconds since 1970.
    InTime(u64),
}

impl fmt::Display for NotSigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByAnybody => f.write_str("is not signed by the operator"),
            Self::ByFormer => f.write_str("is signed by a key that was replaced since, and not by the operator"),
            Self::InTime(until) => {
                write!(f, "is signed by a delegate whose time ended {}, not by the operator", beside_now(*until))
            }
        }
    }
}

/// A key that may sign for a swarm, with its role.
#[derive(Clone)]
pub struct Signer {
    swarm: SwarmIdentity,
    key: Keypair,
    role: Role,
}

impl SwarmIdentity {
    /// A new swarm.
    ///
    /// # Errors
    /// The name is empty, too long, or has characters that cannot be seen: controls, marks of direction, without width.
    pub fn found(name: &str, operator: PeerId) -> Result<Self> {
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce).context(ErrorKind::Unexpected, "the operating system gives no random numbers")?;
        let swarm = Self {
            name: name.to_owned(),
            nonce,
            operator: operator.to_bytes(),
            recovery: None,
            authority: Authority::default(),
        };
        swarm.checked()
    }

    /// Adds a recovery key, which may name another operator. The result is another swarm: a swarm has this key from the
    /// beginning, or never.
    ///
    /// # Errors
    /// The PeerId names no ed25519 key.
    pub fn recoverable_by(self, recovery: &PeerId) -> Result<Self> {
        Ok(Self { recovery: Some(key_of(recovery)?), ..self })
    }

    /// Returns the swarm if the values that were read are valid.
    pub(crate) fn checked(self) -> Result<Self> {
        let length = self.name.chars().count();
        if length == 0 || length > MAX_NAME || self.name.chars().any(is_unseen) {
            return Err(Error::new(
                ErrorKind::BadInput,
                format!("the name of a swarm has 1 to {MAX_NAME} characters, all of which can be seen"),
            ));
        }
        named_key(&self.operator)?;
        if self.recovery.is_some_and(|key| public_key(&key).is_none()) {
            return Err(Error::new(ErrorKind::Integrity, "the recovery key of the swarm is no ed25519 key"));
        }
        Ok(self)
    }

    /// Unique id of the swarm, a hash over its identity.
    pub fn id(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("mingle 2026 swarm id");
        let recovery = self.recovery.as_ref().map(Key::as_slice);
        for part in [self.name.as_bytes(), &self.nonce, &self.operator].into_iter().chain(recovery) {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        *hasher.finalize().as_bytes()
    }

    /// Returns `true` if this is the same swarm, whatever authority certificate either has.
    pub fn is(&self, other: &Self) -> bool {
        self.id() == other.id()
    }

    /// The founder.
    pub fn founder(&self) -> Result<PeerId> {
        Ok(named_key(&self.operator)?.to_peer_id())
    }

    /// The operator: the founder, or the key that the recovery key has named since.
    pub fn operator(&self) -> Result<PeerId> {
        let key = self.authority.operator(&named_key(&self.operator)?);
        let key = key.ok_or_else(|| Error::new(ErrorKind::Integrity, "the operator of the swarm is no ed25519 key"))?;
        Ok(key.to_peer_id())
    }

    /// The recovery key as a PeerId; `None` if there is none.
    pub fn recovery(&self) -> Option<PeerId> {
        Some(public_key(&self.recovery?)?.to_peer_id())
    }

    /// The newest authority certificate known here.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// A sentence on the signing keys; `None` if only the founder has ever signed.
    pub(crate) fn describe_authority(&self) -> Option<String> {
        if self.authority == Authority::default() {
            return None;
        }
        let by = match self.authority.recovery_number() {
            0 => String::new(),
            number => format!(", by recovery {number}"),
        };
        let delegate = match self.authority.delegate_until() {
            Some((peer, until)) => format!(", and until {} its delegate {peer}", date(until)),
            None => String::new(),
        };
        Some(format!("the swarm {} follows the operator {}{by}{delegate}", self.name, self.operator().ok()?))
    }

    /// Accepts a newer authority certificate if its signatures are valid. Returns `true` if it is newer.
    pub fn learn(&mut self, told: &Authority) -> bool {
        let is_news = told.replaces(&self.authority) && self.holds(told);
        if is_news {
            self.authority = told.clone();
        }
        is_news
    }

    /// Returns `true` if the certificate's signatures are valid in this swarm.
    pub(crate) fn holds(&self, told: &Authority) -> bool {
        named_key(&self.operator).is_ok_and(|founder| told.holds(&self.id(), &founder, self.recovery.as_ref()))
    }

    /// The newer of two certificates: that known here, and that sent along with a signature.
    pub(crate) fn newest<'a>(&'a self, told: &'a Authority) -> &'a Authority {
        if told.replaces(&self.authority) && self.holds(told) { told } else { &self.authority }
    }

    /// The role in which this peer may sign, whether or not its time is over.
    pub fn role_of(&self, peer: &PeerId) -> Option<Role> {
        let founder = named_key(&self.operator).ok()?;
        self.authority.signers(&founder).find(|(key, _)| key.to_peer_id() == *peer).map(|(_, role)| role)
    }

    /// The keys that may sign now.
    pub(crate) fn signing_keys(&self) -> Vec<PublicKey> {
        let Ok(founder) = named_key(&self.operator) else { return Vec::new() };
        let now = now_unix_s();
        self.authority.signers(&founder).filter(|(_, role)| !role.is_over(now)).map(|(key, _)| key).collect()
    }

    /// Checks that a key that may sign now, by the certificates known here or sent along, made the signature.
    pub(crate) fn check_signature(&self, words: &[u8], signature: &[u8], told: &Authority) -> Result<(), NotSigned> {
        match self.role_under(self.newest(told), words, signature) {
            Some(role) => match role {
                Role::Delegate(until) if role.is_over(now_unix_s()) => Err(NotSigned::InTime(until)),
                _ => Ok(()),
            },
            None if self.was_signed(words, signature, told) => Err(NotSigned::ByFormer),
            None => Err(NotSigned::ByAnybody),
        }
    }

    /// Returns `true` if a key made the signature that may sign now, or could when `told` was the newest certificate.
    fn was_signed(&self, words: &[u8], signature: &[u8], told: &Authority) -> bool {
        let under = |authority| self.role_under(authority, words, signature).is_some();
        under(&self.authority) || (self.holds(told) && under(told))
    }

    /// The key that made the signature, of those that may sign under this certificate.
    pub(crate) fn signer_under(&self, authority: &Authority, words: &[u8], signature: &[u8]) -> Option<PeerId> {
        let founder = named_key(&self.operator).ok().filter(|_| self.holds(authority))?;
        authority.signers(&founder).find(|(key, _)| key.verify(words, signature)).map(|(key, _)| key.to_peer_id())
    }

    fn role_under(&self, authority: &Authority, words: &[u8], signature: &[u8]) -> Option<Role> {
        let founder = named_key(&self.operator).ok()?;
        authority.signers(&founder).find(|(key, _)| key.verify(words, signature)).map(|(_, role)| role)
    }

    pub(crate) fn permits_to_ask(&self, peer: &PeerId, permission: &Permission) -> bool {
        let Permission { signature, authority } = permission;
        self.check_signature(&self.permission_words(peer), signature, authority).is_ok()
    }

    fn permission_words(&self, peer: &PeerId) -> Vec<u8> {
        [b"mingle 2026 may ask for progress".as_slice(), &self.id(), &peer.to_bytes()].concat()
    }
}

impl Signer {
    /// A signer with this key, by the authority certificate known here.
    ///
    /// # Errors
    /// The key is neither the operator's nor its delegate's.
    pub fn new(swarm: SwarmIdentity, key: Keypair) -> Result<Self> {
        if let Some(role) = swarm.role_of(&key.public().to_peer_id()) {
            return Ok(Self { swarm, key, role });
        }
        let delegate = swarm.authority.delegate_until();
        let or_delegate = delegate.map(|(peer, until)| format!(", or until {} its delegate {peer}", date(until)));
        let message = format!(
            "only the operator of the swarm {} can do this: {}{}",
            swarm.name,
            swarm.operator()?,
            or_delegate.unwrap_or_default()
        );
        Err(Error::new(ErrorKind::Refused, message))
    }

    /// The swarm.
    pub fn swarm(&self) -> &SwarmIdentity {
        &self.swarm
    }

    /// The PeerId of the key.
    pub fn peer_id(&self) -> PeerId {
        self.key.public().to_peer_id()
    }

    /// The role in which it signs.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Accepts a newer authority certificate.
    ///
    /// # Errors
    /// Under that certificate this key may not sign.
    pub fn learn(&mut self, told: &Authority) -> Result {
        if self.swarm.learn(told) {
            *self = Self::new(self.swarm.clone(), self.key.clone())?;
        }
        Ok(())
    }

    /// The key.
    pub(crate) fn key(&self) -> &Keypair {
        &self.key
    }

    /// Checks that this delegate's time is not over.
    ///
    /// # Errors
    /// The time of this delegate is over by its own clock.
    pub fn check_time(&self) -> Result {
        match self.role {
            Role::Delegate(until) if now_unix_s() > until => {
                let message = format!("the delegation to this peer ended {}", beside_now(until));
                Err(Error::new(ErrorKind::Refused, message)
                    .hint("ask the operator for another: mingle operator delegate --to PEER --until 90d"))
            }
            _ => Ok(()),
        }
    }

    /// Signs for the swarm.
    ///
    /// # Errors
    /// The time of this delegate is over, or the key cannot sign.
    pub(crate) fn sign(&self, words: &[u8]) -> Result<Vec<u8>> {
        self.check_time()?;
        self.key.sign(words).context(ErrorKind::Unexpected, "cannot sign for the swarm")
    }

    /// Signs and learns a delegation: only `delegate`, if any, signs in the operator's place from now on, until
    /// `not_after_unix_s`.
    ///
    /// # Errors
    /// This signer is not the operator, or the operator would be its own delegate.
    pub fn delegate(&mut self, delegate: Option<&PeerId>, not_after_unix_s: u64) -> Result<&Authority> {
        if self.role != Role::Operator {
            return Err(Error::new(ErrorKind::Refused, "a delegate cannot delegate: that is the operator's to do"));
        }
        if delegate.is_some_and(|delegate| *delegate == self.peer_id()) {
            return Err(Error::new(ErrorKind::BadInput, "the operator cannot be its own delegate"));
        }
        let swarm = &mut self.swarm;
        let authority = swarm.authority.delegate(&swarm.id(), delegate, not_after_unix_s, &self.key)?;
        swarm.learn(&authority);
        Ok(&swarm.authority)
    }

    /// A permission for this peer, which need not be a member, to ask members for their progress and the plan.
    ///
    /// # Errors
    /// The time of this delegate is over, or the key cannot sign.
    pub fn permit_to_ask(&self, peer: &PeerId) -> Result<Permission> {
        let signature = self.sign(&self.swarm.permission_words(peer))?;
        Ok(Permission { signature, authority: self.swarm.authority.clone() })
    }
}

/// The key that a founder's PeerId names.
fn named_key(peer: &[u8]) -> Result<PublicKey> {
    let key = PeerId::from_bytes(peer).ok().as_ref().and_then(identity::public_key);
    key.ok_or_else(|| Error::new(ErrorKind::Integrity, "the operator of the swarm is not named by an ed25519 key"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_swarm_knows_the_signature_of_its_operator_and_no_other() {
        let (operator, other) = (Keypair::generate_ed25519(), Keypair::generate_ed25519());
        let swarm = SwarmIdentity::found("ward7", operator.public().to_peer_id()).unwrap();
        assert_eq!(swarm.operator().unwrap(), operator.public().to_peer_id());
        let is_signed =
            |words: &[u8], signature: &[u8]| swarm.check_signature(words, signature, &Authority::default()).is_ok();
        assert!(is_signed(b"words", &operator.sign(b"words").unwrap()));
        assert!(!is_signed(b"words", &other.sign(b"words").unwrap()));
        assert!(!is_signed(b"other words", &operator.sign(b"words").unwrap()));
        assert!(!is_signed(b"words", b"no signature"));
    }

    #[test]
    fn who_may_not_sign_is_told_who_may_and_a_delegate_does_not_delegate() {
        let [operator, delegate, other] = [(); 3].map(|()| Keypair::generate_ed25519());
        let swarm = SwarmIdentity::found("ward7", operator.public().to_peer_id()).unwrap();
        let mut signer = Signer::new(swarm, operator.clone()).unwrap();
        assert!(signer.delegate(Some(&operator.public().to_peer_id()), u64::MAX).is_err());
        signer.delegate(Some(&delegate.public().to_peer_id()), now_unix_s() + 60).unwrap();
        let swarm = signer.swarm().clone();
        let refusal = Signer::new(swarm.clone(), other).err().unwrap().to_string();
        assert!(refusal.contains(&delegate.public().to_peer_id().to_string()), "{refusal}");
        let mut signer = Signer::new(swarm, delegate.clone()).unwrap();
        signer.permit_to_ask(&PeerId::random()).unwrap();
        assert!(signer.delegate(None, 0).unwrap_err().to_string().contains("cannot delegate"));
        // It stops on time, by its own clock; others allow for its clock by an hour.
        let mut owner = Signer::new(signer.swarm().clone(), operator).unwrap();
        owner.delegate(Some(&delegate.public().to_peer_id()), now_unix_s() - 60).unwrap();
        let late = Signer::new(owner.swarm().clone(), delegate).unwrap();
        assert!(late.permit_to_ask(&PeerId::random()).unwrap_err().to_string().contains("ended"));
    }

    #[test]
    fn two_swarms_of_one_name_are_two_swarms() {
        let operator = Keypair::generate_ed25519().public().to_peer_id();
        let (first, second) =
            (SwarmIdentity::found("ward7", operator).unwrap(), SwarmIdentity::found("ward7", operator).unwrap());
        assert_ne!(first.id(), second.id());
        assert_ne!(first.clone().recoverable_by(&operator).unwrap().id(), first.id());
        assert!(SwarmIdentity::found("", operator).is_err() && SwarmIdentity::found("a\nb", operator).is_err());
    }

    #[test]
    fn what_is_no_ed25519_key_is_no_operator() {
        for bytes in [&[][..], &[0], &[0, 3, 1], &[0x12, 0x20], &[0, 1, 7]] {
            assert!(named_key(bytes).is_err(), "{bytes:?}");
        }
    }
}
