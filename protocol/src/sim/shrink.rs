//! A shorter run that fails in the same way: delta debugging over the faults (Zeller and Hildebrandt, 2002).
//!
//! Faults after the failure are dropped at once: they cannot matter. Then halves of the rest are left out, then
//! quarters, down to single faults; faults without which the run fails all the same stay out. Every candidate is a
//! whole run of its own, in which anything may happen at other times than before: all it must keep is that it ends in
//! an error of the same kind.

use std::mem::discriminant;
use std::time::Duration;

use super::error::SimError;
use super::fault::Fault;
use super::journal::Journal;
use crate::time::Time;

/// A failing run made shorter.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The shortest run found.
    pub journal: Journal,
    /// The error it ends in.
    pub failure: SimError,
    /// Runs it took.
    pub runs: u32,
}

/// Looks for the fewest faults that make the run of `journal` fail as it does, in at most `most_runs` runs. `None`
/// where it does not fail. The result is 1-minimal where the runs suffice: without any one of its faults it does not
/// fail so.
///
/// Complexity: at most `most_runs` runs; O(k log n) of them where k of n faults matter.
///
/// ```
/// use mingle_protocol::{InjectedBug, sim::{Journal, Profile, shrink}};
///
/// let (journal, _) = Journal::record(Profile::Kill, 0, Some(InjectedBug::ConfirmsBeforeWriting));
/// let shrunk = shrink(&journal, 300).expect("the bug shows in this seed");
/// assert!(shrunk.journal.faults().len() < 5 && journal.faults().len() > 100);
/// ```
pub fn shrink(journal: &Journal, most_runs: u32) -> Option<Shrunk> {
    let failure = journal.replay().failure?;
    let gap = journal.stop().since(journal.repair());
    let mut search = ShrinkSearch { best: journal.clone(), failure, gap, runs: 1, most_runs };
    search.forget_what_follows();
    search.end_early();
    search.leave_out();
    search.end_early();
    Some(Shrunk { journal: search.best, failure: search.failure, runs: search.runs })
}

/// The search for a shorter run.
struct ShrinkSearch {
    best: Journal,
    failure: SimError,
    /// Between repair and stop.
    gap: Duration,
    runs: u32,
    most_runs: u32,
}

impl ShrinkSearch {
    /// Tries a run and returns `true` if it fails in the same way; it is then the best.
    fn accepts(&mut self, faults: Vec<(Time, Fault)>, repair: Time) -> bool {
        if self.runs >= self.most_runs {
            return false;
        }
        self.runs += 1;
        let (candidate, outcome) = self.best.with(faults, repair, repair + self.gap);
        let Some(failure) = outcome.failure.filter(|failure| discriminant(failure) == discriminant(&self.failure))
        else {
            return false;
        };
        self.best = candidate;
        self.failure = failure;
        self.forget_what_follows();
        true
    }

    /// Drops everything after the failure, and moves the repair there, if the run fails as before.
    fn forget_what_follows(&mut self) {
        let Some(failed) = self.failure.at().filter(|failed| *failed < self.best.repair()) else {
            return;
        };
        let repair = failed + Duration::from_micros(1);
        let faults: Vec<_> = self.best.faults().iter().filter(|(at, _)| *at <= failed).copied().collect();
        if self.runs < self.most_runs {
            self.runs += 1;
            let (candidate, outcome) = self.best.with(faults, repair, repair + self.gap);
            if outcome.failure.as_ref() == Some(&self.failure) {
                self.best = candidate;
            }
        }
    }

    /// Repairs as soon as the last fault is past, if the run fails all the same.
    fn end_early(&mut self) {
        let last = self.best.faults().last().map_or_else(Time::default, |(at, _)| *at);
        let early = last + Duration::from_micros(1);
        if early < self.best.repair() {
            self.accepts(self.best.faults().to_vec(), early);
        }
    }

    fn leave_out(&mut self) {
        let mut size = self.best.faults().len().div_ceil(2);
        while size > 0 {
            let before = self.best.faults().len();
            self.leave_out_blocks(size);
            let stays = self.best.faults().len() == before;
            // Single faults are tried again as long as that helps: each that goes may make others superfluous.
            size = if size > 1 { size / 2 } else { usize::from(!stays && self.runs < self.most_runs) };
        }
    }

    /// Takes out one block of faults after the other, the last first: causes lie before their effects.
    fn leave_out_blocks(&mut self, size: usize) {
        let mut end = self.best.faults().len();
        while end > 0 && self.runs < self.most_runs {
            let start = end.saturating_sub(size);
            let faults = self.best.faults();
            let rest = faults[..start].iter().chain(&faults[end..]).copied().collect();
            self.accepts(rest, self.best.repair());
            end = start.min(self.best.faults().len());
        }
    }
}
