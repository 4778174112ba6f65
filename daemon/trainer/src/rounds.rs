//! The number of rounds of a trainer's run, which it is told when it attaches: chosen here, remembered, or the swarm's.

use crate::error::{Reason, Refusal};
use crate::memory::TrainedTask;
use crate::run_end::RunEnd;
use crate::state::State;

/// The number of rounds of the swarm, in words, while no member has said it.
pub(crate) const ROUNDS_AWAITED: &str = "the number of rounds, which a member of the swarm says";

/// The number of rounds of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundsChoice {
    /// The number that the user chose.
    Chosen(u64),
    /// That of the run in the home, else this default.
    Default(u64),
    /// That of the run in the home, or this default where an earlier release began it. A new run has the number in the task
    /// of the swarm: trainers attach once a member has said it.
    OfTheSwarm(u64),
}

impl RoundsChoice {
    /// The number, where it is known at the start of a peer. `former` is the task of the run in its home; with
    /// `begins_again` that one is over, and another begins with its model.
    pub(crate) fn known(self, former: Option<&TrainedTask>, begins_again: bool) -> Option<u64> {
        let remembered = former.and_then(|task| task.rounds);
        match self {
            Self::Chosen(rounds) => Some(rounds),
            Self::Default(default) => remembered.or(Some(default)),
            Self::OfTheSwarm(default) => former.filter(|_| !begins_again).map(|_| remembered.unwrap_or(default)),
        }
    }
}

impl State {
    /// Sets the number of rounds. Where it is that of the run in the home, which is over, no trainer is waited for.
    pub(crate) fn set_rounds(&mut self, rounds: u64) {
        let is_over = self.goes_on && self.task.as_ref().is_some_and(|task| task.rounds == Some(rounds));
        self.rounds = Some(rounds);
        self.is_trainer_awaited &= !is_over;
    }

    /// The number of rounds.
    ///
    /// # Errors
    /// No member has said it yet, or the run has failed.
    pub(crate) fn known_rounds(&self) -> Result<u64, Refusal> {
        match (&self.end, &self.rounds) {
            (Some(failure @ RunEnd::Failure { .. }), _) => Err(failure.refusal()),
            (_, Some(rounds)) | (Some(RunEnd::Model { rounds, .. }), None) => Ok(*rounds),
            (None, None) => {
                Err(Refusal::conflict(Reason::Rounds, format!("this peer waits for {ROUNDS_AWAITED}"))
                    .hint("attach again"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::wire::Attach;

    #[test]
    fn a_run_in_the_home_has_its_rounds_and_a_new_one_those_of_the_user_or_of_the_swarm() {
        let attach = br#"{"protocol": 1, "name": "x", "layout": [["w", [2]]], "initial": "take"}"#;
        let unknown = TrainedTask::of(&Attach::parse(attach).unwrap()).unwrap();
        let mut former = unknown.clone();
        former.rounds = Some(300);
        for (choice, known) in [
            (RoundsChoice::Chosen(7), [Some(7); 4]),
            (RoundsChoice::Default(20), [Some(20), Some(300), Some(20), Some(300)]),
            (RoundsChoice::OfTheSwarm(20), [None, Some(300), Some(20), None]),
        ] {
            let found = [
                choice.known(None, false),
                choice.known(Some(&former), false),
                choice.known(Some(&unknown), false),
                choice.known(Some(&former), true),
            ];
            assert_eq!(found, known, "{choice:?}");
        }
    }
}
