//! The two things that a member's identity does for masked sums: signing, and drawing secrets.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ed25519_dalek::{Signer, SigningKey};
use sha2::{Digest, Sha256};
use thiserror::Error;

/// The identity of this member, as its host has it.
pub trait SumSigner: fmt::Debug + Send + Sync {
    /// The Ed25519 signature of the identity key under a statement.
    ///
    /// # Errors
    /// The key cannot sign.
    fn sign(&self, statement: &[u8]) -> Result<[u8; 64], SignerError>;

    /// 32 bytes that are secret and never come again.
    ///
    /// # Errors
    /// The operating system has none.
    fn fresh_secret(&self) -> Result<[u8; 32], SignerError>;
}

/// One member of masked sums, with the list of all.
#[derive(Debug)]
pub struct SumMember {
    /// A hash of all that the members have to agree on, such as the plan.
    pub context: [u8; 32],
    /// The Ed25519 identities of all members, by number.
    pub identities: Arc<[[u8; 32]]>,
    /// The identity of this member.
    pub signer: Box<dyn SumSigner>,
}

/// The reason for which a key cannot be used, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct SignerError(pub String);

/// The identity of a member of a simulation: all of it follows from a seed, so it keeps no secret from whoever knows
/// the seed.
pub struct SeededSigner {
    key: SigningKey,
    drawn: AtomicU64,
}

impl SeededSigner {
    /// Member `member` of the simulation with this seed.
    pub fn new(seed: u64, member: usize) -> Self {
        let secret = Sha256::new_with_prefix(b"mingle simulated identity 1")
            .chain_update(seed.to_le_bytes())
            .chain_update((member as u64).to_le_bytes())
            .finalize();
        Self { key: SigningKey::from_bytes(&secret.into()), drawn: AtomicU64::new(0) }
    }

    /// Its public identity.
    pub fn identity(&self) -> [u8; 32] {
        self.key.verifying_key().to_bytes()
    }
}

impl SumSigner for SeededSigner {
    fn sign(&self, statement: &[u8]) -> Result<[u8; 64], SignerError> {
        Ok(self.key.sign(statement).to_bytes())
    }

    fn fresh_secret(&self) -> Result<[u8; 32], SignerError> {
        let number = self.drawn.fetch_add(1, Ordering::Relaxed);
        let secret = Sha256::new_with_prefix(b"mingle simulated secret 1")
            .chain_update(self.key.as_bytes())
            .chain_update(number.to_le_bytes())
            .finalize();
        Ok(secret.into())
    }
}

impl fmt::Debug for SeededSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SeededSigner").finish_non_exhaustive()
    }
}
