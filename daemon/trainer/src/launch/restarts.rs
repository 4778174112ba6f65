//! The restarts of a trainer that crashes: pauses that grow, and the number of crashes at which it is given up.

use std::num::NonZeroU32;
use std::time::Duration;

use mingle_peer::error::Context;
use mingle_peer::home::write_file;
use mingle_peer::{ErrorKind, Home, Result};
use serde::{Deserialize, Serialize};

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
pub(super) struct WorkSinceStart {
    /// Rounds in which it trained.
    pub(super) rounds: u64,
    /// Running time.
    pub(super) ran: Duration,
}

/// The crashes of a trainer, and the progress that makes good for them.
///
/// Each crash counts one, and each hundred rounds of training or twelve hours take one back. So a trainer that crashes
/// every 20 rounds is given up in the end, and one that crashes once a day is not. The home keeps the count over the
/// processes of the peer: a supervisor that starts the peer again does not begin it anew.
#[derive(Clone, Debug)]
pub(super) struct Restarts {
    most: u32,
    first_pause: Duration,
    tally: Tally,
}

/// The part of the count that the home keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Tally {
    /// The command of the trainer; the crashes of another one do not count.
    command: String,
    /// Crashes that are not made good.
    crashes: u32,
    /// Progress that has not made good for a crash yet: rounds, and seconds of running.
    rounds: u64,
    ran_s: u64,
    /// Set when the trainer was given up, until it has trained for [`ROUNDS_FOR_A_CRASH`] rounds again.
    given_up: bool,
}

/// What follows a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The trainer is started again after a pause.
    Restart(Duration),
    /// It is given up. A start of the peer may find it mended.
    GivenUp,
    /// It is given up, and has trained for less than [`ROUNDS_FOR_A_CRASH`] rounds since it was given up before: to
    /// start the peer again does not help.
    GivenUpAgain,
}

impl Restarts {
    /// No crashes of this command so far.
    pub(super) fn new(command: &str, most: NonZeroU32) -> Self {
        let tally = Tally { command: command.to_owned(), ..Tally::default() };
        Self { most: most.get(), first_pause: FIRST_PAUSE, tally }
    }

    /// The same without pauses.
    #[cfg(test)]
    pub(super) fn at_once(self) -> Self {
        Self { first_pause: Duration::ZERO, ..self }
    }

