//! Arrival times of a neighbour's latest parcels.

use crate::latest::Latest;
use crate::time::Time;

/// Parcels whose times are remembered.
const REMEMBERED: usize = 16;

/// The steps and times of the latest parcels of a neighbour, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrivals(Latest<(u64, Time), REMEMBERED>);

impl Arrivals {
    /// Records that a parcel of this step came.
    pub(crate) fn note(&mut self, step: u64, now: Time) {
        self.0.push((step, now));
    }

    /// The time when the first parcel of this step or a later one came. The beginning of time if that is too long ago
    /// to be known; `None` if none has come.
    pub(crate) fn first_of(&self, step: u64) -> Option<Time> {
        let (oldest, _) = self.0.iter().next()?;
        if *oldest > step && self.0.is_full() {
            return Some(Time::default());
        }
        self.0.iter().find(|(of, _)| *of >= step).map(|(_, at)| *at)
    }

    /// The time of the first parcel that came after this moment; `None` if none has.
    pub(crate) fn first_after(&self, moment: Time) -> Option<Time> {
        self.0.iter().map(|(_, at)| *at).find(|at| *at > moment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_parcel_of_a_step_or_after_it_counts() {
        let mut arrivals = Arrivals::default();
        assert_eq!(arrivals.first_of(0), None);
        (0..10).for_each(|round| arrivals.note(2 * round, Time::from_millis(round)));
        assert_eq!(arrivals.first_of(4), Some(Time::from_millis(2)));
        assert_eq!(arrivals.first_of(5), Some(Time::from_millis(3)));
        assert_eq!(arrivals.first_of(19), None);
        assert_eq!(arrivals.first_after(Time::from_millis(7)), Some(Time::from_millis(8)));
        assert_eq!(arrivals.first_after(Time::from_millis(9)), None);
        (10..30).for_each(|round| arrivals.note(2 * round, Time::from_millis(round)));
        assert_eq!(arrivals.first_of(4), Some(Time::default()), "that is forgotten");
    }
}
