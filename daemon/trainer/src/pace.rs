//! The pace of a trainer: its usual times for a round and an evaluation, and the timeouts that follow from them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Bytes of the pace in a record, beside the trainer's own state.
pub(crate) const RECORDED_PACE_BYTES: usize = size_of::<u64>();
/// Number of last rounds whose training times are remembered.
const REMEMBERED_ROUNDS: usize = 9;
/// Time that is waited beyond twice the usual time.
const GRACE: Duration = Duration::from_millis(100);
/// A trainer is reported late once it takes `LATE_TIMES` its usual time, and at least `LATE`.
const LATE_TIMES: u32 = 3;
const LATE: Duration = Duration::from_secs(5);
/// Bounds of the time in which a trainer that is at work can fetch the end of the run, or an order to evaluate.
pub(crate) const SHORTEST_LAST_CALL: Duration = Duration::from_secs(10);
const LONGEST_LAST_CALL: Duration = Duration::from_secs(60);
/// That time for a trainer that has not ended an evaluation in time, and has not called since.
pub(crate) const LAST_CALL_OF_THE_STUCK: Duration = Duration::from_secs(2);
/// Timeout of the first evaluation.
const FIRST_EVALUATION: Duration = Duration::from_secs(120);
/// Timeout of a later one: `EVALUATION_TIMES` the longest of the last ones, and at least `SHORTEST_EVALUATION`.
const EVALUATION_TIMES: u32 = 4;
const SHORTEST_EVALUATION: Duration = Duration::from_secs(12);

/// The pace of a trainer, and of its peer while it goes on without one.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    times: VecDeque<Duration>,
    /// The usual time before the peer was started again.
    before: Option<Duration>,
    /// Time at which the peer last went on without an answer.
    went_on: Option<Instant>,
    /// Time that the peer mixed between going on without an answer and opening the present order.
    mixed: Duration,
}

impl Pace {
    /// Records the time of a round of training.
    pub(crate) fn note(&mut self, time: Duration) {
        self.times.push_back(time);
        if self.times.len() > REMEMBERED_ROUNDS {
            self.times.pop_front();
        }
    }

    /// Records that the peer goes on without an answer.
    pub(crate) fn go_on(&mut self, now: Instant) {
        self.went_on = Some(now);
    }

    /// Records that the peer opens the next order.
    pub(crate) fn open(&mut self, now: Instant) {
        self.mixed = self.went_on.take().map_or(Duration::ZERO, |then| now.saturating_duration_since(then));
    }

    /// The median time of the last rounds, or that from before a restart.
    pub(crate) fn usual(&self) -> Option<Duration> {
        let mut times: Vec<Duration> = self.times.iter().copied().collect();
        times.sort_unstable();
        times.get(times.len() / 2).copied().or(self.before)
    }

    /// Sets the usual time from before the peer was restarted.
    pub(crate) fn resume(&mut self, usual: Option<Duration>) {
        self.before = usual;
    }

    /// Timeout for a trainer that is at work; none where its usual time is unknown.
    pub(crate) fn at_work(&self) -> Option<Duration> {
        self.usual().map(|usual| usual * 2 + GRACE)
    }

    /// Time for a trainer that is at work to fetch the end of the run, or an order to evaluate: its usual timeout, within
    /// 10 s to 60 s. It is short for one that has not ended an evaluation in time, `is_stuck`.
    pub(crate) fn last_call(&self, is_stuck: bool) -> Duration {
        if is_stuck {
            return LAST_CALL_OF_THE_STUCK;
        }
        self.at_work().unwrap_or_default().clamp(SHORTEST_LAST_CALL, LONGEST_LAST_CALL)
    }

    /// Time after which a trainer is reported late. The peer goes on long before that: rounds often take twice as long
    /// as usual.
    pub(crate) fn late(&self) -> Duration {
        (self.usual().unwrap_or_default() * LATE_TIMES).max(LATE)
    }

    /// Timeout for a trainer that is late or gone: the usual time of training, less the time that the peer mixed
    /// before. A swarm without trainers then keeps its pace, and a peer that fell behind while it waited catches up.
    pub(crate) fn without_trainer(&self) -> Option<Duration> {
        self.usual().map(|usual| usual.saturating_sub(self.mixed))
    }
}