    /// Goes on from the count in the home. A trainer that was given up before has one start left: it may be mended.
    ///
    /// # Errors
    /// There is a file that cannot be read.
    pub(super) fn recall(&mut self, home: &Home) -> Result {
        let path = home.trainer_crashes();
        let text = match std::fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            read => read.context(ErrorKind::BadInput, format!("cannot read {}", path.display()))?,
        };
        let doing = format!("{} holds no count of crashes; it may be removed", path.display());
        let kept: Tally = serde_json::from_slice(&text).context(ErrorKind::Integrity, doing)?;
        if kept.command == self.tally.command {
            self.tally = Tally { crashes: kept.crashes.min(self.most - 1), ..kept };
        }
        Ok(())
    }

    /// Writes the count to the home.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn remember(&self, home: &Home) -> Result {
        let text = serde_json::to_vec(&self.tally).context(ErrorKind::Unexpected, "cannot write down the crashes")?;
        write_file(&home.trainer_crashes(), &text)
    }

    /// Counts a crash after this progress.
    pub(super) fn after(&mut self, progress: WorkSinceStart) -> Next {
        self.make_good(progress);
        let tally = &mut self.tally;
        tally.crashes += 1;
        if tally.crashes >= self.most {
            let was_given_up = std::mem::replace(&mut tally.given_up, true);
            return if was_given_up { Next::GivenUpAgain } else { Next::GivenUp };
        }
        let doublings = (tally.crashes - 1).min(u32::BITS - 1);
        Next::Restart(self.first_pause.saturating_mul(1 << doublings).min(LONGEST_PAUSE))
    }

    /// Counts progress that did not end in a crash, or not yet.
    pub(super) fn make_good(&mut self, WorkSinceStart { rounds, ran }: WorkSinceStart) {
        let tally = &mut self.tally;
        if tally.given_up && rounds >= ROUNDS_FOR_A_CRASH {
            *tally = Tally { command: std::mem::take(&mut tally.command), ..Tally::default() };
        }
        tally.rounds = tally.rounds.saturating_add(rounds);
        tally.ran_s = tally.ran_s.saturating_add(ran.as_secs());
        let by_rounds = tally.rounds / ROUNDS_FOR_A_CRASH;
        let by_time = tally.ran_s / TIME_FOR_A_CRASH.as_secs();
        if by_rounds.max(by_time) > 0 {
            let made_good = u32::try_from(by_rounds.max(by_time)).unwrap_or(u32::MAX);
            tally.crashes = tally.crashes.saturating_sub(made_good);
            tally.rounds %= ROUNDS_FOR_A_CRASH;
            tally.ran_s %= TIME_FOR_A_CRASH.as_secs();
        }
    }

    /// The crashes so far, in words.
    pub(super) fn in_words(&self) -> String {
        let hours = TIME_FOR_A_CRASH.as_secs() / 3600;
        let crashes = self.tally.crashes;
        if crashes == 1 {
            return "it has crashed once".to_owned();
        }
        format!(
            "it has crashed {crashes} times, beside the crashes that {ROUNDS_FOR_A_CRASH} rounds of training or {hours} hours \
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
        Restarts::new("python train.py", NonZeroU32::new(10).unwrap())
    }

    /// The pause in seconds before a restart; `None` where the trainer is given up.
    fn pause(next: Next) -> Option<u64> {
        if let Next::Restart(pause) = next { Some(pause.as_secs()) } else { None }
    }

    /// Crashes with the same progress before each until the trainer is given up; at most this many.
    fn crashes_until_given_up(progress: WorkSinceStart, most: usize) -> Option<usize> {
        let mut restarts = restarts();
        (1..=most).find(|_| restarts.after(progress) == Next::GivenUp)
    }

    #[test]
    fn a_trainer_that_crashes_again_and_again_is_started_after_growing_pauses_and_then_given_up() {
        let mut restarts = restarts();
        let progress = WorkSinceStart { rounds: 0, ran: Duration::from_secs(3) };
        let pauses: Vec<u64> = std::iter::from_fn(|| pause(restarts.after(progress))).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }

    #[test]
    fn a_trainer_that_crashes_every_twenty_rounds_is_given_up_however_long_these_take() {
        for seconds in [1, 60, 15 * 60] {
            let progress = WorkSinceStart { rounds: 20, ran: Duration::from_secs(20 * seconds) };
            let crashes = crashes_until_given_up(progress, 1000);
            assert!(crashes.is_some_and(|crashes| crashes <= 20), "{crashes:?} with rounds of {seconds} s");
        }
    }

    #[test]
    fn a_trainer_that_crashes_once_a_day_is_never_given_up_and_started_again_soon() {
        for rounds in [1, 20, 1_000_000] {
            let mut restarts = restarts();
            for day in 0..10_000 {
                let next = restarts.after(WorkSinceStart { rounds, ran: DAY });
                assert_eq!(next, Next::Restart(FIRST_PAUSE), "day {day} with {rounds} rounds each");
            }
        }
    }

    #[test]
    fn a_hundred_rounds_make_good_for_a_crash_and_fewer_do_not() {
        let progress = |rounds| WorkSinceStart { rounds, ran: Duration::from_secs(600) };
        assert_eq!(crashes_until_given_up(progress(100), 10_000), None);
        assert!(crashes_until_given_up(progress(90), 10_000).is_some());
    }

    #[test]
    fn a_pause_never_overflows() {
        let mut restarts = Restarts::new("python train.py", NonZeroU32::MAX);
        let progress = WorkSinceStart { rounds: 0, ran: Duration::ZERO };
        assert_eq!((0..100).map(|_| restarts.after(progress)).last(), Some(Next::Restart(LONGEST_PAUSE)));
    }

    /// Starts of the peer in one home, each of which counts crashes after this progress until the trainer is given up;
    /// returns the crashes in each, and what came in the end.
    fn starts(home: &Home, most: u32, progress: WorkSinceStart, starts: usize) -> Vec<(u32, Next)> {
        let start = || {
            let mut restarts = Restarts::new("python train.py", NonZeroU32::new(most).unwrap());
            restarts.recall(home).unwrap();
            let crashes = (1..).map(|crash| (crash, restarts.after(progress)));
            let end = crashes.into_iter().find(|(_, next)| !matches!(next, Next::Restart(_))).unwrap();
            restarts.remember(home).unwrap();
            end
        };
        std::iter::repeat_with(start).take(starts).collect()
    }

    #[test]
    fn a_peer_that_is_started_again_and_again_gives_a_crashing_trainer_up_for_good() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(Some(folder.path())).unwrap();
        let fruitless = WorkSinceStart { rounds: 20, ran: Duration::from_secs(30) };
        let ends = starts(&home, 10, fruitless, 3);
        assert_eq!(ends, [(12, Next::GivenUp), (1, Next::GivenUpAgain), (1, Next::GivenUpAgain)]);
        // Mended, it trains, and the crashes from before are forgotten.
        let mended = WorkSinceStart { rounds: 100, ran: Duration::from_secs(30) };
        let mut restarts = restarts();
        restarts.recall(&home).unwrap();
        assert_eq!(restarts.after(mended), Next::Restart(FIRST_PAUSE));
        restarts.remember(&home).unwrap();
        assert_eq!(starts(&home, 10, fruitless, 1)[0].1, Next::GivenUp);
    }

    #[test]
    fn crashes_of_other_processes_of_the_peer_count_and_those_of_another_command_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(Some(folder.path())).unwrap();
        let progress = WorkSinceStart { rounds: 0, ran: Duration::ZERO };
        let mut first = restarts();
        (0..4).for_each(|_| assert!(matches!(first.after(progress), Next::Restart(_))));
        first.remember(&home).unwrap();
        let mut second = restarts();
        second.recall(&home).unwrap();
        assert_eq!(second.after(progress), Next::Restart(Duration::from_secs(16)));
        let mut other = Restarts::new("python other.py", NonZeroU32::new(10).unwrap());
        other.recall(&home).unwrap();
        assert_eq!(other.after(progress), Next::Restart(FIRST_PAUSE));
        std::fs::write(home.trainer_crashes(), "{").unwrap();
        assert!(restarts().recall(&home).unwrap_err().to_string().contains("may be removed"));
    }
}
