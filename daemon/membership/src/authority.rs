//! The keys that may sign for a swarm: its operator, and for a limited time the operator's delegate.
//!
//! ```text
//!   recovery key  signs  Succession { number, operator }           the operator from here on; without one it is the founder
//!   operator      signs  Delegation { number, delegate, until }    whose key signs in its place until then, or nobody's
//! ```
//!
//! Of two certificates the one with the higher number counts, so that a revoked one cannot be replayed. Both numbers
//! together are the *term*, the upper half of the number of each plan that is signed in it. A new term is thus ahead of
//! all plans that a key of an earlier one has signed or will sign.

use libp2p::PeerId;
use libp2p::identity::{Keypair, PublicKey, ed25519};
use mingle_home::error::{Context, Error, ErrorKind, Result};
use mingle_home::identity;
use serde::{Deserialize, Serialize};

/// Largest difference between the clocks of members, in seconds. A delegation is accepted for as much longer than its
/// time.
pub const CLOCK_SKEW_S: u64 = 3600;

/// An ed25519 public key.
pub(crate) type Key = [u8; 32];

/// The recovery key's certificate that another key operates the swarm from here on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Succession {
    /// Counts from 1; the founder needs none.
    number: u16,
    operator: Key,
    signature: Vec<u8>,
}

/// The operator's certificate that another key may sign in its place until a time, or that none may.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Delegation {
    /// Counts the delegations of one operator from 1.
    number: u16,
    delegate: Option<Key>,
    not_after_unix_s: u64,
    signature: Vec<u8>,
}

/// The authority certificate of a swarm: the changes to its signing keys since the founder's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authority {
    succession: Option<Succession>,
    /// Signed by the operator that the succession names.
    delegation: Option<Delegation>,
}

/// The role in which a key signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The operator: the founder, or the key named by the recovery key.
    Operator,
    /// The operator's delegate, until this time in seconds since 1970.
    Delegate(u64),
}

impl Authority {
    /// The next authority of the swarm with this id: the recovery key signs that `operator` operates it.
    ///
    /// # Errors
    /// The operator's PeerId names no ed25519 key, the number is not after the last one, or the key cannot sign.
    pub fn succeed(&self, swarm: &[u8; 32], number: u16, operator: &PeerId, recovery: &Keypair) -> Result<Self> {
        let last = self.recovery_number();
        if number <= last {
            let message = format!("recovery {number} would not count: recovery {last} is known");
            return Err(Error::new(ErrorKind::BadInput, message).hint(format!("--number {}", last.saturating_add(1))));
        }
        let mut succession = Succession { number, operator: key_of(operator)?, signature: Vec::new() };
        succession.signature =
            recovery.sign(&succession.words(swarm)).context(ErrorKind::Unexpected, "cannot sign the recovery")?;
        Ok(Self { succession: Some(succession), delegation: None })
    }

    /// The next authority of the swarm with this id: only `delegate`, if any, signs in the operator's place until
    /// `not_after_unix_s`.
    ///
    /// # Errors
    /// The delegate's PeerId names no ed25519 key, there were 65,535 delegations, or the key cannot sign.
    pub(crate) fn delegate(
        &self,
        swarm: &[u8; 32],
        delegate: Option<&PeerId>,
        not_after_unix_s: u64,
        operator: &Keypair,
    ) -> Result<Self> {
        let number = self.delegation_number().checked_add(1).ok_or_else(|| {
            Error::new(ErrorKind::Integrity, "the operator has signed the last delegation that there can be")
                .hint("let the recovery key name an operator: mingle operator recover")
        })?;
        let delegate = delegate.map(key_of).transpose()?;
        let mut delegation = Delegation { number, delegate, not_after_unix_s, signature: Vec::new() };
        let words = delegation.words(swarm, self.recovery_number());
        delegation.signature = operator.sign(&words).context(ErrorKind::Unexpected, "cannot sign the delegation")?;
        Ok(Self { succession: self.succession.clone(), delegation: Some(delegation) })
    }

    /// Number of operators that the recovery key has named, by its own count.
    pub fn recovery_number(&self) -> u16 {
        self.succession.as_ref().map_or(0, |succession| succession.number)
    }

