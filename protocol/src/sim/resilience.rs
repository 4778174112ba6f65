//! Resilience: the weight and pace that sound nodes keep while others attack them.
//!
//! ```text
//!   0 s ....... 10 s ............ 40 s ....... 60 s ............. 100 s
//!   settles      usual: measured   attack       held: measured     a plan without the attackers
//! ```
//!
//! These times are longer in swarms with slow rounds (`profile/scenario/siege.rs`).
//!
//! A node of whose neighbours fewer than a third attack keeps at least half of its usual weight, as a part of that
//! in the plan, and half of its usual pace once a third of the siege is over, skips no more rounds than it finishes, and
//! does not end. Two kinds of plans protect its weight less. In trees of exact averages each node but the root gives all it
//! has in every round: it keeps two fifths. Where links go one way, a node cannot see what its receivers keep: it keeps a
//! quarter.

use std::collections::BTreeSet;

use super::error::SimError;
use super::fault::Fault;
use super::swarm::SimulatedSwarm;
use crate::effect::NodeEvent;
use crate::schedule::{NodeId, Schedule};
use crate::time::Time;

/// The part of its usual weight and pace that a sound node keeps.
const KEPT: f64 = 0.5;
/// The part of its usual weight that it keeps in trees of exact averages.
const KEPT_IN_TREES: f64 = 0.4;
/// The part of its usual weight that it keeps where links go one way.
const KEPT_ONE_WAY: f64 = 0.25;
/// Rounds in a second that a node may skip beyond those that it finishes: one in five seconds.
const LEAST_SKIPPED: f64 = 0.2;

/// An attack on a swarm.
#[derive(Clone, Debug)]
pub(super) struct Siege {
    attackers: BTreeSet<NodeId>,
    begins: Time,
    ends: Time,
}

impl Siege {
    /// The siege among these faults: from the first attacker to the plan without them.
    pub(super) fn among(faults: &[(Time, Fault)]) -> Option<Self> {
        let attacks = || faults.iter().filter(|(_, fault)| matches!(fault, Fault::Besiege(..)));
        let (begins, _) = attacks().next()?;
        let (ends, _) = faults.iter().find(|(_, fault)| matches!(fault, Fault::Expel(..)))?;
        let attackers = attacks().flat_map(|(_, fault)| fault.nodes()).collect();
        Some(Self { attackers, begins: *begins, ends: *ends })
    }

    /// The time before which rounds do not count as usual: a quarter of that before the attack.
    fn warmed_up(&self) -> Time {
        Time(self.begins.micros() / 4)
    }

    /// The time from which on what a node keeps is measured: a third of the siege is over.
    pub(super) fn settled(&self) -> Time {
        self.begins + self.ends.since(self.begins) / 3
    }

    /// The last moment of the siege.
    pub(super) fn last_moment(&self) -> Time {
        Time(self.ends.micros().saturating_sub(1))
    }

    /// Checks what sound nodes have kept, at the last moment of the siege.
    ///
    /// # Errors
    /// [`SimError::Drained`], [`SimError::Slowed`], [`SimError::LedAstray`], [`SimError::EndedBySiege`]: the first node
    /// that has lost too much.
    pub(super) fn check(&self, swarm: &SimulatedSwarm) -> Result<(), SimError> {
        let now = swarm.now();
        let schedule = swarm.first_plan();
        for id in swarm.nodes().filter(|id| !self.attackers.contains(id)) {
            if swarm.has_drained(id) {
                return Err(SimError::EndedBySiege { now, id });
            }
            if !outnumbers(&neighbours(schedule, id), &self.attackers) {
                continue;
            }
            let usual = Course::of(swarm, id, self.warmed_up(), self.begins);
            let held = Course::of(swarm, id, self.settled(), self.ends);
            if held.share < kept_weight(schedule) * usual.share.min(1.0) {
                return Err(SimError::Drained { now, id, share: held.share, usual: usual.share });
            }
            // One round more or less is no evidence.
            let one_round = 1.0 / self.ends.since(self.settled()).as_secs_f64();
            if held.rounds + one_round < KEPT * usual.rounds {
                return Err(SimError::Slowed { now, id, rounds: held.rounds, usual: usual.rounds });
            }
            if held.skipped > held.rounds + LEAST_SKIPPED {
                return Err(SimError::LedAstray { now, id, skipped: held.skipped, rounds: held.rounds });
            }
        }
        Ok(())
    }
}

/// The part of its usual weight that a sound node keeps under a plan.
fn kept_weight(schedule: &Schedule) -> f64 {
    match (schedule.is_reversible(), schedule.hands_ratios_down()) {
        (true, false) => KEPT,
        (true, true) => KEPT_IN_TREES,
        (false, _) => KEPT_ONE_WAY,
    }
}

/// The nodes that a node sends to or gets from.
pub(super) fn neighbours(schedule: &Schedule, id: NodeId) -> BTreeSet<NodeId> {
    let there = schedule.all_out_neighbours(id);
    there.iter().chain(schedule.all_in_neighbours(id)).copied().collect()
}

/// Returns `true` if fewer than a third of these neighbours are attackers.
pub(super) fn outnumbers(neighbours: &BTreeSet<NodeId>, attackers: &BTreeSet<NodeId>) -> bool {
    3 * neighbours.intersection(attackers).count() < neighbours.len()
}

/// The rounds of a node between two times.
#[derive(Clone, Copy, Debug)]
struct Course {
    /// Mean weight at the end of a round, as a part of that in the plan.
    share: f64,
    /// Rounds in a second that it finished itself, without those that it skipped.
    rounds: f64,
    /// Rounds in a second that it skipped, since neighbours claimed to be further.
    skipped: f64,
}

impl Course {
    fn of(swarm: &SimulatedSwarm, node: NodeId, from: Time, until: Time) -> Self {
        let schedule = swarm.first_plan();
        let events = swarm.events().iter().filter(|(at, id, _)| *id == node && *at >= from && *at < until);
        let mut finished = 0.0;
        let mut shares = 0.0;
        let mut skipped = 0.0;
        for (_, _, event) in events {
            match event {
                NodeEvent::RoundFinished(report) => {
                    finished += 1.0;
                    shares += report.mass.to_f64() / report.stationary_weight.max(f64::MIN_POSITIVE);
                }
                NodeEvent::CaughtUp { from, to } => skipped += (to - from) as f64 / schedule.round_length() as f64,
                _ => {}
            }
        }
        let seconds = until.since(from).as_secs_f64();
        Self { share: shares / f64::max(finished, 1.0), rounds: finished / seconds, skipped: skipped / seconds }
    }
}
