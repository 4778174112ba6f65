//! Training of the next round while the present one is mixed ([`TrainingOverlap`]).
//!
//! ```text
//!   off   train r | mix r | train r + 1 | mix r + 1
//!   on    train r | mix r       | mix r + 1
//!                 | train r + 1 | train r + 2
//! ```
//!
//! The training of round r + 1 begins at the node's own ratio once that has the change of round r: the newest average of
//! all, plus the own change that is still under way. It lacks the changes of the others in round r alone. A change that
//! comes before its round is ready until then, in memory: a process that is killed trains it again. Then it joins the
//! numerator as any other, so ledger, records and messages are the same.
//!
//! Plans whose nodes do not agree in every round mix first: there a node begins at a ratio of its own.
//!
//! A neighbour that was ready before a round began shows by its parcels how long mixing takes, not how long it trained. So
//! the first rounds, and some of the later ones, train apart: in these `own_pace` measures the others.

use super::Node;
use crate::effect::NodeEvent;
use crate::overlap::TrainingOverlap;
use crate::record::HostState;

/// The first rounds, which train apart.
const FIRST_APART: u64 = 4;
/// Every so many rounds one trains apart.
const APART_EVERY: u64 = 32;

/// A change that waits for its round.
#[derive(Clone, Debug)]
pub(super) struct ReadyChange {
    /// The change as it will be added, `[dimension]`.
    pub(super) delta: Vec<f32>,
    /// Its Euclidean norm.
    pub(super) norm: f64,
    /// State of the training after it, in the host's format.
    pub(super) state: HostState,
}

impl Node {
    /// A change that was trained while the node mixes and joins the numerator with the next round, `[dimension]`. No
    /// record has it.
    pub fn ready_change(&self) -> Option<&[f32]> {
        self.training.ready.as_ref().map(|ready| &ready.delta[..])
    }

    /// Rounds that were trained while the round before was mixed.
    pub fn rounds_trained_ahead(&self) -> u64 {
        self.rounds_trained_ahead
    }

    /// Orders the training of the next round, now that the change of the present one is in the numerator.
    pub(super) fn order_ahead(&mut self) {
        let next = self.round() + 1;
        if self.config.overlap == TrainingOverlap::On && self.can_train_ahead(next) {
            self.order_training(next);
        }
    }

    fn can_train_ahead(&self, round: u64) -> bool {
        let is_apart = self.keeps_up() && (round < FIRST_APART || round.is_multiple_of(APART_EVERY));
        let is_over = round >= self.training_rounds() || self.stopping || self.others_are_through();
        if is_apart || is_over || self.is_training() || !self.push_sum.has_working_mass() {
            return false;
        }
        let schedule = &self.config.schedule;
        let weight = schedule.stationary_weight(self.config.id, round * schedule.round_length());
        weight > 0.0 && schedule.agrees_in_every_round()
    }

    /// Adds a change to the numerator, now that its round has begun, and orders the next training.
    pub(super) fn join_ready(&mut self, ready: ReadyChange) {
        let ReadyChange { delta, norm, state } = ready;
        self.report(NodeEvent::ReadyChangeTaken { round: self.round() });
        self.add_change(1.0, &delta, norm);
        self.keep_host_state(state);
        self.tally.trained = true;
        self.rounds_trained_ahead += 1;
        self.order_ahead();
    }

    /// Holds back a change that is ready, since its round will not begin as planned: the node stops, or follows another
    /// plan.
    pub(super) fn set_ready_aside(&mut self) {
        if let Some(ReadyChange { delta, state, .. }) = self.training.ready.take() {
            self.report(NodeEvent::ReadyChangeTaken { round: self.round() });
            self.hold_back(1.0, &delta);
            self.keep_host_state(state);
        }
    }
}
