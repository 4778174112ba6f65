//! The length of a training in local steps, which later plans keep.

use mingle_planner::Plan;
use serde::{Deserialize, Serialize};

use super::PlanOffer;

/// The length of a training in local steps. It stays the same when a later plan has another number of them in a round:
/// a training of `R` rounds takes `R * steps_per_round` at each peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TrainingLength {
    /// Local steps of a round of the task: those of a round of the first plan.
    pub(super) steps_per_round: u32,
    /// Local steps that were over when the plan was made.
    pub(super) steps_before: u64,
}

impl TrainingLength {
    /// The length of a training that continues at this round with `plan`, after `previous`; `None` without local steps.
    pub(super) fn from_round(first_round: u64, plan: &Plan, previous: Option<&PlanOffer>) -> Option<Self> {
        let before = previous.and_then(|previous| {
            let plan = previous.plan().ok()?;
            let rounds = first_round.saturating_sub(previous.first_round);
            Some((previous.length?, rounds.saturating_mul(plan.local_steps().into())))
        });
        let length = match before {
            Some((length, steps)) => Self { steps_before: length.steps_before.saturating_add(steps), ..length },
            None => {
                let steps_per_round = plan.local_steps();
                Self { steps_per_round, steps_before: first_round.saturating_mul(steps_per_round.into()) }
            }
        };
        (length.steps_per_round > 0).then_some(length)
    }

    /// Local steps that remain of a task of `of_task` rounds.
    pub(super) fn steps_left(self, of_task: u64) -> u64 {
        of_task.saturating_mul(self.steps_per_round.into()).saturating_sub(self.steps_before)
    }
}
