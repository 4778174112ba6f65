//! The list of members that a masked sum is of.

use std::collections::BTreeMap;
use std::sync::Arc;

use ed25519_dalek::{Signature, VerifyingKey};
use sha2::{Digest, Sha256};

use crate::error::MaskingError;

/// The members of one attempt, in order, and what the attempt belongs to. Two members whose rosters differ in anything
/// have different digests, and derive different masks.
#[derive(Clone, Debug)]
pub struct Roster {
    identities: Arc<[[u8; 32]]>,
    digest: [u8; 32],
}

impl Roster {
    /// The members with these Ed25519 identities, by number, in an attempt at the work that `context` is the hash of.
    ///
    /// # Errors
    /// There are fewer than two, or two that are the same.
    pub fn new(context: &[u8; 32], attempt: u64, identities: Arc<[[u8; 32]]>) -> Result<Self, MaskingError> {
        if identities.len() < 2 {
            return Err(MaskingError::Alone { members: identities.len() });
        }
        let mut seen = BTreeMap::new();
        for (other, identity) in identities.iter().enumerate() {
            if let Some(one) = seen.insert(*identity, other) {
                return Err(MaskingError::SameIdentity { one, other });
            }
        }
        let mut hasher = Sha256::new_with_prefix(b"mingle masked sums roster 1");
        hasher.update(context);
        hasher.update(attempt.to_le_bytes());
        hasher.update((identities.len() as u64).to_le_bytes());
        identities.iter().for_each(|identity| hasher.update(identity));
        Ok(Self { digest: hasher.finalize().into(), identities })
    }

    /// The number of members.
    pub fn members(&self) -> usize {
        self.identities.len()
    }

    /// SHA-256 of the context, the attempt and the members.
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// The statement by which a member makes a key its own for this roster.
    pub(crate) fn statement(&self, member: usize, key: &[u8; 32]) -> Vec<u8> {
        let number = (member as u64).to_le_bytes();
        [&b"mingle masked sums key 1"[..], &self.digest, &number, key].concat()
    }

    /// Returns `true` if a member signed this key for this roster.
    pub(crate) fn is_signed(&self, member: usize, key: &[u8; 32], signature: &[u8; 64]) -> Result<bool, MaskingError> {
        let unreadable = MaskingError::Identity { member };
        let identity = self.identities.get(member).ok_or_else(|| unreadable.clone())?;
        let identity = VerifyingKey::from_bytes(identity).map_err(|_| unreadable)?;
        let signature = Signature::from_bytes(signature);
        Ok(identity.verify_strict(&self.statement(member, key), &signature).is_ok())
    }
}
