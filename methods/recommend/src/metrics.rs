//! Quality of rankings.

use serde::{Deserialize, Serialize};

/// The share of the wanted items that are among the first `k`: 0 to 1.
pub fn recall(ranking: &[u32], wanted: &[u32], k: usize) -> f64 {
    let hits = ranking.iter().take(k).filter(|item| wanted.contains(item)).count();
    hits as f64 / wanted.len().max(1) as f64
}

/// Normalised discounted cumulative gain of the first `k`: a hit at rank `r` counts `1 / log2(r + 1)`; 1 if all wanted items come
/// first.
pub fn ndcg(ranking: &[u32], wanted: &[u32], k: usize) -> f64 {
    let gain = |rank: usize| 1.0 / ((rank + 2) as f64).log2();
    let hits = ranking.iter().take(k).enumerate().filter(|(_, item)| wanted.contains(item));
    let found: f64 = hits.map(|(rank, _)| gain(rank)).sum();
    let best: f64 = (0..wanted.len().min(k)).map(gain).sum();
    if best > 0.0 { found / best } else { 0.0 }
}

/// The first `k` items that are not in `left_out`, by falling score; the lower item goes first among equal scores.
pub fn top(scores: &[f32], left_out: &[&[u32]], k: usize) -> Vec<u32> {
    let is_left_out = |item: u32| left_out.iter().any(|items| items.binary_search(&item).is_ok());
    let mut items: Vec<u32> = (0..scores.len() as u32).filter(|item| !is_left_out(*item)).collect();
    let order = |a: &u32, b: &u32| scores[*b as usize].total_cmp(&scores[*a as usize]).then(a.cmp(b));
    if items.len() > k && k > 0 {
        items.select_nth_unstable_by(k - 1, order);
        items.truncate(k);
    }
    items.sort_unstable_by(order);
    items
}

/// The measures of a client; `None` where there are no held-out items to measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankingQuality {
    /// NDCG of the items held out for validation.
    pub validation_ndcg: Option<f64>,
    /// Recall of the test items.
    pub recall: Option<f64>,
    /// NDCG of the test items.
    pub ndcg: Option<f64>,
    /// The share of all items that is recommended to at least one user.
    pub coverage: Option<f64>,
    /// Recall of the test items among the fifth of items that is most popular.
    pub recall_popular: Option<f64>,
    /// Recall of the test items among the other items.
    pub recall_rare: Option<f64>,
    /// NDCG of the test items, by group of users.
    #[serde(default)]
    pub ndcg_of_users: [Option<f64>; UserGroup::COUNT],
}

/// The names of the measures, in the order of [`RankingQuality::values`].
pub const METRICS: [&str; 9] = [
    "validation_ndcg@20",
    "recall@20",
    "ndcg@20",
    "coverage@20",
    "recall@20_popular",
    "recall@20_rare",
    "ndcg@20_tail",
    "ndcg@20_mid",
    "ndcg@20_head",
];
/// The number of ranks evaluated.
pub const K: usize = 20;

impl RankingQuality {
    /// The values in the order of [`METRICS`].
    pub fn values(&self) -> [Option<f64>; METRICS.len()] {
        let [tail, mid, head] = self.ndcg_of_users;
        let Self { validation_ndcg, recall, ndcg, coverage, recall_popular, recall_rare, .. } = *self;
        [validation_ndcg, recall, ndcg, coverage, recall_popular, recall_rare, tail, mid, head]
    }
}

/// A group of a client's users by the number of interactions that they train on, as in Table 3 of Sim and Park: the half with
/// the fewest, the next third, and the sixth with the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UserGroup {
    /// The half with the fewest.
    Tail,
    /// The third between.
    Mid,
    /// The sixth with the most.
    Head,
}

impl UserGroup {
    /// The number of groups.
    pub const COUNT: usize = 3;

    /// The group of each user, by the number of interactions of each. Among equals the lower user counts as one with fewer.
    ///
    /// ```
    /// use mingle_recommend::UserGroup::{self, Head, Mid, Tail};
    /// assert_eq!(UserGroup::of_users(&[9, 1, 2, 30, 3, 8]), [Mid, Tail, Tail, Head, Tail, Mid]);
    /// ```
    pub fn of_users(interactions: &[usize]) -> Vec<Self> {
        let users = interactions.len();
        let mut order: Vec<usize> = (0..users).collect();
        order.sort_by_key(|user| (interactions[*user], *user));
        let mut groups = vec![Self::Head; users];
        let tail = users.div_ceil(2);
        let mid = (5 * users).div_ceil(6);
        order[..mid].iter().for_each(|user| groups[*user] = Self::Mid);
        order[..tail].iter().for_each(|user| groups[*user] = Self::Tail);
        groups
    }
}

/// A running mean.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    pub(crate) fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
    }

    pub(crate) fn value(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}
