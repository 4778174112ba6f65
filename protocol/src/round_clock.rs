//! The usual length of a round, and the deadlines of waits that follow from it.

use std::time::Duration;

use crate::time::Time;

/// No wait is longer than this, however slow the rounds.
const LONGEST_DEADLINE: Duration = Duration::from_secs(600);
/// Weight of the newest round in the moving average: 1 / 4.
const NEWEST: u32 = 4;
/// The first rounds, which are not measured: they include work that is done only once.
const ROUNDS_TO_WARM_UP: u32 = 4;
/// Rounds that must be over before their mean length is known.
const ROUNDS_OF_A_MEAN: u32 = 8;
/// Rounds that must be measured before the pace is known.
const ROUNDS_TO_MEASURE: u32 = 16;
/// Weight of the newest round in the pace: 1 / 64. Where neighbours may lag, some short rounds are followed by a long
/// one.
const NEWEST_IN_PACE: u32 = 64;
/// A round counts as at most this many in the pace.
const OUTLIER_IN_PACE: u32 = 16;
/// Rounds that a paced node may make up for when it was held up.
const PACED_LAG: u32 = 8;
/// Usual rounds for which a neighbour that may lag is waited for all the same.
const GRACE: u32 = 2;
/// A round counts as at most this many usual ones, so that a single hiccup does not stretch every later wait.
const OUTLIER: u32 = 2;

/// Exponentially weighted mean of the round time, and the adaptive deadline made of it.
///
/// Fixed time-outs are wrong both ways: too short for the slow swarm, too long for the fast one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundClock {
    floor: Duration,
    usual: Option<Duration>,
    started: Time,
    in_vain: Duration,
    /// The beginning of the first round, and the rounds finished since.
    first: Option<Time>,
    finished: u32,
    /// The mean length of a round in which all neighbours are there and none has to catch up, and the rounds measured.
    pace: Duration,
    measured: u32,
    /// The time when the present round may end, where the pace is kept.
    paced_end: Option<Time>,
}

impl RoundClock {
    pub(crate) fn new(floor: Duration) -> Self {
        Self {
            floor,
            usual: None,
            started: Time::default(),
            in_vain: Duration::ZERO,
            first: None,
            finished: 0,
            pace: Duration::ZERO,
            measured: 0,
            paced_end: None,
        }
    }

    /// Begins a round. One that `is_paced` may not end before a round of the usual length is over, counted from the end
    /// of the one before, so that many together take as long as they did before.
    pub(crate) fn start(&mut self, now: Time, is_paced: bool) {
        self.started = now;
        self.first.get_or_insert(now);
        self.in_vain = Duration::ZERO;
        let round = self.swarm_pace().filter(|_| is_paced);
        self.paced_end = round.map(|round| {
            let lag = u64::try_from((round * PACED_LAG).as_micros()).unwrap_or(u64::MAX);
            let earliest = Time(now.micros().saturating_sub(lag));
            self.paced_end.map_or(now, |end| end.max(earliest)) + round
        });
    }

    /// The length of a round of the whole swarm, once enough of them were seen.
    fn swarm_pace(&self) -> Option<Duration> {
        (self.measured >= ROUNDS_TO_WARM_UP + ROUNDS_TO_MEASURE).then_some(self.pace)
    }

    /// Measures the round that ends now as one of the whole swarm: all neighbours were there, and this node kept up.
    pub(crate) fn measure_pace(&mut self, now: Time) {
        let took = self.useful(now);
        self.measured = self.measured.saturating_add(1);
        match self.measured.checked_sub(ROUNDS_TO_WARM_UP) {
            None | Some(0) => {}
            Some(1) => self.pace = took,
            Some(rounds) => {
                let weight = rounds.min(NEWEST_IN_PACE);
                self.pace = (self.pace * (weight - 1) + took.min(self.pace * OUTLIER_IN_PACE)) / weight;
            }
        }
    }

    /// The usual length of a round; `None` before the first is over.
    pub(crate) fn usual(&self) -> Option<Duration> {
        self.usual
    }

    /// Leaves time in which the process stood still out of the mean.
    pub(crate) fn stand_still(&mut self, gap: Duration) {
        self.first = self.first.map(|first| first + gap);
    }

