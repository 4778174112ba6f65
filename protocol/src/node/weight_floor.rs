//! Weight floor: the part of its usual weight that a node does not give away for nothing.
//!
//! Credit needs links that go both ways. Where they go one way, a member that takes parcels and gives none drains those
//! that it should give to, and these drain the next. In such plans a node that is short of weight gives in a step no
//! more than
//!
//! ```text
//!   what it usually gives in the step * (inflow + share - 0.6)
//! ```
//!
//! where `share` is its weight as a part of the usual one, in this step or over a period of the plan, and `inflow` the
//! weight that it absorbed as a part of the weight usually due, since its last split or on average, whichever is less in
//! both cases. Usual weights differ from step to step: what little a node has left may be plenty in a step in which it
//! usually has less, and is needed in the next. At 0.6 of its usual weight a node gives as much as it gets. The rest stays with it and
//! is divided again in the next step. A millionth of the usual is always given: a neighbour that gives nothing at all can
//! be told from one that has nothing to give.
//!
//! A node that gets nothing at all for long also keeps a reserve of 2^-19, so that it never runs out of what it needs to
//! send these: below it, it gives single units.
//!
//! A node that has got next to nothing for long gives what it has beyond 0.43 of its usual weight: the swarm would come to
//! rest with the weight where it happens to be, and those that get all from such nodes would be left with less.
//!
//! A node that had its usual weight for four periods once, and less than 0.97 of it in a step of the last period, keeps 0.28
//! of its largest usual one: in a step after which the plan leaves it little, it would else be left with less than that
//! when its sources stop at once. Before that, weights are on their way to the usual ones, and no node is short. One that
//! gets everything from one neighbour keeps as much in any case, since it learns of the stop only after it has given once
//! more. In plans with a tree of exact averages only such a node does: there a node is as short as others are late, and an
//! average is exact only if it gives all the same.
//!
//! Mixing slows down, and ends in time, where all nodes together have less than 0.6 of their usual weight. The floor is
//! no help in steps in which the plan lets a node keep nothing, as in trees of exact averages.

use std::collections::VecDeque;

use super::Node;
use crate::mass::{Mass, UNITS_PER_ONE};
use crate::push_sum::SMALLEST_WORKING_MASS;
use crate::schedule::NodeId;

/// Part of the usual weight at which a node gives as much as it gets. Weights end up somewhat lower: a node that gives much
/// in a step learns only then that less comes back.
const FLOOR: f64 = 0.6;
/// Mean inflow below which a node has got next to nothing for long.
const DRY: f64 = 1.0 / 16.0;
/// Part of the usual weight down to which such a node gives: others may get all from it.
const DRY_FLOOR: f64 = 0.43;
/// Part of its largest usual weight that a node keeps which is short of weight, or gets everything from one neighbour.
const KEPT: f64 = 0.28;
/// Part of its usual weight below which a node is short. One with a little less has parcels under way.
const SHORT: f64 = 0.97;
/// Part of its usual weight by which a node differs from it that has about its usual weight.
const ABOUT: f64 = 0.01;
/// Periods over which a node has about its usual weight before it counts as settled.
const SETTLED: usize = 4;
/// Weight of the newest step in the moving average.
const NEWEST: f64 = 1.0 / 8.0;
/// Largest inflow that is remembered of a step: parcels that were late come together.
const MOST_INFLOW: f64 = 4.0;
/// Most splits over which weights are added up: plans may have longer periods.
const MOST_SPLITS: usize = 64;
/// Part of what a node usually gives that it gives in any case.
const LEAST_GIVEN: f64 = 1e-6;
/// Weight of which a node gives single units alone.
const RESERVE: Mass = Mass::from_units(2 * SMALLEST_WORKING_MASS.units());

/// The weight that a node has got of late, compared with the plan.
#[derive(Clone, Debug)]
pub(super) struct WeightFloor {
    /// Weight absorbed since the last split that sent anything.
    absorbed: f64,
    /// Weight usually due since then.
    due: f64,
    /// Moving average of absorbed / due.
    mean: f64,
    /// The node's weight and the usual one at its last splits, those of a period of the plan.
    splits: VecDeque<(f64, f64)>,
    /// Splits in a row at which the node had about its usual weight.
    usual_splits: usize,
    /// Set for good once these were [`SETTLED`] periods.
    has_settled: bool,
    /// The most that the node may give in the present step.
    limit: Option<f64>,
    is_reached: bool,
}

impl Default for WeightFloor {
    fn default() -> Self {
        Self {
            absorbed: 0.0,
            due: 0.0,
            mean: 1.0,
            splits: VecDeque::new(),
            usual_splits: 0,
            has_settled: false,
            limit: None,
            is_reached: false,
        }
    }
}

impl WeightFloor {
    /// Notes a parcel that was absorbed.
    pub(super) fn absorb(&mut self, mass: Mass) {
        self.absorbed += mass.to_f64();
    }

    /// Ends a step in which this weight is usually absorbed.
    pub(super) fn end_step(&mut self, due: f64) {
        self.due += due.max(0.0);
    }