/// The times that the evaluations of a trainer took, and the timeout that follows from them.
#[derive(Debug, Default)]
pub(crate) struct EvaluationPace {
    times: VecDeque<Duration>,
}

impl EvaluationPace {
    /// Records the time of an evaluation that was answered.
    pub(crate) fn note(&mut self, time: Duration) {
        self.times.push_back(time);
        if self.times.len() > REMEMBERED_ROUNDS {
            self.times.pop_front();
        }
    }

    /// The longest time of the last evaluations; none where there was none.
    fn longest(&self) -> Option<Duration> {
        self.times.iter().copied().max()
    }

    /// Timeout of an evaluation that the trainer has begun.
    pub(crate) fn limit(&self) -> Duration {
        self.longest().map_or(FIRST_EVALUATION, |longest| (longest * EVALUATION_TIMES).max(SHORTEST_EVALUATION))
    }

    /// Time after which a person is told that an evaluation is waited for. It is short for that of the final model,
    /// `is_last`, after which the peer ends.
    fn patience(&self, is_last: bool) -> Duration {
        let longest = self.longest().filter(|_| !is_last).unwrap_or_default();
        (longest * 2).max(LATE)
    }

    /// The sentence for a person about an evaluation by `who` that has taken `elapsed`, with the longest further wait.
    /// None while it is not unusual.
    pub(crate) fn in_words(&self, who: &str, elapsed: Duration, is_last: bool) -> Option<String> {
        if elapsed < self.patience(is_last) {
            return None;
        }
        let model = if is_last { "the final model" } else { "the model" };
        let since = elapsed.as_secs();
        let left = self.limit().saturating_sub(elapsed).as_secs();
        let before = match self.longest() {
            Some(longest) => format!("those before took {:.1} s at most", longest.as_secs_f64()),
            None => "it is the first one".to_owned(),
        };
        Some(format!(
            "{who} has been evaluating {model} for {since} s: the peer waits {left} s more at most ({before})"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_usual_time_is_the_median_of_the_last_rounds_or_that_from_before_a_restart() {
        let mut pace = Pace::default();
        assert_eq!((pace.usual(), pace.at_work(), pace.without_trainer()), (None, None, None));
        pace.resume(Some(SECOND * 5));
        assert_eq!(pace.usual(), Some(SECOND * 5));
        (1..=20).for_each(|seconds| pace.note(SECOND * seconds));
        assert_eq!((pace.usual(), pace.at_work()), (Some(SECOND * 16), Some(SECOND * 32 + GRACE)));
        assert_eq!((pace.late(), Pace::default().late()), (SECOND * 48, LATE));
    }

    #[test]
    fn what_the_peer_mixed_meanwhile_counts_for_the_time_of_a_round_without_training() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        pace.note(SECOND * 3);
        pace.open(now);
        assert_eq!(pace.without_trainer(), Some(SECOND * 3));
        pace.go_on(now);
        pace.open(now + SECOND);
        assert_eq!(pace.without_trainer(), Some(SECOND * 2));
        pace.go_on(now);
        pace.open(now + SECOND * 9);
        assert_eq!(pace.without_trainer(), Some(Duration::ZERO));
        pace.open(now + SECOND * 10);
        assert_eq!(pace.without_trainer(), Some(SECOND * 3), "the round between was trained");
    }

    #[test]
    fn an_evaluation_has_four_times_the_longest_of_those_before() {
        let mut pace = EvaluationPace::default();
        assert_eq!((pace.longest(), pace.limit(), pace.patience(false)), (None, FIRST_EVALUATION, LATE));
        pace.note(SECOND);
        assert_eq!((pace.limit(), pace.patience(false)), (SHORTEST_EVALUATION, LATE));
        [50, 20].into_iter().for_each(|seconds| pace.note(SECOND * seconds));
        assert_eq!((pace.limit(), pace.patience(false), pace.patience(true)), (SECOND * 200, SECOND * 100, LATE));
        (0..REMEMBERED_ROUNDS).for_each(|_| pace.note(SECOND * 4));
        assert_eq!(pace.limit(), SECOND * 16, "what was long ago is forgotten");
    }
}
