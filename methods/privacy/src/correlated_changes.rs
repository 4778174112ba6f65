//! The changes that a peer has released with correlated noise, and the rounds whose noise of pairs is used up.

use blake3::Hash;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::budget::NoisedChanges;
use crate::correlated_noise::CorrelatedNoise;

/// The most kinds of noise, and the most plans, that are counted one by one.
const MOST: usize = 1_024;

/// Changes with correlated noise, which protects them against some colluders and not against all others together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorrelatedChanges {
    changes: Vec<CorrelatedCount>,
    rounds: Vec<LastRound>,
}

/// The number of changes with this noise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CorrelatedCount {
    /// The noise multiplier against the colluders.
    noise: f64,
    /// The noise multiplier against all others together: of the part that this peer drew for itself.
    own: f64,
    colluders: u32,
    changes: u64,
}

/// The last round of a plan in which a change with noise of pairs was released.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LastRound {
    plan: String,
    round: u64,
}

/// A reason for which noise of pairs is not added to a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum NoiseNotUsable {
    /// A change of this round or a later one was released under this plan.
    #[error(
        "under this plan a change of round {last} was released before, so noise is shared again after it, or with another plan"
    )]
    Used { last: u64 },
    /// The file counts as many plans as it holds.
    #[error(
        "this home has shared noise under {MOST} plans, and no more fit into its count: a new home shares noise again"
    )]
    NoRoom,
}

impl CorrelatedChanges {
    /// Returns `true` if there are none.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The releases, as any so many of the other members together see them; all others for `None`.
    pub fn against(&self, colluders: Option<u32>) -> NoisedChanges {
        self.changes.iter().fold(NoisedChanges::default(), |all, counted| {
            let is_covered = colluders.is_some_and(|colluders| colluders <= counted.colluders);
            all.with(if is_covered { counted.noise } else { counted.own }, counted.changes)
        })
    }

    /// These and one more, of this round, that has the noise multiplier `noise` against so many colluders.
    ///
    /// # Errors
    /// The noise of pairs of this round may have been used before, or there is no room to count it.
    pub fn with(
        &self,
        correlated: &CorrelatedNoise,
        round: u64,
        noise: f64,
        colluders: u32,
    ) -> Result<Self, NoiseNotUsable> {
        let mut next = self.clone();
        let plan = Hash::from_bytes(*correlated.plan()).to_hex().to_string();
        match next.rounds.iter_mut().find(|last| last.plan == plan) {
            Some(last) if last.round >= round => return Err(NoiseNotUsable::Used { last: last.round }),
            Some(last) => last.round = round,
            None => next.rounds.push(LastRound { plan, round }),
        }
        let own = correlated.parts().own;
        let is_alike =
            |counted: &CorrelatedCount| (counted.noise, counted.own, counted.colluders) == (noise, own, colluders);
        match next.changes.iter_mut().find(|counted| is_alike(counted)) {
            Some(counted) => counted.changes = counted.changes.saturating_add(1),
            None => next.changes.push(CorrelatedCount { noise, own, colluders, changes: 1 }),
        }
        if next.changes.len().max(next.rounds.len()) <= MOST { Ok(next) } else { Err(NoiseNotUsable::NoRoom) }
    }

    /// Refuses numbers that no release has.
    pub(crate) fn check(self) -> Result<Self, String> {
        let is_noise = |noise: f64| noise.is_finite() && noise > 0.0;
        match self.changes.iter().find(|counted| !is_noise(counted.noise) || !is_noise(counted.own)) {
            Some(counted) => Err(format!("a noise of {} with a part of {}", counted.noise, counted.own)),
            None if self.changes.len().max(self.rounds.len()) > MOST => Err(format!("more than {MOST} plans")),
            None => Ok(self),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::noise_design::NoiseDesign;
    use crate::noise_graph::{NoiseGraph, NoiseParts};

    fn noise_under(plan: [u8; 32]) -> CorrelatedNoise {
        let design = NoiseDesign { graph: NoiseGraph::new(2, [(0, 1)]), parts: NoiseParts { own: 1.5, pair: 3.0 } };
        CorrelatedNoise::new(plan, &design, Vec::new())
    }

    fn noise(plan: u8) -> CorrelatedNoise {
        noise_under([plan; 32])
    }

    #[test]
    fn changes_protect_against_the_colluders_that_were_foreseen_and_less_against_more() {
        let once = CorrelatedChanges::default().with(&noise(1), 0, 4.0, 2).unwrap();
        let twice = once.with(&noise(1), 3, 4.0, 2).unwrap();
        let strong = NoisedChanges::default().with(4.0, 2);
        let weak = NoisedChanges::default().with(1.5, 2);
        assert_eq!([Some(0), Some(2)].map(|colluders| twice.against(colluders)), [strong.clone(), strong]);
        assert_eq!([Some(3), None].map(|colluders| twice.against(colluders)), [weak.clone(), weak]);
    }

    #[test]
    fn the_noise_of_pairs_of_a_round_is_used_once() {
        let used = CorrelatedChanges::default().with(&noise(1), 5, 4.0, 1).unwrap();
        let again = |round| used.with(&noise(1), round, 4.0, 1);
        assert!((0..=5).all(|round| again(round) == Err(NoiseNotUsable::Used { last: 5 })));
        assert!(again(6).is_ok() && used.with(&noise(2), 0, 4.0, 1).is_ok());
    }

    #[test]
    fn a_count_has_room_for_many_plans_and_ends_there() {
        let mut all = CorrelatedChanges::default();
        let plans = |number: usize| {
            let mut plan = [0; 32];
            plan[..8].copy_from_slice(&(number as u64).to_le_bytes());
            noise_under(plan)
        };
        for number in 0..MOST {
            all = all.with(&plans(number), 0, 4.0, 1).unwrap();
        }
        assert_eq!(all.with(&plans(MOST), 0, 4.0, 1), Err(NoiseNotUsable::NoRoom));
        assert_eq!(all.with(&plans(0), 1, 4.0, 1).unwrap().against(Some(1)).count(), MOST as u64 + 1);
    }
}
