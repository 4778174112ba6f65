//! Training of the next round while the present one is mixed ([`Overlap`]).
//!
//! ```text
//!   off   train r | mix r | train r + 1 | mix r + 1
//!   on    train r | mix r       | mix r + 1
//!                 | train r + 1 | train r + 2
//! ```
//!
//! The training of round r + 1 begins at the node's own ratio once that has the change of round r: the newest average of
//! all, plus the own change that is still under way. It lacks the changes of the others in round r alone. Its own change
//! joins the numerator at the start of round r + 1 as any other, so ledger and messages are the same.
//!
//! In plans whose nodes do not agree in every round, a node mixes first: it would begin at a ratio all of its own.

use std::time::Duration;

use super::Node;
use crate::config::WaitPolicy;
use crate::latest::Latest;
use crate::overlap::Overlap;

/// Part of the time of a training above which mixing is hidden behind it, and below which it is no more.
const WORTH_HIDING: f64 = 0.25;
const STILL_WORTH_HIDING: f64 = 0.125;
/// Mixing that takes less than this is not hidden: small swarms on one machine lose more by older models.
const SHORTEST: Duration = Duration::from_millis(100);
/// Rounds that are needed for a median, and rounds that are remembered.
const ROUNDS_TO_MEASURE: usize = 3;
const REMEMBERED: usize = 9;

/// The lengths of mixing in the latest rounds.
#[derive(Clone, Debug, Default)]
pub(super) struct MixingTimes {
    latest: Latest<Duration, REMEMBERED>,
    /// Set while the node trains ahead because of these times.
    is_worth_hiding: bool,
}

impl MixingTimes {
    /// Returns `true` if mixing takes so much of a round with this training that it is worth hiding.
    fn weigh(&mut self, training: Option<Duration>) -> bool {
        let mixing = self.latest.median(Ord::cmp).filter(|_| self.latest.len() >= ROUNDS_TO_MEASURE);
        if let Some((training, mixing)) = training.zip(mixing) {
            let part = if self.is_worth_hiding { STILL_WORTH_HIDING } else { WORTH_HIDING };
            self.is_worth_hiding = mixing >= SHORTEST && mixing > training.mul_f64(part);
        }
        self.is_worth_hiding
    }
}

impl Node {
    /// Rounds whose training was ordered while the round before was mixed.
    pub fn rounds_trained_ahead(&self) -> u64 {
        self.rounds_trained_ahead
    }

    /// Orders the training of the next round, now that the change of the present one is in the numerator, if mixing is to
    /// be hidden behind it.
    pub(super) fn order_ahead(&mut self) {
        let next = self.round() + 1;
        let is_needed = next < self.training_rounds() && !self.is_training() && !self.stopping;
        if is_needed && self.hides_mixing() && self.push_sum.has_working_mass() && !self.others_are_through() {
            self.rounds_trained_ahead += 1;
            self.order_training(next);
        }
    }

    /// Returns `true` if the next round is to train while the present one is mixed.
    fn hides_mixing(&mut self) -> bool {
        let is_wanted = match self.config.overlap {
            Overlap::Off => false,
            Overlap::On => true,
            Overlap::Auto => {
                let training = self.own_training_time();
                self.config.policy != WaitPolicy::Sync && self.mixing_times.weigh(training)
            }
        };
        is_wanted && self.config.schedule.agrees_in_every_round()
    }

    /// Notes the length of a round's mixing, which ends now.
    pub(super) fn note_mixing_time(&mut self) {
        let began = self.tally.trained.then_some(self.tally.mixes_since).flatten();
        if let Some(began) = began {
            self.mixing_times.latest.push(self.now.since(began));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(milliseconds: u64) -> MixingTimes {
        let mut times = MixingTimes::default();
        (0..ROUNDS_TO_MEASURE).for_each(|_| times.latest.push(Duration::from_millis(milliseconds)));
        times
    }

    #[test]
    fn mixing_is_hidden_where_it_takes_a_quarter_of_the_training_and_a_tenth_of_a_second() {
        let second = Some(Duration::from_secs(1));
        assert!(after(260).weigh(second));
        assert!(!after(240).weigh(second));
        assert!(!after(90).weigh(Some(Duration::from_millis(1))), "too short to be worth it");
        assert!(!after(260).weigh(None), "the training is not known yet");
        assert!(!MixingTimes::default().weigh(second), "nor is the mixing");
    }

    #[test]
    fn it_is_hidden_until_it_takes_half_of_that() {
        let second = Some(Duration::from_secs(1));
        let mut times = after(260);
        assert!(times.weigh(second));
        (0..REMEMBERED).for_each(|_| times.latest.push(Duration::from_millis(140)));
        assert!(times.weigh(second));
        (0..REMEMBERED).for_each(|_| times.latest.push(Duration::from_millis(110)));
        assert!(!times.weigh(second));
    }
}
