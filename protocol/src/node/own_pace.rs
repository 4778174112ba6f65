//! How long a round's training may take at a site that is slower than its neighbours.
//!
//! A site that needs ten times as long for its local steps would make every other one wait ten times as long, or go on without its
//! parcels. Local steps are what it can do less of: once its training is over, a node sees when the parcels of its neighbours for this
//! very step came, and so how long they need for their own training and a parcel's way. From then on its training ends after
//! [`TIMES`] as long, between two steps; a change of fewer steps counts as `step_guard` says.
//!
//! The upper median over the neighbours of a step is taken, so that one that claims to be fast does not cut the training of a node that
//! hears two others. A synchronous swarm, whose runs are the same to the bit, is left alone.

use std::time::Duration;

use super::Node;
use crate::config::WaitPolicy;
use crate::schedule::NodeId;
use crate::time::Time;

/// Training may take so many times as long as that of the others.
const TIMES: f64 = 1.25;
/// Training is never cut below this: shorter rounds differ by what else a machine does.
const SHORTEST: Duration = Duration::from_millis(50);
/// Only a site that would need more than so many times as long as the others is cut: less is what machines differ by from round to round.
const FAR_SLOWER: f64 = 2.0;
/// Rounds that are looked at first.
const ROUNDS_TO_MEASURE: u32 = 4;
/// Weight of the newest round in the moving average: 1 / 8.
const NEWEST: u32 = 8;

/// How long after the beginning of a round the parcels of others come, as a moving average; `None` before that was seen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OthersPace {
    usual: Option<Duration>,
    /// How long all local steps of this node take, in the same mean.
    own: Duration,
    rounds: u32,
}

impl OthersPace {
    fn note(&mut self, took: Duration, own: Duration) {
        let mean = |usual: Duration, newest: Duration| (usual * (NEWEST - 1) + newest) / NEWEST;
        self.own = if self.usual.is_none() { own } else { mean(self.own, own) };
        self.usual = Some(self.usual.map_or(took, |usual| mean(usual, took)));
        self.rounds = self.rounds.saturating_add(1);
    }

    fn time_box(&self) -> Option<Duration> {
        let is_far_slower = |usual: &Duration| self.own > usual.mul_f64(FAR_SLOWER);
        let usual = self.usual.filter(is_far_slower).filter(|_| self.rounds >= ROUNDS_TO_MEASURE);
        usual.map(|usual| usual.mul_f64(TIMES).max(SHORTEST))
    }
}

impl Node {
    /// How long the training of the present round may take: as the configuration says, or else as the others need.
    pub(super) fn time_box(&self) -> Option<Duration> {
        let adapts = self.config.keeps_up && self.config.policy != WaitPolicy::Sync;
        self.config.time_box.or_else(|| self.others_pace.time_box().filter(|_| adapts))
    }

    /// The training of this round is over: neighbours whose parcels of its first step came since it began show how long they need.
    /// Those who were ahead show nothing, and those who are still to come need longer than this node.
    pub(super) fn note_pace_of_others(&mut self, steps: u32) {
        let began = self.clock.started();
        let took = self.now.since(began);
        let own = took.mul_f64(f64::from(self.config.schedule.local_steps()) / f64::from(steps.max(1)));
        let due = self.config.schedule.in_neighbours(self.config.id, self.step);
        let mut came: Vec<Option<Time>> = due.iter().filter_map(|from| self.arrival(*from)).collect();
        // Upper median; who has not come yet is last.
        came.sort_unstable_by_key(|at| at.unwrap_or(Time(u64::MAX)));
        if let Some(at) = came.get(came.len() / 2).copied().flatten().filter(|at| *at > began) {
            self.others_pace.note(at.since(began), own);
        } else if came.get(came.len() / 2).is_some_and(Option::is_none) {
            // Most are slower than this node: what it took is a lower bound of what they need.
            self.others_pace.note(took, own);
        }
    }

    /// When the parcel of the present step of a neighbour that keeps up came; `None` inside while it has not.
    fn arrival(&self, from: NodeId) -> Option<Option<Time>> {
        let peer = self.peers.get(&from).filter(|peer| peer.is_active())?;
        let link = peer.incoming.as_ref()?;
        Some(link.has_brought(self.step).then_some(peer.brought_at))
    }
}
