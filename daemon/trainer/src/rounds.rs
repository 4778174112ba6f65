//! The number of rounds of a trainer's run, which it is told when it attaches: chosen here, remembered, or the swarm's.

use crate::error::{Reason, Refusal};
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
    /// That of the run in the home, else the number in the task of the swarm: trainers attach once a member has said it.
    OfTheSwarm,
}

impl RoundsChoice {
    /// The number, where it is known at the start of a peer whose home remembers this one.
    pub(crate) fn known(self, remembered: Option<u64>) -> Option<u64> {
        match self {
            Self::Chosen(rounds) => Some(rounds),
            Self::Default(default) => remembered.or(Some(default)),
            Self::OfTheSwarm => remembered,
        }
    }
}

impl State {
    /// The number of rounds.
    ///
    /// # Errors
    /// No member has said it yet, or the run is over.
    pub(crate) fn known_rounds(&self) -> Result<u64, Refusal> {
        match (&self.end, self.rounds) {
            (Some(end), _) => Err(end.refusal()),
            (None, Some(rounds)) => Ok(rounds),
            (None, None) => {
                Err(Refusal::conflict(Reason::Rounds, format!("this peer waits for {ROUNDS_AWAITED}"))
                    .hint("attach again"))
            }
        }
    }
}
