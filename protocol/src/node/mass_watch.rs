//! Detects a lasting shortage of mass, or too much of it: a member keeps all it receives or makes weight up, or mass was lost
//! with members.
//!
//! w / w* is about 1 on average in a settled swarm, where w counts what is under way as its sender's. A member that takes
//! mass and gives none drains all others, whose own books stay perfectly in order; one that puts weight into its parcels that
//! it never had fills them. The guarded step and the heaviest parcel bound the harm, and this tells of it.

use crate::effect::Event;

/// Weight of the newest round in the moving average.
const NEWEST: f64 = 1.0 / 8.0;
/// A share below this is low.
const LOW: f64 = 0.5;
/// A share above this is sound again.
const SOUND: f64 = 0.7;
/// A share above this is high.
const HIGH: f64 = 2.0;
/// A share below this is not high any more.
const NO_LONGER_HIGH: f64 = 1.4;
/// So many usual rounds in a row have to be low, or high.
const PATIENCE: f64 = 20.0;

/// Exponentially weighted means of w / w*, a sample a round, with an alarm for either side.
#[derive(Clone, Copy, Debug)]
pub(super) struct MassWatch {
    share: f64,
    low: Alarm,
    /// The same without what is under way, which may have arrived: what the node has for certain.
    own_share: f64,
    high: Alarm,
}

/// What a node has at the first split of a round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    /// The weight it holds.
    pub(super) own: f64,
    /// The weight that nobody has acknowledged.
    pub(super) under_way: f64,
    /// w*; 0 for a round that says nothing: where the plan leaves the node empty between rounds, or neighbours are out of
    /// reach.
    pub(super) usual: f64,
}

/// Whether something has lasted, and whether that was said.
#[derive(Clone, Copy, Debug, Default)]
struct Alarm {
    rounds: f64,
    is_raised: bool,
}

impl Alarm {
    /// `fraction` of a usual round more is as feared, or not. Returns whether it has just lasted long enough.
    fn watch(&mut self, is_feared: bool, fraction: f64) -> bool {
        self.rounds = if is_feared { self.rounds + fraction } else { 0.0 };
        let is_news = !self.is_raised && self.rounds >= PATIENCE;
        self.is_raised |= is_news;
        is_news
    }

    /// Returns whether an alarm was raised and is over.
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
    /// The mean.
    pub(super) fn share(&self) -> f64 {
        self.share
    }

    /// A round ended. `fraction` is how long it took in units of the usual round, and what it counts for: nodes that catch up
    /// run through rounds in which there is nothing to absorb. `fair` is the largest share that the absence of others explains.
    /// Returns what is worth reporting.
    pub(super) fn end_round(&mut self, held: Held, fraction: f64, fair: f64) -> Option<Event> {
        let Held { own, under_way, usual } = held;
        if usual <= 0.0 {
            return None;
        }
        self.share += NEWEST * fraction * ((own + under_way) / usual - self.share);
        // Delays move weight from node to node: more than its w* is little where w* is little.
        self.own_share += NEWEST * fraction * (own / usual.max(1.0) - self.own_share);
        let (share, own_share) = (self.share, self.own_share);
        if self.low.watch(share < LOW, fraction) {
            return Some(Event::MassLow { share });
        }
        if self.high.watch(own_share > HIGH * fair, fraction) {
            return Some(Event::MassHigh { share: own_share });
        }
        if self.high.end_if(own_share < NO_LONGER_HIGH) {
            return Some(Event::MassRecovered { share: own_share });
        }
        self.low.end_if(share > SOUND).then_some(Event::MassRecovered { share })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn held(own: f64, usual: f64) -> Held {
        Held { own, under_way: 0.0, usual }
    }

    fn events(watch: &mut MassWatch, weight: f64, rounds: u32) -> Vec<(u32, Event)> {
        (0..rounds).filter_map(|round| Some((round, watch.end_round(held(weight, 2.0), 1.0, 1.0)?))).collect()
    }

    #[test]
    fn a_node_that_stays_below_half_of_its_share_says_so_once_and_once_when_it_is_over() {
        let mut watch = MassWatch::default();
        assert_eq!(events(&mut watch, 2.0, 100), []);
        let raised = events(&mut watch, 0.2, 500);
        // 0.1 + 0.9 (7/8)^k falls below 0.5 with k = 7; that is low round 1 of 20.
        assert!(matches!(raised[..], [(25, Event::MassLow { share })] if share < 0.2), "{raised:?}");
        assert_eq!(events(&mut watch, 1.2, 100), [], "0.6 is not sound yet");
        let over = events(&mut watch, 2.0, 500);
        assert!(matches!(over[..], [(_, Event::MassRecovered { share })] if share > 0.7), "{over:?}");
    }

    #[test]
    fn a_node_that_stays_above_twice_its_share_says_so_once_and_once_when_it_is_over() {
        let mut watch = MassWatch::default();
        assert_eq!(events(&mut watch, 3.8, 500), [], "1.9 is much, and no alarm");
        let raised = events(&mut watch, 8.0, 500);
        assert!(matches!(raised[..], [(_, Event::MassHigh { share })] if share > 2.0), "{raised:?}");
        assert_eq!(events(&mut watch, 3.0, 100), [], "1.5 is not sound yet");
        let over = events(&mut watch, 2.0, 500);
        assert!(matches!(over[..], [(_, Event::MassRecovered { share })] if share < 1.4), "{over:?}");
    }

    #[test]
    fn nineteen_low_rounds_are_no_alarm_however_often_they_come() {
        let mut watch = MassWatch::default();
        for _ in 0..10 {
            // Of 20 rounds without weight the first 5 leave the mean above a half; 4 with weight lift it there again.
            assert_eq!(events(&mut watch, 0.0, 20), []);
            assert_eq!(events(&mut watch, 2.0, 200), []);
        }
        assert_eq!(events(&mut watch, 0.0, 24), []);
        assert!(matches!(events(&mut watch, 0.0, 1)[..], [(0, Event::MassLow { .. })]));
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
