//! The local steps of a round in the plans of an automatic planner: as many as make training take longer than the exchange.
//!
//! ```text
//!   wanted = 2 * exchange / local step      members: the median of their steps, the slowest of their exchanges
//!   a plan has 5, 10, 20, 50, 100 or 200:   the first of them that is not below
//! ```
//!
//! The first plan has 10: nobody has measured anything yet. A later one has others where what its members measured is far from
//! that, so that a slow link does not turn a training into a transfer, and a fast one is used.

use std::collections::BTreeMap;

use libp2p::PeerId;

use crate::words::RoundCosts;

/// Local steps of a round that a plan may have.
const CHOICES: [u32; 6] = [5, 10, 20, 50, 100, 200];
/// Those of the first plan.
const FIRST: u32 = 10;
/// Training takes so many times as long as the exchange.
const TIMES_AN_EXCHANGE: f64 = 2.0;
/// A plan with less than this share too few steps keeps them.
const TOO_FEW: f64 = 1.25;
/// A plan with no more than this many times too many steps keeps them.
const TOO_MANY: f64 = 5.0;
/// Plans that are made for no other reason, while the members stay the same.
const MOST_CHANGES: u32 = 3;
/// An exchange that one member says is slow counts for no more than this many times that of the median.
const SLOWEST_EXCHANGE: f64 = 10.0;

/// A step and an exchange take no longer.
const LONGEST_S: f64 = 86_400.0;

/// The local steps of a round that the next plan has.
#[derive(Debug)]
pub(crate) struct LocalSteps {
    /// A person said how many.
    is_fixed: bool,
    steps: u32,
    changes: u32,
    /// The costs that members have told since the present plan began.
    costs: BTreeMap<PeerId, RoundCosts>,
}

/// Another number of local steps, and what was measured that speaks for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BetterSteps {
    pub(crate) steps: u32,
    pub(crate) costs: RoundCosts,
}

impl LocalSteps {
    /// So many as a person said, or those that are measured.
    pub(crate) fn new(fixed: Option<u32>) -> Self {
        let steps = fixed.unwrap_or(FIRST);
        Self { is_fixed: fixed.is_some(), steps, changes: 0, costs: BTreeMap::new() }
    }

    /// Those of the next plan.
    pub(crate) fn steps(&self) -> u32 {
        self.steps
    }

    /// A member measured this under the present plan. Times that no round takes are none.
    pub(crate) fn hear(&mut self, member: PeerId, costs: RoundCosts) {
        let RoundCosts { local_step_s, exchange_s } = costs;
        if local_step_s > 0.0 && local_step_s <= LONGEST_S && (0.0..=LONGEST_S).contains(&exchange_s) {
            self.costs.insert(member, costs);
        }
    }

    /// A plan with so many has begun, with the same members or others.
    pub(crate) fn begin(&mut self, steps: u32, has_other_members: bool) {
        self.costs.clear();
        if has_other_members {
            self.changes = 0;
        }
        if !self.is_fixed {
            self.steps = steps;
        }
    }

    /// The number that these members are better off with; none while the present one is right or too few have measured.
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

    /// The next plan has them.
    pub(crate) fn choose(&mut self, better: BetterSteps) {
        self.steps = better.steps;
        self.changes += 1;
    }
}

/// The first choice that is not below, or the largest.
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