    /// Number of delegations that the operator has signed, by its own count.
    pub fn delegation_number(&self) -> u16 {
        self.delegation.as_ref().map_or(0, |delegation| delegation.number)
    }

    /// The upper half of the numbers of the plans that are signed under this authority.
    pub(crate) fn term(&self) -> u32 {
        u32::from(self.recovery_number()) << 16 | u32::from(self.delegation_number())
    }

    /// The delegate, and the end of its delegation in seconds since 1970.
    pub fn delegate_until(&self) -> Option<(PeerId, u64)> {
        let delegation = self.delegation.as_ref()?;
        let key = public_key(&delegation.delegate?)?;
        Some((key.to_peer_id(), delegation.not_after_unix_s))
    }

    /// Returns `true` if this authority supersedes `other`. The order is total, so that of two certificates with one
    /// number the same one counts everywhere.
    pub(crate) fn replaces(&self, other: &Self) -> bool {
        self.rank() > other.rank()
    }

    fn rank(&self) -> impl Ord + use<'_> {
        let succession = self.succession.as_ref().map(|word| (word.number, &word.operator));
        (succession, self.delegation.as_ref().map(|word| (word.number, &word.delegate, word.not_after_unix_s)))
    }

    /// Returns `true` if every certificate in it is signed by a key that may do so.
    pub(crate) fn holds(&self, swarm: &[u8; 32], founder: &PublicKey, recovery: Option<&Key>) -> bool {
        let recovery = recovery.and_then(public_key);
        let is_succession = self.succession.as_ref().is_none_or(|word| {
            let names_a_key = public_key(&word.operator).is_some();
            let signed = |key: PublicKey| key.verify(&word.words(swarm), &word.signature);
            word.number > 0 && names_a_key && recovery.is_some_and(signed)
        });
        let is_delegation = self.delegation.as_ref().is_none_or(|word| {
            let names_a_key = word.delegate.as_ref().is_none_or(|key| public_key(key).is_some());
            let signed = |key: PublicKey| key.verify(&word.words(swarm, self.recovery_number()), &word.signature);
            word.number > 0 && names_a_key && self.operator(founder).is_some_and(signed)
        });
        is_succession && is_delegation
    }

    /// The operator of a swarm with this founder.
    pub(crate) fn operator(&self, founder: &PublicKey) -> Option<PublicKey> {
        match &self.succession {
            None => Some(founder.clone()),
            Some(succession) => public_key(&succession.operator),
        }
    }

    /// The keys that may sign, with their roles.
    pub(crate) fn signers(&self, founder: &PublicKey) -> impl Iterator<Item = (PublicKey, Role)> {
        let delegation = self.delegation.as_ref();
        let delegate = delegation.and_then(|delegation| {
            Some((public_key(&delegation.delegate?)?, Role::Delegate(delegation.not_after_unix_s)))
        });
        self.operator(founder).map(|key| (key, Role::Operator)).into_iter().chain(delegate)
    }
}

impl Role {
    /// Returns `true` if signatures in this role no longer count at `now_unix_s`, in seconds since 1970.
    pub(crate) fn is_over(self, now_unix_s: u64) -> bool {
        matches!(self, Self::Delegate(until) if now_unix_s > until.saturating_add(CLOCK_SKEW_S))
    }
}

impl Succession {
    fn words(&self, swarm: &[u8; 32]) -> Vec<u8> {
        [b"mingle succession 1\0".as_slice(), swarm, &self.number.to_le_bytes(), &self.operator].concat()
    }
}

impl Delegation {
    fn words(&self, swarm: &[u8; 32], recovery: u16) -> Vec<u8> {
        let delegate = self.delegate.map_or_else(|| vec![0], |key| [&[1][..], &key].concat());
        let numbers = [recovery.to_le_bytes(), self.number.to_le_bytes()].concat();
        let until = self.not_after_unix_s.to_le_bytes();
        [b"mingle delegation 1\0".as_slice(), swarm, &numbers, &until, &delegate].concat()
    }
}

/// The key that a PeerId names.
///
/// # Errors
/// The PeerId names no ed25519 key.
pub(crate) fn key_of(peer: &PeerId) -> Result<Key> {
    let key = identity::public_key(peer).and_then(|key| key.try_into_ed25519().ok());
    let named = key.map(|key| key.to_bytes());
    named.ok_or_else(|| Error::new(ErrorKind::BadInput, format!("{peer} does not name an ed25519 key")))
}

