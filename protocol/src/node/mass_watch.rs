//! Detects a lasting shortage of mass: a member keeps all it receives, or mass was lost with members.
//!
//! w / w* is about 1 on average in a settled swarm, where w counts what is under way as its sender's. A member that takes
//! mass and gives none drains all others, whose own books stay perfectly in order; the guarded step bounds the harm, and
//! this tells of it.

use crate::effect::Event;

/// Weight of the newest round in the moving average.
const NEWEST: f64 = 1.0 / 8.0;
/// A share below this is low.
const LOW: f64 = 0.5;
/// A share above this is sound again.
const SOUND: f64 = 0.7;
/// So many usual rounds in a row have to be low.
const PATIENCE: f64 = 20.0;

/// Exponentially weighted mean of w / w*, a sample a round, with an alarm.
#[derive(Clone, Copy, Debug)]
pub(super) struct MassWatch {
    share: f64,
    low_rounds: f64,
    is_raised: bool,
}

impl Default for MassWatch {
    fn default() -> Self {
        Self { share: 1.0, low_rounds: 0.0, is_raised: false }
    }
}

impl MassWatch {
    /// The mean.
    pub(super) fn share(&self) -> f64 {
        self.share
    }

    /// A round ended with this weight; `usual` is w*, and 0 for a round that says nothing: where the plan leaves the node
    /// empty between rounds, or neighbours are out of reach. `fraction` is how long it took in units of the usual round,
    /// and what it counts for: nodes that catch up run through rounds in which there is nothing to absorb. Returns what is
    /// worth reporting.
    pub(super) fn end_round(&mut self, weight: f64, usual: f64, fraction: f64) -> Option<Event> {
        if usual <= 0.0 {
            return None;
        }
        self.share += NEWEST * fraction * (weight / usual - self.share);
        let share = self.share;
        self.low_rounds = if share < LOW { self.low_rounds + fraction } else { 0.0 };
        if !self.is_raised && self.low_rounds >= PATIENCE {
            self.is_raised = true;
            return Some(Event::MassLow { share });
        }
        if self.is_raised && share > SOUND {
            self.is_raised = false;
            return Some(Event::MassRecovered { share });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn events(watch: &mut MassWatch, weight: f64, rounds: u32) -> Vec<(u32, Event)> {
        (0..rounds).filter_map(|round| Some((round, watch.end_round(weight, 2.0, 1.0)?))).collect()
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
        assert!((0..100).all(|_| watch.end_round(0.0, 1.0, 0.1).is_none()));
        assert!((0..200).any(|_| watch.end_round(0.0, 1.0, 0.1).is_some()));
    }

    #[test]
    fn where_the_plan_leaves_a_node_empty_nothing_is_measured() {
        let mut watch = MassWatch::default();
        assert!((0..100).all(|_| watch.end_round(0.0, 0.0, 1.0).is_none()));
        assert_eq!(watch.share(), 1.0);
    }
}
