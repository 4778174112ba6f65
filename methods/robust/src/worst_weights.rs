//! The set of weights as a place: its nearest point, and its worst one. Both use `+ - * / sqrt` and comparisons alone,
//! so that all sites find the same bits.

use crate::weights::{SiteWeights, WeightNorm};

/// Halvings of an interval: more than an f64 has bits.
const HALVINGS: usize = 100;
/// The largest error of a distance.
const ROUNDING: f64 = 1e-14;
/// The most doublings of an upper end.
const DOUBLINGS: usize = 1_000;

impl SiteWeights {
    /// The weights of the set that are nearest to `x`, `[sites]`, in the Euclidean norm. Time `n log n` for each of 100
    /// halvings.
    #[must_use]
    pub fn nearest(&self, x: &[f64]) -> Vec<f64> {
        if self.theta == 0.0 {
            return self.nominal.clone();
        }
        match self.norm {
            WeightNorm::Infinity => {
                let bounds = |nominal: &f64| ((nominal - self.theta).max(0.0), nominal + self.theta);
                let bounds: Vec<(f64, f64)> = self.nominal.iter().map(bounds).collect();
                shifted_to_sum(1.0, |shift| {
                    x.iter().zip(&bounds).map(|(x, (low, high))| (x + shift).clamp(*low, *high)).collect()
                })
            }
            WeightNorm::Two => {
                let between = |share: f64| {
                    let point = x.iter().zip(&self.nominal).map(|(x, nominal)| nominal + share * (x - nominal));
                    nearest_distribution(&point.collect::<Vec<_>>())
                };
                self.furthest_within(between, 1.0)
            }
            WeightNorm::One => {
                let moved: Vec<f64> = x.iter().zip(&self.nominal).map(|(x, nominal)| x - nominal).collect();
                let shrunk = |threshold: f64| {
                    shifted_to_sum(1.0, |shift| {
                        let terms = moved.iter().zip(&self.nominal);
                        let soft = |value: f64| value.signum() * (value.abs() - threshold).max(0.0);
                        terms.map(|(moved, nominal)| (nominal + soft(moved + shift)).max(0.0)).collect()
                    })
                };
                let largest = moved.iter().map(|moved| moved.abs()).fold(0.0, f64::max);
                // A smaller threshold goes further: the share counts down from the largest one.
                self.furthest_within(|share| shrunk(2.0 * (largest + 1.0) * (1.0 - share)), 1.0)
            }
        }
    }

    /// The weights with the largest mean of the losses of the sites, `[sites]`, and that mean.
    #[must_use]
    pub fn worst(&self, losses: &[f64]) -> (Vec<f64>, f64) {
        let weights = match self.norm {
            _ if self.theta == 0.0 => self.nominal.clone(),
            WeightNorm::Two => {
                let most = losses.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let spread = most - losses.iter().copied().fold(f64::INFINITY, f64::min);
                let size = if spread > 0.0 { 1.0 / spread } else { 0.0 };
                // Relative to the largest loss, so that far along the path the largest entries stay near 1 and keep
                // their digits.
                let along = |by: f64| {
                    let terms = self.nominal.iter().zip(losses);
                    let point = terms.map(|(nominal, loss)| nominal + by * size * (loss - most));
                    nearest_distribution(&point.collect::<Vec<_>>())
                };
                self.furthest_within(along, f64::INFINITY)
            }
            WeightNorm::One => self.by_moving(losses, 0.5 * self.theta, f64::INFINITY),
            WeightNorm::Infinity => self.by_moving(losses, f64::INFINITY, self.theta),
        };
        let mean = weights.iter().zip(losses).map(|(weight, loss)| weight * loss).sum();
        (weights, mean)
    }

