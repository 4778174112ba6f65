//! The latest values of a repeated measurement.

use std::cmp::Ordering;
use std::collections::VecDeque;

/// The latest values, oldest first, at most `N` of them.
#[derive(Clone, Debug)]
pub(crate) struct Latest<T, const N: usize>(VecDeque<T>);

impl<T, const N: usize> Default for Latest<T, N> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T: Copy, const N: usize> Latest<T, N> {
    /// Adds a value, in place of the oldest one where there is no room.
    pub(crate) fn push(&mut self, value: T) {
        if self.is_full() {
            self.0.pop_front();
        }
        self.0.push_back(value);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if older values were dropped, or the next one would drop one.
    pub(crate) fn is_full(&self) -> bool {
        self.0.len() >= N
    }

    /// The values, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }

    /// The upper median in this order; `None` before the first value.
    pub(crate) fn median(&self, order: fn(&T, &T) -> Ordering) -> Option<T> {
        let mut values: Vec<T> = self.0.iter().copied().collect();
        values.sort_unstable_by(order);
        values.get(values.len() / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_value_makes_room_and_the_upper_median_is_of_those_that_are_left() {
        let mut latest = Latest::<u32, 4>::default();
        assert_eq!(latest.median(Ord::cmp), None);
        [9, 1, 3].into_iter().for_each(|value| latest.push(value));
        assert_eq!((latest.median(Ord::cmp), latest.is_full()), (Some(3), false));
        [7, 5].into_iter().for_each(|value| latest.push(value));
        assert_eq!((latest.iter().copied().collect::<Vec<_>>(), latest.len()), (vec![1, 3, 7, 5], 4));
        assert_eq!((latest.median(Ord::cmp), latest.is_full()), (Some(5), true));
    }
}
