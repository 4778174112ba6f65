//! The pauses in a round: how long they are, and what nodes need.

use serde::{Deserialize, Serialize};

/// Pauses, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pauses {
    /// Before the first step of a round: for training.
    pub round: u32,
    /// Before each other step.
    pub step: u32,
}

impl Pauses {
    /// The longer one of each kind.
    pub fn max(self, other: Self) -> Self {
        Self { round: self.round.max(other.round), step: self.step.max(other.step) }
    }

    /// These pauses where the wanted ones are a little shorter, else the wanted ones: each change costs some collisions.
    pub fn towards(self, wanted: Self) -> Self {
        let towards = |present: u32, wanted: u32| {
            if (present - present / 4..=present).contains(&wanted) { present } else { wanted }
        };
        Self { round: towards(self.round, wanted.round), step: towards(self.step, wanted.step) }
    }

    /// The shorter one of each kind.
    pub fn min(self, other: Self) -> Self {
        Self { round: self.round.min(other.round), step: self.step.min(other.step) }
    }
}

/// The pauses that one node needed in an epoch: of each kind the second longest, since a single one may be an accident.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NeededPauses {
    longest: Pauses,
    second: Pauses,
}

impl NeededPauses {
    /// Adds what was needed before a step; the other kind is 0.
    pub(super) fn add(&mut self, needed: Pauses) {
        let lesser = self.longest.min(needed);
        self.longest = self.longest.max(needed);
        self.second = self.second.max(lesser);
    }

    /// The second longest pause of each kind.
    pub(super) fn get(&self) -> Pauses {
        self.second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_long_pause_is_an_accident_and_two_are_not() {
        let mut needed = NeededPauses::default();
        needed.add(Pauses { round: 900, step: 0 });
        assert_eq!(needed.get(), Pauses::default());
        needed.add(Pauses { round: 0, step: 5 });
        needed.add(Pauses { round: 30, step: 0 });
        assert_eq!(needed.get(), Pauses { round: 30, step: 0 });
        needed.add(Pauses { round: 800, step: 7 });
        assert_eq!(needed.get(), Pauses { round: 800, step: 5 });
    }
}
