//! Local steps of a round in the plans of the automatic planner: enough that training takes longer than the exchange.
//!
//! ```text
//!   wanted = 2 * exchange / local step      members: the median of their steps, the slowest of their exchanges
//!   a plan has 5, 10, 20, 50, 100 or 200:   the first of them that is not below
//! ```
//!
//! The first plan has 10, as nothing has been measured. A later plan has another number if the measurements of its
//! members are far from that. A slow link then does not turn training into a transfer, and a fast one is used.

use std::collections::BTreeMap;

use libp2p::PeerId;

use crate::requests::RoundCosts;

/// Numbers of local steps that a plan may have.
const CHOICES: [u32; 6] = [5, 10, 20, 50, 100, 200];
/// Local steps of a round in the first plan.
const FIRST: u32 = 10;
/// Wanted ratio of the time of training to that of the exchange.
const TIMES_AN_EXCHANGE: f64 = 2.0;
/// A plan keeps its steps while the wanted number is at most this many times its own.
const TOO_FEW: f64 = 1.25;
/// A plan keeps its steps while its own number is at most this many times the wanted one.
const TOO_MANY: f64 = 5.0;
/// Most plans made only to change the steps, while the members stay the same.
const MOST_CHANGES: u32 = 3;
/// Bound on an exchange that one member reports as slow, in medians of all exchanges.
const SLOWEST_EXCHANGE: f64 = 10.0;

/// Longest accepted time of a step or an exchange, in seconds.
const LONGEST_S: f64 = 86_400.0;

/// The number of local steps of a round in the next plan.
#[derive(Debug)]
pub(crate) struct LocalSteps {
    /// Set when a person chose the number.
    is_fixed: bool,
    steps: u32,
    changes: u32,
    /// The costs reported by members since the present plan began.
    costs: BTreeMap<PeerId, RoundCosts>,
}

/// Another number of local steps, with the measurements that suggest it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BetterSteps {
    pub(crate) steps: u32,
    pub(crate) costs: RoundCosts,
}

impl LocalSteps {
    /// Uses the number that a person chose, or else the measurements.
    pub(crate) fn new(fixed: Option<u32>) -> Self {
        let steps = fixed.unwrap_or(FIRST);
        Self { is_fixed: fixed.is_some(), steps, changes: 0, costs: BTreeMap::new() }
    }

    /// The number that a person chose.
    pub(crate) fn chosen(&self) -> Option<u32> {
        self.is_fixed.then_some(self.steps)
    }

    /// Local steps of a round in the next plan.
    pub(crate) fn steps(&self) -> u32 {
        self.steps
    }

    /// Records the measurements of a member under the present plan; impossible times are ignored.
    pub(crate) fn hear(&mut self, member: PeerId, costs: RoundCosts) {
        let RoundCosts { local_step_s, exchange_s } = costs;
        if local_step_s > 0.0 && local_step_s <= LONGEST_S && (0.0..=LONGEST_S).contains(&exchange_s) {
            self.costs.insert(member, costs);
        }
    }

    /// Records that a plan with this number of steps began, with the same members or others.
    pub(crate) fn begin(&mut self, steps: u32, has_other_members: bool) {
        self.costs.clear();
        if has_other_members {
            self.changes = 0;
        }
        if !self.is_fixed {
            self.steps = steps;
        }
    }

    /// A better number for these members; `None` while the present one is right, or at most half of them have measured.
    pub(crate) fn better(&self, members: &[PeerId]) -> Option<BetterSteps> {
        let heard: Vec<RoundCosts> = members.iter().filter_map(|member| self.costs.get(member).copied()).collect();
        if self.is_fixed || self.changes >= MOST_CHANGES || 2 * heard.len() <= members.len() {
            return None;
        }
        let local_step = median(heard.iter().map(|costs| costs.local_step_s));
        let usual = median(heard.iter().map(|costs| costs.exchange_s));
        let slowest = heard.iter().map(|costs| costs.exchange_s).fold(0.0, f64::max);
        let costs = RoundCosts { local_step_s: local_step, exchange_s: slowest.min(SLOWEST_EXCHANGE * usual) };
        let wanted = TIMES_AN_EXCHANGE * costs.exchange_s / costs.local_step_s;
        let present = f64::from(self.steps);
        let is_right = wanted <= TOO_FEW * present && wanted * TOO_MANY >= present;
        let steps = choice(wanted);
        (!is_right && steps != self.steps).then_some(BetterSteps { steps, costs })
    }

