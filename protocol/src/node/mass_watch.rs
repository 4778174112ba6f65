//! Detects a lasting shortage or excess of mass. A member may keep all it receives or claim weight that it never had,
//! or mass was lost with members.
//!
//! w / w* is about 1 on average in a settled swarm, where w counts weight under way as its sender's. A member that
//! takes mass and gives none drains all others, whose own books stay in order; one that puts weight into its parcels
//! that it never had fills them. The guarded step and the heaviest parcel bound the harm, and this module reports it.

use crate::effect::NodeEvent;

/// Weight of the newest round in the moving average.
const NEWEST: f64 = 1.0 / 8.0;
/// A share below this is low: that of `weight_floor`.
const LOW: f64 = 0.6;
/// A share above this is sound again.
const SOUND: f64 = 0.75;
/// A share above this is high.
const HIGH: f64 = 2.0;
/// A share below this is no longer high.
const NO_LONGER_HIGH: f64 = 1.4;
/// Usual rounds in a row that have to be low, or high, for an alarm.
const PATIENCE: f64 = 20.0;

/// Exponentially weighted means of w / w*, one sample per round, with an alarm for either side.
#[derive(Clone, Copy, Debug)]
pub(super) struct MassWatch {
    share: f64,
    low: Alarm,
    /// The mean without weight under way, which may have arrived: the weight that the node certainly has.
    own_share: f64,
    high: Alarm,
}

/// The weight of a node at the first split of a round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    /// The weight it holds.
    pub(super) own: f64,
    /// Weight of parcels that no receiver has acknowledged.
    pub(super) under_way: f64,
    /// w*; 0 for a round that is no evidence: the plan leaves the node empty between rounds, or neighbours are out of
    /// reach.
    pub(super) usual: f64,
}

/// Duration of a condition, and whether it was reported.
#[derive(Clone, Copy, Debug, Default)]
struct Alarm {
    rounds: f64,
    is_raised: bool,
}

impl Alarm {
    /// Counts `fraction` of a usual round in which the condition held or did not. Returns `true` once it has lasted
    /// long enough.
    fn watch(&mut self, is_feared: bool, fraction: f64) -> bool {
        self.rounds = if is_feared { self.rounds + fraction } else { 0.0 };
        let is_news = !self.is_raised && self.rounds >= PATIENCE;
        self.is_raised |= is_news;
        is_news
    }

    /// Ends the alarm if the node is sound. Returns `true` if one was raised.
    fn end_if(&mut self, is_sound: bool) -> bool {
        is_sound && std::mem::take(&mut self.is_raised)
    }
}

impl Default for MassWatch {
    fn default() -> Self {
        Self { share: 1.0, low: Alarm::default(), own_share: 1.0, high: Alarm::default() }
    }
}

impl MassWatch {
    /// The mean of w / w*, with weight under way.
    pub(super) fn share(&self) -> f64 {
        self.share
    }

    /// Ends a round and returns the event to report, if any. `fraction` is the round's duration in usual rounds, and
    /// its weight in the mean: nodes that catch up run through rounds in which there is nothing to absorb. `fair` is
    /// the largest share that the absence of others explains.
    pub(super) fn end_round(&mut self, held: Held, fraction: f64, fair: f64) -> Option<NodeEvent> {
        let Held { own, under_way, usual } = held;
        if usual <= 0.0 {
            return None;
        }
        self.share += NEWEST * fraction * ((own + under_way) / usual - self.share);
        // Delays move weight between nodes: where w* is small, more than w* is still little.
        self.own_share += NEWEST * fraction * (own / usual.max(1.0) - self.own_share);
        let share = self.share;
        let own_share = self.own_share;
        if self.low.watch(share < LOW, fraction) {
            return Some(NodeEvent::MassLow { share });
        }
        if self.high.watch(own_share > HIGH * fair, fraction) {
            return Some(NodeEvent::MassHigh { share: own_share });
        }
        if self.high.end_if(own_share < NO_LONGER_HIGH) {
            return Some(NodeEvent::MassRecovered { share: own_share });
        }
        self.low.end_if(share > SOUND).then_some(NodeEvent::MassRecovered { share })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn held(own: f64, usual: f64) -> Held {
        Held { own, under_way: 0.0, usual }
    }

    fn events(watch: &mut MassWatch, weight: f64, rounds: u32) -> Vec<(u32, NodeEvent)> {
        (0..rounds).filter_map(|round| Some((round, watch.end_round(held(weight, 2.0), 1.0, 1.0)?))).collect()
    }

    #[test]
    fn a_node_that_stays_below_0_6_of_its_share_says_so_once_and_once_when_it_is_over() {
        let mut watch = MassWatch::default();
        assert_eq!(events(&mut watch, 2.0, 100), []);
        let raised = events(&mut watch, 0.2, 500);
        // 0.1 + 0.9 (7/8)^k falls below 0.6 with k = 5; that is low round 1 of 20.
        assert!(matches!(raised[..], [(23, NodeEvent::MassLow { share })] if share < 0.2), "{raised:?}");
        assert_eq!(events(&mut watch, 1.2, 100), [], "0.6 is not sound yet");
        let over = events(&mut watch, 2.0, 500);
        assert!(matches!(over[..], [(_, NodeEvent::MassRecovered { share })] if share > 0.7), "{over:?}");
    }

    #[test]
    fn a_node_that_stays_above_twice_its_share_says_so_once_and_once_when_it_is_over() {
        let mut watch = MassWatch::default();
        assert_eq!(events(&mut watch, 3.8, 500), [], "1.9 is much, and no alarm");
        let raised = events(&mut watch, 8.0, 500);
        assert!(matches!(raised[..], [(_, NodeEvent::MassHigh { share })] if share > 2.0), "{raised:?}");
        assert_eq!(events(&mut watch, 3.0, 100), [], "1.5 is not sound yet");
        let over = events(&mut watch, 2.0, 500);
        assert!(matches!(over[..], [(_, NodeEvent::MassRecovered { share })] if share < 1.4), "{over:?}");
    }

    #[test]
    fn eighteen_low_rounds_are_no_alarm_however_often_they_come() {
        let mut watch = MassWatch::default();
        for _ in 0..10 {
            // Of 16 rounds without weight the first 3 leave the mean above 0.6; 5 with weight lift it there again.
            assert_eq!(events(&mut watch, 0.0, 16), []);
            assert_eq!(events(&mut watch, 2.0, 200), []);
        }
        assert_eq!(events(&mut watch, 0.0, 22), []);
        assert!(matches!(events(&mut watch, 0.0, 1)[..], [(0, NodeEvent::MassLow { .. })]));
    }

    #[test]
    fn a_hundred_rounds_in_the_time_of_ten_count_as_ten() {
        let mut watch = MassWatch::default();
        assert!((0..100).all(|_| watch.end_round(held(0.0, 1.0), 0.1, 1.0).is_none()));
        assert!((0..200).any(|_| watch.end_round(held(0.0, 1.0), 0.1, 1.0).is_some()));
    }

    #[test]
    fn where_the_plan_leaves_a_node_empty_nothing_is_measured() {
        let mut watch = MassWatch::default();
        assert!((0..100).all(|_| watch.end_round(held(0.0, 0.0), 1.0, 1.0).is_none()));
        assert_eq!(watch.share(), 1.0);
    }
}
