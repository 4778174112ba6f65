//! Interactions: users, items, and the pairs of them that interact.

mod read;
mod spelling;

use std::collections::BTreeMap;

use mingle_spectra::{SpectrumError, WeightedGraph};

pub use read::{Form, UnknownForm, read_interactions};

/// A bipartite graph of users and items. Each of them has an interaction; repeated interactions count once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interactions {
    users: Vec<String>,
    items: Vec<String>,
    /// The items of each user, ascending.
    of_user: Vec<Vec<u32>>,
    repeated: u64,
}

impl Interactions {
    /// Interactions from pairs of a user and an item, by any names. Names that are whole numbers are sorted by value,
    /// before other names.
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let pairs: Vec<(&str, &str)> = pairs.into_iter().collect();
        let (users, user_numbers) = number(pairs.iter().map(|pair| pair.0));
        let (items, item_numbers) = number(pairs.iter().map(|pair| pair.1));
        let mut of_user = vec![Vec::new(); users.len()];
        for (user, item) in &pairs {
            if let (Some(user), Some(item)) = (user_numbers.get(user), item_numbers.get(item)) {
                of_user[*user as usize].push(*item);
            }
        }
        for items in &mut of_user {
            items.sort_unstable();
            items.dedup();
        }
        let kept: usize = of_user.iter().map(Vec::len).sum();
        Self { users, items, of_user, repeated: (pairs.len() - kept) as u64 }
    }

    /// The names of the users.
    pub fn users(&self) -> &[String] {
        &self.users
    }

    /// The names of the items.
    pub fn items(&self) -> &[String] {
        &self.items
    }

    /// The items of a user, ascending.
    ///
    /// # Panics
    /// There is no such user.
    pub fn of_user(&self, user: usize) -> &[u32] {
        &self.of_user[user]
    }

    /// The number of interactions.
    pub fn count(&self) -> usize {
        self.of_user.iter().map(Vec::len).sum()
    }

    /// The number of pairs in the data that repeated another.
    pub fn repeated(&self) -> u64 {
        self.repeated
    }

    /// The BLAKE3 hash of names and interactions.
    pub fn hash(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        for name in self.users.iter().chain(&self.items) {
            hasher.update(&(name.len() as u64).to_le_bytes());
            hasher.update(name.as_bytes());
        }
        for items in &self.of_user {
            hasher.update(&(items.len() as u64).to_le_bytes());
            hasher.update(bytemuck::cast_slice(items));
        }
        *hasher.finalize().as_bytes()
    }

    /// The interactions between users and items of one part, without users and items that have none left.
    pub fn part(&self, user_part: &[u32], item_part: &[u32], part: u32) -> Self {
        let pairs = self.of_user.iter().enumerate().filter(|(user, _)| user_part[*user] == part);
        let pairs = pairs.flat_map(|(user, items)| {
            let own = items.iter().filter(|item| item_part[**item as usize] == part);
            own.map(move |item| (self.users[user].as_str(), self.items[*item as usize].as_str()))
        });
        Self::from_pairs(pairs)
    }
}

/// The graph of users and their items in `of_user`: users first, then items.
///
/// # Errors
/// `SpectrumError::TooManyNodes` for more users and items than nodes can be counted.
pub fn bipartite_graph(users: usize, items: usize, of_user: &[Vec<u32>]) -> Result<WeightedGraph, SpectrumError> {
    let nodes = users + items;
    let Ok(first) = u32::try_from(users) else { return Err(SpectrumError::TooManyNodes { nodes }) };
    let edges =
        of_user.iter().zip(0..).flat_map(|(items, user)| items.iter().map(move |item| (user, first + item, 1.0)));
    WeightedGraph::new(nodes, edges)
}

/// Sorted names, and the number of each.
fn number<'a>(names: impl Iterator<Item = &'a str>) -> (Vec<String>, BTreeMap<&'a str, u32>) {
    let mut numbers: BTreeMap<&str, u32> = names.map(|name| (name, 0)).collect();
    let mut sorted: Vec<&str> = numbers.keys().copied().collect();
    sorted.sort_by_key(|name| (name.parse::<u64>().unwrap_or(u64::MAX), *name));
    for (number, name) in (0..).zip(&sorted) {
        numbers.insert(name, number);
    }
    (sorted.into_iter().map(str::to_owned).collect(), numbers)
}