    /// Sets the limit for a split of a node that has this share of its usual weight, where it usually gives so much, of a
    /// plan with so many steps in a period.
    fn measure(&mut self, share: f64, usual: f64, usually_given: f64, period: usize) {
        self.splits.push_back((share * usual, usual));
        while self.splits.len() > period.clamp(1, MOST_SPLITS) {
            self.splits.pop_front();
        }
        let (weight, usual) = self.splits.iter().fold((0.0, 0.0), |sum, split| (sum.0 + split.0, sum.1 + split.1));
        let share = if usual > 0.0 { share.min(weight / usual) } else { share };
        let inflow = self.newest().map_or(self.mean, |newest| newest.min(self.mean_with(newest)));
        let earned = inflow + share - FLOOR;
        let is_dry = self.newest().map_or(self.mean, |newest| self.mean_with(newest)) < DRY;
        let part = if is_dry { earned.max(share - DRY_FLOOR) } else { earned };
        self.is_reached = share < 1.0 && earned <= LEAST_GIVEN;
        self.limit = (share < 1.0).then_some(part.max(LEAST_GIVEN) * usually_given);
    }

    /// Notes the share of its usual weight that the node has at a split, without that under way.
    fn note_usual(&mut self, share: f64, period: usize) {
        let is_usual = (share - 1.0).abs() <= ABOUT;
        self.usual_splits = if is_usual { self.usual_splits.saturating_add(1) } else { 0 };
        self.has_settled |= self.usual_splits >= SETTLED.saturating_mul(period);
    }

    /// Returns `true` if the node has settled, and had less than its usual weight at a split of the last period.
    fn is_short(&self) -> bool {
        self.has_settled && self.splits.iter().any(|(weight, usual)| *weight < SHORT * usual)
    }

    /// Notes that parcels were sent: later ones are compared with what comes from here on.
    pub(super) fn end_split(&mut self) {
        if let Some(newest) = self.newest() {
            self.mean = self.mean_with(newest);
            self.absorbed = 0.0;
            self.due = 0.0;
        }
    }

    /// Weight absorbed since the last split as a part of the weight due; `None` if none was due.
    fn newest(&self) -> Option<f64> {
        (self.due > 0.0).then(|| (self.absorbed / self.due).min(MOST_INFLOW))
    }

    fn mean_with(&self, newest: f64) -> f64 {
        self.mean + NEWEST * (newest - self.mean)
    }

    /// Returns `true` if the node gives next to nothing in the present step.
    pub(super) fn is_reached(&self) -> bool {
        self.is_reached
    }
}

impl Node {
    /// Ends a step for the floor.
    pub(super) fn end_step_of_floor(&mut self) {
        let due = self.usual_weight(self.step + 1) - (self.usual_weight(self.step) - self.usually_given());
        self.weight_floor.end_step(due);
    }

    /// Sets the most weight that the node may give in the present step.
    pub(super) fn measure_floor(&mut self) {
        let share = self.own_share().filter(|_| !self.config.schedule.is_reversible());
        let usual = self.usual_weight(self.step);
        let usually_given = self.usually_given();
        let period = self.config.schedule.period() as usize;
        match share {
            Some(share) => {
                let own = self.w() / usual;
                self.weight_floor.note_usual(own, period);
                self.weight_floor.measure(share, usual, usually_given, period);
                let spare = self.spare().map(|spare| spare.max(LEAST_GIVEN * usually_given));
                self.weight_floor.limit = self.weight_floor.limit.into_iter().chain(spare).reduce(f64::min);
            }
            None => {
                self.weight_floor.limit = None;
                self.weight_floor.is_reached = false;
            }
        }
    }

    /// The weight beyond what the node keeps in any case; `None` if it has its usual weight, and several sources.
    fn spare(&self) -> Option<f64> {
        let schedule = &self.config.schedule;
        let has_one_source = schedule.all_in_neighbours(self.config.id).len() == 1;
        if !has_one_source && (!self.weight_floor.is_short() || schedule.hands_ratios_down()) {
            return None;
        }
        let most_usual = (0..schedule.period()).map(|step| self.usual_weight(step)).fold(0.0, f64::max);
        Some(self.w() - KEPT * most_usual)
    }

    /// Makes parcels lighter, all by the same factor, where they exceed what the node may give.
    pub(super) fn keep_floor(&self, cuts: &mut [(NodeId, Mass)]) {
        let given: f64 = cuts.iter().map(|(_, mass)| mass.to_f64()).sum();
        let Some(limit) = self.weight_floor.limit.filter(|limit| *limit < given) else {
            return;
        };
        for (_, mass) in cuts {
            let weight = mass.to_f64() * (limit / given);
            *mass = Mass::from_units((weight * UNITS_PER_ONE as f64) as u64).min(*mass);
        }
    }

