//! Fault tests over many seeds: swarms of production nodes on virtual time, killed, cut off and rolled back.
//!
//! Every seed is a swarm, its plan and its faults. The ledger is summed after every single write to a disk. A sum that
//! is off, or a swarm that does not finish, is a failure. [`ProfileReport`] sums up the outcomes and lists the seeds that
//! failed; [`FailingSeed::shorten`] reduces the run of one to few faults with which it still fails. [`Days`] is one
//! swarm for many virtual days. [`sums`] has members that learn over masked sums instead.

mod days;
mod failures;
mod report;
pub mod sums;
pub mod table;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use mingle_protocol::sim::{Profile, SeedOutcome, Variant, run_scenario};

pub use days::{Days, DaysReport, Moment};
pub use failures::{FailingSeed, ShortRun, ShrunkRun};
pub use report::ProfileReport;

/// The most outcomes that may wait for that of an earlier seed.
const MOST_AHEAD: u64 = 1_024;

/// The cost of a campaign, as its caller measures it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Wall-clock time.
    pub wall: Duration,
    /// The largest resident memory of the process so far, where the system reports it.
    pub peak_memory_bytes: Option<u64>,
}

/// The seeds of one profile, run on several threads, with outcomes in the order of the seeds.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The kind of faults.
    pub profile: Profile,
    /// The seeds to run.
    pub seeds: Range<u64>,
    /// The variant of the nodes: a bug that all have, to see that the tests notice, and the clipping of neighbours'
    /// ratios.
    pub variant: Variant,
    /// Seeds to run at a time; outcomes do not depend on it.
    pub threads: NonZeroUsize,
}

impl Campaign {
    /// Runs all seeds, and passes the outcome of each to `take`, in their order.
    pub fn run(&self, take: impl FnMut(&SeedOutcome)) {
        let run_one = |seed| run_scenario(self.profile, seed, self.variant.scenario(self.profile, seed));
        run_seeds(self.seeds.clone(), self.threads, run_one, take);
    }
}

/// Runs `run_one` for all seeds, so many at a time, and passes the outcome of each to `take`, in their order.
pub fn run_seeds<T: Send>(
    seeds: Range<u64>,
    threads: NonZeroUsize,
    run_one: impl Fn(u64) -> T + Sync,
    mut take: impl FnMut(&T),
) {
    let queue = Queue { state: Mutex::new((seeds.start, seeds.start)), moved: Condvar::new() };
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads.get() {
            let queue = &queue;
            let run_one = &run_one;
            let sender = sender.clone();
            scope.spawn(move || {
                while let Some(seed) = queue.next(seeds.end) {
                    if sender.send((seed, run_one(seed))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut early = BTreeMap::new();
        let mut due = seeds.start;
        for (seed, outcome) in receiver {
            early.insert(seed, outcome);
            while let Some(outcome) = early.remove(&due) {
                take(&outcome);
                due += 1;
                queue.taken(due);
            }
        }
    });
}

/// The next seed to run, and the next one whose outcome is due.
struct Queue {
    state: Mutex<(u64, u64)>,
    moved: Condvar,
}

impl Queue {
    /// Returns a seed to run, once not too many outcomes wait for an earlier one; none after the last.
    fn next(&self, end: u64) -> Option<u64> {
        let mut state = self.lock();
        while state.0 < end && state.0 - state.1 >= MOST_AHEAD {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let seed = state.0;
        state.0 += u64::from(seed < end);
        (seed < end).then_some(seed)
    }

    fn taken(&self, due: u64) {
        self.lock().1 = due;
        self.moved.notify_all();
    }

    /// Locks despite poisoning: the numbers are never half changed.
    fn lock(&self) -> MutexGuard<'_, (u64, u64)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use mingle_protocol::sim::Journal;

    use super::*;

    #[test]
    fn outcomes_come_in_the_order_of_their_seeds_and_do_not_depend_on_the_threads() {
        let outcomes = |threads| {
            let mut outcomes = Vec::new();
            let threads = NonZeroUsize::new(threads).unwrap();
            let campaign = Campaign { profile: Profile::Kill, seeds: 5..13, variant: Variant::default(), threads };
            campaign.run(|outcome| outcomes.push(outcome.clone()));
            outcomes
        };
        let alone = outcomes(1);
        assert_eq!(alone.iter().map(|outcome| outcome.seed).collect::<Vec<_>>(), (5..13).collect::<Vec<_>>());
        assert_eq!(alone, outcomes(3));
    }

    #[test]
    fn mutated_journals_are_refused_or_could_have_been_recorded() {
        let (journal, _) = Journal::record(Profile::Kill, 7, None);
        let mut written = serde_json::to_value(&journal).unwrap();
        let mut few = 0;
        written["faults"].as_array_mut().unwrap().retain(|_| {
            few += 1;
            few <= 3
        });
        let sound = serde_json::to_vec(&written).unwrap();
        assert_eq!(serde_json::from_slice::<Journal>(&sound).unwrap().faults().len(), 3);
        mingle_mutations::for_each_input("journal", &[sound], |input| {
            let Ok(journal) = serde_json::from_slice::<Journal>(input) else { return };
            assert!(journal.repair() <= journal.stop());
            assert!(journal.faults().iter().all(|(at, _)| *at <= journal.repair()));
        });
    }
}