    /// Uses this number in the next plan.
    pub(crate) fn choose(&mut self, better: BetterSteps) {
        self.steps = better.steps;
        self.changes += 1;
    }
}

/// The smallest choice that is at least `wanted`, or else the largest one.
fn choice(wanted: f64) -> u32 {
    let last = CHOICES[CHOICES.len() - 1];
    CHOICES.into_iter().find(|choice| f64::from(*choice) >= wanted).unwrap_or(last)
}

/// The upper median; 0 of nothing.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn peers(count: usize) -> Vec<PeerId> {
        (0..count).map(|_| PeerId::random()).collect()
    }

    fn heard(fixed: Option<u32>, members: &[PeerId], costs: &[(f64, f64)]) -> LocalSteps {
        let mut local_steps = LocalSteps::new(fixed);
        for (member, &(local_step_s, exchange_s)) in members.iter().zip(costs) {
            local_steps.hear(*member, RoundCosts { local_step_s, exchange_s });
        }
        local_steps
    }

    fn better(costs: &[(f64, f64)]) -> Option<u32> {
        let members = peers(3);
        heard(None, &members, costs).better(&members).map(|better| better.steps)
    }

    #[test]
    fn training_takes_twice_as_long_as_the_exchange_at_least() {
        // 10 ms a step, and exchanges of 10 ms to 20 s.
        let measured = [0.01, 0.06, 0.09, 0.2, 0.4, 20.0].map(|exchange_s| better(&[(0.01, exchange_s); 3]));
        assert_eq!(measured, [None, None, Some(20), Some(50), Some(100), Some(200)]);
        assert_eq!(better(&[(1.0, 0.001); 3]), Some(5), "steps so long that no exchange is felt");
    }

    #[test]
    fn the_slowest_link_counts_and_the_usual_step() {
        assert_eq!(better(&[(0.01, 0.02), (0.01, 0.02), (0.1, 0.2)]), Some(50));
        assert_eq!(better(&[(0.01, 0.02), (0.01, 0.02), (0.01, 3600.0)]), Some(50), "one says anything");
    }

    #[test]
    fn nothing_changes_by_too_few_voices_by_a_little_or_against_a_person() {
        let members = peers(4);
        assert_eq!(heard(None, &members, &[(0.01, 1.0); 2]).better(&members), None, "half of them");
        assert!(heard(None, &members, &[(0.01, 1.0); 3]).better(&members).is_some());
        assert_eq!(heard(Some(10), &members, &[(0.01, 1.0); 4]).better(&members), None);
        for costs in [(0.0, 0.0), (f64::NAN, 1.0), (0.0, 1.0)] {
            assert_eq!(heard(None, &members, &[costs; 4]).better(&members), None, "{costs:?}");
        }
    }

    #[test]
    fn a_choice_is_stable_and_the_number_of_changes_bounded_until_others_come() {
        let members = peers(2);
        let mut local_steps = heard(None, &members, &[(0.01, 0.2); 2]);
        let chosen = local_steps.better(&members).unwrap();
        local_steps.choose(chosen);
        local_steps.begin(chosen.steps, false);
        assert_eq!((local_steps.steps(), local_steps.better(&members)), (50, None), "nothing is measured yet");
        for exchange_s in [0.1, 0.2, 0.3] {
            members.iter().for_each(|member| local_steps.hear(*member, RoundCosts { local_step_s: 0.01, exchange_s }));
            assert_eq!(local_steps.better(&members), None, "{exchange_s}");
        }
        for (change, exchange_s) in [0.001, 1.0, 0.001].into_iter().enumerate() {
            members.iter().for_each(|member| local_steps.hear(*member, RoundCosts { local_step_s: 0.01, exchange_s }));
            let better = local_steps.better(&members);
            assert_eq!(better.is_some(), change < 2, "change {change}");
            better.into_iter().for_each(|better| local_steps.choose(better));
        }
        local_steps.begin(200, true);
        members
            .iter()
            .for_each(|member| local_steps.hear(*member, RoundCosts { local_step_s: 0.01, exchange_s: 0.001 }));
        assert_eq!(local_steps.better(&members).map(|better| better.steps), Some(5));
    }
}