    /// Makes parcels lighter, all by the same factor, where they would take from the reserve. Each has a unit at least.
    pub(super) fn keep_reserve(&self, cuts: &mut [(NodeId, Mass)]) {
        let given: u64 = cuts.iter().map(|(_, mass)| mass.units()).sum();
        let spare = self.mass().units().saturating_sub(RESERVE.units());
        let is_unaffected = given <= spare && cuts.iter().all(|(_, mass)| !mass.is_zero());
        if is_unaffected || self.config.schedule.is_reversible() || !self.push_sum.has_working_mass() {
            return;
        }
        for (_, mass) in cuts {
            let part = u128::from(mass.units()) * u128::from(spare) / u128::from(given.max(1));
            *mass = Mass::from_units(part.max(1) as u64);
        }
    }

    /// The weight that the node gives in the present step of a settled swarm.
    fn usually_given(&self) -> f64 {
        let links = self.config.schedule.out_links(self.config.id, self.step);
        links.iter().map(|link| link.share.to_f64()).sum::<f64>() * self.usual_weight(self.step)
    }

    fn usual_weight(&self, step: u64) -> f64 {
        self.config.schedule.stationary_weight(self.config.id, step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limit of a node that usually gives 1, after a step in which it absorbed this part of what was due.
    fn limit(inflow: f64, share: f64) -> Option<f64> {
        let mut floor = WeightFloor::default();
        floor.absorb(Mass::from_units((inflow * UNITS_PER_ONE as f64) as u64));
        floor.end_step(1.0);
        floor.measure(share, 1.0, 1.0, 1);
        floor.limit
    }

    fn is_close(limit: Option<f64>, wanted: f64) -> bool {
        limit.is_some_and(|limit| (limit - wanted).abs() < 1e-5)
    }

    #[test]
    fn a_node_with_its_usual_weight_gives_without_limit_and_one_with_0_6_of_it_what_it_gets() {
        assert_eq!([limit(0.0, 1.0), limit(0.0, 1.3)], [None, None]);
        assert!([0.0, 0.25, 0.75].into_iter().all(|inflow| is_close(limit(inflow, 0.6), inflow)));
        assert!(is_close(limit(0.25, 0.8), 0.45));
        assert!(is_close(limit(0.25, 0.4), 0.05));
    }

    #[test]
    fn a_node_that_gets_nothing_gives_a_millionth_below_0_6_of_its_usual_weight() {
        assert_eq!([limit(0.0, 0.5), limit(0.0, 0.1)], [Some(LEAST_GIVEN); 2]);
    }

    #[test]
    fn a_node_that_is_short_in_one_step_of_a_period_gives_no_more_in_a_step_in_which_it_usually_has_less() {
        let mut floor = WeightFloor::default();
        // The same weight where it usually has 1, 0.4 and 1 again: over a period it has 1 where it usually has 1.4.
        let limits = [(0.5, 1.0), (1.25, 0.4), (0.5, 1.0)].map(|(share, usual)| {
            floor.end_step(1.0);
            floor.measure(share, usual, 1.0, 2);
            floor.limit
        });
        assert_eq!(limits[0], Some(LEAST_GIVEN), "{floor:?}");
        assert!(is_close(limits[1], 1.0 / 1.4 - FLOOR), "{limits:?}");
        assert_eq!(limits[2], Some(LEAST_GIVEN), "{floor:?}");
        // Once it has been at its usual weight for a period, it gives as planned.
        [0.4, 1.0].into_iter().for_each(|usual| floor.measure(1.0, usual, 1.0, 2));
        assert_eq!(floor.limit, None, "{floor:?}");
    }

    #[test]
    fn a_node_that_has_got_nothing_for_long_gives_what_it_has_beyond_0_43_of_its_usual_weight() {
        let limits = |share: f64| -> Vec<Option<f64>> {
            let mut floor = WeightFloor::default();
            let mut dry_split = |_| {
                floor.end_step(1.0);
                floor.measure(share, 1.0, 1.0, 1);
                floor.end_split();
                floor.limit
            };
            (0..40).map(&mut dry_split).collect()
        };
        let of_half = limits(0.5);
        assert!(of_half[..16].iter().all(|limit| *limit == Some(LEAST_GIVEN)), "{of_half:?}");
        assert!(of_half[30..].iter().all(|limit| is_close(*limit, 0.07)), "{of_half:?}");
        assert!(limits(0.4).iter().all(|limit| *limit == Some(LEAST_GIVEN)));
    }

    #[test]
    fn one_rich_step_does_not_make_up_for_many_without_weight() {
        let mut floor = WeightFloor::default();
        for _ in 0..40 {
            floor.end_step(1.0);
            floor.end_split();
        }
        floor.absorb(Mass::ONE);
        floor.end_step(1.0);
        floor.measure(0.6, 1.0, 1.0, 1);
        assert!(floor.limit.is_some_and(|limit| limit < 0.2), "{floor:?}");
    }

    #[test]
    fn steps_without_a_split_count_with_the_next_one() {
        let mut floor = WeightFloor::default();
        (0..3).for_each(|_| floor.end_step(1.0));
        floor.absorb(Mass::ONE);
        floor.end_step(1.0);
        floor.measure(0.6, 1.0, 1.0, 1);
        assert!(is_close(floor.limit, 0.25), "{floor:?}");
    }
}