pub(crate) fn public_key(key: &Key) -> Option<PublicKey> {
    ed25519::PublicKey::try_from_bytes(key).ok().map(PublicKey::from)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::swarm::{NotSigned, SwarmIdentity};
    use crate::times::now_unix_s;

    struct World {
        founder: Keypair,
        recovery: Keypair,
        swarm: SwarmIdentity,
    }

    fn world() -> World {
        let (founder, recovery) = (Keypair::generate_ed25519(), Keypair::generate_ed25519());
        let swarm = SwarmIdentity::found("ward7", founder.public().to_peer_id()).unwrap();
        let swarm = swarm.recoverable_by(&recovery.public().to_peer_id()).unwrap();
        World { founder, recovery, swarm }
    }

    fn keys<const N: usize>() -> [Keypair; N] {
        [(); N].map(|()| Keypair::generate_ed25519())
    }

    fn id(key: &Keypair) -> PeerId {
        key.public().to_peer_id()
    }

    #[test]
    fn a_delegate_signs_until_its_time_is_over_and_clocks_may_differ_by_an_hour() {
        let World { founder, mut swarm, .. } = world();
        let [delegate, stranger] = keys();
        let now = now_unix_s();
        for (not_after, holds) in [(now + 60, true), (now - 3500, true), (now - 3700, false), (0, false)] {
            let authority = swarm.authority().delegate(&swarm.id(), Some(&id(&delegate)), not_after, &founder).unwrap();
            assert!(swarm.learn(&authority));
            let signed = |key: &Keypair| swarm.check_signature(b"words", &key.sign(b"words").unwrap(), &authority);
            assert_eq!(signed(&delegate).is_ok(), holds, "{not_after}");
            assert!(signed(&founder).is_ok() && signed(&stranger).is_err(), "{not_after}");
        }
    }

    #[test]
    fn a_higher_number_takes_a_delegation_back_and_the_old_one_cannot_be_said_again() {
        let World { founder, swarm: mut told, .. } = world();
        let [delegate, other] = keys();
        let mut not_told = told.clone();
        let until = now_unix_s() + 60;
        let delegated = told.authority().delegate(&told.id(), Some(&id(&delegate)), until, &founder).unwrap();
        assert!(told.learn(&delegated) && not_told.learn(&delegated));
        for next in [None, Some(id(&other))] {
            let before = told.authority().clone();
            let after = before.delegate(&told.id(), next.as_ref(), until, &founder).unwrap();
            assert!(told.learn(&after) && !told.learn(&before) && !told.learn(&delegated));
            let signature = delegate.sign(b"words").unwrap();
            let failure = told.check_signature(b"words", &signature, &delegated).unwrap_err();
            assert_eq!(failure, NotSigned::ByFormer);
            assert!(not_told.check_signature(b"words", &signature, &delegated).is_ok(), "nobody has told it");
            assert!(not_told.check_signature(b"words", &signature, &after).is_err(), "what is signed says it");
        }
        assert!(told.check_signature(b"words", &other.sign(b"words").unwrap(), &Authority::default()).is_ok());
        // A renewed delegation covers what was signed under the former one.
        let renewed = delegated.delegate(&told.id(), Some(&id(&delegate)), until + 60, &founder).unwrap();
        assert!(not_told.learn(&renewed));
        assert!(not_told.check_signature(b"words", &delegate.sign(b"words").unwrap(), &delegated).is_ok());
    }

    #[test]
    fn the_recovery_key_names_another_operator_whatever_the_old_one_signs() {
        let World { founder, recovery, mut swarm } = world();
        let [second, third, thief, delegate] = keys();
        let swarm_id = swarm.id();
        // The thief of the founder's key is at the end of its numbers.
        let until = u64::MAX;
        let mut last = Delegation { number: u16::MAX, delegate: None, not_after_unix_s: until, signature: Vec::new() };
        last.delegate = Some(key_of(&id(&thief)).unwrap());
        last.signature = founder.sign(&last.words(&swarm_id, 0)).unwrap();
        let stolen = Authority { succession: None, delegation: Some(last) };
        assert!(swarm.learn(&stolen));
        assert!(stolen.delegate(&swarm_id, None, until, &founder).unwrap_err().to_string().contains("last delegation"));

        let first = Authority::default().succeed(&swarm_id, 1, &id(&second), &recovery).unwrap();
        assert!(swarm.learn(&first) && !swarm.learn(&stolen));
        assert_eq!((swarm.operator().unwrap(), swarm.founder().unwrap()), (id(&second), id(&founder)));
        for key in [&founder, &thief] {
            let signature = key.sign(b"words").unwrap();
            for authority in [&stolen, &first, &Authority::default()] {
                assert!(swarm.check_signature(b"words", &signature, authority).is_err());
            }
        }
        // The founder delegates under the new number, with its own key.
        let forged = first.delegate(&swarm_id, Some(&id(&thief)), until, &founder).unwrap();
        assert!(!swarm.learn(&forged));
        let sound = first.delegate(&swarm_id, Some(&id(&delegate)), until, &second).unwrap();
        assert!(swarm.learn(&sound));
        // The next recovery ends the delegation; the former one is not accepted again.
        let next = sound.succeed(&swarm_id, 2, &id(&third), &recovery).unwrap();
        assert!(swarm.learn(&next) && !swarm.learn(&first) && !swarm.learn(&sound));
        assert!(swarm.check_signature(b"words", &delegate.sign(b"words").unwrap(), &sound).is_err());
        assert!(next.succeed(&swarm_id, 2, &id(&thief), &recovery).is_err(), "a number is used once");
        for forged in [
            Authority::default().succeed(&swarm_id, 3, &id(&thief), &founder).unwrap(),
            Authority::default().succeed(&swarm_id, 3, &id(&thief), &third).unwrap(),
            Authority::default().succeed(&[1; 32], 3, &id(&thief), &recovery).unwrap(),
        ] {
            assert!(!swarm.learn(&forged));
        }
    }

    #[test]
    fn words_for_another_swarm_and_changed_words_are_not_believed() {
        let World { founder, recovery, mut swarm } = world();
        let [delegate, thief] = keys();
        let mut other = SwarmIdentity::found("ward7", id(&founder)).unwrap();
        let elsewhere = other.authority().delegate(&other.id(), Some(&id(&delegate)), u64::MAX, &founder).unwrap();
        assert!(!swarm.learn(&elsewhere));
        let no_recovery = Authority::default().succeed(&other.id(), 1, &id(&thief), &recovery).unwrap();
        assert!(!other.learn(&no_recovery), "a swarm without a recovery key keeps its operator");
        let authority = swarm.authority().delegate(&swarm.id(), Some(&id(&delegate)), 1, &founder).unwrap();
        let change = |change: fn(&mut Delegation)| {
            let mut changed = authority.clone();
            changed.delegation.iter_mut().for_each(change);
            changed
        };
        for changed in [
            change(|word| word.number = 2),
            change(|word| word.number = 0),
            change(|word| word.not_after_unix_s = 2),
            change(|word| word.delegate = None),
            change(|word| word.delegate = Some([9; 32])),
            change(|word| word.signature = vec![0; 1 << 16]),
            change(|word| word.signature.clear()),
        ] {
            assert!(!swarm.learn(&changed), "{changed:?}");
        }
        assert_eq!(*swarm.authority(), Authority::default());
        assert!(swarm.learn(&authority));
    }

    #[test]
    fn of_two_words_with_one_number_the_same_one_counts_in_whichever_order_they_come() {
        let World { founder, recovery, swarm } = world();
        let [one, two] = keys();
        let pairs = [
            [&one, &two].map(|key| swarm.authority().delegate(&swarm.id(), Some(&id(key)), 9, &founder).unwrap()),
            [&one, &two].map(|key| swarm.authority().succeed(&swarm.id(), 1, &id(key), &recovery).unwrap()),
        ];
        for [a, b] in &pairs {
            let learned = |words: [&Authority; 2]| {
                let mut swarm = swarm.clone();
                for word in words {
                    swarm.learn(word);
                }
                swarm.authority().clone()
            };
            assert_eq!(learned([a, b]), learned([b, a]));
        }
    }
}