    /// The mean length of a round since the first, with waits in vain; `None` before enough of them are over.
    pub(crate) fn mean(&self, now: Time) -> Option<Duration> {
        let first = self.first.filter(|_| self.finished >= ROUNDS_OF_A_MEAN)?;
        Some(now.since(first) / self.finished)
    }

    /// Leaves a wait in vain out of the length of this round: counting it would let every missed deadline make the next
    /// one longer.
    pub(crate) fn discount(&mut self, waited: Duration) {
        self.in_vain += waited;
    }

    /// The length of this round so far in units of the usual one, at most 1.
    pub(crate) fn fraction_of_usual(&self, now: Time) -> f64 {
        let usual = self.usual.unwrap_or_default().as_secs_f64();
        let took = now.since(self.started).as_secs_f64();
        if took < usual { took / usual } else { 1.0 }
    }

    /// The time when this round began.
    pub(crate) fn started(&self) -> Time {
        self.started
    }

    /// The time that this round has taken.
    pub(crate) fn elapsed(&self, now: Time) -> Duration {
        now.since(self.started)
    }

    /// Ends the round; returns the time it took. A round that took no time, or did nothing but wait in vain, does not
    /// count in the usual length.
    pub(crate) fn finish(&mut self, now: Time) -> Duration {
        self.finished = self.finished.saturating_add(1);
        let took = self.elapsed(now);
        let useful = self.useful(now);
        if useful.is_zero() {
            return took;
        }
        self.usual = Some(match self.usual {
            None => useful,
            Some(usual) => (usual * (NEWEST - 1) + useful.min(usual * OUTLIER)) / NEWEST,
        });
        took
    }

    fn useful(&self, now: Time) -> Duration {
        now.since(self.started).saturating_sub(self.in_vain)
    }

    /// The time when the present round may end if a neighbour is missing; `None` as long as the pace of the swarm is
    /// unknown.
    pub(crate) fn paced_end(&self) -> Option<Time> {
        self.paced_end.or_else(|| Some(self.started + self.swarm_pace()?))
    }

    /// The end of a round of the usual length, or of the shortest deadline if that is sooner.
    pub(crate) fn usual_end(&self) -> Time {
        self.started + self.usual.unwrap_or_default().min(self.floor)
    }

    /// The end of a wait for neighbours that are expected and may lag: after [`GRACE`] usual rounds.
    pub(crate) fn grace(&self, since: Time) -> Time {
        since + self.usual.map_or(self.floor, |usual| usual * GRACE)
    }

    /// The end of a step that began at this time, of rounds with so many steps: of the usual length or of the mean one since
    /// the start, whichever is longer. Steps that end by this alone would else make the next ones ever shorter.
    pub(crate) fn usual_step(&self, since: Time, steps: u64) -> Time {
        let usual = self.usual.zip(self.mean(since)).map_or(self.floor, |(usual, mean)| usual.max(mean));
        since + usual / u32::try_from(steps).unwrap_or(u32::MAX).max(1)
    }

    /// The end of a wait that begins now: after twice the usual round time, or twice what this round has taken already,
    /// so that even the first round waits for a neighbour that trains at half the speed; never less than the floor.
    pub(crate) fn deadline(&self, now: Time) -> Time {
        let usual = self.usual.unwrap_or_default().max(self.useful(now));
        now + (usual * 2).min(LONGEST_DEADLINE).max(self.floor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deadline_follows_the_round_time_both_ways_and_respects_its_bounds() {
        let mut clock = RoundClock::new(Duration::from_secs(2));
        let mut now = Time::from_millis(1_000);
        clock.start(now, false);
        assert_eq!(clock.deadline(now).since(now), Duration::from_secs(2));
        let later = now + Duration::from_secs(5);
        assert_eq!(clock.deadline(later).since(later), Duration::from_secs(10));
        for (took, rounds) in [(30, 40), (3, 40)] {
            for _ in 0..rounds {
                clock.start(now, false);
                now = now + Duration::from_secs(took);
                clock.finish(now);
            }
            clock.start(now, false);
            let deadline = clock.deadline(now).since(now).as_secs_f64();
            assert!((deadline - 2.0 * took as f64).abs() < 0.01, "{deadline}");
        }
        clock.start(now, false);
        let hours_later = now + Duration::from_secs(36_000);
        assert_eq!(clock.deadline(hours_later).since(hours_later), LONGEST_DEADLINE);
    }
}
