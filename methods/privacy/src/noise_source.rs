//! The source of the noise's randomness.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

/// A source with a generator for each change: the stream cipher ChaCha20 under a key that is used once.
///
/// The key comes from the operating system. It is drawn anew for every change, so that a machine that is copied or
/// rolled back while it runs adds no noise twice: the difference of two changes under the same noise contains none.
#[derive(Clone, Debug, Default)]
pub struct NoiseSource {
    /// The seed of the next key, for a source with known keys.
    known: Option<u64>,
}

impl NoiseSource {
    /// A source with keys that follow from `seed`: the same noise for the same seed, for simulations and tests. It
    /// protects nothing.
    pub fn known(seed: u64) -> Self {
        Self { known: Some(seed) }
    }

    /// The generator for one change.
    ///
    /// # Errors
    /// The operating system has no randomness available.
    pub fn generator(&mut self) -> Result<ChaCha20Rng, getrandom::Error> {
        if let Some(seed) = &mut self.known {
            let generator = ChaCha20Rng::seed_from_u64(*seed);
            *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            return Ok(generator);
        }
        let mut key = [0; 32];
        getrandom::fill(&mut key)?;
        Ok(ChaCha20Rng::from_seed(key))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use rand::Rng;

    fn first_words(mut source: NoiseSource) -> [u64; 2] {
        [(); 2].map(|()| source.generator().unwrap().next_u64())
    }

    #[test]
    fn every_change_has_a_generator_of_its_own() {
        let drawn = [NoiseSource::default(), NoiseSource::default(), NoiseSource::known(1), NoiseSource::known(2)]
            .map(first_words);
        let mut words = drawn.concat();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), 8, "{drawn:?}");
    }

    #[test]
    fn a_known_source_is_the_same_each_time() {
        assert_eq!(first_words(NoiseSource::known(7)), first_words(NoiseSource::known(7)));
    }
}
