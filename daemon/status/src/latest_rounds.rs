//! Measurements over the latest rounds of a peer.

use std::collections::VecDeque;
use std::time::Duration;

/// Rounds over which a peer measures.
pub const LATEST_ROUNDS: usize = 20;
/// Fewest rounds that show a trend.
pub const FEWEST_ROUNDS: usize = 4;

/// Adds a value, in place of the oldest one once there are [`LATEST_ROUNDS`].
pub fn keep_latest<T>(values: &mut VecDeque<T>, value: T) {
    if values.len() == LATEST_ROUNDS {
        values.pop_front();
    }
    values.push_back(value);
}

/// The mean, in seconds.
pub fn mean(times: &VecDeque<Duration>) -> Option<f64> {
    let count = u32::try_from(times.len()).ok().filter(|count| *count > 0)?;
    Some(times.iter().sum::<Duration>().as_secs_f64() / f64::from(count))
}

/// The upper median.
pub fn median(times: &VecDeque<Duration>) -> Option<Duration> {
    let mut times: Vec<Duration> = times.iter().copied().collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

/// The factor per round that fits these disagreements best: the exponential of the least-squares slope of their
/// logarithms, over the rounds after which there was one.
pub fn contraction(disagreements: &VecDeque<(u64, f64)>) -> Option<f64> {
    let first = disagreements.front()?.0;
    let apart = || disagreements.iter().filter(|(_, value)| *value > 0.0);
    if apart().count() < FEWEST_ROUNDS {
        return None;
    }
    let points = || apart().map(|(round, value)| (mingle_home::units::count(round - first), value.ln()));
    let count = mingle_home::units::count(apart().count() as u64);
    let (sum_x, sum_y) = points().fold((0.0, 0.0), |(sum_x, sum_y), (x, y)| (sum_x + x, sum_y + y));
    let mean_x = sum_x / count;
    let mean_y = sum_y / count;
    let (along, across) = points().fold((0.0, 0.0), |(along, across), (x, y)| {
        (along + (x - mean_x) * (x - mean_x), across + (x - mean_x) * (y - mean_y))
    });
    Some((across / along).exp()).filter(|factor| factor.is_finite())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_disagreement_that_shrinks_by_a_constant_factor_is_measured_as_that_factor() {
        for factor in [0.5_f64, 0.98, 1.0, 1.3] {
            let values = (0..12).map(|round| (40 + round, 0.7 * factor.powi(i32::try_from(round).unwrap()))).collect();
            assert!((contraction(&values).unwrap() - factor).abs() < 1e-9, "{factor}");
        }
    }

    #[test]
    fn rounds_in_which_nobody_was_heard_do_not_bend_the_measurement() {
        let values = [2_u64, 3, 7, 8, 20].map(|round| (round, 0.9_f64.powi(i32::try_from(round).unwrap())));
        assert!((contraction(&values.into()).unwrap() - 0.9).abs() < 1e-9);
        let same_round = [(3, 0.5), (3, 0.4), (3, 0.3), (3, 0.2)];
        assert_eq!(contraction(&same_round.into()), None);
        assert_eq!(contraction(&[(1, 0.5), (2, 0.4)].into()), None);
    }

    #[test]
    fn models_that_agree_to_the_bit_have_no_contraction() {
        let agreed = [(1, 0.5), (2, 0.0), (3, 0.0), (4, 0.0), (5, 0.0)];
        assert_eq!(contraction(&agreed.into()), None);
    }

    #[test]
    fn the_pace_is_that_of_the_last_rounds() {
        let mut pace = VecDeque::new();
        for seconds in [100; 5].into_iter().chain([2; LATEST_ROUNDS]) {
            keep_latest(&mut pace, Duration::from_secs(seconds));
        }
        assert_eq!(mean(&pace), Some(2.0));
        assert_eq!(mean(&VecDeque::new()), None);
    }
}
