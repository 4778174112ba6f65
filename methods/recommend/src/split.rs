//! Split of each user's interactions into training, validation and test: 8 : 1 : 1.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::generator::below;
use crate::interactions::Interactions;

/// The least interactions of a user that are split; those of others are all in training.
const LEAST: usize = 3;

/// Items of each user, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserSplit {
    /// The training items; at least one for each user.
    pub train: Vec<Vec<u32>>,
    /// The validation items, by which training is evaluated.
    pub validation: Vec<Vec<u32>>,
    /// The test items, which are not used before the end.
    pub test: Vec<Vec<u32>>,
}

impl UserSplit {
    /// Splits the interactions at random. Of a user with `n >= 3` interactions, `max(1, n / 10)` are for the test and
    /// as many for validation.
    pub fn of(interactions: &Interactions, seed: u64) -> Self {
        let mut split = Self { train: Vec::new(), validation: Vec::new(), test: Vec::new() };
        for user in 0..interactions.users().len() {
            let mut items = interactions.of_user(user).to_vec();
            let mut dice = ChaCha8Rng::seed_from_u64(seed);
            dice.set_stream(user as u64);
            for last in (1..items.len()).rev() {
                items.swap(last, below(&mut dice, last + 1));
            }
            let held_out = if items.len() < LEAST { 0 } else { (items.len() / 10).max(1) };
            for part in [&mut split.test, &mut split.validation] {
                let mut held = items.split_off(items.len() - held_out);
                held.sort_unstable();
                part.push(held);
            }
            items.sort_unstable();
            split.train.push(items);
        }
        split
    }

    /// The number of training interactions.
    pub fn train_count(&self) -> usize {
        self.train.iter().map(Vec::len).sum()
    }
}
