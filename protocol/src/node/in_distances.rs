//! A receiver's statistics of one in-link: the distances of its latest parcels.

use std::collections::VecDeque;

use crate::effect::Clipped;

/// Number of distances of a link that are remembered.
const REMEMBERED: usize = 15;
/// Rounds without a parcel after which the distances of a link are forgotten.
const FORGOTTEN_AFTER: u64 = 15;

/// A receiver's statistics of one in-link.
#[derive(Clone, Debug, Default)]
pub(crate) struct InDistances {
    /// Distances of the latest parcels before clipping, oldest first.
    latest: VecDeque<f64>,
    /// The round in which the latest parcel was absorbed.
    round: u64,
    /// The median of these distances.
    median: f64,
    /// Parcels of this link that were clipped, and their amount, since the process follows the plan.
    pub(crate) clipped: Clipped,
}

impl InDistances {
    pub(super) fn remember(&mut self, round: u64, distance: f64) {
        if self.is_forgotten(round) {
            self.latest.clear();
        }
        if self.latest.len() >= REMEMBERED {
            self.latest.pop_front();
        }
        self.latest.push_back(distance);
        self.round = round;
        self.median = lower_median(self.latest.iter().copied().collect()).unwrap_or_default();
    }

    pub(super) fn is_forgotten(&self, round: u64) -> bool {
        round.saturating_sub(self.round) > FORGOTTEN_AFTER
    }

    pub(super) fn median(&self, round: u64) -> Option<f64> {
        (!self.latest.is_empty() && !self.is_forgotten(round)).then_some(self.median)
    }
}

/// The middle value, or the smaller of two: a liar among two cannot raise it.
pub(super) fn lower_median(mut values: Vec<f64>) -> Option<f64> {
    let middle = values.len().checked_sub(1)? / 2;
    values.sort_unstable_by(f64::total_cmp);
    Some(values[middle])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(distances: impl IntoIterator<Item = f64>) -> InDistances {
        let mut known = InDistances::default();
        distances.into_iter().for_each(|distance| known.remember(0, distance));
        known
    }

    #[test]
    fn of_two_the_smaller_counts_and_of_three_the_middle_one() {
        assert_eq!(lower_median(vec![]), None);
        assert_eq!(lower_median(vec![5.0]), Some(5.0));
        assert_eq!(lower_median(vec![9.0, 1.0]), Some(1.0));
        assert_eq!(lower_median(vec![9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(lower_median(vec![f64::MAX, 1.0, f64::INFINITY, 2.0]), Some(2.0));
    }

    #[test]
    fn the_median_of_a_link_follows_its_latest_distances_within_half_of_the_memory() {
        let mut known = after([1.0; REMEMBERED]);
        let mut needed = 0;
        while known.median(0) == Some(1.0) {
            known.remember(0, 100.0);
            needed += 1;
        }
        assert_eq!((needed, known.median(0)), (REMEMBERED / 2 + 1, Some(100.0)));
    }

    #[test]
    fn a_link_that_was_silent_for_long_begins_anew_with_its_first_distance() {
        let mut known = after([1.0; REMEMBERED]);
        assert_eq!(known.median(FORGOTTEN_AFTER), Some(1.0));
        assert_eq!(known.median(FORGOTTEN_AFTER + 1), None);
        known.remember(FORGOTTEN_AFTER + 1, 50.0);
        assert_eq!(known.median(FORGOTTEN_AFTER + 1), Some(50.0));
    }
}