    /// Moves weight from the sites with the least losses to those with the largest ones: `in_all` together, and `each` at
    /// most to or from one site.
    fn by_moving(&self, losses: &[f64], in_all: f64, each: f64) -> Vec<f64> {
        let mut weights = self.nominal.clone();
        let mut order: Vec<usize> = (0..losses.len()).collect();
        order.sort_by(|&a, &b| losses[a].total_cmp(&losses[b]));
        let mut room = vec![each; losses.len()];
        let mut left = in_all;
        let mut low = 0;
        let mut high = losses.len().saturating_sub(1);
        while low < high && left > 0.0 {
            let (from, to) = (order[low], order[high]);
            let available = room[from].min(weights[from]);
            let amount = available.min(room[to]).min(left);
            weights[from] -= amount;
            weights[to] += amount;
            room[from] -= amount;
            room[to] -= amount;
            left -= amount;
            if amount >= available {
                low += 1;
            } else {
                high -= 1;
            }
        }
        weights
    }

    /// The last point of a path away from the nominal weights that is within `theta` of them, to rounding. The distance
    /// does not fall along the path, which ends at `end`. The search takes about ten points: false position (Illinois),
    /// with a halving in every third step.
    fn furthest_within(&self, point: impl Fn(f64) -> Vec<f64>, end: f64) -> Vec<f64> {
        let beyond = |point: &[f64]| self.distance(point) - self.theta;
        let mut low = 0.0;
        let mut inside = point(low);
        let mut beyond_low = beyond(&inside);
        let mut high = 1.0;
        let mut last = point(high);
        let mut beyond_high = beyond(&last);
        for _ in 0..DOUBLINGS {
            if beyond_high > 0.0 {
                break;
            }
            if high >= end {
                return last;
            }
            let next = point(2.0 * high);
            // Beyond this the path does not move any more.
            if next == last && high > 1e3 {
                return last;
            }
            low = high;
            beyond_low = beyond_high;
            inside = last;
            high *= 2.0;
            beyond_high = beyond(&next);
            last = next;
        }
        let mut was_beyond = None;
        for step in 0..HALVINGS {
            let share = if step % 3 == 2 { 0.5 } else { beyond_low / (beyond_low - beyond_high) };
            let middle = low + share * (high - low);
            if middle <= low || middle >= high {
                break;
            }
            let at = point(middle);
            let beyond_middle = beyond(&at);
            if beyond_middle.abs() <= ROUNDING {
                return at;
            }
            let is_beyond = beyond_middle > 0.0;
            // The end that stays a second time counts half.
            let weight = if was_beyond == Some(is_beyond) { 0.5 } else { 1.0 };
            was_beyond = Some(is_beyond);
            if is_beyond {
                high = middle;
                beyond_high = beyond_middle;
                beyond_low *= weight;
            } else {
                low = middle;
                beyond_low = beyond_middle;
                beyond_high *= weight;
                inside = at;
            }
        }
        inside
    }

    fn distance(&self, weights: &[f64]) -> f64 {
        let apart = weights.iter().zip(&self.nominal).map(|(weight, nominal)| (weight - nominal).abs());
        match self.norm {
            WeightNorm::One => apart.sum(),
            WeightNorm::Two => apart.map(|apart| apart * apart).sum::<f64>().sqrt(),
            WeightNorm::Infinity => apart.fold(0.0, f64::max),
        }
    }
}

/// The distribution nearest to `x` in the Euclidean norm (Held, Wolfe, Crowder 1974).
fn nearest_distribution(x: &[f64]) -> Vec<f64> {
    let mut sorted = x.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let mut sum = 0.0;
    let mut threshold = f64::NEG_INFINITY;
    for (at, value) in sorted.iter().enumerate() {
        sum += value;
        let candidate = (sum - 1.0) / (at + 1) as f64;
        if *value <= candidate {
            break;
        }
        threshold = candidate;
    }
    x.iter().map(|value| (value - threshold).max(0.0)).collect()
}

/// The point of a family, increasing in its shift, whose entries add up to `sum`.
fn shifted_to_sum(sum: f64, point: impl Fn(f64) -> Vec<f64>) -> Vec<f64> {
    let is_short = |shift: f64| point(shift).iter().sum::<f64>() < sum;
    let mut low = -1.0;
    let mut high = 1.0;
    for _ in 0..DOUBLINGS {
        if is_short(low) {
            break;
        }
        low *= 2.0;
    }
    for _ in 0..DOUBLINGS {
        if !is_short(high) {
            break;
        }
        high *= 2.0;
    }
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if is_short(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    point(high)
}
