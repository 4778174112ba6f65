//! The privacy that a peer has spent, and the budget for further changes.

use serde::{Deserialize, Serialize};

use crate::rdp_accountant::RdpAccountant;
use crate::settings::PrivacySettings;

/// The most different noises, of separate runs, that are counted apart.
const MOST_NOISES: usize = 1_024;

/// Released changes by their noise: everything that a peer has ever released of its data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Noised>", into = "Vec<Noised>")]
pub struct NoisedChanges {
    parts: Vec<Noised>,
}

/// The number of changes with this noise multiplier.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Noised {
    noise: f64,
    changes: u64,
}

impl TryFrom<Vec<Noised>> for NoisedChanges {
    type Error = String;

    fn try_from(parts: Vec<Noised>) -> Result<Self, String> {
        if parts.len() > MOST_NOISES {
            return Err(format!("{} different noises, and {MOST_NOISES} are the most", parts.len()));
        }
        match parts.iter().find(|part| !part.noise.is_finite() || part.noise <= 0.0) {
            Some(part) => Err(format!("a noise of {}", part.noise)),
            None => Ok(Self { parts }),
        }
    }
}

impl From<NoisedChanges> for Vec<Noised> {
    fn from(changes: NoisedChanges) -> Self {
        changes.parts
    }
}

impl NoisedChanges {
    /// The number of changes.
    pub fn count(&self) -> u64 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.changes))
    }

    /// Returns `true` if there are none.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// These changes and those.
    #[must_use]
    pub fn joined(self, others: &Self) -> Self {
        others.parts.iter().fold(self, |all, part| all.with(part.noise, part.changes))
    }

    /// These changes and `more` with this noise.
    #[must_use]
    pub fn with(&self, noise: f64, more: u64) -> Self {
        let mut parts = self.parts.clone();
        match parts.iter_mut().find(|part| part.noise.to_bits() == noise.to_bits()) {
            Some(part) => part.changes = part.changes.saturating_add(more),
            None => parts.push(Noised { noise, changes: more }),
        }
        Self { parts }
    }

    fn epsilon(&self, delta: f64) -> f64 {
        let mut accountant = RdpAccountant::default();
        self.parts.iter().for_each(|part| accountant.compose_gaussian(part.noise, part.changes));
        accountant.epsilon(delta)
    }
}

/// The remaining privacy budget of a peer.
#[derive(Clone, Debug, PartialEq)]
pub struct PrivacyBudget {
    settings: PrivacySettings,
    changes: NoisedChanges,
}

/// The privacy spent so far.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrivacySpending {
    /// The clipping and noise of changes, and the largest cost of all of them.
    #[serde(flatten)]
    pub settings: PrivacySettings,
    /// The number of changes that were noised and may have been seen by others, in this run and those before in the
    /// same home.
    pub changes: u64,
    /// Their total cost at the delta of the settings.
    pub epsilon: f64,
    /// The number of further changes below the maximum.
    pub changes_left: u64,
    /// Set when nothing more may be released: this peer takes no further local steps.
    pub is_spent: bool,
}

impl PrivacyBudget {
    /// The budget of a peer that has already released `changes`.
    pub fn new(settings: PrivacySettings, changes: NoisedChanges) -> Self {
        Self { settings, changes }
    }

    /// The clipping and noise of changes.
    pub fn settings(&self) -> &PrivacySettings {
        &self.settings
    }

    /// The released changes.
    pub fn changes(&self) -> &NoisedChanges {
        &self.changes
    }

    /// The budget after the release of another change; `None` where that would cost more than the maximum.
    pub fn next(&self) -> Option<Self> {
        self.allows(1).then(|| Self { settings: self.settings, changes: self.changes.with(self.settings.noise(), 1) })
    }

    /// The present spending of this peer.
    pub fn spending(&self) -> PrivacySpending {
        let changes_left = self.changes_left();
        PrivacySpending {
            settings: self.settings,
            changes: self.changes.count(),
            epsilon: self.changes.epsilon(self.settings.delta()),
            changes_left,
            is_spent: changes_left == 0,
        }
    }

