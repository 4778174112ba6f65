//! Generated interactions with a planted structure: communities, tastes within them, and items that are popular with
//! all users.
//!
//! Each of `communities` has its own users and items. A user has a taste, which is one of `tastes` in the community.
//! With probability `loyalty` an interaction is with an item of that taste, with probability `noise` with any item of
//! all communities, else with any of its own community. Among these items one is drawn with a probability that falls
//! with its rank as `1 / (rank + 5)`: some are popular. Users draw between half and one and a half times `per_user`
//! interactions; repeated ones count once.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::error::RecommendError;
use crate::interactions::Interactions;

/// The name of such data.
const NAME: &str = "planted";
/// The most interactions drawn, users and items.
const MOST_DRAWN: usize = 100_000_000;

/// The parameters of planted interactions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Planted {
    /// The number of groups of users and items with few interactions between groups.
    pub communities: usize,
    /// Users in each community.
    pub users: usize,
    /// Items in each community.
    pub items: usize,
    /// Tastes in each community.
    pub tastes: usize,
    /// Interactions of a user, on average.
    pub per_user: usize,
    /// The share of interactions within a user's taste.
    pub loyalty: f64,
    /// The share of interactions with any item at all.
    pub noise: f64,
    /// The seed of all draws.
    pub seed: u64,
}

impl Default for Planted {
    /// The setting of the demo: about 9,000 interactions of 480 users with 400 items.
    fn default() -> Self {
        Self { communities: 4, users: 120, items: 100, tastes: 5, per_user: 20, loyalty: 0.7, noise: 0.03, seed: 0 }
    }
}

impl Planted {
    /// Parses a text such as `planted:communities=4,users=1510,per_user=250,seed=1`; parameters that it does not name
    /// have their defaults. `None` if it begins with another name.
    ///
    /// # Errors
    /// [`RecommendError::Planted`].
    pub fn named(text: &str) -> Result<Option<Self>, RecommendError> {
        let said = match text.strip_prefix(NAME) {
            Some("") => "",
            Some(rest) => match rest.strip_prefix(':') {
                Some(said) => said,
                None => return Ok(None),
            },
            None => return Ok(None),
        };
        let wrong = |reason: String| RecommendError::Planted { text: text.to_owned(), reason };
        let mut planted = Self::default();
        for word in said.split(',').filter(|word| !word.is_empty()) {
            let (name, value) = word.split_once('=').ok_or_else(|| wrong(format!("{word}: name=value is expected")))?;
            planted.set(name.trim(), value.trim()).map_err(wrong)?;
        }
        planted.check().map(|()| Some(planted)).map_err(wrong)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let wrong = || format!("{name}={value} is no such number");
        let count = || value.parse::<usize>().map_err(|_| wrong());
        let real = || value.parse::<f64>().map_err(|_| wrong());
        match name {
            "communities" => self.communities = count()?,
            "users" => self.users = count()?,
            "items" => self.items = count()?,
            "tastes" => self.tastes = count()?,
            "per_user" => self.per_user = count()?,
            "loyalty" => self.loyalty = real()?,
            "noise" => self.noise = real()?,
            "seed" => self.seed = value.parse().map_err(|_| wrong())?,
            _ => {
                return Err(format!(
                    "{name}: there are communities, users, items, tastes, per_user, loyalty, noise and seed"
                ));
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        let product = |counts: [usize; 3]| counts.into_iter().try_fold(1_usize, usize::checked_mul);
        let drawn = product([self.communities, self.users, self.per_user.saturating_add(1)]);
        let items = product([self.communities, self.items, 1]);
        let is_small = |count: Option<usize>| count.is_some_and(|count| (1..=MOST_DRAWN).contains(&count));
        if !is_small(drawn) || !is_small(items) || self.tastes == 0 || self.tastes > self.items {
            return Err(format!(
                "1 to {MOST_DRAWN} interactions and items, and no more tastes than items of a community are expected"
            ));
        }
        let loyalty = self.loyalty;
        let noise = self.noise;
        let is_share = (0.0..=1.0).contains(&loyalty) && (0.0..=1.0).contains(&noise) && loyalty + noise <= 1.0;
        if is_share { Ok(()) } else { Err(format!("loyalty={loyalty} and noise={noise} are shares of one whole")) }
    }

    /// Draws interactions. The names of users and items contain their community, such as `u2-017` and `i2-004`.
    pub fn draw(&self) -> Interactions {
        let mut dice = ChaCha8Rng::seed_from_u64(self.seed);
        let mut pairs: Vec<(String, String)> = Vec::new();
        let tastes = self.tastes.max(1);
        let all: Vec<usize> = (0..self.items).collect();
        let of_taste: Vec<Vec<usize>> =
            (0..tastes).map(|taste| (taste..self.items).step_by(tastes).collect()).collect();
        let popularity = Popularity::of(self.items);
        for community in 0..self.communities {
            for user in 0..self.users {
                let name = format!("u{community}-{user:03}");
                let own = &of_taste[user % tastes];
                let count = self.per_user / 2 + below(&mut dice, self.per_user + 1);
                for _ in 0..count.max(1) {
                    let luck = share(&mut dice);
                    let (place, items) = if luck < self.noise {
                        (below(&mut dice, self.communities), &all)
                    } else if luck < self.noise + self.loyalty {
                        (community, own)
                    } else {
                        (community, &all)
                    };
                    if let Some(item) = popularity.draw(&mut dice, items) {
                        pairs.push((name.clone(), format!("i{place}-{item:03}")));
                    }
                }
            }
        }
        Interactions::from_pairs(pairs.iter().map(|(user, item)| (user.as_str(), item.as_str())))
    }
}

/// A distribution whose probabilities fall with the rank.
struct Popularity {
    /// The cumulative weights of the ranks.
    totals: Vec<f64>,
}

impl Popularity {
    fn of(ranks: usize) -> Self {
        let weights = (0..ranks).map(|rank| 1.0 / (rank as f64 + 5.0));
        Self {
            totals: weights
                .scan(0.0, |total, weight| Some(std::mem::replace(total, *total + weight) + weight))
                .collect(),
        }
    }

    /// Draws one of the items, which are in the order of their ranks.
    fn draw(&self, dice: &mut ChaCha8Rng, items: &[usize]) -> Option<usize> {
        let totals = &self.totals[..items.len()];
        let wanted = share(dice) * totals.last()?;
        let rank = totals.partition_point(|total| *total <= wanted);
        items.get(rank.min(items.len() - 1)).copied()
    }
}

pub(crate) fn share(dice: &mut ChaCha8Rng) -> f64 {
    (dice.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// A number below `bound`, which is not 0; the bias of the remainder is below 2^-32 for bounds below 2^32.
pub(crate) fn below(dice: &mut ChaCha8Rng, bound: usize) -> usize {
    (dice.next_u64() % bound.max(1) as u64) as usize
}
