//! Interactions with a planted structure: communities, tastes within them, and items that are popular with everybody.
//!
//! Each of `communities` has its own users and items. A user has a taste, which is one of `tastes` in the community; with
//! probability `loyalty` an interaction is with an item of that taste, with probability `noise` with any item of all communities, else with
//! any of its own community. Within its choice an item is taken with a probability that falls with its rank as
//! `1 / (rank + 5)`: some are popular. Users have between half and one and a half times `per_user` interactions.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::interactions::Interactions;

/// What is planted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Planted {
    /// Groups of users and items that have little to do with each other.
    pub communities: usize,
    /// Users in each.
    pub users: usize,
    /// Items in each.
    pub items: usize,
    /// Tastes in each.
    pub tastes: usize,
    /// Interactions of a user, on average.
    pub per_user: usize,
    /// The share of interactions within a user's taste.
    pub loyalty: f64,
    /// The share with anything at all.
    pub noise: f64,
    /// Of everything that is drawn.
    pub seed: u64,
}

impl Default for Planted {
    /// What the demo uses: about 9,000 interactions of 480 users with 400 items.
    fn default() -> Self {
        Self { communities: 4, users: 120, items: 100, tastes: 5, per_user: 20, loyalty: 0.7, noise: 0.03, seed: 0 }
    }
}

impl Planted {
    /// Draws interactions; the names of users and items say where they belong, such as `u2-017` and `i2-004`.
    pub fn draw(&self) -> Interactions {
        let mut dice = ChaCha8Rng::seed_from_u64(self.seed);
        let mut pairs: Vec<(String, String)> = Vec::new();
        let tastes = self.tastes.max(1);
        for community in 0..self.communities {
            for user in 0..self.users {
                let name = format!("u{community}-{user:03}");
                let own: Vec<usize> = (0..self.items).filter(|item| item % tastes == user % tastes).collect();
                let all: Vec<usize> = (0..self.items).collect();
                let count = self.per_user / 2 + below(&mut dice, self.per_user + 1);
                for _ in 0..count.max(1) {
                    let luck = share(&mut dice);
                    let (place, items) = if luck < self.noise {
                        (below(&mut dice, self.communities), &all)
                    } else if luck < self.noise + self.loyalty {
                        (community, &own)
                    } else {
                        (community, &all)
                    };
                    if let Some(item) = popular(&mut dice, items) {
                        pairs.push((name.clone(), format!("i{place}-{item:03}")));
                    }
                }
            }
        }
        Interactions::from_pairs(pairs.iter().map(|(user, item)| (user.as_str(), item.as_str())))
    }
}

/// An item with a probability that falls with its place.
fn popular(dice: &mut ChaCha8Rng, items: &[usize]) -> Option<usize> {
    let weight = |rank: usize| 1.0 / (rank as f64 + 5.0);
    let total: f64 = (0..items.len()).map(weight).sum();
    let mut left = share(dice) * total;
    let found = items.iter().enumerate().find(|(rank, _)| {
        left -= weight(*rank);
        left < 0.0
    });
    found.map(|(_, item)| *item).or(items.last().copied())
}

pub(crate) fn share(dice: &mut ChaCha8Rng) -> f64 {
    (dice.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// A number below `bound`, which is not 0; the bias of the remainder is below 2^-32 for bounds below 2^32.
pub(crate) fn below(dice: &mut ChaCha8Rng, bound: usize) -> usize {
    (dice.next_u64() % bound.max(1) as u64) as usize
}
