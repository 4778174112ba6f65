//! The share of popularity in an interaction, learned by two small tables of embeddings, one for users and one for
//! items.
//!
//! Degrees fall into buckets; `cos xi` of a user and an item is the cosine of the embeddings of their buckets. The
//! tables learn to separate interactions from negatives by popularity alone, with `L_bias = - log softmax` of
//! `cos xi / tau` over a positive and its negatives. Nothing else changes them, and they never leave their client.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::loss::log_sum_exp;
use crate::model::normal;
use crate::optimizer::RmsPropParameters;

/// The least degrees of the buckets after the first.
const THRESHOLDS: [usize; 10] = [10, 20, 30, 40, 50, 100, 200, 300, 400, 500];
/// The number of buckets of degrees.
pub const BUCKETS: usize = THRESHOLDS.len() + 1;
const WIDTH: usize = 64;
const DEVIATION: f64 = 0.02;

/// The bucket of a degree.
pub fn bucket(degree: usize) -> usize {
    THRESHOLDS.iter().filter(|threshold| degree >= **threshold).count()
}

/// Both tables and their optimizer state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Popularity {
    users: Vec<f64>,
    items: Vec<f64>,
    optimizer: [Vec<f64>; 2],
}

/// The buckets of a positive and its negatives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// The bucket of the user.
    pub user: usize,
    /// The bucket of the item, then those of its negatives.
    pub items: Vec<usize>,
}

impl Popularity {
    pub(crate) fn new(dice: &mut ChaCha8Rng) -> Self {
        let mut table = || (0..BUCKETS * WIDTH).map(|_| DEVIATION * normal(dice)).collect();
        let zeros = || vec![0.0; BUCKETS * WIDTH];
        Self { users: table(), items: table(), optimizer: [zeros(), zeros()] }
    }

    pub(crate) fn is_sound(&self) -> bool {
        let all = [&self.users, &self.items, &self.optimizer[0], &self.optimizer[1]];
        all.iter().all(|table| table.len() == BUCKETS * WIDTH && table.iter().all(|value| value.is_finite()))
    }

    /// `cos xi` of every pair of buckets, `[users, items]`.
    pub fn cosines(&self) -> Vec<f64> {
        let pairs = (0..BUCKETS).flat_map(|user| (0..BUCKETS).map(move |item| (user, item)));
        pairs.map(|(user, item)| cosine(row(&self.users, user), row(&self.items, item))).collect()
    }

    /// `L_bias`, the mean over the examples, and its derivatives by both tables.
    pub fn loss(&self, examples: &[Example], temperature: f64) -> (f64, [Vec<f64>; 2]) {
        let cosines = self.cosines();
        let mut loss = 0.0;
        let mut by_cosine = vec![0.0; BUCKETS * BUCKETS];
        let count = examples.len().max(1) as f64;
        for Example { user, items } in examples {
            let logits: Vec<f64> = items.iter().map(|item| cosines[user * BUCKETS + item] / temperature).collect();
            let (log_sum, shares) = log_sum_exp(&logits);
            loss += (log_sum - logits[0]) / count;
            for (at, (item, share)) in items.iter().zip(shares).enumerate() {
                let wanted = f64::from(u8::from(at == 0));
                by_cosine[user * BUCKETS + item] += (share - wanted) / temperature / count;
            }
        }
        (loss, self.chain(&cosines, &by_cosine))
    }

    /// Converts derivatives by the cosines into derivatives by the tables.
    fn chain(&self, cosines: &[f64], by_cosine: &[f64]) -> [Vec<f64>; 2] {
        let mut gradients = [vec![0.0; self.users.len()], vec![0.0; self.items.len()]];
        for user in 0..BUCKETS {
            for item in 0..BUCKETS {
                let slope = by_cosine[user * BUCKETS + item];
                let cosine = cosines[user * BUCKETS + item];
                if slope == 0.0 {
                    continue;
                }
                let a = row(&self.users, user);
                let b = row(&self.items, item);
                let a_length = norm(a);
                let b_length = norm(b);
                for at in 0..WIDTH {
                    let a_unit = a[at] / a_length;
                    let b_unit = b[at] / b_length;
                    gradients[0][user * WIDTH + at] += slope * (b_unit - cosine * a_unit) / a_length;
                    gradients[1][item * WIDTH + at] += slope * (a_unit - cosine * b_unit) / b_length;
                }
            }
        }
        gradients
    }

    /// One step of gradient descent.
    pub(crate) fn step(&mut self, gradients: &[Vec<f64>; 2], rule: RmsPropParameters) {
        let tables = [&mut self.users, &mut self.items];
        for ((table, squares), gradient) in tables.into_iter().zip(&mut self.optimizer).zip(gradients) {
            rule.step(table, squares, gradient);
        }
    }
}

fn row(table: &[f64], at: usize) -> &[f64] {
    &table[at * WIDTH..][..WIDTH]
}

/// The norm, at least 1e-12, so that a division by the norm of a zero row is finite.
fn norm(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum::<f64>().sqrt().max(1e-12)
}

fn cosine(a: &[f64], b: &[f64]) -> f64 {
    let product: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
    (product / (norm(a) * norm(b))).clamp(-1.0, 1.0)
}

#[cfg(test)]
mod tests {
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    #[test]
    fn the_derivatives_of_the_bias_loss_are_those_of_finite_differences() {
        let mut popularity = Popularity::new(&mut ChaCha8Rng::seed_from_u64(3));
        let examples = [
            Example { user: 0, items: vec![1, 0, 4, 4, 10] },
            Example { user: 7, items: vec![0, 1] },
            Example { user: 0, items: vec![10, 3, 3] },
        ];
        let (_, gradients) = popularity.loss(&examples, 0.1);
        let small = 1e-6;
        for (table, gradients) in gradients.iter().enumerate() {
            for at in [0, 5, WIDTH, WIDTH + 3, 4 * WIDTH, 7 * WIDTH + 9, 10 * WIDTH + 63] {
                let mut at_shift = |shift: f64| {
                    let values = if table == 0 { &mut popularity.users } else { &mut popularity.items };
                    values[at] += shift;
                    popularity.loss(&examples, 0.1).0
                };
                let (up, down) = (at_shift(small), at_shift(-2.0 * small));
                at_shift(small);
                let (slope, found) = ((up - down) / (2.0 * small), gradients[at]);
                assert!((slope - found).abs() <= 1e-4 * slope.abs().max(1e-3), "{table} {at}: {slope} {found}");
            }
        }
    }

    #[test]
    fn degrees_fall_into_eleven_buckets() {
        let buckets: Vec<usize> = [0, 9, 10, 49, 50, 99, 100, 499, 500, 90_000].into_iter().map(bucket).collect();
        assert_eq!(buckets, [0, 0, 1, 4, 5, 5, 6, 9, 10, 10]);
    }
}