    fn allows(&self, more: u64) -> bool {
        let after = self.changes.with(self.settings.noise(), more);
        let has_room = after.parts.len() <= MOST_NOISES && self.changes.count().checked_add(more).is_some();
        // False for NaN.
        has_room && after.epsilon(self.settings.delta()) <= self.settings.epsilon_max()
    }

    /// The largest number of changes that is allowed; epsilon grows with it.
    fn changes_left(&self) -> u64 {
        /// An upper limit that is never reached: a change each microsecond for a century.
        const MOST: u64 = 1 << 52;
        let mut allowed = 0;
        let mut refused = MOST;
        while refused - allowed > 1 {
            let middle = allowed + (refused - allowed) / 2;
            if self.allows(middle) { allowed = middle } else { refused = middle }
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn budget(noise: f64, epsilon_max: f64, before: NoisedChanges) -> PrivacyBudget {
        PrivacyBudget::new(PrivacySettings::new(1.0, noise, epsilon_max, 1e-5).unwrap(), before)
    }

    fn spend_all(mut budget: PrivacyBudget) -> (u64, PrivacyBudget) {
        let mut count = 0;
        while let Some(next) = budget.next() {
            (budget, count) = (next, count + 1);
        }
        (count, budget)
    }

    #[test]
    fn the_last_change_that_is_allowed_stays_below_the_maximum_and_the_next_would_not() {
        for (noise, epsilon_max) in [(1.0, 5.0), (4.0, 8.0), (20.0, 3.0)] {
            let fresh = budget(noise, epsilon_max, NoisedChanges::default());
            let foreseen = fresh.spending();
            assert_eq!((foreseen.changes, foreseen.epsilon, foreseen.is_spent), (0, 0.0, false));
            let (count, spent) = spend_all(fresh);
            assert_eq!(foreseen.changes_left, count);
            let spending = spent.spending();
            assert!(spending.is_spent && spending.changes == count);
            assert!(spending.epsilon <= epsilon_max, "{spending:?}");
            assert!(spent.settings().epsilon_of(count + 1) > epsilon_max, "{spending:?}");
        }
    }

    #[test]
    fn what_was_released_with_other_noise_counts_as_what_it_cost() {
        let (_, first) = spend_all(budget(4.0, 4.0, NoisedChanges::default()));
        let second = budget(8.0, 4.0, first.changes().clone());
        assert!(second.spending().changes_left < 4, "{:?}", second.spending());
        let larger = budget(8.0, 8.0, first.changes().clone());
        let (more, spent) = spend_all(larger);
        assert!(more > 0 && more < budget(8.0, 8.0, NoisedChanges::default()).spending().changes_left);
        assert_eq!(spent.spending().changes, first.changes().count() + more);
    }

    #[test]
    fn counts_read_back_and_damaged_ones_are_an_error() {
        let (_, spent) = spend_all(budget(4.0, 4.0, NoisedChanges::default()));
        let text = serde_json::to_string(spent.changes()).unwrap();
        assert_eq!(&serde_json::from_str::<NoisedChanges>(&text).unwrap(), spent.changes());
        for damaged in
            [r#"[{"noise":0.0,"changes":3}]"#, r#"[{"noise":-1.0,"changes":3}]"#, r#"[{"noise":1.0}]"#, "[", "3"]
        {
            assert!(serde_json::from_str::<NoisedChanges>(damaged).is_err(), "{damaged}");
        }
    }

    #[test]
    fn a_spending_is_one_flat_object() {
        let spending = budget(4.0, 8.0, NoisedChanges::default()).next().unwrap().spending();
        let text = serde_json::to_string(&spending).unwrap();
        assert!(
            text.starts_with(
                r#"{"clip":1.0,"noise":4.0,"epsilon_max":8.0,"delta":0.00001,"colluders":null,"changes":1,"epsilon":"#
            ),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<PrivacySpending>(&text).unwrap(), spending);
    }

    #[test]
    fn counts_that_no_number_holds_leave_nothing_over() {
        let before: NoisedChanges = serde_json::from_str(r#"[{"noise":1e6,"changes":18446744073709551615}]"#).unwrap();
        assert!(budget(4.0, 8.0, before).spending().is_spent);
    }
}
