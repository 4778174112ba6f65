//! The key from which the noise of a peer's contributions to sums follows.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};

/// A secret key of one peer, drawn once.
///
/// The noise of a contribution is ChaCha20 under keyed BLAKE3 of the release that it is for and of the change itself. A
/// peer whose disk was put back to an older copy, and that comes to the same change again, so adds the same noise, which
/// reveals nothing more. Where anything differs the noise is another, as if it were drawn anew: the difference of two
/// contributions under one noise would hold none.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NoiseKey([u8; 32]);

impl NoiseKey {
    /// A new key.
    ///
    /// # Errors
    /// The operating system has no randomness available.
    pub fn draw() -> Result<Self, getrandom::Error> {
        let mut key = [0; 32];
        getrandom::fill(&mut key)?;
        Ok(Self(key))
    }

    /// A key that follows from `seed`, for simulations and tests. It protects nothing.
    pub fn known(seed: u64) -> Self {
        Self(blake3::derive_key("mingle 2026 known noise of sums", &seed.to_le_bytes()))
    }

    /// A number that others may know, and that changes with the key and with the data of this hash.
    pub fn fingerprint(&self, data: &[u8; 32]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        *hasher.update(b"mingle fingerprint of noise 1").update(data).finalize().as_bytes()
    }

    /// The generator of the noise for this change, on a lattice, in the release of this name.
    pub fn generator(&self, release: &[u8; 32], change: &[i64]) -> ChaCha20Rng {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(b"mingle noise of a sum 1").update(release);
        change.iter().for_each(|value| {
            hasher.update(&value.to_le_bytes());
        });
        ChaCha20Rng::from_seed(*hasher.finalize().as_bytes())
    }
}

impl std::fmt::Debug for NoiseKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("NoiseKey")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rand::Rng;

    use super::*;

    #[test]
    fn the_same_change_in_the_same_release_has_the_same_noise_and_any_other_has_other_noise() {
        let key = NoiseKey::known(1);
        let word = |key: &NoiseKey, release: u8, change: &[i64]| key.generator(&[release; 32], change).next_u64();
        assert_eq!(word(&key, 7, &[3, 4]), word(&NoiseKey::known(1), 7, &[3, 4]));
        let mut words = vec![
            word(&key, 7, &[3, 4]),
            word(&key, 8, &[3, 4]),
            word(&key, 7, &[3, 5]),
            word(&key, 7, &[3, 4, 0]),
            word(&NoiseKey::known(2), 7, &[3, 4]),
            word(&NoiseKey::draw().unwrap(), 7, &[3, 4]),
            word(&NoiseKey::draw().unwrap(), 7, &[3, 4]),
        ];
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), 7);
        assert_eq!(key.fingerprint(&[1; 32]), NoiseKey::known(1).fingerprint(&[1; 32]));
        assert_ne!(key.fingerprint(&[1; 32]), key.fingerprint(&[2; 32]));
        assert_ne!(key.fingerprint(&[1; 32]), NoiseKey::known(2).fingerprint(&[1; 32]));
    }

    #[test]
    fn a_key_reads_back_and_is_shown_to_nobody() {
        let key = NoiseKey::known(3);
        assert_eq!(serde_json::from_str::<NoiseKey>(&serde_json::to_string(&key).unwrap()).unwrap(), key);
        assert_eq!(format!("{key:?}"), "NoiseKey");
    }
}
