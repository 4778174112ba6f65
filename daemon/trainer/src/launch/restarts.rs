//! The restarts of a trainer that crashes: pauses that grow, and the number of crashes at which it is given up.

use std::num::NonZeroU32;
use std::time::Duration;

/// Back-off before the restart after a first crash; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Upper bound of the back-off.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Rounds of training that make good for one crash.
const ROUNDS_FOR_A_CRASH: u64 = 100;
/// Running time that makes good for one crash, however few rounds it had room for.
const TIME_FOR_A_CRASH: Duration = Duration::from_hours(12);

/// The work of a trainer between its start and a crash.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// Rounds in which it trained.
    pub(super) rounds: u64,
    /// Running time.
    pub(super) ran: Duration,
}

/// The crashes of a trainer, and the progress that makes good for them.
///
/// Each crash counts one, and each hundred rounds of training or twelve hours take one back. So a trainer that crashes
/// every 20 rounds is given up in the end, and one that crashes once a day is not.
#[derive(Clone, Debug)]
pub(super) struct Restarts {
    most: u32,
    first_pause: Duration,
    /// Crashes that are not made good.
    crashes: u32,
    /// Progress that has not made good for a crash yet.
    rounds: u64,
    ran: Duration,
}

impl Restarts {
    pub(super) fn new(most: NonZeroU32) -> Self {
        Self { most: most.get(), first_pause: FIRST_PAUSE, crashes: 0, rounds: 0, ran: Duration::ZERO }
    }

    /// The same without pauses.
    #[cfg(test)]
    pub(super) fn at_once(self) -> Self {
        Self { first_pause: Duration::ZERO, ..self }
    }

    /// Counts a crash after this progress, and returns the pause before the restart; `None` where the trainer is given
    /// up.
    pub(super) fn after(&mut self, progress: Progress) -> Option<Duration> {
        self.make_good(progress);
        self.crashes += 1;
        let doublings = (self.crashes - 1).min(u32::BITS - 1);
        let pause = self.first_pause.saturating_mul(1 << doublings).min(LONGEST_PAUSE);
        (self.crashes < self.most).then_some(pause)
    }

    fn make_good(&mut self, Progress { rounds, ran }: Progress) {
        self.rounds = self.rounds.saturating_add(rounds);
        self.ran = self.ran.saturating_add(ran);
        let by_rounds = self.rounds / ROUNDS_FOR_A_CRASH;
        let by_time = self.ran.as_secs() / TIME_FOR_A_CRASH.as_secs();
        if by_rounds.max(by_time) > 0 {
            let made_good = u32::try_from(by_rounds.max(by_time)).unwrap_or(u32::MAX);
            self.crashes = self.crashes.saturating_sub(made_good);
            self.rounds %= ROUNDS_FOR_A_CRASH;
            self.ran = Duration::from_secs(self.ran.as_secs() % TIME_FOR_A_CRASH.as_secs());
        }
    }

    /// The crashes so far, in words.
    pub(super) fn in_words(&self) -> String {
        let hours = TIME_FOR_A_CRASH.as_secs() / 3600;
        let times = if self.crashes == 1 { "once".to_owned() } else { format!("{} times", self.crashes) };
        format!(
            "it has crashed {times}, beside the crashes that {ROUNDS_FOR_A_CRASH} rounds of training or {hours} hours \
             each made good"
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    fn restarts() -> Restarts {
        Restarts::new(NonZeroU32::new(10).unwrap())
    }

    /// Crashes with the same progress before each until the trainer is given up; at most this many.
    fn crashes_until_given_up(progress: Progress, most: usize) -> Option<usize> {
        let mut restarts = restarts();
        (1..=most).find(|_| restarts.after(progress).is_none())
    }

    #[test]
    fn a_trainer_that_crashes_again_and_again_is_started_after_growing_pauses_and_then_given_up() {
        let mut restarts = restarts();
        let progress = Progress { rounds: 0, ran: Duration::from_secs(3) };
        let pauses: Vec<u64> = std::iter::from_fn(|| restarts.after(progress)).map(|pause| pause.as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }

    #[test]
    fn a_trainer_that_crashes_every_twenty_rounds_is_given_up_however_long_these_take() {
        for seconds in [1, 60, 15 * 60] {
            let progress = Progress { rounds: 20, ran: Duration::from_secs(20 * seconds) };
            let crashes = crashes_until_given_up(progress, 1000);
            assert!(crashes.is_some_and(|crashes| crashes <= 20), "{crashes:?} with rounds of {seconds} s");
        }
    }

    #[test]
    fn a_trainer_that_crashes_once_a_day_is_never_given_up_and_started_again_soon() {
        for rounds in [1, 20, 1_000_000] {
            let mut restarts = restarts();
            for day in 0..10_000 {
                let pause = restarts.after(Progress { rounds, ran: DAY });
                assert_eq!(pause, Some(FIRST_PAUSE), "day {day} with {rounds} rounds each");
            }
        }
    }

    #[test]
    fn a_hundred_rounds_make_good_for_a_crash_and_fewer_do_not() {
        let progress = |rounds| Progress { rounds, ran: Duration::from_secs(600) };
        assert_eq!(crashes_until_given_up(progress(100), 10_000), None);
        assert!(crashes_until_given_up(progress(90), 10_000).is_some());
    }

    #[test]
    fn a_pause_never_overflows() {
        let mut restarts = Restarts::new(NonZeroU32::MAX);
        let progress = Progress { rounds: 0, ran: Duration::ZERO };
        assert_eq!((0..100).filter_map(|_| restarts.after(progress)).last(), Some(LONGEST_PAUSE));
    }
}
