//! Training of the next round while the present one is mixed, for people.

use std::fmt;

use mingle_protocol::{Node, Schedule, TrainingOverlap};
use serde::{Deserialize, Serialize};

/// The choice of `--overlap`, and what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverlapTaken {
    /// The choice.
    pub choice: TrainingOverlap,
    /// Rounds of this process that were trained while the round before was mixed.
    pub rounds: u64,
}

impl OverlapTaken {
    /// That of a node; `None` where it is off.
    pub fn of(node: &Node) -> Option<Self> {
        let choice = node.config().overlap;
        (choice != TrainingOverlap::Off).then(|| Self { choice, rounds: node.rounds_trained_ahead() })
    }
}

impl fmt::Display for OverlapTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { choice, rounds } = self;
        write!(f, "overlap {choice}: {rounds} rounds trained while the one before was mixed")
    }
}

/// The reason for which a plan does not bear the overlap that was asked for; `None` if it does.
pub fn objection(schedule: &Schedule, overlap: TrainingOverlap) -> Option<String> {
    let is_refused = overlap == TrainingOverlap::On && schedule.local_steps() > 0 && !schedule.agrees_in_every_round();
    is_refused.then(|| {
        "--overlap on: this plan does not average exactly in every round, so each round trains first and mixes then; a plan \
         of mingle plan make --method exact-average does"
            .to_owned()
    })
}
