//! Rounds of a run at the steps of its records.

use mingle_peer::membership::{CheckedPlan, Membership};
use mingle_peer::{Home, Result, plan};
use mingle_protocol::{Books, Generation, Schedule};

/// The plan in a home, by which the steps of its records are counted. A plan that replaced another one counts its steps
/// from the round at which it began.
#[derive(Debug)]
pub struct RoundCount {
    generation: Generation,
    schedule: Schedule,
    first_round: u64,
}

impl RoundCount {
    /// The count by the plan in a home; `None` if there is no plan that can be read.
    pub fn of(home: &Home) -> Option<Self> {
        if let Some(kept) = kept(home).ok().flatten() {
            let generation = kept.generation();
            let first_round = kept.first_round();
            return Some(Self { generation, schedule: plan::schedule(&kept.plan).ok()?, first_round });
        }
        let plan = plan::read(&home.plan()).ok()?;
        let generation = Generation { counter: 0, plan_hash: *plan.hash().as_bytes() };
        Some(Self { generation, schedule: plan::schedule(&plan).ok()?, first_round: 0 })
    }

    /// The rounds of the run that are done at a record; `None` if it follows another plan.
    pub fn rounds_at(&self, books: &Books) -> Option<u64> {
        let rounds = books.step / self.schedule.round_length();
        (self.generation == books.generation).then(|| self.first_round.saturating_add(rounds))
    }
}

/// The signed plan that the home keeps; `None` without a swarm.
fn kept(home: &Home) -> Result<Option<CheckedPlan>> {
    let membership = Membership::of(home)?;
    Ok(membership.map(|membership| CheckedPlan::kept(home, &membership.swarm)).transpose()?.flatten())
}
